"""A keyring in a file, for programs that tests fork: a variable names the backend, `FILE_KEYRING` is its path."""

import json
import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import cast

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError


def use_keyring_in_file(environment: MutableMapping[str, str], folder: Path) -> Path:
    """Let programs with this environment use a keyring in this folder; returns its file."""
    ring = folder / "keyring.json"
    backend = f"{FileKeyring.__module__}.{FileKeyring.__name__}"
    environment.update({"FILE_KEYRING": str(ring), "PYTHON_KEYRING_BACKEND": backend, "PYTHONPATH": ROOT})
    return ring


ROOT = str(Path(__file__).resolve().parents[2])


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
