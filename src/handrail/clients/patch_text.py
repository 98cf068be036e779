"""The patch format of `apply_patch`: Codex, and the clients that took the tool over from it.

    *** Begin Patch
    *** Add File: PATH         then lines that begin with +
    *** Delete File: PATH
    *** Update File: PATH      then perhaps *** Move to: PATH, then hunks
    @@ LINE TO LOOK FOR
     context, -removed and +added lines
    *** End Patch

A patch has no line numbers: a hunk is found by its text, so that it becomes a replacement of old by new text.
"""

import re
from dataclasses import field
from pathlib import PurePosixPath

from handrail.clients.hook_event import Edit, Work
from handrail.lazy_dataclass import dataclass

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_SECTION = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = "*** Move to: "
_END_OF_FILE = "*** End of File"

_SHELL_CALL = re.compile(
    r"""\s*(?:cd\s+(?P<folder>[^\s;&|<>$`'"\\]+|'[^']+')\s*&&\s*)?(?:apply_patch|applypatch)\s*
        <<-?\s*(?P<quote>['"]?)(?P<word>\w+)(?P=quote)[ \t]*\n(?P<body>.*)\n(?P=word)\s*""",
    re.DOTALL | re.VERBOSE,
)
_EXPANDED = re.compile(r"[$`\\]")
"""What a shell replaces in a here-document whose end word is not quoted."""


def work_from_patch(patch: str, folder: str = "") -> Work:
    """The edits of a patch. Raises ValueError with a sentence if the text is no patch."""
    return Work(sort="edit", edits=edits_from_patch(patch, folder))


def work_from_shell_patch(line: str) -> Work | None:
    """The edits of a shell line that only runs `apply_patch` on a here-document; None for any other line."""
    match = _SHELL_CALL.fullmatch(line)
    if match is None or (not match["quote"] and _EXPANDED.search(match["body"])):
        return None
    try:
        return work_from_patch(match["body"], (match["folder"] or "").strip("'"))
    except ValueError:
        return None


def edits_from_patch(patch: str, folder: str = "") -> tuple[Edit, ...]:
    """The changes of files that a patch makes. Raises ValueError with a sentence if the text is no patch."""
    lines = patch.strip().split("\n")
    if len(lines) < 2 or lines[0].strip() != _BEGIN or lines[-1].strip() != _END:
        raise ValueError(f"A patch begins with {_BEGIN} and ends with {_END}.")
    edits = [edit for section in _sections(lines[1:-1]) for edit in section.edits(folder)]
    if not edits:
        raise ValueError("The patch changes no file.")
    return tuple(edits)


@dataclass(slots=True)
class _Section:
    """The part of a patch about one file."""

    verb: str
    path: str
    lines: list[str] = field(default_factory=list[str])

    def edits(self, folder: str) -> list[Edit]:
        path = _join(folder, self.path)
        if self.verb == "Delete":
            return [Edit(path=path, delete=True)]
        if self.verb == "Add":
            return [
                Edit(path=path, content="".join(f"{line[1:]}\n" for line in self.lines if line[:1] == "+"))
            ]
        return self._update(path, folder)

    def _update(self, path: str, folder: str) -> list[Edit]:
        move_to = next((line.removeprefix(_MOVE) for line in self.lines if line.startswith(_MOVE)), None)
        hunks = [hunk for hunk in _hunks(self.lines) if hunk.old or hunk.new]
        pairs = tuple(hunk.pair() for hunk in hunks if hunk.old or hunk.header)
        added = "".join(f"{line}\n" for hunk in hunks if not (hunk.old or hunk.header) for line in hunk.new)
        target = None if move_to is None else _join(folder, move_to.strip())
        edits = [Edit(path=path, replacements=pairs, move_to=target)] if pairs or target or not added else []
        return [*edits, *([Edit(path=path, content=added, appended=True)] if added else [])]


@dataclass(slots=True)
class _Hunk:
    """Lines that follow each other in the file, before and after the change."""

    header: str = ""
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])

    def pair(self) -> tuple[str, str]:
        """Old and new text in whole lines. Lines that are only added follow the line of the header."""
        anchor = [] if self.old else [self.header]
        return tuple("".join(f"{line}\n" for line in [*anchor, *lines]) for lines in (self.old, self.new))  # type: ignore[return-value]


def _sections(lines: list[str]) -> list[_Section]:
    sections: list[_Section] = []
    for line in lines:
        if match := _SECTION.fullmatch(line.rstrip()):
            sections.append(_Section(match[1], match[2].strip()))
        elif sections:
            sections[-1].lines.append(line)
        elif line.strip() and not line.startswith("*** Environment ID:"):
            raise ValueError(f"The patch names no file before the line {line.strip()[:60]!r}.")
    return sections


def _hunks(lines: list[str]) -> list[_Hunk]:
    hunks = [_Hunk()]
    for line in lines:
        if line.startswith("@@"):
            hunks.append(_Hunk(header=line[2:].strip()))
        elif not line.startswith((_MOVE, _END_OF_FILE)):
            _add_line(hunks[-1], line)
    return hunks


def _add_line(hunk: _Hunk, line: str) -> None:
    sign, text = line[:1], line[1:]
    if sign != "+":
        hunk.old.append(text)
    if sign != "-":
        hunk.new.append(text)


def _join(folder: str, path: str) -> str:
    return str(PurePosixPath(folder, path)) if folder else path
