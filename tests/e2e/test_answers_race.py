"""Many people, many questions, all at once: each is answered once, and whoever lost is told who won."""

import re
import sqlite3
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.e2e.agent import Agent, agent
from tests.e2e.browser import chromium, signed_in
from tests.e2e.home import Home, eventually, living
from tests.e2e.person import Json, Person, person_of
from tests.e2e.racing import Racer, command_line, page_racer, person_racer, race

QUICK_HAND_BACK = "[command]\nwait_seconds = 1\n"
AT_ONCE = 80
"""Requests under way while the questions are asked: below what the client's pool of connections holds."""
LOST = re.compile(r"^Already (allowed|denied) by a person on the (page|command line), \d+ s ago\.$")


@pytest.fixture
def home() -> Generator[Home]:
    with living(QUICK_HAND_BACK) as home:
        yield home


@pytest.mark.timeout(240)
async def test_two_browsers_and_two_command_lines_settle_200_questions_once_each(
    home: Home, person: Person, workspace: Path
) -> None:
    async with AsyncExitStack() as stack:
        cli = [
            await stack.enter_async_context(command_line(home, f"command line {number}")) for number in (1, 2)
        ]
        browser = await stack.enter_async_context(chromium())
        tabs = [await stack.enter_async_context(signed_in(browser, person)) for _ in range(2)]
        for (
            tab
        ) in tabs:  # away from the cards: hundreds of them, drawn anew at each answer, would be the slowest
            await (
                tab.page.get_by_role("navigation", name="Views").get_by_role("link", name="Terminals").click()
            )
        client = await stack.enter_async_context(agent(home, workspace, person, transport="http"))
        asked = await ask(client, person, 200)
        racers: dict[str, Racer] = {
            "page 1": page_racer(tabs[0].page, "page 1"),
            "page 2": page_racer(tabs[1].page, "page 2"),
            "command line 1": cli[0],
            "command line 2": cli[1],
        }
        told = await race(racers, mixed(racers, asked))
        await everything_is_settled(person)

    assert_each_was_answered_once(home, workspace, asked, told)


@pytest.mark.timeout(240)
async def test_two_people_settle_a_thousand_waiting_calls_once_each(
    home: Home, person: Person, workspace: Path
) -> None:
    other = person_of(home)
    async with agent(home, workspace, person, transport="http") as client:
        asked = await ask(client, person, 1000)
        racers = {"page 1": person_racer(person, "page 1"), "page 2": person_racer(other, "page 2")}
        told = await race(racers, mixed(racers, asked))
        await everything_is_settled(person)

    assert_each_was_answered_once(home, workspace, asked, told)


async def ask(client: Agent, person: Person, count: int) -> list[Json]:
    """So many questions, each about a file of its own; all of them open."""
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def write(number: int) -> None:
        async with limit:
            told = await client.use("write_file", path=f"{number}.txt", content=f"{number}\n")
            assert told.status == "waiting"

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(write, number)
    asked: list[Json] = await person.get("approvals", open=True)
    assert len(asked) == count
    return asked


def mixed(racers: dict[str, Racer], asked: Sequence[Json]) -> dict[str, Sequence[Json]]:
    """For each racer the same questions, half of them to be allowed; no two neighbours answer alike."""
    kinds = ("allow", "deny")
    return {
        name: [
            {"id": one["id"], "digest": one["digest"], "answer": kinds[(number + place) % 2]}
            for number, one in enumerate(asked)
        ]
        for place, name in enumerate(racers)
    }


async def everything_is_settled(person: Person) -> None:
    async def look() -> bool:
        return not (await person.get("state"))["calls"]

    await eventually(look)


def assert_each_was_answered_once(
    home: Home, workspace: Path, asked: Sequence[Json], told: dict[str, list[str]]
) -> None:
    with closing(sqlite3.connect(home.places.database)) as db:
        kept = {
            row[0]: row[1:] for row in db.execute("SELECT id, answer, answered_by, reason FROM approvals")
        }
        kinds = "('ApprovalAnswered', 'CallStarted', 'CallSettled')"
        facts: list[Any] = db.execute(
            f"SELECT kind, coalesce(payload ->> 'approval', payload ->> 'call') FROM events WHERE kind IN {kinds}"
        ).fetchall()
    assert [fact for fact, count in Counter(facts).items() if count > 1] == []

    for number, one in enumerate(asked):
        sentences = {name: lines[number] for name, lines in told.items()}
        (winner,) = [name for name, sentence in sentences.items() if not sentence]
        answer, by, reason = kept[one["id"]]
        place = winner[:-2]
        assert (by, reason) == (f"a person on the {place}", winner)
        word = "allowed" if answer == "allow" else "denied"
        for name, sentence in sentences.items():
            if name != winner:
                lost = LOST.match(sentence)
                assert lost, f"{name} was told: {sentence}"
                assert lost.groups() == (word, place)
        path = workspace / one["title"].split()[-1]
        assert path.exists() is (answer == "allow"), one["title"]
    print({name: lines.count("") for name, lines in told.items()})
