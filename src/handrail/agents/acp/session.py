"""One session of an agent: prompts, cancellation within a bound, and settings.

Translates its modes, options and models into updates for the session's handler. It does not know the content
of messages, or how a session is opened (`agent.py`).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
from pydantic import JsonValue

from handrail.agents.acp.acp_connection import OutgoingRequest
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import CANCEL_ACTIVITY, STEER, STEER_META, is_steered
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json

if TYPE_CHECKING:
    from handrail.agents.acp.agent import Agent


CANCEL_SECONDS = 10.0
"""Seconds for an agent to confirm that it ends an activity: a person waits for it."""
STEER_SECONDS = 10.0
"""Seconds for an agent to confirm that it takes a message while it works: a person waits for it."""
MODEL = "_model"
"""The option id for the models of an agent that lists them apart from its options."""


@dataclass(frozen=True, slots=True)
class PromptResult:
    """How a prompt ended, in the agent's terms."""

    stop: str
    usage: Json | None = None


class Session:
    """An open session."""

    def __init__(self, agent: "Agent", id: str) -> None:
        self.agent, self.id = agent, id
        self._models: Json | None = None

    async def prompt(
        self, blocks: Sequence[Json], on_cancel: Callable[[], None] | None = None
    ) -> PromptResult:
        """Send a prompt; returns when the agent has stopped. Raises AgentError.

        If the wait is cancelled, `on_cancel` is called, then the agent is asked to cancel and gets its grace period;
        then it is ended.
        """
        await anyio.lowlevel.checkpoint()  # a prompt that is already cancelled sends nothing
        params: Json = {"sessionId": self.id, "prompt": list(blocks)}
        request = self.agent.ask("session/prompt", params)
        self.agent.prompts_begun += 1
        self.agent.prompts_running += 1
        try:
            answer = await self.agent.answer("session/prompt", request)
        except anyio.get_cancelled_exc_class():
            if on_cancel is not None:
                on_cancel()
            with anyio.CancelScope(shield=True):
                await self._cancel(request)
            raise
        finally:
            self.agent.prompts_running -= 1
        return _parse_result(answer)

    async def steer(self, blocks: Sequence[Json], on_taken: Callable[[], None]) -> bool:
        """Give the agent a message for the prompt that it works on; False if it works on none. Raises AgentError.

        `on_taken` is called before any later update of the session is handled.
        """

        def on_answer(answer: Any) -> None:
            if is_steered(answer):
                on_taken()

        params: Json = {"sessionId": self.id, "prompt": list(blocks), "_meta": STEER_META}
        return is_steered(await self.agent.request(STEER, params, STEER_SECONDS, on_answer))

    async def set_mode(self, id: str) -> None:
        """Raises AgentError, as do all requests below."""
        await self.agent.request("session/set_mode", {"sessionId": self.id, "modeId": id})
        self.agent.sessions.update(
            self._wrap_update({"sessionUpdate": "current_mode_update", "currentModeId": id})
        )

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
        """Ask the agent to end one activity; False if that has already ended. Raises AgentError."""
        answer = await self.agent.request(
            CANCEL_ACTIVITY, {"sessionId": self.id, "activity": id}, CANCEL_SECONDS
        )
        return isinstance(answer, dict) and cast("Json", answer).get("cancelled") is True

    async def close(self) -> None:
        """Ask the agent to free the session's memory."""
        await self._leave("close")

    async def delete(self) -> None:
        """Ask the agent to delete its record of the session, if it can."""
        await self._leave("delete")

    def tell_settings(self, answer: Any) -> None:
        """Pass the modes and options in an answer to the session's handler."""
        if isinstance(answer, dict) and isinstance(models := cast("Json", answer).get("models"), dict):
            self._models = models
        for update in updates_from_settings(answer):
            self.agent.sessions.update(self._wrap_update(update))

    async def _leave(self, verb: str) -> None:
        self.agent.sessions.drop(self.id)
        if self.agent.about.session(verb):
            await self.agent.request(f"session/{verb}", {"sessionId": self.id})

    async def _cancel(self, request: OutgoingRequest) -> None:
        """Bounded by the grace period, then by the end of the process tree."""
        grace = self.agent.grace
        with anyio.move_on_after(grace):
            await request.sent.wait()
            self.agent.notify("session/cancel", {"sessionId": self.id})
            await request.done.wait()
        if not request.done.is_set():
            await self.agent.end(
                f"{self.agent.name} did not stop within {grace:g} s of being told to, so it was ended."
            )

    def _wrap_update(self, update: Json) -> Json:
        return {"sessionId": self.id, "update": update}


def updates_from_settings(answer: Any) -> list[Json]:
    """The modes and options in an answer, as updates of our own kinds: `_modes`, `_options`."""
    if not isinstance(answer, dict):
        return []
    settings, updates = cast("Json", answer), list[Json]()
    if isinstance(settings.get("modes"), dict):
        updates.append({"sessionUpdate": "_modes", **cast("Json", settings["modes"])})
    options = settings.get("configOptions")
    models = settings.get("models")
    if isinstance(options, list):
        updates.append({"sessionUpdate": "_options", "configOptions": options})
    elif isinstance(models, dict):
        updates.append({"sessionUpdate": "_options", "configOptions": [_model_option(models)]})
    return updates


def _model_option(models: Json) -> Json:
    """The list of models as a select option."""
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


def _parse_result(answer: Any) -> PromptResult:
    result = cast("Json", answer) if isinstance(answer, dict) else {}
    stop, usage = result.get("stopReason"), result.get("usage")
    if not isinstance(stop, str):
        raise AgentError("The agent ended without saying why.")
    return PromptResult(stop, cast("Json", usage) if isinstance(usage, dict) else None)
