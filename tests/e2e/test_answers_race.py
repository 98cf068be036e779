"""Many people, many questions, all at once: each is answered once, and whoever lost is told who won."""

import json
import random
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, cast

import anyio
import httpx
import pytest
from anyio.abc import Process, SocketAttribute, SocketStream
from anyio.streams.text import TextReceiveStream
from playwright.async_api import Page
from tests.support.browser_tab import chromium, signed_in
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon
from tests.support.mcp_client import Agent, agent
from tests.support.person_client import Json, Person, person_of

RACE = 180.0
"""Seconds for a whole race; a quiet machine needs a sixth of it."""

Racer = Callable[[Sequence[Json], Callable[[], Awaitable[None]]], Awaitable[list[str]]]
"""Answers each of these questions, each after a wait for the others; what it was told: nothing when it won."""

_ANSWER_ALL = """
async ([questions, name]) => {
  const bearer = await new Promise((found) => {
    const others = new BroadcastChannel("handrail");
    others.onmessage = ({ data }) => data.say === "bearer" && found(data.bearer);
    others.postMessage({ say: "ask" });
  });
  const headers = { Authorization: `Bearer ${bearer}`, "Content-Type": "application/json" };
  const told = [];
  for (const { id, digest, answer } of questions) {
    await window.together();
    const body = JSON.stringify({ answer, digest, reason: name });
    const response = await fetch(`/api/approvals/${id}/answer`, { method: "POST", headers, body });
    told.push(response.ok ? "" : (await response.json()).detail);
  }
  return told;
}
"""


class Barrier:
    """Holds whoever comes until all have come; again and again."""

    def __init__(self, parties: int) -> None:
        self._parties = parties
        self._waiting = 0
        self._gone = anyio.Event()

    async def wait(self) -> None:
        self._waiting += 1
        gone = self._gone
        if self._waiting == self._parties:
            self._waiting, self._gone = 0, anyio.Event()
            gone.set()
        await gone.wait()


async def race(racers: dict[str, Racer], questions: dict[str, Sequence[Json]]) -> dict[str, list[str]]:
    """Let all of them answer at once; by name, what each was told of each question."""
    barrier, told = Barrier(len(racers)), dict[str, list[str]]()

    async def run(name: str, racer: Racer) -> None:
        told[name] = await racer(questions[name], barrier.wait)

    with anyio.fail_after(RACE):
        async with anyio.create_task_group() as group:
            for name, racer in racers.items():
                group.start_soon(run, name, racer)
    return told


def page_racer(page: Page, name: str) -> Racer:
    """A signed-in page; it gives its bearer to whatever else is open at its own origin in that browser."""

    async def answer(questions: Sequence[Json], together: Callable[[], Awaitable[None]]) -> list[str]:
        await cast("Any", page).expose_function("together", together)
        return await page.evaluate(_ANSWER_ALL, [list(questions), name])

    return answer


class FlappingLink:
    """A TCP proxy before the daemon that cuts connections: before the request arrives, or before its response does."""

    def __init__(self, home: Home, chances: random.Random) -> None:
        self._daemon = home.url.removeprefix("http://")
        self._chances = chances
        self.cuts = Counter[str]()
        self.url = ""

    @asynccontextmanager
    async def run(self) -> AsyncGenerator["FlappingLink"]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/api/approvals/"
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._carry)
            yield self
            group.cancel_scope.cancel()

    async def _carry(self, client: SocketStream) -> None:
        """One request, as its client closes the connection after it."""
        fate = self._chances.choice((*["whole"] * 6, "request", "response"))
        self.cuts[fate] += 1
        host, _, port = self._daemon.partition(":")
        async with client:
            if fate == "request":
                return
            async with await anyio.connect_tcp(host, int(port)) as daemon, anyio.create_task_group() as group:
                group.start_soon(self._copy, client, daemon)
                await self._copy(daemon, client if fate == "whole" else None)
                group.cancel_scope.cancel()

    async def _copy(self, source: SocketStream, target: SocketStream | None) -> None:
        """Copy until the end; without a target, only up to the first bytes of the response."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while True:
                data = await source.receive()
                if target is None:
                    return
                await target.send(data)

    def client(self, person: Person) -> httpx.AsyncClient:
        headers = {**person.headers, "Host": self._daemon, "Connection": "close"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=BOUND, verify=False)


async def post_until_answered(http: httpx.AsyncClient, path: str, body: Json) -> httpx.Response:
    """Send until a response arrives, as the page does: always with the same id."""
    while True:
        with suppress(httpx.TransportError):
            return await http.post(path, json=body)


def person_racer(person: Person, name: str, link: FlappingLink) -> Racer:
    """A program of a person's, over HTTP and a link that drops."""

    async def answer(questions: Sequence[Json], together: Callable[[], Awaitable[None]]) -> list[str]:
        told: list[str] = []
        async with link.client(person) as http:
            for asked in questions:
                body = {"answer": asked["answer"], "digest": asked["digest"], "reason": name}
                body["request_id"] = f"{name} {asked['id']}"
                await together()
                reply = await post_until_answered(http, f"{asked['id']}/answer", body)
                told.append("" if reply.status_code == 200 else reply.json()["detail"])
        return told

    return answer


@asynccontextmanager
async def command_line(home: Home, name: str) -> AsyncGenerator[Racer]:
    """A process of its own, which has been let in."""
    argv = [sys.executable, "-m", "tests.support.answering_process", name]
    async with await anyio.open_process(argv, env=home.environment, stderr=sys.stderr) as process:
        lines = _Lines(process)
        assert await lines.read() == "in"
        yield lines.answer
        with suppress(ProcessLookupError):  # it ends by itself when it has answered all
            process.kill()


class _Lines:
    """The racer's end of that process."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to = process.stdin
        self._from = TextReceiveStream(process.stdout)
        self._rest = ""

    async def answer(self, questions: Sequence[Json], together: Callable[[], Awaitable[None]]) -> list[str]:
        await self._write(json.dumps(list(questions)))
        for _ in questions:
            assert await self.read() == "ready"
            await together()
            await self._write("go")
        told: Any = json.loads(await self.read())
        return told

    async def read(self) -> str:
        with anyio.fail_after(BOUND):
            while "\n" not in self._rest:
                self._rest += await self._from.receive()
        line, _, self._rest = self._rest.partition("\n")
        return line

    async def _write(self, line: str) -> None:
        await self._to.send(f"{line}\n".encode())


QUICK_HAND_BACK = "[command]\nwait_seconds = 1\n"
AT_ONCE = 80
"""Requests of a client under way while the questions are asked: below what the client's pool of connections holds."""
LOST = re.compile(r"^Already (allowed|denied) by a person on the (page|command line), \d+ s ago\.$")


@pytest.fixture
def home() -> Generator[Home]:
    with running_daemon(QUICK_HAND_BACK) as home:
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
        asked = await ask([client], person, 200)
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
async def test_two_people_settle_a_thousand_waiting_calls_once_each_over_a_link_that_drops(
    home: Home, person: Person, workspace: Path
) -> None:
    other = person_of(home)
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(agent(home, workspace, person, transport="http"))
            for _ in range(3)
        ]
        asked = await ask(clients, person, 1000)
        link = await stack.enter_async_context(FlappingLink(home, random.Random(15)).run())
        people = {"page 1": person, "page 2": other}
        racers = {name: person_racer(one, name, link) for name, one in people.items()}
        told = await race(racers, mixed(racers, asked))
        await everything_is_settled(person)

    assert_each_was_answered_once(home, workspace, asked, told)
    assert min(link.cuts["request"], link.cuts["response"]) > 200, "the link has dropped both ways"


async def ask(clients: Sequence[Agent], person: Person, count: int) -> list[Json]:
    """So many questions, each about a separate file; all of them open. Each is handed back after a second."""
    limits = [anyio.CapacityLimiter(AT_ONCE) for _ in clients]

    async def write(number: int) -> None:
        turn = number % len(clients)
        async with limits[turn]:
            told = await clients[turn].use("write_file", path=f"{number}.txt", content=f"{number}\n")
            assert told.status in ("waiting", "running")  # a busy machine may plan for longer than a second

    async def all_asked() -> list[Json] | None:
        asked: list[Json] = await person.get("approvals", open=True)
        return asked if len(asked) == count else None

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(write, number)
    return await eventually(all_asked)


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
