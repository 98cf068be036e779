"""Secrets of MCP servers: values for their environment and their headers, and tokens of sign-ins.

A value is in the system's keyring, or, on a system without one, in a file that only this user can read. The same file
lists the names, because a keyring cannot. No route, event, log or command returns a value.
"""

import json
import os
import re
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, cast

from handrail.lazy_dataclass import dataclass
from handrail.provider_keys import delete_key, has_keyring, read_keys, store_key
from handrail.regular_file import read_regular_file

PREFIX = "mcp:"
"""In front of a name in the keyring, which has the keys of our own agent too."""
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
REFERENCE = re.compile(r"\{secret:([A-Za-z_][A-Za-z0-9_]{0,99})\}")
"""How a value of `env` or `headers` names a secret."""
VALUE_MAX = 65_536
"""Characters of a value. Rejects a file that was sent by mistake."""
SECRETS_MAX = 1000
MASKED_MAX = 4000
"""Values that are masked. Bounds memory: tokens of sign-ins are renewed every hour."""
MASK_MIN = 4
"""Characters of the shortest value that is masked in a server's output: a shorter one is in any text."""
MASK = "[secret]"

Kept = Literal["keyring", "file"]


class BadSecret(Exception):
    """A name or a value cannot be stored, or a stored one cannot be read; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSecret:
    """A secret without its value."""

    name: str
    kept: Kept


class SecretStore:
    """The stored secrets. All methods block: a keyring may wait for a person to unlock it."""

    def __init__(self, path: Path) -> None:
        """`path` is the file."""
        self._path = path
        self._lock = threading.Lock()
        self._masking = threading.Lock()
        self._known: dict[str, None] = {}
        """Values that were read or stored, to mask them. A replaced one is among them: what runs was started with it."""

    def list(self) -> list[StoredSecret]:
        """All secrets of people, by name; without those of sign-ins. Raises BadSecret."""
        entries = self._read()
        names = sorted(name for name in entries if NAME.fullmatch(name))
        return [StoredSecret(name=name, kept=_kept(entries[name])) for name in names]

    def get(self, *names: str) -> dict[str, str]:
        """The values of those that are stored. Raises BadSecret."""
        with self._lock:
            entries = self._read()
            found = {name: entries[name] for name in names if name in entries}
            values = {name: value for name, value in found.items() if value is not None}
            asked = [name for name, value in found.items() if value is None]
            read = read_keys(*(PREFIX + name for name in asked)) if asked else {}
            values |= {name: read[PREFIX + name] for name in asked if PREFIX + name in read}
            self.hide(*values.values())
        return values

    def set(self, name: str, value: str) -> StoredSecret:
        """Store a value. Raises BadSecret, or NoKeyring if the system's keyring refuses."""
        if not value or len(value) > VALUE_MAX or not value.isprintable():
            raise BadSecret(
                f"A secret has 1 to {VALUE_MAX:,} printable characters on one line. Nothing was stored."
            )
        with self._lock:
            entries = self._read()
            if name not in entries and len(entries) >= SECRETS_MAX:
                raise BadSecret(f"There are {SECRETS_MAX:,} secrets, which is the most. Delete some.")
            if in_keyring := has_keyring():
                store_key(PREFIX + name, value)
            self._write({**entries, name: None if in_keyring else value})
            self.hide(value)
        return StoredSecret(name=name, kept="keyring" if in_keyring else "file")

    def delete(self, name: str) -> bool:
        """Delete a secret; whether it existed. Raises BadSecret or NoKeyring."""
        with self._lock:
            entries = self._read()
            if name not in entries:
                return False
            if entries.pop(name) is None:
                delete_key(PREFIX + name)
            self._write(entries)
        return True

    def hide(self, *values: str) -> None:
        """Mask these values from now on; of very many, the newest."""
        with self._masking:
            known = {**self._known, **dict.fromkeys(filter(None, values))}
            self._known = dict.fromkeys([*known][-MASKED_MAX:])

    def mask(self, text: str) -> str:
        """The text without the values that were used since the daemon started."""
        for value in sorted(self._known, key=len, reverse=True):
            if len(value) >= MASK_MIN:
                text = text.replace(value, MASK)
        return text

    def _read(self) -> dict[str, str | None]:
        """The file: each name, with its value if no keyring has it."""
        try:
            entries: object = json.loads(read_regular_file(self._path, VALUE_MAX * SECRETS_MAX))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as problem:
            raise BadSecret(f"{self._path} cannot be read ({problem}). Repair or delete it.") from None
        if not isinstance(entries, dict):
            raise BadSecret(f"{self._path} is not a list of secrets. Repair or delete it.")
        return cast("dict[str, str | None]", entries)

    def _write(self, entries: Mapping[str, str | None]) -> None:
        """Replace the file at once, so that a crash leaves the old one or the new one."""
        new = self._path.with_suffix(".new")
        try:
            new.unlink(missing_ok=True)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
                json.dump(entries, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
        except OSError as problem:
            raise BadSecret(f"{self._path} cannot be written: {problem}. Nothing was changed.") from None


def find_references(values: Collection[str]) -> list[str]:
    """The names of the secrets that settings refer to."""
    return sorted({name for value in values for name in REFERENCE.findall(value)})


def fill_references(value: str, secrets: Mapping[str, str]) -> str:
    """A setting with the values of its secrets."""
    return REFERENCE.sub(lambda found: secrets[found[1]], value)


def _kept(value: str | None) -> Kept:
    return "keyring" if value is None else "file"
