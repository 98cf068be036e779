"""Updates of a loaded session: what an agent replays of it is not new, whether it comes before or after its answer."""

import anyio
import pytest

from handrail.agents.acp.sessions import QUIET_SECONDS, SessionRouter
from handrail.store.values import Json

pytestmark = pytest.mark.anyio


class Handler:
    def __init__(self) -> None:
        self.kinds: list[object] = []

    def update(self, update: Json) -> None:
        self.kinds.append(update["sessionUpdate"])

    async def serve(self, method: str, params: Json) -> Json | None:
        raise NotImplementedError

    def lost(self, why: str) -> None:
        raise NotImplementedError


def send(router: SessionRouter, *kinds: str) -> None:
    for kind in kinds:
        router.update({"sessionId": "s", "update": {"sessionUpdate": kind}})


async def test_what_is_replayed_after_the_answer_is_dropped_and_settings_are_not() -> None:
    router, handler = SessionRouter(), Handler()
    router.add("s", handler, muted=True)
    send(router, "user_message_chunk")
    router.add("s", handler, replays=True)

    async with anyio.create_task_group() as group:
        group.start_soon(router.finish_replay, "s")
        for _ in range(3):  # longer in all than one silence
            send(router, "agent_message_chunk", "available_commands_update", "tool_call")
            await anyio.sleep(QUIET_SECONDS / 2)
    assert handler.kinds == ["available_commands_update"] * 3

    send(router, "agent_message_chunk")
    assert handler.kinds[3:] == ["agent_message_chunk"]


async def test_a_session_that_was_dropped_replays_nothing_any_more() -> None:
    router, handler = SessionRouter(), Handler()
    router.add("s", handler, replays=True)
    router.drop("s")
    router.add("s", handler)
    send(router, "agent_message_chunk")
    assert handler.kinds == ["agent_message_chunk"]
