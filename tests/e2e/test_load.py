"""Fifty kills at random moments under load: nothing acknowledged is lost, nothing runs twice."""

import contextlib
import fcntl
import itertools
import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp.shared.exceptions import MCPError
from tests.support.daemon_home import Home, eventually, find_processes, running_daemon, until
from tests.support.mcp_client import Agent, ToolReply, agent
from tests.support.person_client import Person, person_of

from handrail.store.integrity import verify

KILLS = 50
CLIENTS = 3
LONGEST = 0.2
"""Seconds of work between a daemon's coming up and its end, at most."""
EARLY = 1.0
"""Seconds after its start within which one daemon in five is killed, so that some die while they restore."""


class Ledger:
    """A file of its own for each client; every line is on disk before the next thing is asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, **facts: Any) -> None:
        os.write(self._descriptor, json.dumps(facts).encode() + b"\n")
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from (json.loads(line) for line in self._path.read_text().splitlines())


class Load:
    """Clients that work, a person who allows what is asked, and a follower who reads every fact."""

    def __init__(self, home: Home, person: Person, folder: Path) -> None:
        self.home = home
        self.person = person
        self.workspace = folder / "workspace"
        self.outside = folder / "outside"
        self.told = [Ledger(folder / f"told-{number}") for number in range(CLIENTS)]
        self.seen = Ledger(folder / "seen")
        self.answered = Ledger(folder / "answered")
        self.acknowledged = 0
        self.over = False
        self.workspace.mkdir()
        self.outside.mkdir()

    async def client(self, number: int) -> None:
        """Use tools one after the other; a line that is cut is opened anew, as by a client that was restarted."""
        turns = itertools.count()
        while not self.over:
            try:
                async with agent(self.home, self.workspace) as client:
                    while not self.over and await self._turn(client, number, next(turns)):
                        pass
            except* MCPError:
                pass

    async def _turn(self, client: Agent, number: int, turn: int) -> bool:
        """Use a tool and write down what was told; False when the line was cut."""
        name = f"{number}-{turn}"
        told = await self._use(client, name, turn)
        self.told[number].note(name=name, tool=told.data.get("tool"), **brief(told))
        self.acknowledged += 1
        return told.status != "interrupted"

    async def _use(self, client: Agent, name: str, work: int) -> ToolReply:
        match work % 4:
            case 0:
                return await client.use("execute_command", command=f"echo {name} | tee -a ran")
            case 1:
                return await client.use("read_file", path="notes.txt")
            case 2:
                return await client.use("write_file", path=f"made-{name}", content=f"{name}\n")
            case _:
                path = str(self.outside / f"allowed-{name}")
                return await client.use("write_file", path=path, content=f"{name}\n")

    async def allow(self) -> None:
        """Allow every question, and write down each answer that was acknowledged."""
        while True:
            with contextlib.suppress(httpx.TransportError):
                for approval in await self.person.get("approvals", open=True):
                    reply = await self.person.answer(approval, "allow")
                    if reply.status_code == 200:
                        self.answered.note(approval=approval["id"])
            await anyio.sleep(0.05)

    async def follow(self) -> None:
        """Read the journal from where the last reading ended, whichever daemon answers."""
        after = 0
        while True:
            with contextlib.suppress(httpx.TransportError):
                for entry in (await self.person.get("events", after=after))["entries"]:
                    after = entry["seq"]
                    self.seen.note(seq=after, at=entry["at"], kind=entry["event"]["kind"])
            await anyio.sleep(0.05)

    async def is_settled(self) -> bool:
        """Whether every call has an outcome, those included whose client is gone."""
        return not (await self.person.get("state"))["calls"]


def brief(told: ToolReply) -> dict[str, Any]:
    return {"call": told.data.get("call_id"), "status": told.status}


@pytest.fixture
def load(tmp_path: Path) -> Generator[Load]:
    config = 'default_policy = "allow"\n[command]\nstop_grace = 0.1\n'
    with running_daemon(config) as home:
        load = Load(home, person_of(home), tmp_path)
        (load.workspace / "notes.txt").write_text("line one\n")
        yield load
        for ledger in (*load.told, load.seen, load.answered):
            ledger.close()


@pytest.mark.timeout(900)
async def test_fifty_random_kills_lose_no_acknowledged_fact_and_run_nothing_twice(load: Load) -> None:
    chance = random.Random()
    began = time.monotonic()
    await load.person.post("folders/trust", {"folder": str(load.workspace)})
    async with anyio.create_task_group() as people:
        people.start_soon(load.allow)
        people.start_soon(load.follow)
        async with anyio.create_task_group() as clients:
            for number in range(CLIENTS):
                clients.start_soon(load.client, number)
            for kill in range(KILLS):
                await (kill_early if kill % 5 == 4 else kill_at_work)(load, chance)
            await until(load.home.is_ready)
            load.over = True
        await eventually(load.is_settled)
        people.cancel_scope.cancel()
    load.home.signal(load.home.pid, signal.SIGTERM)
    acknowledged = [line for ledger in load.told for line in ledger]
    print(f"{len(acknowledged)} acknowledged over {KILLS} kills in {time.monotonic() - began:.0f} s")

    verdict = verify(load.home.places.database, load.home.places.head)
    assert verdict.ok, str(verdict)
    with closing(sqlite3.connect(load.home.places.database)) as db:
        assert_nothing_acknowledged_is_missing(db, load, acknowledged)
        assert_nothing_happened_twice(db)
        recorded = {row[0] for row in db.execute("SELECT id FROM calls")}
    assert_effects_are_what_was_told(load, acknowledged, recorded)


async def kill_at_work(load: Load, chance: random.Random) -> None:
    """Kill a daemon that has acknowledged something since it came, at a random moment, and start the next one."""
    await work_a_while(load, chance)
    async with start_lock(load.home):
        load.home.kill()
        await anyio.to_thread.run_sync(load.home.up)


async def work_a_while(load: Load, chance: random.Random) -> None:
    before = load.acknowledged
    await until(lambda: load.acknowledged > before and load.home.is_ready(), within=60)
    await anyio.sleep(chance.uniform(0, LONGEST))


@contextlib.asynccontextmanager
async def start_lock(home: Home) -> AsyncGenerator[None]:
    """Be the process that starts the next daemon; the doors wait for it. A fork costs a tenth of what they would start.

    A daemon must run when the lock is taken: without one, the doors could not start it.
    """
    with home.places.daemon_lock.with_suffix(".start").open("wb") as lock:
        await until(lambda: can_lock(lock.fileno()))
        yield


def can_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def kill_early(load: Load, chance: random.Random) -> None:
    """Kill a daemon, and then the next one too, which a door has the keeper start: before or while it restores."""
    await work_a_while(load, chance)
    load.home.kill()
    await until(lambda: bool(starting(load.home)), within=60)
    await anyio.sleep(chance.uniform(0, EARLY))
    for pid in starting(load.home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def starting(home: Home) -> list[int]:
    """Processes that are, or are about to be, the daemon of this home."""
    return [pid for pid in find_processes("handrail\0up\0--foreground") if is_of(home, pid)]


def is_of(home: Home, pid: int) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # it has hidden its memory, and so is up
    return f"HANDRAIL_HOME={home.places.state}".encode() in environment


def assert_nothing_acknowledged_is_missing(db: sqlite3.Connection, load: Load, told: list[Any]) -> None:
    endings = dict(db.execute("SELECT id, ending FROM calls"))
    # A daemon may die between writing an outcome down and telling it; what was told is never otherwise.
    outcomes = [line for line in told if line["status"] != "interrupted"]
    assert [line for line in outcomes if endings.get(line["call"]) != line["status"]] == []
    events = {seq: (at, kind) for seq, at, kind in db.execute("SELECT seq, at, kind FROM events")}
    assert [line for line in load.seen if events.get(line["seq"]) != (line["at"], line["kind"])] == []
    answered = {row[0] for row in db.execute("SELECT id FROM approvals WHERE answer = 'allow'")}
    assert [line for line in load.answered if line["approval"] not in answered] == []


def assert_nothing_happened_twice(db: sqlite3.Connection) -> None:
    rows = db.execute("SELECT kind, payload FROM events").fetchall()
    facts = [(kind, json.loads(payload)) for kind, payload in rows]
    for once in ("CallOpened", "CallStarted", "CallSettled"):
        assert repeated(fact["call"] for kind, fact in facts if kind == once) == []
    assert repeated(fact["approval"] for kind, fact in facts if kind == "ApprovalAnswered") == []
    used = (fact["allowed_by"] for kind, fact in facts if kind == "CallStarted")
    assert repeated(by for by in used if by.startswith("approval ")) == []
    opened = {fact["call"] for kind, fact in facts if kind == "CallOpened"}
    assert opened == {fact["call"] for kind, fact in facts if kind == "CallSettled"}


def repeated(items: Iterable[str]) -> list[str]:
    return [item for item, count in Counter(items).items() if count > 1]


def assert_effects_are_what_was_told(load: Load, told: list[Any], recorded: set[str]) -> None:
    ran = Counter((load.workspace / "ran").read_text().split())
    assert [name for name, count in ran.items() if count > 1] == []
    done = {line["name"]: line["tool"] for line in told if line["status"] == "done"}
    commands = [name for name, tool in done.items() if tool == "execute_command"]
    assert [name for name in commands if ran[name] != 1] == []
    written = {
        path.name.partition("-")[2] for folder in (load.workspace, load.outside) for path in folder.iterdir()
    }
    assert [name for name, tool in done.items() if tool == "write_file" and name not in written] == []
    unknown = {
        line["name"] for line in told if line["status"] == "interrupted" and line["call"] not in recorded
    }
    assert unknown & (ran.keys() | written) == set(), "nothing is done without a record"
