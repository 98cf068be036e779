"""Keys in the system's own keyring, under the names of the variables that they would otherwise stand in.

Owns the way to the keyring: bounded, since it may ask a person to unlock it, and silent where there is none. It does not
know what a key is for, and no value is ever part of a sentence.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

SERVICE = "handrail"
PATIENCE = 5.0
"""Seconds for reading: a locked keyring must not hold up an agent's start."""
PROMPTED = 120.0
"""Seconds for writing, where a person may have to unlock it first."""

T = TypeVar("T")


class NoKeyring(Exception):
    """There is no keyring here, or it does not let us; the sentence says which."""


def kept(*names: str) -> dict[str, str]:
    """What is kept of these; nothing where there is no keyring. Blocks, for a few seconds at most."""
    import keyring  # noqa: PLC0415 - a tenth of a second, for who asks

    def read() -> dict[str, str]:
        found = {name: keyring.get_password(SERVICE, name) for name in names}
        return {name: value for name, value in found.items() if value}

    try:
        return _within(PATIENCE, read)
    except NoKeyring:
        return {}


def keep(name: str, value: str) -> None:
    """Raises NoKeyring."""
    import keyring  # noqa: PLC0415

    _within(PROMPTED, lambda: keyring.set_password(SERVICE, name, value))


def forget(name: str) -> bool:
    """Whether it was there. Raises NoKeyring."""
    import keyring  # noqa: PLC0415
    from keyring.errors import PasswordDeleteError  # noqa: PLC0415

    def delete() -> bool:
        try:
            keyring.delete_password(SERVICE, name)
        except PasswordDeleteError:
            return False
        return True

    return _within(PROMPTED, delete)


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """In a thread that nobody waits for: what does not answer in time may never do so."""
    answers: list[T] = []
    faults: list[Exception] = []

    def run() -> None:
        try:
            answers.append(ask())
        except Exception as fault:
            faults.append(fault)

    thread = threading.Thread(target=run, name="keyring", daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    raise NoKeyring(_sentence(faults[0] if faults else None, seconds))


def _sentence(fault: Exception | None, seconds: float) -> str:
    from keyring.errors import NoKeyringError  # noqa: PLC0415

    if fault is None:
        return f"The system's keyring did not answer within {seconds:.0f} seconds; it may be locked."
    if isinstance(fault, NoKeyringError):
        return "There is no keyring on this system. Set the variable in the environment instead."
    return f"The system's keyring refused: {type(fault).__name__}."
