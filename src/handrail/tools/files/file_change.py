"""The base of the tools that change a file: plan the full diff, let the person review it, write it.

Exactly the approved bytes are written. The new content is computed in edit_tools.py, the review in review.py,
the write in atomic_write.py.
"""

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Plan, Proposal, ReceiptFacts, Refusal, Salvage, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.blobs import Blobs
from handrail.store.values import Action, Caller, Comment, DiffPreview, FileChange, Json, Result
from handrail.tools.files.atomic_write import remove_file, replace_file
from handrail.tools.files.diff import Diff, unified
from handrail.tools.files.encoding import decode, encode
from handrail.tools.files.review import Editor, Review, review
from handrail.tools.files.target import SIZE_MAX, Target, build_notes, changed_since, look
from handrail.tools.results import Input, answer, count_text, printable_path
from handrail.tools.workspace import Place, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New content, and a verb phrase for the result, such as "Replaced 2 occurrences in"."""

    after: str | None
    """None deletes the file."""
    did: str
    executable: bool | None = None
    """Set or clear the executable bits; None keeps the mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A planned change: target, new bytes, diff and notes."""

    target: Target
    after: bytes | None
    executable: bool | None
    """None keeps the mode."""
    diff: Diff
    did: str
    notes: tuple[str, ...]
    review: Review | None = None
    """The person's review, if there was one."""

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
    def old_contents(self) -> tuple[bytes, ...]:
        before = self.target.before
        return (before,) if self.changes and before is not None else ()

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
        """Apply the person's edits from the editor. Raises Refusal."""
        target = self.target
        final = self.editor.written(content)
        _check_content(final)
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
            notes=build_notes(target, final, executable) if seen.writes else (),
            review=seen,
        )


def plan_work(target: Target, change: Change) -> Work:
    """Compute the diff and notes of a change. Raises Refusal for content that cannot be written."""
    after = None if change.after is None else _encode_content(change.after)
    executable = change.executable
    if target.mode is not None and executable is bool(target.mode & 0o111):
        executable = None
    return Work(
        target=target,
        after=after,
        executable=executable,
        diff=unified(target.place.shown, target.before, after),
        did=change.did,
        notes=build_notes(target, after, executable),
    )


def _encode_content(text: str) -> bytes:
    try:
        raw = encode(text)
    except UnicodeEncodeError:
        raise Refusal(
            "The new content holds half a character (a lone surrogate), which no file can. Remove it."
        ) from None
    _check_content(raw)
    return raw


def _check_content(raw: bytes | None) -> None:
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
"""Characters of a diff the model itself proposed: it pays to read them again."""
_REVIEWED_MAX = 100_000
"""Characters of a diff with a person's edits, which the model should see in full."""


class CommentOutput(BaseModel, defer_build=True):
    line: int = Field(description="Of the file as you proposed it, counted from 1.")
    on: str = Field(description="What stands in that line.")
    text: str = Field(description="What the person says.")


class ReviewOutput(BaseModel, defer_build=True):
    """The proposal as a person edited it."""

    hunks: int
    kept: int
    partly: int = Field(0, description="Hunks of which only some lines were kept.")
    rejected: int
    edited: int
    patch: str = Field(description="What was written, against what you proposed; empty when it is the same.")
    comments: list[CommentOutput]


class ChangeOutput(BaseModel, defer_build=True):
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
    """The result of a change that was written, or that had nothing to write."""
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
        "applied": shorten_text(work.diff.text, _REVIEWED_MAX if work.review else _ECHO_MAX),
    }
    if work.review is not None:
        data["review"] = work.review.data
    notes = work.notes if changed else ()
    return answer("\n".join([_headline(work), *review_lines(work), *notes]), data)


def review_lines(work: Work) -> list[str]:
    """The text about the person's review; empty without one."""
    return [] if work.review is None else [shorten_text(work.review.words, _REVIEWED_MAX)]


def _headline(work: Work) -> str:
    path = work.target.place.shown
    if not work.changes:
        return f"{path} is as it was." if work.review else _describe_unchanged(path)
    if work.after is None:
        return f"{work.did} {path} (-{work.diff.removed} lines)."
    sizes = f"+{work.diff.added} -{work.diff.removed} lines, {len(work.after):,} bytes now"
    return f"{work.did} {path} ({sizes})."


def _describe_unchanged(path: str) -> str:
    return f"{path} already has exactly this content; nothing was written."


def shorten_text(text: str, most: int) -> str:
    """Cut the text at a line end before `most` characters, and note how much is left out."""
    if len(text) <= most:
        return text
    cut = text.rfind("\n", 0, most) + 1
    return f"{text[:cut]}… {count_text(text.count(chr(10), cut), 'more line')}; read the file for the rest."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePlan(Plan):
    """A planned change; or, for a path the caller may not read, the reason why it will fail."""

    place: Place
    work: Work | None
    problem: str | None = None


class ChangeInput(Input):
    path: Annotated[str, Field(description="The file, relative to the workspace or absolute.")]


InputT = TypeVar("InputT", bound=ChangeInput)


class ChangeTool(Tool[InputT, ChangePlan]):
    """Base of the tools that change one file."""

    output = ChangeOutput
    destructive = True
    completes_by_accepting = True
    shows_path = True
    verb: ClassVar[str]

    def __init__(self, own: Sequence[Path], blobs: Blobs) -> None:
        """`own` are Handrail's own files, always protected; `blobs` keep old contents for undo."""
        self._own = tuple(own)
        self._blobs = blobs

    @abstractmethod
    def change(self, input: InputT, before: str | None, path: str) -> Change:
        """Compute new content; `before` is None when the file does not exist. Raises Refusal."""

    def display(self, input: InputT) -> str:
        return f"{self.verb} {printable_path(input.path)}"

    async def plan(self, input: InputT, caller: Caller) -> ChangePlan:
        place = Workspace.of(caller, self._own).place(input.path)
        try:
            work = await anyio.to_thread.run_sync(self._work, input, place)
        except Refusal as refusal:
            if place.is_common:
                raise
            return _plan_failure(place, refusal.sentence)
        return _plan_for(place, work)

    def proposal(self, plan: ChangePlan) -> Proposal | None:
        """The contents for an editor: LF line endings, no byte order mark."""
        if plan.work is None:
            return None
        editor = plan.work.editor
        return Proposal(
            path=plan.place.path, before=editor.shown(editor.before), after=editor.shown(editor.proposed)
        )

    def review(self, plan: ChangePlan, content: str, comments: tuple[Comment, ...]) -> ChangePlan:
        if plan.work is None:
            raise Refusal(plan.problem or "")
        return _plan_for(plan.place, plan.work.reviewed(content, comments))

    def describe_review(self, plan: ChangePlan) -> str:
        """The text the agent will get about a review; empty without one."""
        return "" if plan.work is None else "\n".join(review_lines(plan.work))

    def changed_since(self, plan: ChangePlan) -> tuple[str, str] | None:
        """How the file on disk differs from the plan: a sentence, and a diff for the person."""
        drift = None if plan.work is None else changed_since(plan.work.target)
        return None if drift is None else (drift.sentence, drift.diff)

    async def run(self, plan: ChangePlan, call: CallReport) -> Result:
        if plan.work is None:
            raise Refusal(plan.problem or "")
        if plan.work.changes:
            # Not abandoned on cancel: the receipt must state whether the file was written.
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
        return plan_work(target, self.change(input, before, place.shown))

    def _carry_out(self, work: Work) -> None:
        self._keep(work.target)
        if work.after is None:
            remove_file(work.target)
        else:
            replace_file(work.target, work.after, work.executable)

    def _keep(self, target: Target) -> None:
        """Make sure that the old content is on disk before it is replaced: the start of the call may have kept it."""
        if target.before is None:
            return
        try:
            self._blobs.put(target.before)
        except OSError as error:
            shown = target.place.shown
            raise Refusal(
                f"What {shown} holds could not be kept for undo ({error.strerror}), so nothing was changed."
            ) from None


def _plan_for(place: Place, work: Work) -> ChangePlan:
    return ChangePlan(
        claims=(place.claim(work.action),),
        preview=work.preview,
        bound=work.bound,
        files=work.files,
        old_contents=work.old_contents,
        place=place,
        work=work,
    )


def _plan_failure(place: Place, problem: str) -> ChangePlan:
    """A plan that will fail but still needs approval: the reason reveals facts about an unapproved path."""
    note = f"This will fail: {problem}"
    preview = DiffPreview(path=place.path, diff="", added=0, removed=0, notes=(note,))
    bound: Json = {"path": place.path, "problem": problem}
    return ChangePlan(
        claims=(place.claim("write"),), preview=preview, bound=bound, place=place, work=None, problem=problem
    )
