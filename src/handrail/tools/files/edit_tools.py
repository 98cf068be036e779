"""write_file, edit_file and apply_diff: three ways to say what a file should hold.

Owns their inputs and how each makes new content from old. What they share — the plan with its diff, the
write itself — is change.py's.
"""

from typing import Annotated

from pydantic import Field

from handrail.gate.tool import Refusal
from handrail.tools.files.apply_hunks import apply, replace_match
from handrail.tools.files.encoding import BOM, is_crlf, to_crlf
from handrail.tools.files.file_change import Change, ChangeInput, ChangeTool
from handrail.tools.files.patch import Patch, parse
from handrail.tools.results import some

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
    """Replaces or creates a file."""

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
    """Replaces a passage."""

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
        return Change(after=after, did=f"Replaced {some(count, 'occurrence')} in")


class ApplyDiff(ChangeTool[ApplyDiffInput]):
    """Applies a patch to one file."""

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
    return f"Applied {some(len(patch.hunks), 'hunk')} to" if patch.hunks else "Changed the mode of"
