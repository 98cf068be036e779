"""Approvals from end to end: what a person is shown and answers, and what becomes of it, over restarts too."""

from pathlib import Path

import anyio
from tests.e2e.agent import Agent, agent
from tests.e2e.home import Home, eventually
from tests.e2e.person import Json, Person

OPEN = 20


async def test_questions_that_were_open_at_a_kill_are_all_there_and_can_be_answered(
    home: Home, person: Person, workspace: Path
) -> None:
    async with agent(home, workspace) as client:
        before = await open_questions(client, person)
        home.kill()
        await client.use("list_calls")  # which brings the daemon back
        after: list[Json] = await person.get("approvals", open=True)
        for number, one in enumerate(after):
            (
                await person.answer(one, "deny" if number % 4 == 3 else "allow", f"number {number}")
            ).raise_for_status()
        settled = [await person.settled(one["call_id"]) for one in after]

    shown = ("id", "call_id", "digest", "title", "input", "claims", "risk", "reasons", "preview", "verdicts")
    assert [{name: one[name] for name in shown} for one in after] == [
        {name: one[name] for name in shown} for one in before
    ]
    assert all(one["client_gone"] and one["status"] == "open" for one in after)
    state = await person.get("state")
    assert (state["started"]["crashed"], state["started"]["approvals_kept"]) == (True, OPEN)
    for number, (one, call) in enumerate(zip(after, settled, strict=True)):
        denied = number % 4 == 3
        assert call["status"] == ("denied" if denied else "done"), one["title"]
        assert call["message"] == (f"number {number}" if denied else "")
        asked: str = one["input"].get("path") or one["input"]["command"]
        assert (workspace / asked.removeprefix("touch ")).exists() is not denied, one["title"]


async def open_questions(client: Agent, person: Person) -> list[Json]:
    """Twenty calls that wait for a person: commands and writes in turn."""
    for number in range(OPEN):
        if number % 2:
            client.ask("execute_command", command=f"touch made-{number}", wait_seconds=50)
        else:
            client.ask("write_file", path=f"made-{number}", content=f"{number}\n")

    async def look() -> list[Json] | None:
        asked = await person.get("approvals", open=True)
        return asked if len(asked) == OPEN else None

    return await eventually(look)
