"""The models of a session: what can be chosen, what is meant unless somebody chooses, and each of them ready to be asked.

Owns the one HTTP client that all of them share, and closes it. What takes long to load is loaded off the loop, on the
first need of it.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Literal

from anyio import to_thread

from handrail.agents.builtin.model.access import NO_KEY, Access, access, accesses
from handrail.agents.builtin.model.choice import Choice, chosen
from handrail.agents.builtin.model.keys import Keys
from handrail.agents.builtin.model.model import Model, ModelError
from handrail.agents.builtin.model.offered import Offered, offered, short
from handrail.agents.builtin.model.patience import Patience
from handrail.config import OwnAgentSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx2

ThoughtLevel = Literal["off", "low", "medium", "high"]
PATIENCE = Patience()
LOADING = Lock()
"""Two threads that load the same packages at once get in each other's way; one may have been given up by now."""


class Models:
    """To be closed by whoever made it."""

    def __init__(self, keys: Keys, settings: OwnAgentSection, patience: Patience = PATIENCE) -> None:
        self._keys, self._settings, self._patience = keys, settings, patience
        self._http: httpx2.AsyncClient | None = None
        self._seen: list[Offered] = []
        self._made: dict[tuple[Choice, ThoughtLevel | None], Model] = {}

    def known(self) -> list[Offered]:
        """What can be chosen for certain, without a look into the keyring and without asking anybody. Where a server of
        one's own comes first, and with it the default, nothing is certain before it was asked."""
        ways = accesses(self._keys)
        certain = [] if ways[0].own else [way for way in ways if not way.own]
        return self._with_wanted([each for way in certain for each in short(way)])

    async def offered(self) -> list[Offered]:
        """All that can be chosen now, the one that was set for this agent among them."""
        await self._keys.read()
        self._seen = self._with_wanted(await offered(accesses(self._keys), await self._client()))
        return self._seen

    async def default(self) -> str | None:
        """The one that was set, else the first that can be chosen; None without any key or server."""
        await self._keys.read()
        return self._wanted or self.preferred(self._seen or await self.offered())

    def preferred(self, among: Sequence[Offered]) -> str | None:
        """The one that was set, else the first of these."""
        return self._wanted or next((each.name for each in among), None)

    async def model(self, name: str | None, thought_level: ThoughtLevel | None = None) -> Model:
        """Ready to be asked. Raises ModelError: with `login` where there is no key for it, or none at all."""
        await self._keys.read()
        if not name:
            raise ModelError(NO_KEY.format(provider="anthropic"), login=True)
        choice = chosen(name)
        way = access(choice.provider, self._keys)
        if (choice, thought_level) not in self._made:
            http = await self._client()
            self._made[choice, thought_level] = await to_thread.run_sync(
                self._make, choice, way, http, thought_level, abandon_on_cancel=True
            )
        return self._made[choice, thought_level]

    def _make(
        self, choice: Choice, way: Access, http: httpx2.AsyncClient, thought_level: ThoughtLevel | None
    ) -> Model:
        with LOADING:
            from handrail.agents.builtin.model.ask import Asking  # noqa: PLC0415 - seconds of importing
            from handrail.agents.builtin.model.speak import speaking  # noqa: PLC0415

            spoken = speaking(choice, way, http, thought_level)
        return Asking(choice, way, spoken, self._settings.context, self._patience, self._keys.hidden)

    async def aclose(self) -> None:
        """Close what connections are open; what is asked afterwards opens new ones."""
        self._made.clear()
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _with_wanted(self, found: list[Offered]) -> list[Offered]:
        wanted = self._wanted
        if not wanted or wanted in [each.name for each in found]:
            return found
        return [Offered(name=wanted, title=wanted.partition(":")[2] or wanted), *found]

    @property
    def _wanted(self) -> str | None:
        """By its full name, where it makes sense at all."""
        told = self._keys.get("HANDRAIL_MODEL") or self._settings.model or None
        try:
            return told and str(chosen(told))
        except ModelError:
            return told

    async def _client(self) -> httpx2.AsyncClient:
        if self._http is None:
            made = await to_thread.run_sync(_opened, self._patience, abandon_on_cancel=True)
            self._http = self._http or made
        return self._http


def _opened(patience: Patience) -> httpx2.AsyncClient:
    from handrail.agents.builtin.model.line import opened  # noqa: PLC0415

    return opened(patience)
