"""rename_symbol: the editor's language server says what to replace, Handrail shows the diff of every file and writes it.

The editor only plans. What it says is checked against the files on disk: each replaced text must stand where the editor
says, or nothing is written.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import BaseModel, Field, TypeAdapter

from handrail.gate.tool import CallReport, Plan, Proposal, ReceiptFacts, Refusal, Tool
from handrail.lazy_dataclass import dataclass
from handrail.store.blobs import Blobs
from handrail.store.values import Caller, Comment, DiffPreview, Json, Result
from handrail.tools.editor.code_questions import Editors, SymbolInput, read_answer
from handrail.tools.files.atomic_write import replace_file
from handrail.tools.files.encoding import BOM, decode
from handrail.tools.files.file_change import Change, ReviewOutput, Work, plan_work, review_lines, shorten_text
from handrail.tools.files.target import changed_since, describe_drift, look
from handrail.tools.results import answer, count_text, printable_line
from handrail.tools.workspace import Place, Workspace

FILES_MAX = 200
"""Files that one rename changes: more would not be reviewed by a person."""
EDITS_MAX = 10_000
_APPLIED_MAX = 20_000
"""Characters of the diff in the result."""
_LINE_END = re.compile(r"\r\n|\r|\n")


class RenameSymbolInput(SymbolInput):
    new_name: Annotated[str, Field(min_length=1, max_length=200, description="The new name.")]


class RenameSymbolOutput(BaseModel, defer_build=True):
    symbol: str | None = None
    new_name: str | None = None
    files: list[str] | None = Field(None, description="The files that were changed.")
    occurrences: int | None = Field(None, description="How many places the editor renamed.")
    added: int | None = Field(None, description="Lines added.")
    removed: int | None = Field(None, description="Lines removed.")
    applied: str | None = Field(None, description="What was really written, as a unified diff.")
    review: ReviewOutput | None = Field(None, description="There when a person reviewed the proposal.")
    difference: str | None = Field(
        None,
        description="How a file changed on disk since you proposed this, when that kept it from being written.",
    )


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement in the editor's text. Lines and columns count from 0; a column counts UTF-16 units."""

    line: int
    column: int
    end_line: int
    end_column: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class _FileEdits:
    path: str
    edits: list[TextEdit]
    unsaved: bool = False


@dataclass(frozen=True, slots=True)
class _Rename:
    files: Annotated[list[_FileEdits], Field(max_length=5 * FILES_MAX)]


_RENAME = TypeAdapter(_Rename)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamePlan(Plan):
    """The change of every file."""

    input: RenameSymbolInput
    works: tuple[Work, ...]
    occurrences: int


class RenameSymbol(Tool[RenameSymbolInput, RenamePlan]):
    """Rename a symbol in all files of the workspace."""

    name = "rename_symbol"
    title = "Rename symbol"
    description = (
        "Rename a variable, function, class or other symbol everywhere it is used, by the language server of the person's "
        "editor. A person may be shown the diff of all files first, and may refuse it; the result says what was written. "
        "Files with unsaved changes in the editor are refused."
    )
    input = RenameSymbolInput
    output = RenameSymbolOutput
    destructive = True
    completes_by_accepting = True

    def __init__(self, own: Sequence[Path], blobs: Blobs, editors: Editors) -> None:
        self._own = tuple(own)
        self._blobs = blobs
        self._editors = editors

    def is_listed(self, caller: Caller) -> bool:
        return self._editors.serves(caller.workspace)

    def display(self, input: RenameSymbolInput) -> str:
        return f"Rename {printable_line(input.symbol, 40)} to {printable_line(input.new_name, 40)}"

    async def plan(self, input: RenameSymbolInput, caller: Caller) -> RenamePlan:
        workspace = Workspace.of(caller, self._own)
        place = workspace.place(input.path)
        if not place.is_common or not place.is_file:
            raise Refusal(
                f"{place.shown} is no file of your workspace. Name a file in which the symbol occurs."
            )
        asked: Json = {**input.question, "new_name": input.new_name}
        found = read_answer(_RENAME, await self._editors.ask(place.path, "rename", asked))
        works = await anyio.to_thread.run_sync(_plan_works, found, workspace, input)
        occurrences = sum(len(each.edits) for each in found.files)
        return _plan_for(input, works, occurrences)

    def proposal(self, plan: RenamePlan) -> Proposal | None:
        """Reviewed by hunk if it changes one file; several files are allowed or denied as a whole."""
        if len(plan.works) != 1:
            return None
        (work,) = plan.works
        editor = work.editor
        before, after = editor.shown(editor.before), editor.shown(editor.proposed)
        return Proposal(path=work.target.place.path, before=before, after=after)

    def review(self, plan: RenamePlan, content: str, comments: tuple[Comment, ...]) -> RenamePlan:
        if len(plan.works) != 1:
            raise Refusal("A rename in several files is allowed or denied as a whole.")
        return _plan_for(plan.input, (plan.works[0].reviewed(content, comments),), plan.occurrences)

    def describe_review(self, plan: RenamePlan) -> str:
        return "\n".join(line for work in plan.works for line in review_lines(work))

    def changed_since(self, plan: RenamePlan) -> tuple[str, str] | None:
        drifts = (changed_since(work.target) for work in plan.works)
        drift = next((each for each in drifts if each is not None), None)
        return None if drift is None else (drift.sentence, drift.diff)

    async def run(self, plan: RenamePlan, call: CallReport) -> Result:
        works = [work for work in plan.works if work.changes]
        # Not abandoned on cancel: the receipt must state which files were written.
        problem, written = await anyio.to_thread.run_sync(self._write, works)
        call.add_receipt(ReceiptFacts(files_changed=tuple(work.target.place.path for work in written)))
        result = _build_result(plan, written)
        if problem is None:
            return result
        if not written:
            raise Refusal(problem)
        done = ", ".join(work.target.place.shown for work in written)
        raise Refusal(f"{problem} Renamed before that: {done}. A person can undo this call.", result)

    def _write(self, works: Sequence[Work]) -> tuple[str | None, list[Work]]:
        """Write all files, or as many as can be: a sentence about the first problem, and those that were written."""
        written: list[Work] = []
        try:
            for work in works:
                _check_unchanged(work)
                self._blobs.put(work.target.before or b"")
            for work in works:
                replace_file(work.target, work.after or b"", work.executable)
                written.append(work)
        except Refusal as refusal:
            return refusal.sentence, written
        except OSError as error:
            return f"The old content could not be kept for undo ({error.strerror}).", written
        return None, written


def _check_unchanged(work: Work) -> None:
    if (drift := changed_since(work.target)) is not None:
        raise Refusal(describe_drift(drift, work.target))


def _plan_works(found: _Rename, workspace: Workspace, input: RenameSymbolInput) -> tuple[Work, ...]:
    files = sorted((each for each in found.files if each.edits), key=lambda each: each.path)
    if not files:
        raise Refusal(f"The editor finds nothing to rename for {input.symbol}.")
    count = sum(len(each.edits) for each in files)
    if len(files) > FILES_MAX or count > EDITS_MAX:
        raise Refusal(
            f"This would change {count_text(count, 'place')} in {count_text(len(files), 'file')}; {FILES_MAX:,} files and "
            f"{EDITS_MAX:,} places are the most that one call may. Rename it in parts."
        )
    return tuple(_plan_work(each, workspace.place(each.path)) for each in files)


def _plan_work(file: _FileEdits, place: Place) -> Work:
    if file.unsaved:
        raise Refusal(
            f"{place.shown} has unsaved changes in the editor, so it was not renamed. Ask the person to save or revert it."
        )
    if place.found is None:
        raise Refusal(f"The editor would rename in {place.shown}, but there is no such file on disk.")
    target = look(place)
    text = decode(target.before or b"")
    mark = BOM if text.startswith(BOM) else ""
    after = mark + apply_edits(text.removeprefix(mark), file.edits, place.shown)
    return plan_work(target, Change(after=after, did="Renamed in"))


def apply_edits(text: str, edits: Sequence[TextEdit], shown: str) -> str:
    """Apply edits that do not overlap. Raises Refusal unless each of them fits the text."""
    starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
    pieces: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.column)):
        at = _find_offset(text, starts, edit.line, edit.column)
        end = _find_offset(text, starts, edit.end_line, edit.end_column)
        if at is None or end is None or at < done or text[at:end] != edit.old:
            raise Refusal(
                f"{shown} on disk is not what the editor has: line {edit.line + 1} differs. Nothing was changed. Try again "
                "when the editor has read the file again."
            )
        pieces += text[done:at], edit.new
        done = end
    return "".join([*pieces, text[done:]])


def _find_offset(text: str, starts: Sequence[int], line: int, column: int) -> int | None:
    """The index of a position in the text; None if it is outside, or within a character."""
    if not 0 <= line < len(starts) or column < 0:
        return None
    at, end = starts[line], starts[line + 1] if line + 1 < len(starts) else len(text)
    while column > 0 and at < end:
        column -= 2 if ord(text[at]) > 0xFFFF else 1
        at += 1
    return at if column == 0 else None


def _plan_for(input: RenameSymbolInput, works: tuple[Work, ...], occurrences: int) -> RenamePlan:
    return RenamePlan(
        claims=tuple(work.target.place.claim(work.action) for work in works),
        preview=_build_preview(works),
        bound={"files": [work.bound for work in works]},
        files=tuple(change for work in works for change in work.files),
        old_contents=tuple(content for work in works for content in work.old_contents),
        input=input,
        works=works,
        occurrences=occurrences,
    )


def _build_preview(works: tuple[Work, ...]) -> DiffPreview:
    if len(works) == 1:
        return works[0].preview
    notes = (f"{work.target.place.shown}: {note}" for work in works for note in work.notes)
    return DiffPreview(
        path=works[0].target.place.path,
        diff="".join(work.diff.text for work in works),
        added=sum(work.diff.added for work in works),
        removed=sum(work.diff.removed for work in works),
        notes=(f"Changes {count_text(len(works), 'file')}.", *notes),
    )


def _build_result(plan: RenamePlan, written: Sequence[Work]) -> Result:
    names = f"{plan.input.symbol} to {plan.input.new_name}"
    files = [work.target.place.shown for work in written]
    head = (
        f"Renamed {names}: {count_text(plan.occurrences, 'place')} in {count_text(len(files), 'file')}."
        if files
        else f"Nothing was written: {names} is as it was."
    )
    reviews = [line for work in plan.works for line in review_lines(work)]
    data: Json = {
        "symbol": plan.input.symbol,
        "new_name": plan.input.new_name,
        "files": list(files),
        "occurrences": plan.occurrences,
        "added": sum(work.diff.added for work in written),
        "removed": sum(work.diff.removed for work in written),
        "applied": shorten_text("".join(work.diff.text for work in written), _APPLIED_MAX),
    }
    review = next((work.review for work in plan.works if work.review is not None), None)
    if review is not None:
        data["review"] = review.data
    return answer("\n".join([head, *files, *reviews]), data)
