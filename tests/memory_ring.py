"""A keyring of a test's own: what is kept in it is gone with the test.

Knows the `keyring` package, and nothing of what is kept.
"""

from collections.abc import Generator
from contextlib import contextmanager

import keyring
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Memory(KeyringBackend):
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
def memory_ring() -> Generator[Memory]:
    """The keyring of this process, for as long as this lasts."""
    before, made = keyring.get_keyring(), Memory()
    keyring.set_keyring(made)
    try:
        yield made
    finally:
        keyring.set_keyring(before)
