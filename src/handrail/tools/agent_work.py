"""The agent_work tool: an agent asks permission for work that it then does itself.

The claims come from the agent's description: its tool input, locations and diffs. So the same rules decide as
for our own tools. The call is advisory: Handrail runs nothing and cannot check what the agent does.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.rules.matching import AGENT_WORK
from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.lazy_dataclass import dataclass
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
from handrail.tools._described_change import find_change
from handrail.tools.commands.command_claims import command_claims, hosts, read_line
from handrail.tools.commands.command_input import COMMAND_BYTES
from handrail.tools.files.diff import unified
from handrail.tools.results import Input, printable_line
from handrail.tools.workspace import Workspace

MOST_NAMED = 400
"""Paths judged in one question; a person cannot review more. Any further paths make the claim opaque."""
_LINES = ("command", "cmd", "commands", "script", "argv")
_LINE_LISTS = ("commands",)
"""Fields whose list holds whole lines, not the words of one line."""
_WORDS = ("args", "arguments")
"""Fields with arguments of the command in a `_LINES` field."""
_FOLDERS = ("cwd", "workdir", "working_directory", "directory", "dir_path")
_HARMLESS = frozenset(
    (
        *("description", "reason", "justification", "explanation", "title", "timeout", "timeout_ms", "id"),
        *("run_in_background", "is_background", "call_id", "turn_id", "approval_id", "parsed_cmd"),
        *("proposed_execpolicy_amendment", "available_decisions"),
    )
)
"""Fields that do not change what a command does; a variable, a shell or a disabled sandbox would."""
_HARMLESS_VALUES: dict[str, re.Pattern[str]] = {
    "started_at_ms": re.compile(r"\d{1,20}"),
    "process_id": re.compile(r"\d{1,20}"),
    "source": re.compile(r"agent|user_shell|unified_exec_startup|unified_exec_interaction"),
}
"""Fields that are harmless with these values only: another agent may use the name for something else."""
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


class AgentInput:
    """Parser for the input of an agent's own tool, whose schema is unknown."""

    def __init__(self, input: JsonValue) -> None:
        self._input = input if isinstance(input, dict) else {}
        self._is_object = input is None or isinstance(input, dict)

    @property
    def readable(self) -> bool:
        """Whether the input is an object or missing; any other JSON may be a fragment of a larger input."""
        return self._is_object

    @property
    def lines(self) -> list[str]:
        """The command lines it would run, from any of the known fields."""
        lines = [line for name in _LINES if self._input.get(name) is not None for line in self._lines(name)]
        return list(dict.fromkeys(filter(None, lines)))

    @property
    def one_line(self) -> bool:
        """Whether it runs exactly one line, and no other field could change what that line does."""
        fields = {
            name: value for name, value in self._input.items() if value not in (None, "", False, [], {})
        }
        known = (*_LINES, *_WORDS, *_FOLDERS)
        others = [
            name for name, value in fields.items() if name not in known and not _is_harmless(name, value)
        ]
        each_line = [self._lines(name) for name in fields if name in _LINES]
        is_same = bool(each_line) and all(len(lines) == 1 and lines == each_line[0] for lines in each_line)
        return not others and is_same and bool(self.lines) and len(self.folders) <= 1

    @property
    def folders(self) -> list[str]:
        """Working directories; a value that is not a string becomes an empty one."""
        values = [value for name in _FOLDERS if (value := self._input.get(name)) not in (None, "")]
        return list(dict.fromkeys(value if isinstance(value, str) else "" for value in values))

    @property
    def paths(self) -> list[str]:
        """Every path it names, at any depth."""
        return list(dict.fromkeys(_paths(self._input)))

    @property
    def changes(self) -> bool:
        """Whether it has new content for a file."""
        return any(name.lower() in _CHANGES and value is not None for name, value in self._input.items())

    @property
    def hosts(self) -> list[str]:
        """Hosts of all the URLs in it."""
        return list(dict.fromkeys(host for word in _texts(self._input) for host in hosts(("fetch", word))))

    @property
    def reaches(self) -> bool:
        """Whether it names URLs, and each has a host."""
        named = [value for name in _URLS if (value := self._input.get(name)) is not None]
        return bool(named) and all(
            isinstance(word, str) and any(hosts(("fetch", word)))
            for value in named
            for word in (value if isinstance(value, list) else [value])
        )

    def _lines(self, name: str) -> list[str]:
        """The command lines in a field; an empty one stands for a line that cannot be run unchanged."""
        value = self._input[name]
        words = [given for each in _WORDS if (given := self._input.get(each)) not in (None, [], "")]
        if words and words[0] != words[-1]:
            return [""]
        more = words[0] if words else None
        is_alone = more is None
        if name in _LINE_LISTS and isinstance(value, list):
            return [_checked_line(each) if isinstance(each, str) and is_alone else "" for each in value]
        line = value if isinstance(value, str) and is_alone else _join_words(value, more)
        return [_checked_line(line)]


def _is_harmless(name: str, value: JsonValue) -> bool:
    """Whether a field beside a command cannot change what the command does."""
    pattern = _HARMLESS_VALUES.get(name)
    if pattern is None:
        return name in _HARMLESS
    return isinstance(value, str | int) and pattern.fullmatch(str(value)) is not None


def _checked_line(line: str) -> str:
    """The line; empty when it cannot be run unchanged."""
    is_line = bool(line.strip()) and len(line) <= COMMAND_BYTES and "\0" not in line
    return line if is_line else ""


def _join_words(first_words: JsonValue, more: JsonValue) -> str:
    """Join the words into a shell line;

    empty when a word is not a string, since dropping it would mislead.
    """
    first = first_words if isinstance(first_words, list) else [first_words]
    rest = more if isinstance(more, list) else [] if more is None else [more]
    words = [word for word in (*first, *rest) if isinstance(word, str)]
    return shlex.join(words) if len(words) == len(first) + len(rest) else ""


def _paths(node: JsonValue) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _paths(each)
    if isinstance(node, dict):
        for name, value in node.items():
            low = name.lower()
            if low in _BY_PATH and isinstance(value, dict):
                yield from value
            elif low.endswith(_PATHS) or (low in _ENDS and _looks_like_a_path(value)):
                yield from _strings(value)
            if isinstance(value, dict | list):
                yield from _paths(value)


def _looks_like_a_path(value: JsonValue) -> bool:
    """Whether a field with an ambiguous name, such as `from` or `new`, holds a path."""
    return isinstance(value, str) and value.startswith(("/", "~", "./", "../", "file://"))


def _strings(value: JsonValue) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each:
            yield each


def _texts(node: JsonValue) -> Iterator[str]:
    match node:
        case str():
            yield node
        case list():
            for each in node:
                yield from _texts(each)
        case dict():
            for each in node.values():
                yield from _texts(each)
        case _:
            return


ALLOWED = "Allowed. The agent does this itself."
UNSTATED = "the agent does not say what this would touch"
CHANGED = "the agent named another command before"
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
_SHELL_TITLES = re.compile(r"(developer: )?shell( · .*)?", re.DOTALL)
"""Titles of the shell tool of goose, which gives it the kind `other`."""


class Location(Input):
    path: str
    line: int | None = None


class DescribedDiff(Input):
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
    diffs: tuple[DescribedDiff, ...] = ()


class AgentWorkInput(Work):
    title: str = ""
    cwd: str | None = None
    before: Annotated[
        Work | None, Field(description="What the agent said of it before it asked, where that is different.")
    ] = None
    explanation: Annotated[str, Field(description="The text in its request, for the person.")] = ""
    partly: Annotated[bool, Field(description="It said more than is kept here.")] = False


class AgentWorkOutput(BaseModel, defer_build=True):
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
        return printable_line(_first_line(input) or input.title or input.sort)

    async def plan(self, input: AgentWorkInput, caller: Caller) -> WorkPlan:
        """Claim the union of all that the agent described: one description cannot weaken another."""
        workspace = Workspace.of(caller, self._own)
        earlier = () if input.before is None else (input.before,)
        claims = await self._claims(input, input, caller, workspace) or [_opaque_claim(input, UNSTATED)]
        for work in earlier:
            claims += await self._claims(work, input, caller, workspace)
            if AgentInput(work.input).lines not in ([], AgentInput(input.input).lines):
                claims.append(_opaque_claim(input, CHANGED))
        if input.partly:
            claims.append(_opaque_claim(input, UNCLEAR))
        unique = tuple(dict.fromkeys(claims))
        return WorkPlan(claims=unique, preview=_preview(input, unique, caller, workspace), bound={})

    async def run(self, plan: WorkPlan, call: CallReport) -> Result:
        return Result(text=ALLOWED, data={})

    async def _claims(
        self, work: Work, input: AgentWorkInput, caller: Caller, workspace: Workspace
    ) -> list[Claim]:
        words = AgentInput(work.input)
        claims = _path_claims_of(work, words, input, workspace)
        if work.sort == "fetch":
            claims += [Claim(action="connect", resource=host, inside=True) for host in words.hosts]
        for line in words.lines:
            claims += await self._run_claims(line, words, input, caller, workspace)
        if not _is_covered(work, words, input.title) and (claims or work.sort == "execute"):
            claims.append(_opaque_claim(input, UNSTATED))
        return claims

    async def _run_claims(
        self, line: str, words: AgentInput, input: AgentWorkInput, caller: Caller, workspace: Workspace
    ) -> list[Claim]:
        """Claims of a command line, judged as for a command that Handrail would run."""
        read = await anyio.to_thread.run_sync(read_line, line)
        try:
            places = [workspace.place(folder) for folder in words.folders or [_folder(input, caller)]]
        except Refusal as refusal:
            return [_opaque_claim(input, refusal.sentence)]
        claim = partial(command_claims, read, workspace=workspace, path=self._path)
        return [each for place in places for each in await anyio.to_thread.run_sync(claim, place)]


def _is_covered(work: Work, words: AgentInput, title: str) -> bool:
    """Whether the claims cover all of the input; if not, no rule may allow it."""
    if not words.readable or (words.lines and not _is_command(work, words, title)):
        return False
    match work.sort:
        case _ if _is_command(work, words, title):
            return words.one_line
        case "fetch":
            return words.reaches
        case "read" | "search":
            return not words.changes
        case _:
            return work.sort in _ACTIONS


def _is_command(work: Work, words: AgentInput, title: str) -> bool:
    """Whether it runs a command line. Without a kind, only the title of a known shell tool says so: `command` may
    also be an argument of some MCP tool."""
    is_shell = work.sort == "other" and _SHELL_TITLES.fullmatch(title) is not None
    return work.sort == "execute" or (is_shell and bool(words.lines))


def _folder(input: AgentWorkInput, caller: Caller) -> str:
    return input.cwd or caller.workspace or "/"


def _first_line(input: AgentWorkInput) -> str:
    return next(iter(AgentInput(input.input).lines), "")


def _path_claims_of(
    work: Work, words: AgentInput, input: AgentWorkInput, workspace: Workspace
) -> list[Claim]:
    actions = _ACTIONS.get(work.sort, ())
    change = find_change(work.input)
    named = [*(location.path for location in work.locations), *(words.paths if actions else ())]
    named += change.paths if change is not None and work.sort in _ACTIONS else ()
    claims = [
        claim
        for said in work.diffs
        for claim in _path_claims(input, said.path, ("write", *actions), workspace)
    ]
    if _is_command(work, words, input.title):  # the command line has claims of its own
        actions = ("read",)
    if len(named) > MOST_NAMED:
        claims.append(_opaque_claim(input, UNCLEAR))
    for path in dict.fromkeys(named[:MOST_NAMED]) if actions else ():
        claims += _path_claims(input, path, actions, workspace)
    return claims


def _path_claims(
    input: AgentWorkInput, path: str, actions: tuple[Action, ...], workspace: Workspace
) -> tuple[Claim, ...]:
    try:
        place = workspace.place(path.removeprefix("file://"))
    except Refusal as refusal:
        return (_opaque_claim(input, refusal.sentence),)
    return tuple(place.claim(action) for action in actions)


def _opaque_claim(input: AgentWorkInput, why: str) -> Claim:
    return Claim(action="run", resource=printable_line(input.title or input.sort), inside=True, opaque=why)


def _preview(
    input: AgentWorkInput, claims: tuple[Claim, ...], caller: Caller, workspace: Workspace
) -> Preview | None:
    """A preview that shows all of the work; None shows the person the agent's raw input instead."""
    words = AgentInput(input.input)
    if input.before is not None or input.partly or not _is_covered(input, words, input.title):
        return None
    if _is_command(input, words, input.title):
        return None if input.diffs else _preview_command(words, input, caller, workspace)
    if input.diffs:
        return _preview_diff(input.diffs)
    if change := find_change(input.input):
        return DiffPreview(
            path=change.path or next(iter(words.paths), ""),
            diff=change.diff,
            added=change.added,
            removed=change.removed,
            notes=(_WORD,),
        )
    is_path = len(claims) == 1 and claims[0].action in ("read", "write", "delete")
    return PathPreview(path=claims[0].resource) if is_path else None


def _preview_command(
    words: AgentInput, input: AgentWorkInput, caller: Caller, workspace: Workspace
) -> CommandPreview | None:
    try:
        place = workspace.place(next(iter(words.folders), _folder(input, caller)))
    except Refusal:
        return None
    return CommandPreview(command=words.lines[0], cwd=place.path, program=f"{caller.client}, by itself")


def _preview_diff(diffs: Sequence[DescribedDiff]) -> DiffPreview:
    parts = [unified(each.path.removeprefix("/"), _encode(each.old), _encode(each.new)) for each in diffs]
    more = (f"Changes {len(diffs)} files.",) if len({each.path for each in diffs}) > 1 else ()
    return DiffPreview(
        path=diffs[0].path,
        diff="".join(each.text for each in parts),
        added=sum(each.added for each in parts),
        removed=sum(each.removed for each in parts),
        creates=len(diffs) == 1 and diffs[0].old is None,
        notes=(*more, _WORD),
    )


def _encode(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="replace")
