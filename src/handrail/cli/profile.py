"""Handrail as the default terminal profile of VS Code and its kin: written, shown, and taken back.

Owns what is put into their settings and how it is taken out again. Needs no daemon. A profile must never leave a person
without a shell: what it runs falls back to the plain one, also when Handrail is not there at all.
"""

import json
import os
import shlex
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

from handrail.cli.failure import Failure
from handrail.cli.jsonc import NotJson, parse
from handrail.cli.jsonc_edit import NotAnObject, at, put, remove
from handrail.cli.settings_file import TITLES, Editor, Memory, SettingsFile, digest
from handrail.cli.show import say

NAME = "handrail"
_SYSTEM = "osx" if sys.platform == "darwin" else "linux"
PROFILES = (f"terminal.integrated.profiles.{_SYSTEM}",)
PROFILE = (*PROFILES, NAME)
DEFAULT = (f"terminal.integrated.defaultProfile.{_SYSTEM}",)


def install(editor: Editor, settings: Path | None, *, only_print: bool) -> None:
    """Make Handrail the default profile, or only show how the file would change."""
    file = SettingsFile.find(editor, settings)
    before = file.text()
    try:
        after = put(put(before, PROFILE, profile()), DEFAULT, NAME)
    except (NotJson, NotAnObject) as problem:
        raise Failure(f"{file.path} cannot be read: {problem}. Nothing was changed.") from None
    if before == after:
        say(f"{file.path} has it already.")
        return
    _show(file.path, before, after)
    if only_print:
        return
    memory = _memory(file, before, after)
    file.back_up()
    file.write(after)
    file.remember(memory)
    say(f"New terminals of {TITLES[editor]} are kept by Handrail from now on.")
    say(
        f"Undo it with `handrail shell --install-profile {editor} --undo`; the file as it was is {file.backup}."
    )


def undo(editor: Editor, settings: Path | None, *, only_print: bool) -> None:
    """Give the file back as it was; if it was changed since, take out only what we put in."""
    file = SettingsFile.find(editor, settings)
    now = file.text()
    ours = file.ours(now)
    if ours is None:
        then = _without_us(file, now)
    else:
        then = file.backup.read_bytes().decode() if ours.existed else ""
    if then == now:
        say(f"{file.path} has nothing of Handrail in it.")
        return
    _show(file.path, now, then)
    if only_print:
        return
    if ours is not None and not ours.existed:
        file.path.unlink()
    else:
        file.write(then)
    file.forget()
    say(
        "It is as it was."
        if ours
        else "It was changed since, so only Handrail's own settings were taken out."
    )


def profile() -> dict[str, Any]:
    """What VS Code is to run. Through `sh`, which also finds that this installation is gone."""
    main = Path(__file__).parent.parent / "__main__.py"
    python = shlex.quote(sys.executable)
    options = " --or-plain" + (' -- "${SHELL:-/bin/zsh}" -l' if sys.platform == "darwin" else "")
    script = (
        f"[ -x {python} ] && [ -r {shlex.quote(str(main))} ] && exec {python} -P -m handrail shell{options}; "
        'echo "Not kept by Handrail: it is no longer installed where it was." >&2; exec "${SHELL:-/bin/sh}"'
    )
    made: dict[str, Any] = {"path": "/bin/sh", "args": ["-c", script], "icon": "terminal"}
    home = os.environ.get("HANDRAIL_HOME")
    return {**made, "env": {"HANDRAIL_HOME": str(Path(home).absolute())}} if home else made


def _show(path: Path, before: str, after: str) -> None:
    lines = unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        say((line, styles.get(line[:1], "")))


def _memory(file: SettingsFile, before: str, after: str) -> Memory:
    """What stood there before us, also when we are written a second time."""
    ours = file.ours(before)
    if ours is not None:
        return Memory(digest(after), ours.existed, ours.profile, ours.default)
    return Memory(digest(after), file.path.exists(), at(before, PROFILE), at(before, DEFAULT))


def _without_us(file: SettingsFile, text: str) -> str:
    """The text with our two settings taken out, or what stood in their places put back."""
    memory = file.memory()
    try:
        if at(text, DEFAULT) == json.dumps(NAME):
            text = _restored(text, DEFAULT, memory and memory.default)
        if at(text, PROFILE) is not None:
            text = _restored(text, PROFILE, memory and memory.profile)
        return remove(text, PROFILES) if _is_empty(at(text, PROFILES)) else text
    except (NotJson, NotAnObject) as problem:
        raise Failure(f"{file.path} cannot be read: {problem}. Nothing was changed.") from None


def _restored(text: str, path: tuple[str, ...], before: str | None) -> str:
    return remove(text, path) if before is None else put(text, path, parse(before).value)


def _is_empty(value: str | None) -> bool:
    return value is not None and value.strip("{} \t\r\n") == ""
