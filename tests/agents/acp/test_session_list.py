"""`session/list`: what is read of an agent's answer, and how long it is asked for more."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_host import agent_host

from handrail.agents.acp.session_list import MOST_PAGES, list_sessions

pytestmark = pytest.mark.anyio


def page(*sessions: Any, **more: Any) -> str:
    """The raw answer to any request of the list."""
    result = json.dumps({"sessions": sessions, **more})
    return f'{{"jsonrpc":"2.0","id":ID,"result":{result}}}'


def entry(id: str, cwd: str = "/work", **more: Any) -> dict[str, Any]:
    return {"sessionId": id, "cwd": cwd, **more}


async def test_sessions_are_listed_newest_first_without_invalid_ones(tmp_path: Path) -> None:
    async with agent_host(tmp_path) as stage:
        answer = page(
            entry("old", updatedAt="2026-01-01T00:00:00Z", title=" a\n title "),
            entry("new", updatedAt="2026-02-01T00:00:00+00:00"),
            *(entry("undated", updatedAt="yesterday"), entry("relative", "work"), {"cwd": "/work"}, 7),
        )
        name = stage.add("lister", answers={"session/list": answer})
        listed = await list_sessions(await stage.agent(name), None)
        assert [each.id for each in listed] == ["new", "old", "undated"]
        assert (listed[1].title, listed[1].updated_at, listed[2].updated_at) == (
            "a title",
            1_767_225_600_000,
            None,
        )


async def test_sessions_of_other_folders_are_left_out_whatever_the_agent_answers(tmp_path: Path) -> None:
    async with agent_host(tmp_path) as stage:
        answer = page(entry("here", "/work/"), entry("there", "/other"))
        name = stage.add("lister", answers={"session/list": answer})
        assert [each.id for each in await list_sessions(await stage.agent(name), "/work")] == ["here"]


async def test_a_list_without_an_end_is_asked_for_a_bounded_number_of_pages(tmp_path: Path) -> None:
    async with agent_host(tmp_path) as stage:
        name = stage.add("lister", answers={"session/list": page(entry("same"), nextCursor="more")})
        agent = await stage.agent(name)
        assert [each.id for each in await list_sessions(agent, None)] == ["same"]
        assert MOST_PAGES < 100
