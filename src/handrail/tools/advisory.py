"""agent_work: an agent asks about work that it then does itself.

Owns what such work claims, taken from what the agent says it will do, so that the same rules decide. It does nothing:
whether the agent keeps to its word, nobody here can know.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.rules.matching import AGENT_WORK
from handrail.gate.tool import CallReport, Plan, Refusal, Tool
from handrail.store.value import (
    Action,
    Caller,
    Claim,
    CommandPreview,
    DiffPreview,
    PathPreview,
    Preview,
    Result,
)
from handrail.tools.agent_words import MOST_NAMED, Words
from handrail.tools.answer import Input, brief
from handrail.tools.commands.command_claims import command_claims, read_line
from handrail.tools.files.diff import unified
from handrail.tools.workspace import Workspace

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
"""On each path that is named; a diff is a change, whatever it is called."""


class Location(Input):
    path: str
    line: int | None = None


class Said(Input):
    """A change as an agent describes it."""

    path: str
    old: str | None = None
    new: str


class Work(Input):
    """Some work, in the words of whoever will do it."""

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
    """Nothing comes of it here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkPlan(Plan):
    """What an agent said."""


class AgentWork(Tool[AgentWorkInput, WorkPlan]):
    """Asks, for work that is done elsewhere."""

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
        """`own` are Handrail's own files, always protected; `environment` is what programs are started with."""
        self._own = tuple(own)
        self._path = environment.get("PATH", os.defpath)

    def display(self, input: AgentWorkInput) -> str:
        return brief(_line(input) or input.title or input.sort)

    async def plan(self, input: AgentWorkInput, caller: Caller) -> WorkPlan:
        """The worst of all that is said: a word that understates takes nothing from another."""
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
        """Of a command, judged as if we were to run it."""
        read = await anyio.to_thread.run_sync(read_line, line)
        try:
            places = [workspace.place(folder) for folder in words.folders or [_folder(input, caller)]]
        except Refusal as refusal:
            return [_unsaid(input, refusal.sentence)]
        return [claim for place in places for claim in command_claims(read, place, workspace, self._path)]


def _is_plain(work: Work, words: Words) -> bool:
    """All that it says is judged by what it names; else no rule may let it pass."""
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
    if work.sort == "execute":  # what it would run is judged by itself
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
    """Only what shows all of it; else a person is shown the agent's words as they are."""
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
