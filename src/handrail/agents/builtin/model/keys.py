"""What our agent was told of models by whoever started it: keys, addresses, and which one.

Owns those values for as long as the program runs. They are taken out of its environment at once, so that nothing it
starts inherits them, and are looked for in the system's keyring where they were not given. It does not know what a
provider is, and never says a value.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

import anyio
from anyio import to_thread

from handrail.config import KEYS_OF, PROVIDER_VARIABLES
from handrail.keys import kept

SECRET = tuple(name for name in PROVIDER_VARIABLES if name.endswith(("_KEY", "_TOKEN")))
SHORTEST = 8
"""Characters of a key below which it is no secret, but a placeholder that may well stand in a sentence."""


class Keys:
    """Values by the names of their variables."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name: value for name, value in given.items() if value}
        self._kept: dict[str, str] | None = None
        self._reading = anyio.Lock()

    @classmethod
    def take(cls, environ: MutableMapping[str, str]) -> Keys:
        """All that an environment has of them; there, they are gone."""
        return cls({name: environ.pop(name) for name in PROVIDER_VARIABLES if name in environ})

    def give(self, more: Mapping[str, object]) -> None:
        """What whoever hosts us tells on the line, where nobody else can read it; it comes before what was taken."""
        self._given |= {
            name: value for name in PROVIDER_VARIABLES if isinstance(value := more.get(name), str) and value
        }

    async def read(self) -> None:
        """Look into the keyring, once, for what was not given; what lies there goes to no address that was."""
        async with self._reading:
            if self._kept is None:
                unaddressed = [keys for address, keys in KEYS_OF.items() if address not in self._given]
                wanted = [name for keys in unaddressed for name in keys if name not in self._given]
                self._kept = await to_thread.run_sync(kept, *wanted, abandon_on_cancel=True)

    def get(self, *names: str) -> str | None:
        """The first of these that there is. What was given comes before what is kept."""
        for values in (self._given, self._kept or {}):
            for name in names:
                if name in values:
                    return values[name]
        return None

    def hidden(self, text: str) -> str:
        """A text with no key in it, whoever wrote it."""
        values = {**(self._kept or {}), **self._given}
        for name in SECRET:
            if len(value := values.get(name, "")) >= SHORTEST:
                text = text.replace(value, "…")
        return text
