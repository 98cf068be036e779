"""Routes of settings: the values of the configuration file, without secrets; and stopping everything."""

import os
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Request

from handrail.config import BadConfig
from handrail.flat_settings import mask_secrets, settings
from handrail.gate import person_actions
from handrail.paths import Places
from handrail.server.api.models import Wire
from handrail.server.api.terminals import close_all
from handrail.server.context import ServerContext, actor_of


class SettingView(Wire):
    """One value of the configuration."""

    name: str
    value: Any
    """Secrets are masked."""
    default: bool
    """It is not in the file."""


class SettingsView(Wire):
    """The configuration file as it is now. Changes are in force after `handrail restart`."""

    path: str
    problem: str
    """Why the file cannot be read; empty if it can."""
    values: list[SettingView]


class StopReceipt(Wire):
    """The processes that were stopped."""

    operations: int
    """Prompts that agents worked on."""
    calls: int
    """Open calls: running, or waiting for an answer."""
    terminals: int
    """Commands and shells of agents that ran without an open call."""
    beyond: int
    """Calls that clients run themselves: Handrail no longer follows them, and cannot end their processes."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/settings")
    async def show_settings() -> SettingsView:
        return await anyio.to_thread.run_sync(_read_settings)

    @router.post("/stop")
    async def stop_everything(request: Request) -> StopReceipt:
        by, gate = actor_of(request), context.gate
        still_open = list(gate.open.values())
        operations = sum(operation.cancel(by) for operation in list(gate.operations.values()))
        beyond = [call for call in still_open if call.caller.door == "hook" and call.status == "running"]
        for call in still_open:
            person_actions.cancel(gate, call, by)
        ending = {call.terminal for call in still_open}
        agents = [live for live in context.terminals.live.values() if live.note.is_agents]
        left = [live.id for live in agents if live.exit is None and live.id not in ending]
        closed = await close_all(context, left, str(by))
        return StopReceipt(
            operations=operations, calls=len(still_open), terminals=len(closed), beyond=len(beyond)
        )

    return router


def _read_settings() -> SettingsView:
    path = Places.find(os.environ).config
    try:
        values = [mask_secrets(each) for each in settings(path)]
    except BadConfig as problem:
        return SettingsView(path=str(path), problem=str(problem), values=[])
    shown = [
        SettingView(name=each.name, value=each.value, default=each.origin == "default") for each in values
    ]
    return SettingsView(path=str(path), problem="", values=shown)
