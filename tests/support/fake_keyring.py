"""Keyrings in memory, behind the real `keyring` package. One records requests and may be slow or refuse.

No test reaches the keyring of the user who runs it: conftest.py sets the null backend.
"""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError, PasswordSetError

from handrail.provider_keys import SERVICE


@dataclass
class KeyringState:
    """The stored keys, and the requests so far."""

    held: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])
    refuses: bool = False
    locked: threading.Event = field(default_factory=threading.Event)
    """While clear, nothing is answered."""

    def keep(self, name: str, value: str) -> None:
        self.held[name] = value


class FakeKeyring(KeyringBackend):
    """The backend."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def __init__(self, rings: KeyringState) -> None:
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
def rings() -> Iterator[KeyringState]:
    before = keyring.get_keyring()
    rings = KeyringState()
    rings.locked.set()
    keyring.set_keyring(FakeKeyring(rings))
    try:
        yield rings
    finally:
        rings.locked.set()
        keyring.set_keyring(before)


class MemoryKeyring(KeyringBackend):
    """A keyring in memory."""

    priority = 1.0  # pyright: ignore[reportAssignmentType] - a class's own, as keyring's documentation has it

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError("nothing there")


@contextmanager
def memory_keyring() -> Generator[MemoryKeyring]:
    """The keyring of this process, for as long as this lasts."""
    before, made = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(made)
    try:
        yield made
    finally:
        keyring.set_keyring(before)
