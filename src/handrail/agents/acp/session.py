"""One conversation as an agent keeps it: prompting it, cancelling that within a bound, and its settings.

Owns the session's id and the translation of its modes, options and models into updates for the desk. Does not know
what is said, nor where a session comes from (agent.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
from pydantic import JsonValue

from handrail.agents.acp.acp_connection import Asked
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import CANCEL
from handrail.store.values import Json

if TYPE_CHECKING:
    from handrail.agents.acp.agent import Agent


CANCEL_SECONDS = 10.0
"""What an agent gets to say that it ends something: a person waits for it."""
MODEL = "_model"
"""The id under which we offer the models of an agent that lists them apart from its options."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a prompt ended, in the agent's words."""

    stop: str
    usage: Json | None = None


class Session:
    """An open session."""

    def __init__(self, agent: "Agent", id: str) -> None:
        self.agent, self.id = agent, id
        self._models: Json | None = None

    async def prompt(self, blocks: Sequence[Json]) -> Ended:
        """Returns when the agent has stopped. Raises AgentError.

        Where the wait is cancelled, the agent is told, and gets its grace to stop; one that does not is ended.
        """
        await anyio.lowlevel.checkpoint()  # one that is cancelled already sends nothing
        params: Json = {"sessionId": self.id, "prompt": list(blocks)}
        asked = self.agent.ask("session/prompt", params)
        try:
            answer = await self.agent.answer("session/prompt", asked)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._cancel(asked)
            raise
        return _ended(answer)

    async def set_mode(self, id: str) -> None:
        """Raises AgentError, as do all of these."""
        await self.agent.request("session/set_mode", {"sessionId": self.id, "modeId": id})
        self.agent.desks.update(self._told({"sessionUpdate": "current_mode_update", "currentModeId": id}))

    async def set_option(self, id: str, value: str | bool) -> None:
        if id == MODEL:
            await self.agent.request("session/set_model", {"sessionId": self.id, "modelId": value})
            self.tell_settings({"models": {**(self._models or {}), "currentModelId": value}})
            return
        params: Json = {"sessionId": self.id, "configId": id, "value": value}
        if isinstance(value, bool):
            params["type"] = "boolean"
        answer = await self.agent.request("session/set_config_option", params)
        self.tell_settings(answer)

    async def cancel_activity(self, id: str) -> bool:
        """Have the agent end one thing it is busy with; False where that is over. Raises AgentError."""
        answer = await self.agent.request(CANCEL, {"sessionId": self.id, "activity": id}, CANCEL_SECONDS)
        return isinstance(answer, dict) and cast("Json", answer).get("cancelled") is True

    async def close(self) -> None:
        """Let the agent forget what it holds in memory of it."""
        await self._leave("close")

    async def delete(self) -> None:
        """Have the agent delete its own record of it, where it can."""
        await self._leave("delete")

    def tell_settings(self, answer: Any) -> None:
        """Give the desk the modes and options that came with an answer."""
        if isinstance(answer, dict) and isinstance(models := cast("Json", answer).get("models"), dict):
            self._models = models
        for update in settings_in(answer):
            self.agent.desks.update(self._told(update))

    async def _leave(self, verb: str) -> None:
        self.agent.desks.drop(self.id)
        if self.agent.about.session(verb):
            await self.agent.request(f"session/{verb}", {"sessionId": self.id})

    async def _cancel(self, asked: Asked) -> None:
        """Bounded: by the grace, and then by the end of the program's tree."""
        grace = self.agent.grace
        with anyio.move_on_after(grace):
            await asked.sent.wait()
            self.agent.notify("session/cancel", {"sessionId": self.id})
            await asked.done.wait()
        if not asked.done.is_set():
            await self.agent.end(
                f"{self.agent.name} did not stop within {grace:g} s of being told to, so it was ended."
            )

    def _told(self, update: Json) -> Json:
        return {"sessionId": self.id, "update": update}


def settings_in(answer: Any) -> list[Json]:
    """The modes and options of an answer, as updates of kinds that no agent sends: `_modes`, `_options`."""
    if not isinstance(answer, dict):
        return []
    given, found = cast("Json", answer), list[Json]()
    if isinstance(given.get("modes"), dict):
        found.append({"sessionUpdate": "_modes", **cast("Json", given["modes"])})
    options = given.get("configOptions")
    models = given.get("models")
    if isinstance(options, list):
        found.append({"sessionUpdate": "_options", "configOptions": options})
    elif isinstance(models, dict):
        found.append({"sessionUpdate": "_options", "configOptions": [_model_option(models)]})
    return found


def _model_option(models: Json) -> Json:
    """A list of models in the shape of an option."""
    listed = models.get("availableModels")
    choices: list[JsonValue] = [
        {"value": model.get("modelId"), "name": model.get("name"), "description": model.get("description")}
        for model in (listed if isinstance(listed, list) else [])
        if isinstance(model, dict)
    ]
    return {
        "id": MODEL,
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": models.get("currentModelId"),
        "options": choices,
    }


def _ended(answer: Any) -> Ended:
    given = cast("Json", answer) if isinstance(answer, dict) else {}
    stop, usage = given.get("stopReason"), given.get("usage")
    if not isinstance(stop, str):
        raise AgentError("The agent ended without saying why.")
    return Ended(stop, cast("Json", usage) if isinstance(usage, dict) else None)
