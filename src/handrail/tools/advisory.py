"""agent_work: an agent asks about work that it then does itself.

Owns what such work claims, taken from what the agent says it will do, so that the same rules decide. It does nothing:
whether the agent keeps to its word, nobody here can know.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio.to_thread
from pydantic import BaseModel, Field, JsonValue

from handrail.gate.rules.alike import AGENT_WORK
from handrail.gate.tool import Plan, Refusal, Tool
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
from handrail.tools.answer import Input, brief
from handrail.tools.commands.command_claims import command_claims, read_line
from handrail.tools.commands.commanding import COMMAND_BYTES
from handrail.tools.commands.hosts import hosts
from handrail.tools.files.diff import unified
from handrail.tools.workspace import Workspace

if TYPE_CHECKING:
    from handrail.gate.call import Call

ALLOWED = "Allowed. The agent does this itself."
UNSAID = "the agent does not say what this would touch"
_WORD = "As the agent says it; Handrail has not looked at the file."
_ACTIONS: dict[str, tuple[Action, ...]] = {
    "read": ("read",),
    "search": ("read",),
    "edit": ("write",),
    "delete": ("delete",),
    "move": ("write", "delete"),
}
"""On each path that is named."""
_PATHS = ("path", "file_path", "filePath", "abs_path", "absolute_path", "notebook_path")
_FOLDERS = ("cwd", "workdir", "working_directory")
"""What agents call these in their own input."""


class Location(Input):
    path: str
    line: int | None = None


class Said(Input):
    """A change as an agent describes it."""

    path: str
    old: str | None = None
    new: str


class AgentWorkInput(Input):
    sort: Annotated[
        str, Field(description="read, edit, delete, move, search, execute, fetch, or another.")
    ] = "other"
    title: str = ""
    input: Annotated[JsonValue, Field(description="The agent's own, as it is.")] = None
    locations: tuple[Location, ...] = ()
    diffs: tuple[Said, ...] = ()
    cwd: str | None = None


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
        return brief(_command(input) or input.title or input.sort)

    async def plan(self, input: AgentWorkInput, caller: Caller) -> WorkPlan:
        workspace = Workspace.of(caller, self._own)
        command = _command(input)
        if command is not None:
            return await self._runs(command, input, caller, workspace)
        claims = _claims(input, workspace) or (_unsaid(input, UNSAID),)
        return WorkPlan(claims=claims, preview=_preview(input, claims), bound={})

    async def run(self, plan: WorkPlan, call: "Call") -> Result:
        return Result(text=ALLOWED, data={})

    async def _runs(
        self, command: str, input: AgentWorkInput, caller: Caller, workspace: Workspace
    ) -> WorkPlan:
        """A command, judged as if we were to run it; of what is no plain command, that much is known for sure."""
        place = workspace.place(_first(input.input, _FOLDERS) or input.cwd or caller.workspace or "/")
        line = await anyio.to_thread.run_sync(read_line, command)
        claims = command_claims(line, place, workspace, self._path)
        if not claims or input.sort != "execute":
            return WorkPlan(claims=(*claims, _unsaid(input, UNSAID)), bound={})
        shown = CommandPreview(command=command, cwd=place.path, program=f"{caller.client}, by itself")
        return WorkPlan(claims=claims, preview=shown, bound={})


def _command(input: AgentWorkInput) -> str | None:
    """The line it would run; None where it would run none, or does not say which."""
    said = input.input.get("command") if isinstance(input.input, dict) else None
    if input.sort not in ("execute", "other"):
        return None
    words = [word for word in said if isinstance(word, str)] if isinstance(said, list) else []
    line = said if isinstance(said, str) else shlex.join(words)
    is_line = bool(line.strip()) and len(line) <= COMMAND_BYTES and "\0" not in line
    return line if is_line else None


def _claims(input: AgentWorkInput, workspace: Workspace) -> tuple[Claim, ...]:
    if input.sort == "fetch":
        url = _first(input.input, ("url", "uri"))
        return tuple(Claim(action="connect", resource=host, inside=True) for host in hosts(("fetch", url)))
    actions = _ACTIONS.get(input.sort, ())
    found = [claim for path in _paths(input) for claim in _path_claims(input, path, actions, workspace)]
    return tuple(dict.fromkeys(found))


def _path_claims(
    input: AgentWorkInput, path: str, actions: tuple[Action, ...], workspace: Workspace
) -> tuple[Claim, ...]:
    try:
        place = workspace.place(path.removeprefix("file://"))
    except Refusal as refusal:
        return (_unsaid(input, refusal.sentence),)
    return tuple(place.claim(action) for action in actions)


def _paths(input: AgentWorkInput) -> list[str]:
    named = [*(said.path for said in input.diffs), *(location.path for location in input.locations)]
    own = _first(input.input, _PATHS)
    return [*dict.fromkeys(named)] or ([own] if own else [])


def _unsaid(input: AgentWorkInput, why: str) -> Claim:
    return Claim(action="run", resource=brief(input.title or input.sort), inside=True, opaque=why)


def _preview(input: AgentWorkInput, claims: tuple[Claim, ...]) -> Preview | None:
    if input.diffs:
        return _diff(input.diffs)
    is_path = len(claims) == 1 and claims[0].action in ("read", "write", "delete")
    return PathPreview(path=claims[0].resource) if is_path else None


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


def _first(input: JsonValue, names: tuple[str, ...]) -> str:
    """The first of these that is said as a text."""
    said = input if isinstance(input, dict) else {}
    return next((value for name in names if isinstance(value := said.get(name), str) and value), "")
