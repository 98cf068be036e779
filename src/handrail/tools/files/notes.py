"""What a diff cannot show about a change: line endings, mode, encoding, links, new folders.

Owns these sentences. It reads a target and its new content, and changes neither.
"""

from collections.abc import Iterator

from handrail.tools.answer import some
from handrail.tools.files.dress import with_execution
from handrail.tools.files.target import Target
from handrail.tools.files.text import BOM, decode, is_crlf, is_mixed, is_utf8


def notes_on(target: Target, after: bytes | None, executable: bool | None = None) -> tuple[str, ...]:
    """`after` is None where the file goes; `executable` is None where its mode stays."""
    if after == target.before and executable is None:
        return ("Nothing changes: the file has this content already.",)
    content = () if after is None else _content(target.before, after)
    return (*_around(target, after), *_mode(target, after, executable), *content)


def _around(target: Target, after: bytes | None) -> Iterator[str]:
    place, found = target.place, target.place.found
    if after is None:
        yield "Deletes the file."
    if place.linked and after is None:
        yield f"Follows a symbolic link: what is deleted is {place.path}; a link to it leads nowhere then."
    elif place.linked:
        yield f"Follows a symbolic link: what is written is {place.path}."
    if target.made:
        yield f"Creates the directory {target.made[-1]}."
    if found is not None and found.st_nlink > 1:
        yield f"The old content stays under {some(found.st_nlink - 1, 'other name')} of the file (hard links)."


def _mode(target: Target, after: bytes | None, executable: bool | None) -> Iterator[str]:
    mode = target.mode
    if after is None:
        return
    if mode is None:
        if executable:
            yield "The new file is executable."
        return
    if executable is not None:
        change = f"mode {mode & 0o777:o} → {with_execution(mode, executable):o}"
        yield (
            f"Makes the file executable ({change})."
            if executable
            else f"The file is executable no longer ({change})."
        )
    elif mode & 0o111:
        yield f"The file is executable and stays so (mode {mode & 0o777:o})."
    if mode & 0o7000:
        yield f"The file loses its special mode bits (mode {mode:o})."


def _content(before: bytes | None, after: bytes) -> Iterator[str]:
    text = decode(after)
    if is_crlf(text):
        kept = before is not None and is_crlf(decode(before))
        yield "Line endings are CRLF, as before." if kept else "Line endings are CRLF."
    elif before is not None and is_crlf(decode(before)):
        yield "Line endings were all CRLF and are no longer."
    if is_mixed(text):
        yield "Line endings are mixed: some LF, some CRLF."
    if text and not text.endswith("\n"):
        yield "No newline ends the file."
    if text.startswith(BOM):
        yield "The file begins with a byte order mark."
    if not is_utf8(after):
        yield "The file is not UTF-8: its other bytes stay as they are, and are shown as \\xNN."
