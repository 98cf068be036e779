"""What a model is told about a change that was carried out: the very lines that were written.

Owns the fields and the words. It does not know how the change was made (change.py).
"""

from pydantic import BaseModel, Field

from handrail.store.value import Json, Result
from handrail.tools.answer import answer, some
from handrail.tools.files.work import Work

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
