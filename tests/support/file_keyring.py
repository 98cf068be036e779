"""A keyring in a file, for programs that tests start: their `keyringrc.cfg` names it, `FILE_KEYRING` is its path."""

import json
import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import cast

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError

ROOT = Path(__file__).resolve().parents[2]


def use_keyring_in_file(environment: MutableMapping[str, str], folder: Path) -> Path:
    """Let programs with this environment use a keyring in this folder; returns its file."""
    environment.pop("PYTHON_KEYRING_BACKEND", None)
    ring, config = folder / "keyring.json", folder / "config"
    environment.update({"FILE_KEYRING": str(ring), "XDG_CONFIG_HOME": str(config)})
    settings = config / "python_keyring" / "keyringrc.cfg"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        f"[backend]\ndefault-keyring = tests.support.file_keyring.FileKeyring\nkeyring-path = {ROOT}\n"
    )
    return ring


class FileKeyring(KeyringBackend):
    """The backend."""

    priority = 1.0  # pyright: ignore[reportAssignmentType] - a class's own, as keyring's documentation has it

    def __init__(self) -> None:
        super().__init__()
        self._path = Path(os.environ["FILE_KEYRING"])

    def get_password(self, service: str, username: str) -> str | None:
        return self._held().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        if not self._path.parent.is_dir():
            raise PasswordSetError(service)
        self._path.write_text(json.dumps({**self._held(), f"{service} {username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        held = self._held()
        if held.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError(service)
        self._path.write_text(json.dumps(held))

    def _held(self) -> dict[str, str]:
        return cast("dict[str, str]", json.loads(self._path.read_text())) if self._path.exists() else {}
