"""write_file, edit_file and apply_diff: compute the new content of a file from the tool's input.

Planning, review and writing are in file_change.py. All hunks of a diff apply, or none.
"""

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Annotated

from pydantic import Field

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.tools.files.encoding import BOM, is_crlf, split, to_crlf, to_lf
from handrail.tools.files.file_change import Change, ChangeInput, ChangeTool
from handrail.tools.files.patch import Hunk, Patch, Row, parse
from handrail.tools.results import count_text

_REVIEW = (
    "A person may be shown the diff first, and may refuse it or change it; the result says what was written."
)


class WriteFileInput(ChangeInput):
    content: Annotated[str, Field(description="The whole new content of the file.")]


class EditFileInput(ChangeInput):
    old_string: Annotated[
        str,
        Field(
            description="The text to replace, exactly as in the file, without the line numbers of read_file."
        ),
    ]
    new_string: Annotated[str, Field(description="The text to put in its place; empty to delete it.")]
    replace_all: Annotated[bool, Field(description="Replace every occurrence instead of the only one.")] = (
        False
    )


class ApplyDiffInput(ChangeInput):
    diff: Annotated[
        str,
        Field(
            description="Either a unified diff of this one file, or one or more blocks of `<<<<<<< SEARCH`, the "
            "lines to find, `=======`, the new lines, `>>>>>>> REPLACE`. A unified diff to `+++ /dev/null` that removes "
            "every line deletes the file; `old mode 100644` and `new mode 100755` make it executable."
        ),
    ]


class WriteFile(ChangeTool[WriteFileInput]):
    """Create or replace a file."""

    name = "write_file"
    title = "Write file"
    description = (
        "Create a file, with the directories it needs, or replace its whole content. To change part of a file use "
        f"edit_file or apply_diff. A file with CRLF line endings keeps them. {_REVIEW}"
    )
    input = WriteFileInput
    verb = "Write"

    def change(self, input: WriteFileInput, before: str | None, path: str) -> Change:
        after = input.content
        if before is not None and is_crlf(before) and "\r\n" not in after:
            after = to_crlf(after)
        if before is not None and before.startswith(BOM) and after and not after.startswith(BOM):
            after = BOM + after
        return Change(after=after, did="Wrote" if before is not None else "Created")


class EditFile(ChangeTool[EditFileInput]):
    """Replace a passage of a file."""

    name = "edit_file"
    title = "Edit file"
    description = (
        "Replace one passage of a text file. old_string must occur exactly once, unless replace_all is set; a miss "
        f"tells which lines come close. {_REVIEW}"
    )
    input = EditFileInput
    verb = "Edit"

    def change(self, input: EditFileInput, before: str | None, path: str) -> Change:
        if before is None:
            raise Refusal(f"There is no {path} to edit. Use write_file to create it.")
        if not input.old_string:
            raise Refusal(
                "old_string is empty, which matches everywhere. Use write_file to write a whole file."
            )
        if input.old_string == input.new_string:
            raise Refusal("old_string and new_string are the same, so nothing would change.")
        after, count = replace_match(
            before, input.old_string, input.new_string, path, every=input.replace_all
        )
        return Change(after=after, did=f"Replaced {count_text(count, 'occurrence')} in")


class ApplyDiff(ChangeTool[ApplyDiffInput]):
    """Apply a patch to one file."""

    name = "apply_diff"
    title = "Apply diff"
    description = (
        "Change one text file by a unified diff or by SEARCH/REPLACE blocks, with as many hunks as needed. Wrong line "
        "numbers are forgiven when the lines of a hunk occur once; a hunk that does not fit, or fits twice, is refused "
        f"and then nothing is changed. {_REVIEW}"
    )
    input = ApplyDiffInput
    verb = "Patch"

    def change(self, input: ApplyDiffInput, before: str | None, path: str) -> Change:
        patch = parse(input.diff)
        _check_there(patch, before, path)
        mark = BOM if before is not None and before.startswith(BOM) and BOM not in input.diff else ""
        after = mark + apply((before or "").removeprefix(mark), patch.hunks, path)
        if patch.head.deletes:
            return _deletion(after.removeprefix(BOM), path)
        return Change(after=after, did=_did(patch), executable=patch.head.executable)


def _check_there(patch: Patch, before: str | None, path: str) -> None:
    if before is not None and patch.head.creates:
        raise Refusal(
            f"The diff creates {path}, but there is one already. Read it, then change it or use write_file."
        )
    if before is None and patch.head.deletes:
        raise Refusal(f"There is no {path} to delete.")
    if before is None and (any(hunk.old for hunk in patch.hunks) or not (patch.hunks or patch.head.creates)):
        raise Refusal(f"There is no {path} to change. Use write_file to create it.")


def _deletion(rest: str, path: str) -> Change:
    if rest:
        raise Refusal(
            f"The diff deletes {path} but does not remove all of its lines, so nothing was changed. To delete a file, "
            "remove every line of it."
        )
    return Change(after=None, did="Deleted")


def _did(patch: Patch) -> str:
    if patch.head.creates:
        return "Created"
    return f"Applied {count_text(len(patch.hunks), 'hunk')} to" if patch.hunks else "Changed the mode of"


@dataclass(frozen=True, slots=True)
class _Change:
    hunk: Hunk
    at: int
    end: int
    new: list[str]


def apply(text: str, hunks: list[Hunk], path: str) -> str:
    """Apply all hunks. Raises Refusal, which names the hunk that does not fit."""
    hunks = _in_style(text, hunks)
    says_ends = any(not row.ends for hunk in hunks for row in hunk.rows)
    bare = bool(text) and not text.endswith("\n") and not says_ends
    newline = "\r\n" if is_crlf(text) else "\n"
    lines = split(text + newline if bare else text)
    changed = "".join(_merged(lines, _changes(lines, hunks, path)))
    return changed.removesuffix(newline) if bare else changed


def _in_style(text: str, hunks: list[Hunk]) -> list[Hunk]:
    """Convert the hunks to the line endings of the text, if all of theirs differ."""
    old = [row.text.endswith("\r") for hunk in hunks for row in hunk.old if row.ends]
    if is_crlf(text) and not any(row.text.endswith("\r") for hunk in hunks for row in hunk.rows):
        return [_restyled(hunk, lambda line: line + "\r") for hunk in hunks]
    if "\r" not in text and old and all(old):
        return [_restyled(hunk, lambda line: line.removesuffix("\r")) for hunk in hunks]
    return hunks


def _restyled(hunk: Hunk, style: Callable[[str], str]) -> Hunk:
    return replace(
        hunk, rows=tuple(replace(row, text=style(row.text)) if row.ends else row for row in hunk.rows)
    )


def _changes(lines: list[str], hunks: list[Hunk], path: str) -> list[_Change]:
    changes: list[_Change] = []
    drift = 0
    for hunk in hunks:
        old = [_line(row) for row in hunk.old]
        at = _locate(lines, hunk, old, drift, path)
        if hunk.start is not None and old:
            drift = at - (hunk.start - 1)
        changes.append(_Change(hunk, at, at + len(old), [_line(row) for row in hunk.new]))
    return sorted(changes, key=lambda change: (change.at, change.end))


def _line(row: Row) -> str:
    return row.text + "\n" if row.ends else row.text


def _locate(lines: list[str], hunk: Hunk, old: list[str], drift: int, path: str) -> int:
    if not old:
        return _insertion(lines, hunk, drift, path)
    if hunk.start is not None:
        stated = hunk.start - 1 + drift
        if stated >= 0 and lines[stated : stated + len(old)] == old:
            return stated
    found = [at for at, line in enumerate(lines) if line == old[0] and lines[at : at + len(old)] == old]
    if not found:
        raise Refusal(
            f"{hunk.name} does not match {path}, so nothing was changed. {nearest(''.join(lines), ''.join(old))}"
        )
    if len(found) > 1:
        numbers = ", ".join(str(at + 1) for at in found[:10])
        raise Refusal(
            f"{hunk.name} matches {path} in {len(found)} places (lines {numbers}), so nothing was changed. "
            "Add lines around it until it matches once, or give its true line number."
        )
    return found[0]


def _insertion(lines: list[str], hunk: Hunk, drift: int, path: str) -> int:
    """Where to insert lines that replace none: in an empty text, or by the line number."""
    if not lines:
        return 0
    at = None if hunk.start is None else hunk.start + drift
    if at is None or not 0 <= at <= len(lines):
        raise Refusal(
            f"{hunk.name} only adds lines and does not say where in {path}. Give it a line of context. "
            "Nothing was changed."
        )
    return at


def _merged(lines: list[str], changes: list[_Change]) -> list[str]:
    merged: list[str] = []
    done = 0
    last: Hunk | None = None
    for change in changes:
        if change.at < done and last is not None:
            raise Refusal(
                f"{last.name} and {change.hunk.name} change the same lines, so nothing was changed. Join them into one."
            )
        merged += lines[done : change.at] + change.new
        done, last = change.end, change.hunk
    return merged + lines[done:]


_LINES_MAX = 20_000
"""Lines searched for a near match; each takes time."""
_SHOWN = 6
_ALIKE = 0.6


def replace_match(text: str, old: str, new: str, path: str, *, every: bool) -> tuple[str, int]:
    """Replace `old` by `new`; return the text and the count. Raises Refusal."""
    old, new = _text_in_style(text, old, new)
    count = text.count(old)
    if count == 0:
        raise Refusal(f"old_string was not found in {path}. {nearest(text, old)}")
    if count > 1 and not every:
        raise Refusal(
            f"old_string occurs {count} times in {path} ({_where(text, old)}). Add lines around it until it "
            "is the only one, or set replace_all."
        )
    return text.replace(old, new), count


def nearest(text: str, old: str) -> str:
    """A sentence about the lines most similar to `old`."""
    lines, wanted = split(text)[:_LINES_MAX], split(old)
    at = _spaced_otherwise(lines, wanted)
    if at is not None:
        return _lines(lines, at, len(wanted), "These lines differ only in white space")
    at = _alike(lines, wanted)
    if at is not None:
        return _lines(lines, at, len(wanted), "The closest lines are")
    return "Nothing in it comes close; read the file again before you edit it."


def _text_in_style(text: str, old: str, new: str) -> tuple[str, str]:
    """Convert both strings to the line endings of the text."""
    if is_crlf(text):
        return to_crlf(old), to_crlf(new)
    if old in text:
        return old, new
    for style in (to_lf, to_crlf):
        if style(old) in text:
            return style(old), style(new)
    return old, new


def _where(text: str, old: str) -> str:
    numbers: list[str] = []
    at = text.find(old)
    while at >= 0 and len(numbers) < 10:
        numbers.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + len(old))
    return ("lines " if len(numbers) > 1 else "line ") + ", ".join(numbers) + (" …" if at >= 0 else "")


def _spaced_otherwise(lines: list[str], wanted: list[str]) -> int | None:
    bare = ["".join(line.split()) for line in lines]
    sought = ["".join(line.split()) for line in wanted]
    if not any(sought):
        return None
    for at, line in enumerate(bare):
        if line == sought[0] and bare[at : at + len(sought)] == sought:
            return at
    return None


def _alike(lines: list[str], wanted: list[str]) -> int | None:
    """Start of the most similar passage, located by the longest of the wanted lines."""
    index = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()), default=None)
    if index is None:
        return None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[index].strip()[:200])
    best, found = _ALIKE, None
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:200])
        if (
            matcher.real_quick_ratio() > best
            and matcher.quick_ratio() > best
            and (ratio := matcher.ratio()) > best
        ):
            best, found = ratio, at
    return None if found is None else max(0, found - index)


def _lines(lines: list[str], at: int, count: int, intro: str) -> str:
    part = lines[at : at + min(count, _SHOWN)]
    rows = [f"{at + number:>6}→{line.rstrip()}" for number, line in enumerate(part, 1)]
    left_out = min(count, len(lines) - at) - len(part)
    more = [f"       … {count_text(left_out, 'more line')}"] if left_out > 0 else []
    return "\n".join([f"{intro}:", *rows, *more])
