"""What a diff cannot show about a change: line endings, mode, encoding, links, new folders.

Owns these sentences. It reads a target and its new content, and changes neither.
"""

import stat
from collections.abc import Iterator

from handrail.tools.answer import some
from handrail.tools.target import Target
from handrail.tools.text import BOM, decode, is_crlf, is_mixed, is_utf8


def notes_on(target: Target, after: bytes) -> tuple[str, ...]:
    if after == target.before:
        return ("Nothing changes: the file has this content already.",)
    return (*_around(target), *_content(target.before, after))


def _around(target: Target) -> Iterator[str]:
    place, found = target.place, target.place.found
    if place.linked:
        yield f"Follows a symbolic link: what is written is {place.path}."
    if target.missing:
        yield f"Creates the directory {'/'.join([target.folder.path.rstrip('/'), *target.missing])}."
    if found is None:
        return
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o111:
        yield f"The file is executable and stays so (mode {mode & 0o777:o})."
    if mode & 0o7000:
        yield f"The file loses its special mode bits (mode {mode:o})."
    if found.st_nlink > 1:
        yield f"The old content stays under {some(found.st_nlink - 1, 'other name')} of the file (hard links)."


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
