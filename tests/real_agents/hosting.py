"""A real agent hosted by a real daemon, a model that says what it is told to, and a person at the inbox.

Knows how the three are put together, and that agents are slow to start; nothing of any agent in particular.
"""

import json
import os
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import anyio
from tests.real_agents.real_agent import Real
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.model_server.server import ModelServer, model_server
from tests.support.person_client import Json, Person, person_of
from tests.support.thread_client import GRACE, Conversation, open_thread

SLOW = 90.0
"""Seconds for what an agent does: some take ten to start on a busy machine, and only a fault reaches this."""
MARK = "HANDRAIL_TEST_MARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """One agent, with all it needs."""

    name: str
    home: Home
    person: Person
    model: ModelServer
    workspace: Path
    mark: str

    async def begin(self) -> Conversation:
        return await open_thread(self.person, self.workspace, agent=self.name)

    @property
    def left(self) -> list[int]:
        """What runs of everything that the agent has started."""
        return marked(self.mark)

    @property
    def programs(self) -> list[int]:
        """The agent itself, for each time it runs: those of its processes that none of the others has started."""
        left = self.left
        return [pid for pid in left if parent(pid) not in left]

    def tree(self, program: int) -> list[int]:
        """A program, and what it has started."""
        children = {pid: parent(pid) for pid in self.left}
        tree = [program]
        for pid in tree:
            tree += [child for child, of in children.items() if of == pid]
        return tree


@contextmanager
def hosting(real: Real) -> Generator[Hosted]:
    with model_server() as model, tempfile.TemporaryDirectory(prefix="hr-work-") as folder:
        mark = token_hex(8)
        told = {**real.environment(model.url), **offline_environment(model.url), MARK: mark}
        with running_daemon(GRACE + _section(real, told)) as home:
            put_files(Path(home.environment["HOME"]), real.files(model.url))
            yield Hosted(
                name=real.name,
                home=home,
                person=person_of(home),
                model=model,
                workspace=Path(os.path.realpath(folder)),
                mark=mark,
            )
        assert marked(mark) == [], "nothing that the agent started may outlive the daemon's end"


def put_files(home: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def offline_environment(model: str) -> Mapping[str, str]:
    """Whatever would go elsewhere comes to the model's server instead, which takes it down as strange."""
    return {
        "HTTP_PROXY": model,
        "HTTPS_PROXY": model,
        "NO_PROXY": "127.0.0.1,localhost",
        "NODE_USE_ENV_PROXY": "1",
    }


def _section(real: Real, environment: Mapping[str, str]) -> str:
    about = {"name": real.name, "command": list(real.command()), **real.quirks}
    return f"[[agents]]\n{_lines(about)}[agents.env]\n{_lines(environment)}"


def _lines(values: Mapping[str, object]) -> str:
    """As TOML, whose plain values are written as JSON's are."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def marked(mark: str) -> list[int]:
    """Every living process with this mark in its environment."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def parent(pid: int) -> int:
    """The parent of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


async def ended(conversation: Conversation, operation: str) -> Json:
    """The agent's message of an operation, once nothing more is added to it."""

    async def look() -> Json | None:
        said = (await conversation.look())["said"]
        found = [m for m in said if m["operation"] == operation and m["role"] == "assistant"]
        return found[0] if found and found[0]["ended_at"] is not None else None

    return await eventually(look, SLOW)


@asynccontextmanager
async def answering(person: Person, answer: str, reason: str = "") -> AsyncGenerator[list[Json]]:
    """Somebody at the inbox who answers every question like this, as it comes; what they were asked."""
    asked: list[Json] = []

    async def attend() -> None:
        while True:
            for approval in await person.get("approvals", open=True):
                asked.append(approval)
                (await person.answer(approval, answer, reason)).raise_for_status()
            await anyio.sleep(0.05)

    async with anyio.create_task_group() as group:
        group.start_soon(attend)
        yield asked
        group.cancel_scope.cancel()
