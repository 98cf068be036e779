"""Calls of other servers whose request ended with a question: how many are kept for a client that does not come back."""

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from tests.support.gate_world import caller, gate_world

from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Reply
from handrail.server.mcp._client_link import Context, ForwardedRequest, McpClientLink, Question
from handrail.server.mcp._forwarded_calls import SETTLED_MAX, ForwardedCalls
from handrail.store.actor import tool_actor
from handrail.store.values import Json

pytestmark = pytest.mark.anyio


def context(**more: object) -> Context:
    """The request of a client of MCP 2026-07-28."""
    params: dict[str, object] = {"name": "free__elicits", "arguments": {}, **more}
    return cast("Context", SimpleNamespace(params=params, protocol_version="2026-07-28"))


async def test_questions_that_a_client_never_answers_are_forgotten_once_their_calls_have_ended(
    tmp_path: Path,
) -> None:
    async with gate_world(tmp_path, checked=False) as here:
        calls, link = ForwardedCalls(cast("Any", None), 0.01, None), McpClientLink("http k", context(), None)
        requests: list[weakref.ref[ForwardedRequest]] = []
        opened: list[Call] = []

        async def ask(request: ForwardedRequest) -> Reply:
            requests.append(weakref.ref(request))
            opened.append(Call.open(here.journal, "free__elicits", "free: elicits", {}, caller()))
            request.call = opened[-1]
            request.ask({"q1": Question("elicitation/create", {"message": "Who?"})})
            return Reply(call=opened[-1], outcome=None)

        async def ask_once(**more: object) -> Json:
            _, asked = await calls.reply(link, context(**more), ask)
            assert isinstance(asked, dict)
            return asked

        open_one = await ask_once()
        states = [(await ask_once())["requestState"]]
        for _ in range(4 * SETTLED_MAX):
            opened[-1].settle(Outcome(ending="done", by=tool_actor("free__elicits")))
            states.append((await ask_once())["requestState"])

        assert sum(each() is not None for each in requests) <= SETTLED_MAX + 2
        with pytest.raises(MCPError, match="unknown"):
            await calls.reply(link, context(requestState=states[0]), ask)
        _, kept = await calls.reply(link, context(requestState=states[-2]), ask)
        assert isinstance(kept, Reply)
        assert kept.outcome is not None, "an outcome that was not fetched yet"
        answers = {"q1": {"action": "accept"}}
        request, _ = await calls.reply(
            link, context(requestState=open_one["requestState"], inputResponses=answers), ask
        )
        assert request.call is opened[0], "a call that goes on is never forgotten"
