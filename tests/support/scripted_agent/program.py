"""The start of the scripted agent: stdin and stdout, JSON-RPC, and a route for each method.

It speaks JSON lines itself: the SDK's connection would take half of the start's processor time, hundreds of times in a run.
"""

import asyncio
import json
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import cast

from tests.support.scripted_agent import Behavior, Obj
from tests.support.scripted_agent.agent import Agent, background
from tests.support.scripted_agent.steps import Actor
from tests.support.scripted_agent.wire import Refused, Session, Wire

Route = tuple[str, Callable[[Obj], Awaitable[Obj]]]
"""The model of the request in the SDK's schema, and the method."""


def routes_of(agent: Agent) -> dict[str, Route]:
    return {
        "initialize": ("InitializeRequest", agent.initialize),
        "authenticate": ("AuthenticateRequest", agent.authenticate),
        "session/new": ("NewSessionRequest", agent.new),
        "session/load": ("LoadSessionRequest", agent.load),
        "session/resume": ("ResumeSessionRequest", agent.resume),
        "session/fork": ("ForkSessionRequest", agent.fork),
        "session/list": ("ListSessionsRequest", agent.list),
        "session/close": ("CloseSessionRequest", agent.close),
        "session/delete": ("DeleteSessionRequest", agent.delete),
        "session/set_mode": ("SetSessionModeRequest", agent.set_mode),
        "session/set_config_option": ("SetSessionConfigOptionSelectRequest", agent.set_option),
        "session/prompt": ("PromptRequest", agent.prompt),
        "session/set_model": ("", agent.set_model),
        "_session/steering": ("", agent.steer),
        "_handrail/cancel_activity": ("", agent.cancel_activity),
    }


def validate(model: str, params: Obj) -> None:
    """Refuse what the SDK's schema refuses."""
    from acp import schema  # noqa: PLC0415 - slow to import
    from pydantic import ValidationError  # noqa: PLC0415

    if params.get("type") == "boolean":
        model = "SetSessionConfigOptionBooleanRequest"
    try:
        getattr(schema, model).model_validate(params)
    except ValidationError as refused:
        error = {"code": -32602, "message": "Invalid params", "data": {"errors": refused.errors()}}
        raise Refused(error) from refused


class Dispatcher:
    """Serves each message in a task of its own; the tasks start in the order of the messages.

    So a cancel that is read together with its prompt finds the prompt running.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent, self.wire = agent, agent.wire
        self.routes = routes_of(agent)
        self.strict = agent.manners.get("strict", False)

    async def run(self) -> None:
        """Until the end of stdin."""
        while (message := await self.wire.receive()) is not None:
            if "method" in message:
                background(self.reply(message) if "id" in message else self.hear(message))

    async def hear(self, message: Obj) -> None:
        if message["method"] == "session/cancel":
            self.agent.cancel(message["params"])

    async def reply(self, message: Obj) -> None:
        try:
            answer: Obj = {"result": await self.serve(message["method"], message.get("params") or {})}
        except Refused as refused:
            answer = {"error": refused.error}
        except Exception as broken:
            traceback.print_exc()
            details = {"details": str(broken)}
            answer = {"error": {"code": -32603, "message": "Internal error", "data": details}}
        await self.wire.send({"jsonrpc": "2.0", "id": message["id"], **answer})

    async def serve(self, method: str, params: Obj) -> Obj:
        if method not in self.routes:
            raise Refused({"code": -32601, "message": "Method not found", "data": {"method": method}})
        model, serve = self.routes[method]
        if self.strict and model:
            validate(model, params)
        return await serve(params)


async def stdio_streams(limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def main(manners: Behavior) -> None:
    """Serve one client on stdin and stdout."""
    wire = Wire(*await stdio_streams(limit=64 * 1024 * 1024))
    wire.answers = manners.get("answers", {})
    agent = Agent(wire, manners)
    await Actor(agent, Session("", {})).act(manners.get("at_start", ()))
    if manners.get("ignores_eof"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    await Dispatcher(agent).run()
    if manners.get("ignores_eof"):
        await asyncio.Event().wait()


def run(argv: list[str]) -> None:
    """Run the agent with the behaviour that the command line has as JSON."""
    asyncio.run(main(cast("Behavior", json.loads(argv[1]) if len(argv) > 1 else {})))
