"""API keys in the system keyring, stored under the names of their environment variables.

Every access has a timeout, because the keyring may wait for a person to unlock it. Error messages never contain a key.
The only module that imports `keyring`.
"""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend

SERVICE = "handrail"
PATIENCE = 5.0
"""Seconds for reading: a locked keyring must not delay the start of an agent."""
PROMPTED = 120.0
"""Seconds for writing: a person may have to unlock the keyring first."""

_BACKENDS = {
    "linux": (
        "SecretService.Keyring",
        "libsecret.Keyring",
        "kwallet.DBusKeyring",
        "kwallet.DBusKeyringKWallet4",
    ),
    "darwin": ("macOS.Keyring",),
}
"""Backends by platform."""

T = TypeVar("T")


class NoKeyring(Exception):
    """There is no keyring, it refuses access, or it does not answer in time; the message gives the reason."""


def read_keys(*names: str) -> dict[str, str]:
    """Read the stored values of these names; empty without a keyring. Blocks for at most PATIENCE seconds."""
    keyring = _import_keyring()

    def read() -> dict[str, str]:
        values = {name: keyring.get_password(SERVICE, name) for name in names}
        return {name: value for name, value in values.items() if value}

    try:
        return _run_with_timeout(PATIENCE, read)
    except NoKeyring:
        return {}


def store_key(name: str, value: str) -> None:
    """Store a value. Raises NoKeyring."""
    keyring = _import_keyring()
    _run_with_timeout(PROMPTED, lambda: keyring.set_password(SERVICE, name, value))


def delete_key(name: str) -> bool:
    """Delete a value; return whether it existed. Raises NoKeyring."""
    keyring = _import_keyring()
    from keyring.errors import PasswordDeleteError  # noqa: PLC0415

    def delete() -> bool:
        try:
            keyring.delete_password(SERVICE, name)
        except PasswordDeleteError:
            return False
        return True

    return _run_with_timeout(PROMPTED, delete)


def has_keyring() -> bool:
    """Whether the system has a keyring that keeps what it is given."""
    return _import_keyring().get_keyring().priority >= 1


def _import_keyring() -> ModuleType:
    """The library, which uses one of its own backends.

    By itself it would read `keyringrc.cfg`, which any command of this user can write and which names code to load, and
    import every backend there is, one of which starts programs of the PATH.
    """
    import keyring  # noqa: PLC0415 - the import takes a tenth of a second
    from keyring import core  # noqa: PLC0415

    core.load_config = _find_backend
    return keyring


def _find_backend() -> "KeyringBackend":
    """The best backend for this system that works. An environment variable of the person's names another one."""
    from keyring import core  # noqa: PLC0415
    from keyring.backends import fail  # noqa: PLC0415

    found: list[KeyringBackend] = []
    has_bus = sys.platform != "linux" or "DBUS_SESSION_BUS_ADDRESS" in os.environ
    for name in _BACKENDS.get(sys.platform, ()) if has_bus else ():  # else libraries would start a bus
        with suppress(Exception):  # it does not work here: a service or a library is missing
            found.append(core.load_keyring(f"keyring.backends.{name}"))
    return max(found, key=lambda each: each.priority, default=fail.Keyring())


def _run_with_timeout(seconds: float, access: Callable[[], T]) -> T:
    """Run in a daemon thread, abandoned after the timeout: a locked keyring may never answer."""
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(access())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if results:
        return results[0]
    raise NoKeyring(_describe_error(errors[0] if errors else None, seconds))


def _describe_error(error: Exception | None, seconds: float) -> str:
    from keyring.errors import NoKeyringError  # noqa: PLC0415

    if error is None:
        return f"The system's keyring did not answer within {seconds:.0f} seconds; it may be locked."
    if isinstance(error, NoKeyringError):
        return "There is no keyring on this system. Set the variable in the environment instead."
    return f"The system's keyring refused: {type(error).__name__}."
