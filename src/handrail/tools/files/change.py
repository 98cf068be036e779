"""What every change of a file shares: a plan that shows the whole diff, a review of it, and a write of exactly that.

Owns planning, reviewing and carrying out a change. It does not know how new content is made (edits.py), what a review
comes to (review.py), or how bytes reach the disk (replace.py).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import anyio.to_thread
from pydantic import Field

from handrail.gate.tool import CallReport, Plan, Proposal, ReceiptFacts, Refusal, Salvage, Tool
from handrail.store.blobs import Blobs
from handrail.store.value import Caller, Comment, DiffPreview, Json, Result
from handrail.tools.answer import Input, brief
from handrail.tools.files.applied import ChangeOutput, result_of, told
from handrail.tools.files.replace import remove_file, replace_file
from handrail.tools.files.since import changed_since
from handrail.tools.files.target import Target, look
from handrail.tools.files.text import decode
from handrail.tools.files.work import Change, Work, work_of
from handrail.tools.place import Place
from handrail.tools.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan(Plan):
    """A change worked out in full; or, where nothing may be told before a person allows it, why it must fail."""

    place: Place
    work: Work | None
    problem: str | None = None


class ChangeInput(Input):
    path: Annotated[str, Field(description="The file, relative to the workspace or absolute.")]


InputT = TypeVar("InputT", bound=ChangeInput)


class ChangeTool(Tool[InputT, ChangePlan]):
    """A tool that changes one file, after its diff was seen."""

    output = ChangeOutput
    destructive = True
    accepts = True
    verb: ClassVar[str]

    def __init__(self, own: Sequence[Path], blobs: Blobs) -> None:
        """`own` are Handrail's own files, always protected; `blobs` keep what is replaced, so that it can be undone."""
        self._own = tuple(own)
        self._blobs = blobs

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
        return _planned(place, work)

    def proposal(self, plan: ChangePlan) -> Proposal | None:
        """The file as an editor shows it: newlines only, and no byte order mark."""
        if plan.work is None:
            return None
        editor = plan.work.editor
        return Proposal(
            path=plan.place.path, before=editor.shown(editor.before), after=editor.shown(editor.proposed)
        )

    def review(self, plan: ChangePlan, content: str, comments: tuple[Comment, ...]) -> ChangePlan:
        if plan.work is None:
            raise Refusal(plan.problem or "")
        return _planned(plan.place, plan.work.reviewed(content, comments))

    def tells(self, plan: ChangePlan) -> str:
        """What the agent will be told about a review; empty when there was none."""
        return "" if plan.work is None else "\n".join(told(plan.work))

    def changed_since(self, plan: ChangePlan) -> tuple[str, str] | None:
        """How the file on disk differs from what the plan found: a sentence, and a diff for a person's eyes."""
        drift = None if plan.work is None else changed_since(plan.work.target)
        return None if drift is None else (drift.sentence, drift.diff)

    async def run(self, plan: ChangePlan, call: CallReport) -> Result:
        if plan.work is None:
            raise Refusal(plan.problem or "")
        if plan.work.changes:
            # Not abandoned when cancelled: the receipt must say what became of the file.
            await anyio.to_thread.run_sync(self._carry_out, plan.work)
            call.add_receipt(ReceiptFacts(files_changed=(plan.place.path,)))
        return result_of(plan.work)

    def salvage(self, call: CallReport) -> Salvage:
        path = call.plan.place.shown if isinstance(call.plan, ChangePlan) else str(call.input.get("path"))
        message = f"No pending diff to accept for {path}: its change was allowed and under way."
        return Salvage(result=Result(text=message, data={"path": path}), message=message, runs_on=True)

    def _work(self, input: InputT, place: Place) -> Work:
        if input.path.endswith("/"):
            raise Refusal(f"{input.path} names a directory. Give the path of a file.")
        target = look(place)
        before = None if target.before is None else decode(target.before)
        return work_of(target, self.change(input, before, place.shown))

    def _carry_out(self, work: Work) -> None:
        self._keep(work.target)
        if work.after is None:
            remove_file(work.target)
        else:
            replace_file(work.target, work.after, work.executable)

    def _keep(self, target: Target) -> None:
        """What the file held is safe on disk before it leaves its place."""
        if target.before is None:
            return
        try:
            self._blobs.put(target.before)
        except OSError as error:
            shown = target.place.shown
            raise Refusal(
                f"What {shown} holds could not be kept for undo ({error.strerror}), so nothing was changed."
            ) from None


def _planned(place: Place, work: Work) -> ChangePlan:
    return ChangePlan(
        claims=(place.claim(work.action),),
        preview=work.preview,
        bound=work.bound,
        files=work.files,
        place=place,
        work=work,
    )


def _doomed(place: Place, problem: str) -> ChangePlan:
    """A plan that asks all the same: that it must fail tells something about a place nobody allowed yet."""
    note = f"This will fail: {problem}"
    preview = DiffPreview(path=place.path, diff="", added=0, removed=0, notes=(note,))
    bound: Json = {"path": place.path, "problem": problem}
    return ChangePlan(
        claims=(place.claim("write"),), preview=preview, bound=bound, place=place, work=None, problem=problem
    )
