"""The file changes that a client's tool call would make, compared with the files on disk. Nothing is written here.

Several edits of one file in one call become one change. An edit that cannot be shown, such as one of a binary file or of
text that is not there, is claimed all the same, with a note that says why.
"""

import os
import stat
from collections.abc import Callable, Iterable, Sequence

from handrail.clients.hook_event import Edit
from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Action, Claim, FileChange, Json
from handrail.tools.files.edit_tools import replace_match
from handrail.tools.files.encoding import decode
from handrail.tools.files.file_change import Change, plan_work
from handrail.tools.files.file_change import Work as PlannedChange
from handrail.tools.files.target import Target, changed_since, look, read_all
from handrail.tools.open_beneath import open_beneath
from handrail.tools.workspace import Place, Workspace

UNSHOWN = "The client's input does not show the new content."


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEdit:
    """All changes of one file; without a `change`, its content cannot be shown."""

    place: Place
    action: Action
    change: PlannedChange | None
    problem: str = ""

    @property
    def claims(self) -> tuple[Claim, ...]:
        return (self.place.claim(self.action),)

    @property
    def bound(self) -> Json:
        return self.change.bound if self.change else {"path": self.place.path, "problem": self.problem}

    @property
    def files(self) -> tuple[FileChange, ...]:
        return self.change.files if self.change else ()

    @property
    def old_contents(self) -> tuple[bytes, ...]:
        return self.change.old_contents if self.change else ()

    @property
    def notes(self) -> tuple[str, ...]:
        return self.change.notes if self.change else (f"{self.place.shown}: {self.problem}",)

    def find_drift(self) -> tuple[str, str] | None:
        """How the file has changed since: a sentence and a diff; None if it has not."""
        drift = None if self.change is None else changed_since(self.change.target)
        return None if drift is None else (drift.sentence, drift.diff)


def plan_edits(
    edits: Iterable[Edit], resolve: Callable[[str], str], workspace: Workspace
) -> tuple[PlannedEdit, ...]:
    """Plan the edits, one entry for each file. `resolve` makes a path absolute. Raises Refusal for an unusable path."""
    drafts: dict[str, _FileDraft] = {}

    def draft(path: str) -> _FileDraft:
        place = workspace.place(resolve(path))
        return drafts.setdefault(place.path, _FileDraft(place))

    for edit in edits:
        source = draft(edit.path)
        source.apply(edit)
        if edit.move_to is not None:
            draft(edit.move_to).take(source)
    return tuple(each.finish() for each in drafts.values())


class _FileDraft:
    """The content of one file while edits are applied to it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.problem = ""
        self.text: str | None = None
        self._target: Target | None = None
        self.deletes = False
        try:
            self._target = look(place)
            before = self._target.before
            self.text = None if before is None else decode(before)
        except Refusal as refusal:
            self.problem = refusal.sentence

    def apply(self, edit: Edit) -> None:
        self.deletes = edit.delete
        if self.problem:
            return
        try:
            self.text = _new_text(edit, self.text, self.place.shown)
        except Refusal as refusal:
            self.problem = refusal.sentence

    def take(self, source: "_FileDraft") -> None:
        """The file is moved here."""
        self.text, self.problem = source.text, self.problem or source.problem
        source.text, source.deletes = None, True

    def finish(self) -> PlannedEdit:
        action: Action = "delete" if self.deletes else "write"
        if self._target is not None and not self.problem:
            try:
                change = plan_work(self._target, Change(after=self.text, did="Wrote"))
            except Refusal as refusal:
                self.problem = refusal.sentence
            else:
                return PlannedEdit(place=self.place, action=action, change=change)
        return PlannedEdit(place=self.place, action=action, change=None, problem=self.problem)


def _new_text(edit: Edit, text: str | None, shown: str) -> str | None:
    if edit.delete:
        return None
    if edit.content is not None:
        return (text or "") + edit.content if edit.appended else edit.content
    if edit.replacements:
        return _replaced(text, edit.replacements, shown, every=edit.replace_all)
    if edit.move_to is not None:
        return text
    raise Refusal(UNSHOWN)


def _replaced(text: str | None, pairs: Sequence[tuple[str, str]], shown: str, *, every: bool) -> str:
    if text is None:
        raise Refusal(f"There is no {shown} to edit.")
    for old, new in pairs:
        if not old:
            raise Refusal(f"An empty text cannot be replaced in {shown}.")
        text, _ = replace_match(text, old, new, shown, every=every)
    return text


def read_present(place: Place) -> bytes | None:
    """The content now; None if there is no file, or if it cannot be read as one."""
    try:
        descriptor = open_beneath(place.root, place.rest, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        return read_all(descriptor) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)
