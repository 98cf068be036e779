"""The agent_work tool: an agent asks permission for work that it then does itself.

The claims come from the agent's description: its tool input, locations and diffs. So the same rules decide as
for our own tools. The call is advisory: Handrail runs nothing and cannot check what the agent does.
"""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.rules.matching import AGENT_WORK
from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.values import (
    Action,
    Caller,
    Claim,
    CommandPreview,
    DiffPreview,
    PathPreview,
    Preview,
    Result,
)
from handrail.tools.commands.command_claims import command_claims, hosts, read_line
from handrail.tools.commands.command_input import COMMAND_BYTES
from handrail.tools.files.diff import unified
from handrail.tools.results import Input, brief
from handrail.tools.workspace import Workspace

MOST_NAMED = 400
"""Paths judged in one question; a person cannot review more. Any further paths make the claim opaque."""
_LINES = ("command", "cmd", "commands", "script", "argv")
_WORDS = ("args", "arguments")
"""Fields with arguments of the command in a `_LINES` field."""
_FOLDERS = ("cwd", "workdir", "working_directory", "directory", "dir_path")
_HARMLESS = frozenset(
    (
        *("description", "reason", "justification", "explanation", "title", "timeout", "timeout_ms", "id"),
        *("run_in_background", "is_background", "call_id", "turn_id", "approval_id", "parsed_cmd"),
        "proposed_execpolicy_amendment",
    )
)
"""Fields that do not change what a command does; a variable, a shell or a disabled sandbox would."""
_PATHS = ("path", "paths", "file", "files", "filename", "file_name", "folder", "directory", "dir", "root")
"""Suffixes of the names of path fields, such as `file_path`, `filePath`, `notebook_path`, `grant_root`."""
_ENDS = frozenset(("source", "src", "destination", "dest", "dst", "target", "from", "to", "old", "new"))
_BY_PATH = ("changes", "file_changes", "filechanges", "files")
"""Fields whose value is an object keyed by path."""
_CHANGES = frozenset(
    ("content", "contents", "new_string", "newstring", "new_text", "newtext", "edits", "patch", "new_source")
)
"""Fields with new content for a file."""
_URLS = ("url", "uri", "urls", "href", "link")


class Words:
    """Parser for the input of an agent's own tool, whose schema is unknown."""

    def __init__(self, given: JsonValue) -> None:
        self._given = given if isinstance(given, dict) else {}
        self._is_read = given is None or isinstance(given, dict)

    @property
    def readable(self) -> bool:
        """Whether the input is an object or missing; any other JSON may be a fragment of a larger input."""
        return self._is_read

    @property
    def lines(self) -> list[str]:
        """The command lines it would run, from any of the known fields."""
        found = (self._line(name) for name in _LINES if self._given.get(name) is not None)
        return [line for line in found if line]

    @property
    def one_line(self) -> bool:
        """Whether it runs exactly one line, and no other field could change what that line does."""
        said = [name for name, value in self._given.items() if value not in (None, "", False, [], {})]
        others = [
            name for name in said if name not in (*_LINES, *_WORDS, *_FOLDERS) and name not in _HARMLESS
        ]
        lines = [name for name in said if name in _LINES]
        return not others and len(lines) == 1 and len(self.lines) == 1 and len(self.folders) <= 1

    @property
    def folders(self) -> list[str]:
        """Working directories; a value that is not a string becomes an empty one."""
        said = [value for name in _FOLDERS if (value := self._given.get(name)) not in (None, "")]
        return list(dict.fromkeys(value if isinstance(value, str) else "" for value in said))

    @property
    def paths(self) -> list[str]:
        """Every path it names, at any depth."""
        return list(dict.fromkeys(_paths(self._given)))

    @property
    def changes(self) -> bool:
        """Whether it has new content for a file."""
        return any(name.lower() in _CHANGES and value is not None for name, value in self._given.items())

    @property
    def hosts(self) -> list[str]:
        """Hosts of all the URLs in it."""
        return list(dict.fromkeys(host for word in _texts(self._given) for host in hosts(("fetch", word))))

    @property
    def reaches(self) -> bool:
        """Whether it names URLs, and each has a host."""
        named = [value for name in _URLS if (value := self._given.get(name)) is not None]
        return bool(named) and all(
            isinstance(word, str) and any(hosts(("fetch", word)))
            for value in named
            for word in (value if isinstance(value, list) else [value])
        )

    def _line(self, name: str) -> str:
        """The command line in a field; empty when it cannot be run unchanged."""
        more = next((value for name in _WORDS if (value := self._given.get(name)) is not None), None)
        said = self._given[name]
        line = said if isinstance(said, str) and more in (None, [], "") else _joined(said, more)
        is_line = bool(line.strip()) and len(line) <= COMMAND_BYTES and "\0" not in line
        return line if is_line else ""


def _joined(said: JsonValue, more: JsonValue) -> str:
    """Join the words into a shell line;

    empty when a word is not a string, since dropping it would mislead.
    """
    first = said if isinstance(said, list) else [said]
    rest = more if isinstance(more, list) else [] if more is None else [more]
    words = [word for word in (*first, *rest) if isinstance(word, str)]
    return shlex.join(words) if len(words) == len(first) + len(rest) else ""


def _paths(given: JsonValue) -> Iterator[str]:
    if isinstance(given, list):
        for each in given:
            yield from _paths(each)
    if isinstance(given, dict):
        for name, value in given.items():
            low = name.lower()
            if low in _BY_PATH and isinstance(value, dict):
                yield from value
            elif low.endswith(_PATHS) or (low in _ENDS and _looks_like_a_path(value)):
                yield from _at_once(value)
            if isinstance(value, dict | list):
                yield from _paths(value)


def _looks_like_a_path(value: JsonValue) -> bool:
    """Whether a field with an ambiguous name, such as `from` or `new`, holds a path."""
    return isinstance(value, str) and value.startswith(("/", "~", "./", "../", "file://"))


def _at_once(value: JsonValue) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each:
            yield each


def _texts(given: JsonValue) -> Iterator[str]:
    match given:
        case str():
            yield given
        case list():
            for each in given:
                yield from _texts(each)
        case dict():
            for each in given.values():
                yield from _texts(each)
        case _:
            return


ALLOWED = "Allowed. The agent does this itself."
UNSAID = "the agent does not say what this would touch"
UNCLEAR = "the agent says more of this than can be judged"
_WORD = "As the agent says it; Handrail has not looked at the file."
_ACTIONS: dict[str, tuple[Action, ...]] = {
    "read": ("read",),
    "search": ("read",),
    "edit": ("write",),
    "delete": ("delete",),
    "move": ("write", "delete"),
    "fetch": ("write",),
}
"""Actions claimed on each named path. A diff always claims `write`, whatever its sort."""


class Location(Input):
    path: str
    line: int | None = None


class Said(Input):
    """A change to one file, as described by the agent."""

    path: str
    old: str | None = None
    new: str


class Work(Input):
    """A piece of work, as described by the agent."""

    sort: Annotated[
        str, Field(description="read, edit, delete, move, search, execute, fetch, or another.")
    ] = "other"
    input: Annotated[JsonValue, Field(description="The agent's own, as it is.")] = None
    locations: tuple[Location, ...] = ()
    diffs: tuple[Said, ...] = ()


class AgentWorkInput(Work):
    title: str = ""
    cwd: str | None = None
    before: Annotated[
        Work | None, Field(description="What the agent said of it before it asked, where that is different.")
    ] = None
    partly: Annotated[bool, Field(description="It said more than is kept here.")] = False


class AgentWorkOutput(BaseModel):
    """Always empty: the agent does the work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlan(Plan):
    """The claims and preview of an agent's own work; there is nothing to run."""


class AgentWork(Tool[AgentWorkInput, WorkPlan]):
    """Ask permission for work that the agent does itself."""

    name = AGENT_WORK
    title = "Agent's own work"
    description = (
        "The agent does this itself, outside Handrail. It asks first, and shows what it says it will do; Handrail cannot "
        "hold it to that, stop it or undo it."
    )
    input = AgentWorkInput
    output = AgentWorkOutput
    listed = False
    assurance = "advisory"
    edits = False

    def __init__(self, own: Sequence[Path], environment: Mapping[str, str]) -> None:
        """`own` are Handrail's own files, always protected; `environment` is that of child processes."""
        self._own = tuple(own)
        self._path = environment.get("PATH", os.defpath)

    def display(self, input: AgentWorkInput) -> str:
        return brief(_line(input) or input.title or input.sort)

    async def plan(self, input: AgentWorkInput, caller: Caller) -> WorkPlan:
        """Claim the union of all that the agent described: one description cannot weaken another."""
        workspace = Workspace.of(caller, self._own)
        earlier = () if input.before is None else (input.before,)
        claims = await self._claims(input, input, caller, workspace) or [_unsaid(input, UNSAID)]
        for work in earlier:
            claims += await self._claims(work, input, caller, workspace)
        if input.partly:
            claims.append(_unsaid(input, UNCLEAR))
        found = tuple(dict.fromkeys(claims))
        return WorkPlan(claims=found, preview=_preview(input, found, caller, workspace), bound={})

    async def run(self, plan: WorkPlan, call: CallReport) -> Result:
        return Result(text=ALLOWED, data={})

    async def _claims(
        self, work: Work, input: AgentWorkInput, caller: Caller, workspace: Workspace
    ) -> list[Claim]:
        words = Words(work.input)
        found = _path_claims_of(work, words, input, workspace)
        if work.sort == "fetch":
            found += [Claim(action="connect", resource=host, inside=True) for host in words.hosts]
        for line in words.lines:
            found += await self._runs(line, words, input, caller, workspace)
        if not _is_plain(work, words) and (found or work.sort == "execute"):
            found.append(_unsaid(input, UNSAID))
        return found

    async def _runs(
        self, line: str, words: Words, input: AgentWorkInput, caller: Caller, workspace: Workspace
    ) -> list[Claim]:
        """Claims of a command line, judged as for a command that Handrail would run."""
        read = await anyio.to_thread.run_sync(read_line, line)
        try:
            places = [workspace.place(folder) for folder in words.folders or [_folder(input, caller)]]
        except Refusal as refusal:
            return [_unsaid(input, refusal.sentence)]
        return [claim for place in places for claim in command_claims(read, place, workspace, self._path)]


def _is_plain(work: Work, words: Words) -> bool:
    """Whether the claims cover all of the input; if not, no rule may allow it."""
    if not words.readable or (work.sort != "execute" and words.lines):
        return False
    match work.sort:
        case "execute":
            return words.one_line
        case "fetch":
            return words.reaches
        case "read" | "search":
            return not words.changes
        case _:
            return work.sort in _ACTIONS


def _folder(input: AgentWorkInput, caller: Caller) -> str:
    return input.cwd or caller.workspace or "/"


def _line(input: AgentWorkInput) -> str:
    return next(iter(Words(input.input).lines), "")


def _path_claims_of(work: Work, words: Words, input: AgentWorkInput, workspace: Workspace) -> list[Claim]:
    actions = _ACTIONS.get(work.sort, ())
    named = [*(location.path for location in work.locations), *(words.paths if actions else ())]
    found = [
        claim
        for said in work.diffs
        for claim in _path_claims(input, said.path, ("write", *actions), workspace)
    ]
    if work.sort == "execute":  # the command line has claims of its own
        actions = ("read",)
    if len(named) > MOST_NAMED:
        found.append(_unsaid(input, UNCLEAR))
    for path in dict.fromkeys(named[:MOST_NAMED]) if actions else ():
        found += _path_claims(input, path, actions, workspace)
    return found


def _path_claims(
    input: AgentWorkInput, path: str, actions: tuple[Action, ...], workspace: Workspace
) -> tuple[Claim, ...]:
    try:
        place = workspace.place(path.removeprefix("file://"))
    except Refusal as refusal:
        return (_unsaid(input, refusal.sentence),)
    return tuple(place.claim(action) for action in actions)


def _unsaid(input: AgentWorkInput, why: str) -> Claim:
    return Claim(action="run", resource=brief(input.title or input.sort), inside=True, opaque=why)


def _preview(
    input: AgentWorkInput, claims: tuple[Claim, ...], caller: Caller, workspace: Workspace
) -> Preview | None:
    """A preview that shows all of the work; None shows the person the agent's raw input instead."""
    words = Words(input.input)
    if input.before is not None or input.partly or not _is_plain(input, words):
        return None
    if input.sort == "execute":
        return None if input.diffs else _command(words, input, caller, workspace)
    if input.diffs:
        return _diff(input.diffs)
    is_path = len(claims) == 1 and claims[0].action in ("read", "write", "delete")
    return PathPreview(path=claims[0].resource) if is_path else None


def _command(
    words: Words, input: AgentWorkInput, caller: Caller, workspace: Workspace
) -> CommandPreview | None:
    try:
        place = workspace.place(next(iter(words.folders), _folder(input, caller)))
    except Refusal:
        return None
    return CommandPreview(command=words.lines[0], cwd=place.path, program=f"{caller.client}, by itself")


def _diff(said: Sequence[Said]) -> DiffPreview:
    made = [unified(each.path, _raw(each.old), _raw(each.new)) for each in said]
    more = (f"Changes {len(said)} files.",) if len({each.path for each in said}) > 1 else ()
    return DiffPreview(
        path=said[0].path,
        diff="".join(each.text for each in made),
        added=sum(each.added for each in made),
        removed=sum(each.removed for each in made),
        creates=len(said) == 1 and said[0].old is None,
        notes=(*more, _WORD),
    )


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="replace")
