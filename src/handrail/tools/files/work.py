"""A change worked out in full: which bytes come where, and how a person sees it.

Owns what is bound, shown and recorded of a change. It does not know how new content is made (edits.py) or how bytes
reach the disk (replace.py).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from handrail.gate.tool import Refusal
from handrail.store.value import Action, Comment, DiffPreview, FileChange, Json
from handrail.tools.files.diff import Diff, unified
from handrail.tools.files.editor import Editor
from handrail.tools.files.notes import notes_on
from handrail.tools.files.review import Review, review
from handrail.tools.files.target import SIZE_MAX, Target
from handrail.tools.files.text import encode


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
