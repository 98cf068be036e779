"""What every change of a file shares: a plan that shows the whole diff, a review of it, and a write of exactly that.

Owns planning, reviewing and carrying out a change. It does not know how new content is made (edits.py), what a review
comes to (review.py), or how bytes reach the disk (replace.py).

A change worked out in full: which bytes come where, and how a person sees it.

What a model is told about a change that was carried out: the very lines that were written.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Proposal, ReceiptFacts, Refusal, Salvage, Tool
from handrail.store.blobs import Blobs
from handrail.store.values import Action, Caller, Comment, DiffPreview, FileChange, Json, Result
from handrail.tools.files.atomic_write import remove_file, replace_file
from handrail.tools.files.diff import Diff, unified
from handrail.tools.files.encoding import decode, encode
from handrail.tools.files.review import Editor, Review, review
from handrail.tools.files.target import SIZE_MAX, Target, changed_since, look, notes_on
from handrail.tools.results import Input, answer, brief, some
from handrail.tools.workspace import Place, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New content, and words for what was done to get it, such as "Replaced 2 occurrences in"."""

    after: str | None
    """None deletes the file."""
    did: str
    executable: bool | None = None
    """Whether the file shall be; None leaves its mode as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What will be written, and where."""

    target: Target
    after: bytes | None
    executable: bool | None
    """None where the mode stays."""
    diff: Diff
    did: str
    notes: tuple[str, ...]
    review: Review | None = None
    """What a person made of it."""

    @property
    def changes(self) -> bool:
        return self.after != self.target.before or self.executable is not None

    @property
    def action(self) -> Action:
        return "delete" if self.after is None and self.changes else "write"

    @property
    def bound(self) -> Json:
        folder = self.target.folder
        return {
            "path": self.target.place.path,
            "folder": {"path": folder.path, "dev": folder.dev, "inode": folder.inode},
            "before": _sha256(self.target.before),
            "after": _sha256(self.after),
            "executable": self.executable,
        }

    @property
    def files(self) -> tuple[FileChange, ...]:
        if not self.changes:
            return ()
        target = self.target
        return (
            FileChange(
                path=target.place.path,
                before=_sha256(target.before),
                after=_sha256(self.after),
                mode=target.mode,
                made=target.made,
            ),
        )

    @property
    def preview(self) -> DiffPreview:
        return DiffPreview(
            path=self.target.place.path,
            diff=self.diff.text,
            added=self.diff.added,
            removed=self.diff.removed,
            creates=self.target.before is None and self.changes,
            deletes=self.action == "delete",
            notes=self.notes,
        )

    @property
    def editor(self) -> Editor:
        return Editor(before=self.target.before, proposed=self.after)

    def reviewed(self, content: str, comments: Sequence[Comment]) -> "Work":
        """The same with what a person left in the editor. Raises Refusal."""
        target = self.target
        final = self.editor.written(content)
        _check(final)
        seen = review(target.place.shown, target.before, self.after, final, comments)
        if final == self.after:
            return replace(self, review=seen) if comments else self
        executable = None if final == target.before else self.executable
        return replace(
            self,
            after=final,
            executable=executable,
            diff=unified(target.place.shown, target.before, final),
            did="Created" if target.before is None else "Wrote",
            notes=notes_on(target, final, executable) if seen.writes else (),
            review=seen,
        )


def work_of(target: Target, change: Change) -> Work:
    """Raises Refusal for content that cannot be written."""
    after = None if change.after is None else _bytes(change.after)
    executable = change.executable
    if target.mode is not None and executable is bool(target.mode & 0o111):
        executable = None
    return Work(
        target=target,
        after=after,
        executable=executable,
        diff=unified(target.place.shown, target.before, after),
        did=change.did,
        notes=notes_on(target, after, executable),
    )


def _bytes(text: str) -> bytes:
    try:
        raw = encode(text)
    except UnicodeEncodeError:
        raise Refusal(
            "The new content holds half a character (a lone surrogate), which no file can. Remove it."
        ) from None
    _check(raw)
    return raw


def _check(raw: bytes | None) -> None:
    if raw is not None and b"\0" in raw:
        raise Refusal(
            "The new content holds a NUL character, so it is no text. Use execute_command to write it."
        )
    if raw is not None and len(raw) > SIZE_MAX:
        raise Refusal(
            f"The new content is too large: {len(raw):,} bytes, where {SIZE_MAX:,} can be shown as a diff."
        )


def _sha256(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


_ECHO_MAX = 10_000
"""Characters of a diff that is just what the model proposed: it knows them, and pays for reading them again."""
_REVIEWED_MAX = 100_000
"""Characters of one that a person made; it should know all of that."""


class CommentOutput(BaseModel):
    line: int = Field(description="Of the file as you proposed it, counted from 1.")
    on: str = Field(description="What stands in that line.")
    text: str = Field(description="What the person says.")


class ReviewOutput(BaseModel):
    """What a person made of the proposal."""

    hunks: int
    kept: int
    rejected: int
    edited: int
    patch: str = Field(description="What was written, against what you proposed; empty when it is the same.")
    comments: list[CommentOutput]


class ChangeOutput(BaseModel):
    path: str | None = Field(None, description="The file.")
    changed: bool | None = Field(None, description="False when nothing was written.")
    created: bool | None = Field(None, description="The file is new.")
    deleted: bool | None = Field(None, description="The file is gone.")
    added: int | None = Field(None, description="Lines added.")
    removed: int | None = Field(None, description="Lines removed.")
    size: int | None = Field(None, description="Bytes in the file now.")
    notes: list[str] | None = Field(None, description="What lines do not show: line endings, mode, links.")
    applied: str | None = Field(None, description="What was really written, as a unified diff.")
    review: ReviewOutput | None = Field(None, description="There when a person reviewed the proposal.")
    difference: str | None = Field(
        None,
        description="How the file changed on disk since you proposed this, when that kept it from being written.",
    )


def result_of(work: Work) -> Result:
    """For a change that was carried out, or that had nothing to do."""
    path, changed = work.target.place.shown, work.changes
    now = work.after if changed else work.target.before
    data: Json = {
        "path": path,
        "changed": changed,
        "created": changed and work.target.before is None,
        "deleted": changed and work.after is None,
        "added": work.diff.added,
        "removed": work.diff.removed,
        "size": len(now or b""),
        "notes": list(work.notes),
        "applied": shortened(work.diff.text, _REVIEWED_MAX if work.review else _ECHO_MAX),
    }
    if work.review is not None:
        data["review"] = work.review.data
    notes = work.notes if changed else ()
    return answer("\n".join([_headline(work), *told(work), *notes]), data)


def told(work: Work) -> list[str]:
    """What is said about the person's review."""
    return [] if work.review is None else [shortened(work.review.words, _REVIEWED_MAX)]


def _headline(work: Work) -> str:
    path = work.target.place.shown
    if not work.changes:
        return f"{path} is as it was." if work.review else _same(path)
    if work.after is None:
        return f"{work.did} {path} (-{work.diff.removed} lines)."
    sizes = f"+{work.diff.added} -{work.diff.removed} lines, {len(work.after):,} bytes now"
    return f"{work.did} {path} ({sizes})."


def _same(path: str) -> str:
    return f"{path} already has exactly this content; nothing was written."


def shortened(text: str, most: int) -> str:
    """The text up to a line's end before `most` characters, and how much is left out."""
    if len(text) <= most:
        return text
    cut = text.rfind("\n", 0, most) + 1
    return f"{text[:cut]}… {some(text.count(chr(10), cut), 'more line')}; read the file for the rest."


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
