"""The head of a git-style diff: whether a file is made or deleted, and which mode it gets.

Owns these lines, and the refusals for what one file's change of text cannot be (renames, binary files, links). It
reads no hunks (patch.py).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from handrail.gate.tool import Refusal

_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) ([0-7]{5,6})\s*")
_MOVED = ("rename from ", "rename to ", "copy from ", "copy to ")
_BINARY = ("GIT binary patch", "Binary files ")
_EXECUTABLE = {"100644": False, "100755": True}
"""The only modes git gives to a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What comes before the first hunk."""

    creates: bool = False
    deletes: bool = False
    executable: bool | None = None
    """Whether the file shall be; None when the diff does not say."""

    @property
    def acts(self) -> bool:
        """It does something even where no hunk follows."""
        return self.creates or self.deletes or self.executable is not None


def read_head(lines: Sequence[str]) -> Head:
    """Raises Refusal."""
    for line in lines:
        _check(line)
    if sum(line.startswith("diff --git ") for line in lines) > 1:
        raise Refusal("The diff is of several files. apply_diff changes one file: send one call for each.")
    modes = {found[1]: found[2] for line in lines if (found := _MODE.fullmatch(line))}
    for mode in modes.values():
        _check_kind(mode)
    wanted = modes.get("new file mode") or modes.get("new mode")
    return Head(
        creates="new file mode" in modes or any(_is_nowhere("---", line) for line in lines),
        deletes="deleted file mode" in modes or any(_is_nowhere("+++", line) for line in lines),
        executable=None if wanted is None else _executable(wanted),
    )


def _check(line: str) -> None:
    if line.startswith(_MOVED):
        raise Refusal(
            f"The diff renames or copies the file ({line.strip()}), which apply_diff does not. Write the new file with "
            "write_file and delete the old one by a diff to /dev/null, or use execute_command."
        )
    if line.startswith(_BINARY):
        raise Refusal(f"The diff is more than a change of text ({line.strip()}). Use execute_command for it.")


def _check_kind(mode: str) -> None:
    if not mode.startswith("100"):
        raise Refusal(
            f"The diff is of a link or a submodule (mode {mode}), not of a file. Use execute_command for it."
        )


def _executable(mode: str) -> bool:
    if mode not in _EXECUTABLE:
        raise Refusal(
            f"The diff gives the file mode {mode}; apply_diff knows 100644 and 100755 (executable). Use one of them."
        )
    return _EXECUTABLE[mode]


def _is_nowhere(sign: str, line: str) -> bool:
    return line == f"{sign} /dev/null" or line.startswith((f"{sign} /dev/null\t", f"{sign} /dev/null\r"))
