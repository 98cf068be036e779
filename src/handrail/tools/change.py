"""What every change of a file shares: a plan that shows the whole diff, and a write of exactly that.

Owns planning, previewing and carrying out a change. It does not know how new content is made (edits.py) or
how bytes reach the disk (replace.py).
"""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeVar

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import Plan, Refusal, Salvage, Tool
from handrail.store.value import Caller, DiffPreview, Json, Result
from handrail.tools.answer import Input, answer, brief
from handrail.tools.diff import Diff, unified
from handrail.tools.notes import notes_on
from handrail.tools.place import Place
from handrail.tools.replace import replace_file
from handrail.tools.target import SIZE_MAX, Target, look
from handrail.tools.text import decode, encode
from handrail.tools.workspace import Workspace

if TYPE_CHECKING:
    from handrail.gate.call import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New content, and words for what was done to get it, such as "Replaced 2 occurrences in"."""

    after: str
    did: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan(Plan):
    """A change worked out in full; or, where nothing may be told before a person allows it, why it must fail."""

    place: Place
    work: "Work | None"
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What will be written, and where."""

    target: Target
    after: bytes
    diff: Diff
    did: str
    notes: tuple[str, ...]

    @property
    def bound(self) -> Json:
        before, folder = self.target.before, self.target.folder
        return {
            "path": self.target.place.path,
            "folder": {"path": folder.path, "dev": folder.dev, "inode": folder.inode},
            "before": None if before is None else hashlib.sha256(before).hexdigest(),
            "after": hashlib.sha256(self.after).hexdigest(),
        }

    @property
    def preview(self) -> DiffPreview:
        return DiffPreview(
            path=self.target.place.path,
            diff=self.diff.text,
            added=self.diff.added,
            removed=self.diff.removed,
            creates=self.target.before is None,
            notes=self.notes,
        )


class ChangeOutput(BaseModel):
    path: str | None = Field(None, description="The file.")
    changed: bool | None = Field(None, description="False when the file had this content already.")
    created: bool | None = Field(None, description="The file is new.")
    added: int | None = Field(None, description="Lines added.")
    removed: int | None = Field(None, description="Lines removed.")
    size: int | None = Field(None, description="Bytes in the file now.")
    notes: list[str] | None = Field(None, description="What lines do not show: line endings, mode, links.")


class ChangeInput(Input):
    path: Annotated[str, Field(description="The file, relative to the workspace or absolute.")]


InputT = TypeVar("InputT", bound=ChangeInput)


class ChangeTool(Tool[InputT, ChangePlan]):
    """A tool that changes one file, after its diff was seen."""

    output = ChangeOutput
    destructive = True
    accepts = True
    verb: ClassVar[str]

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    @abstractmethod
    def change(self, input: InputT, before: str | None, path: str) -> Change:
        """New content from old; `before` is None when there is no file. Raises Refusal."""

    def display(self, input: InputT) -> str:
        return f"{self.verb} {brief(input.path)}"

    async def plan(self, input: InputT, caller: Caller) -> ChangePlan:
        place = Workspace.of(caller, self._own).place(input.path)
        try:
            work = await anyio.to_thread.run_sync(self._work, input, place)
        except Refusal as refusal:
            if place.is_common:
                raise
            return _doomed(place, refusal.sentence)
        return ChangePlan(
            claims=(place.claim("write"),), preview=work.preview, bound=work.bound, place=place, work=work
        )

    async def run(self, plan: ChangePlan, call: "Call") -> Result:
        if plan.work is None:
            raise Refusal(plan.problem or "")
        work = plan.work
        if work.after != work.target.before:
            # Not abandoned when cancelled: the receipt must say what became of the file.
            await anyio.to_thread.run_sync(replace_file, work.target, work.after)
            call.receipt = replace(call.receipt, files_changed=(*call.receipt.files_changed, plan.place.path))
        return _result(work)

    def salvage(self, call: "Call") -> Salvage:
        path = call.plan.place.shown if isinstance(call.plan, ChangePlan) else str(call.input.get("path"))
        message = f"No pending diff to accept for {path}: its change was allowed and under way."
        return Salvage(result=Result(text=message, data={"path": path}), message=message, runs_on=True)

    def _work(self, input: InputT, place: Place) -> Work:
        if input.path.endswith("/"):
            raise Refusal(f"{input.path} names a directory. Give the path of a file.")
        target = look(place)
        before = None if target.before is None else decode(target.before)
        change = self.change(input, before, place.shown)
        after = _checked(change.after)
        diff = unified(place.shown, target.before, after)
        return Work(target=target, after=after, diff=diff, did=change.did, notes=notes_on(target, after))


def _checked(text: str) -> bytes:
    if "\0" in text:
        raise Refusal(
            "The new content holds a NUL character, so it is no text. Use execute_command to write it."
        )
    raw = encode(text)
    if len(raw) > SIZE_MAX:
        raise Refusal(
            f"The new content is too large: {len(raw):,} bytes, where {SIZE_MAX:,} can be shown as a diff."
        )
    return raw


def _doomed(place: Place, problem: str) -> ChangePlan:
    """A plan that asks all the same: that it must fail tells something about a place nobody allowed yet."""
    note = f"This will fail: {problem}"
    preview = DiffPreview(path=place.path, diff="", added=0, removed=0, notes=(note,))
    bound: Json = {"path": place.path, "problem": problem}
    return ChangePlan(
        claims=(place.claim("write"),), preview=preview, bound=bound, place=place, work=None, problem=problem
    )


def _result(work: Work) -> Result:
    path, changed = work.target.place.shown, work.after != work.target.before
    data: Json = {
        "path": path,
        "changed": changed,
        "created": work.target.before is None,
        "added": work.diff.added,
        "removed": work.diff.removed,
        "size": len(work.after),
        "notes": list(work.notes),
    }
    if not changed:
        return answer(f"{path} already has exactly this content; nothing was written.", data)
    sizes = f"+{work.diff.added} -{work.diff.removed} lines, {len(work.after):,} bytes now"
    return answer("\n".join([f"{work.did} {path} ({sizes}).", *work.notes]), data)
