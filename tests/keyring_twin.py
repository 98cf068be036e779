"""A keyring for tests: the real package with a backend that keeps everything in memory, and may be slow or refuse.

No test ever reaches the keyring of whoever runs it (conftest.py sees to that).
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError

from handrail.provider_keys import SERVICE


@dataclass
class Rings:
    """What is kept, and what was asked of it."""

    held: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])
    refuses: bool = False
    locked: threading.Event = field(default_factory=threading.Event)
    """While clear, nothing is answered."""

    def keep(self, name: str, value: str) -> None:
        self.held[name] = value


class Twin(KeyringBackend):
    """The backend."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def __init__(self, rings: Rings) -> None:
        super().__init__()
        self._rings = rings

    def get_password(self, service: str, username: str) -> str | None:
        self._asked(service, username)
        return self._rings.held.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._asked(service, username)
        if self._rings.refuses:
            raise PasswordSetError(password)
        self._rings.held[username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._asked(service, username)
        if self._rings.held.pop(username, None) is None:
            raise PasswordDeleteError

    def _asked(self, service: str, name: str) -> None:
        assert service == SERVICE
        self._rings.asked.append(name)
        self._rings.locked.wait(10)


@pytest.fixture
def rings() -> Iterator[Rings]:
    before = keyring.get_keyring()
    rings = Rings()
    rings.locked.set()
    keyring.set_keyring(Twin(rings))
    try:
        yield rings
    finally:
        rings.locked.set()
        keyring.set_keyring(before)
