"""Several people who answer the same questions at the same moments: two browsers and two command lines.

Each racer is a way to answer from elsewhere, and a barrier lets all of them go at once, question by question. What
each was told is for the test to judge.
"""

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import httpx
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from playwright.async_api import Page
from tests.e2e.home import BOUND, Home
from tests.e2e.person import Json, Person

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


def person_racer(person: Person, name: str) -> Racer:
    """A program of a person's, over HTTP."""

    async def answer(questions: Sequence[Json], together: Callable[[], Awaitable[None]]) -> list[str]:
        told: list[str] = []
        url = f"{person.home.url}/api/approvals/"
        async with httpx.AsyncClient(base_url=url, headers=person.headers, timeout=BOUND) as http:
            for asked in questions:
                body = {"answer": asked["answer"], "digest": asked["digest"], "reason": name}
                await together()
                reply = await http.post(f"{asked['id']}/answer", json=body)
                told.append("" if reply.status_code == 200 else reply.json()["detail"])
        return told

    return answer


@asynccontextmanager
async def command_line(home: Home, name: str) -> AsyncGenerator[Racer]:
    """A process of its own, which has been let in."""
    argv = [sys.executable, "-m", "tests.e2e.answering", name]
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
