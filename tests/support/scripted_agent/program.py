"""The start of the scripted agent: stdin and stdout, the SDK's connection, and a route for each method."""

import asyncio
import importlib.util
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any, cast

from tests.support.scripted_agent import Behavior, Obj
from tests.support.scripted_agent.agent import Agent
from tests.support.scripted_agent.steps import Actor
from tests.support.scripted_agent.wire import Refused, Session, Wire


def skip_schema() -> None:
    """Let `acp` be a bare package, so that importing its connection does not load the whole schema with it."""
    found = importlib.util.find_spec("acp")
    assert found is not None
    bare = ModuleType("acp")
    bare.__path__ = list(found.submodule_search_locations or ())
    sys.modules["acp"] = bare


def validate(model: str, params: Any) -> None:
    from acp import schema  # noqa: PLC0415 - slow to import

    getattr(schema, model).model_validate(params)


async def stdio_streams(limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As the SDK makes them, whose module loads the schema."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def main(manners: Behavior) -> None:
    """Serve one client on stdin and stdout, through the SDK's connection and the agent's routes."""
    from acp.connection import Connection  # noqa: PLC0415 - `skip_schema` comes first
    from acp.exceptions import RequestError  # noqa: PLC0415
    from acp.router import MessageRouter, Route  # noqa: PLC0415

    wire = Wire(*await stdio_streams(limit=64 * 1024 * 1024))
    wire.answers = manners.get("answers", {})
    agent = Agent(wire, manners)
    await Actor(agent, Session("", {})).act(manners.get("at_start", ()))
    router = MessageRouter()

    def checked(model: str, serve: Callable[[Obj], Awaitable[Obj]]) -> Callable[[Any], Awaitable[Any]]:
        async def handle(params: Any) -> Obj:
            if manners.get("strict"):
                validate(
                    "SetSessionConfigOptionBooleanRequest" if params.get("type") == "boolean" else model,
                    params,
                )
            try:
                return await serve(params)
            except Refused as refused:
                error = refused.error
                raise RequestError(error["code"], error["message"], error.get("data")) from refused

        return handle

    for method, model, serve in (
        ("initialize", "InitializeRequest", agent.initialize),
        ("authenticate", "AuthenticateRequest", agent.authenticate),
        ("session/new", "NewSessionRequest", agent.new),
        ("session/load", "LoadSessionRequest", agent.load),
        ("session/resume", "ResumeSessionRequest", agent.resume),
        ("session/fork", "ForkSessionRequest", agent.fork),
        ("session/list", "ListSessionsRequest", agent.list),
        ("session/close", "CloseSessionRequest", agent.close),
        ("session/delete", "DeleteSessionRequest", agent.delete),
        ("session/set_mode", "SetSessionModeRequest", agent.set_mode),
        ("session/set_config_option", "SetSessionConfigOptionSelectRequest", agent.set_option),
        ("session/prompt", "PromptRequest", agent.prompt),
    ):
        router.add_route(Route(method=method, func=checked(model, serve), kind="request"))
    router.add_route(Route(method="session/set_model", func=agent.set_model, kind="request"))

    async def extended(method: str, params: Any) -> Obj:
        assert method == "handrail/cancel_activity", method  # the SDK takes the first character off
        return await agent.cancel_activity(params)

    router.handle_extension_request(extended)

    async def cancel(params: Any) -> None:
        agent.cancel(params)

    router.add_route(Route(method="session/cancel", func=cancel, kind="notification"))
    if manners.get("ignores_eof"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    connection = Connection(router, wire, listening=False)
    await connection.main_loop()
    if manners.get("ignores_eof"):
        await asyncio.Event().wait()


def run(argv: list[str]) -> None:
    """Run the agent with the behaviour that the command line has as JSON."""
    chosen = cast("Behavior", json.loads(argv[1]) if len(argv) > 1 else {})
    if not chosen.get("strict"):
        skip_schema()
    asyncio.run(main(chosen))
