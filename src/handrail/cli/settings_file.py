"""The settings file of VS Code or one of its kin, its backup, and what is remembered of our change to it.

Owns where these files lie and that they are written whole or not at all. Does not know what is changed in them.
"""

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from handrail.cli.failure import Failure
from handrail.cli.show import note
from handrail.places import Places

Editor = Literal["vscode", "insiders", "vscodium", "cursor"]
BACKUP = ".before-handrail"
TITLES: dict[Editor, str] = {
    "vscode": "VS Code",
    "insiders": "VS Code Insiders",
    "vscodium": "VSCodium",
    "cursor": "Cursor",
}
_FOLDERS: dict[Editor, tuple[str, str]] = {
    "vscode": ("Code", ".vscode-server"),
    "insiders": ("Code - Insiders", ".vscode-server-insiders"),
    "vscodium": ("VSCodium", ".vscodium-server"),
    "cursor": ("Cursor", ".cursor-server"),
}


@dataclass(frozen=True, slots=True)
class Memory:
    """What an undo needs to know of one file."""

    wrote: str
    """The hash of what we wrote: as long as it is the file's, an undo gives back what was there before."""
    existed: bool
    profile: str | None
    """What stood in the two places before us."""
    default: str | None


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """One settings file, and what is remembered of it."""

    path: Path

    @classmethod
    def find(cls, editor: Editor, named: Path | None) -> "SettingsFile":
        if named is not None:
            return cls(named.expanduser().absolute())
        places = _candidates(editor)
        found = next((path for path in places if path.parent.is_dir()), None)
        if found is None:
            raise Failure(
                f"{TITLES[editor]} was not found: there is no {places[0].parent}. Name its settings with --settings PATH."
            )
        return cls(found)

    @property
    def backup(self) -> Path:
        return self.path.with_name(self.path.name + BACKUP)

    def text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise Failure(f"{self.path} cannot be read: {error}. Nothing was changed.") from None

    def write(self, text: str) -> None:
        """All of it or nothing, where the file really lies, with the mode it has."""
        target = Path(os.path.realpath(self.path))
        fresh = target.with_name(f"{target.name}.handrail-{os.getpid()}")
        try:
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
            fresh.touch(mode=mode)
            fresh.chmod(mode)
            fresh.write_bytes(text.encode())
            fresh.replace(target)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise Failure(f"{self.path} cannot be written: {error}. Nothing was changed.") from None

    def back_up(self) -> None:
        """Keep what is there beside it, unless that is what we wrote: then the backup holds what was there before."""
        if self.ours(self.text()) is not None:
            return
        if self.path.exists():
            try:
                self.backup.write_bytes(self.path.read_bytes())
                self.backup.chmod(0o600)
            except OSError as error:
                raise Failure(f"{self.backup} cannot be written: {error}. Nothing was changed.") from None

    def ours(self, text: str) -> Memory | None:
        """What is remembered of this text, if it is exactly what we wrote."""
        memory = self.memory()
        return memory if memory is not None and memory.wrote == digest(text) else None

    def memory(self) -> Memory | None:
        known = _memories().get(str(self.path))
        return None if known is None else Memory(**known)

    def remember(self, memory: Memory) -> None:
        _remember({**_memories(), str(self.path): asdict(memory)})

    def forget(self) -> None:
        self.backup.unlink(missing_ok=True)
        _remember({path: known for path, known in _memories().items() if path != str(self.path)})


def _candidates(editor: Editor) -> list[Path]:
    folder, server = _FOLDERS[editor]
    home = Path.home()
    if sys.platform == "darwin":
        own = home / "Library" / "Application Support" / folder
    else:
        own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / folder
    # The second is where a window on another machine keeps what holds for this one.
    return [own / "User" / "settings.json", home / server / "data" / "Machine" / "settings.json"]


def _memories() -> dict[str, Any]:
    try:
        return json.loads(_memory_file().read_text())
    except (OSError, ValueError):
        return {}


def _remember(memories: dict[str, Any]) -> None:
    file = _memory_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(json.dumps(memories, indent=2))
    except OSError as error:
        note(f"What an undo needs could not be kept: {error}. The backup is still there.")


def _memory_file() -> Path:
    return Places.find(os.environ).state / "profiles.json"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
