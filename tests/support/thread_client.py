"""A client for threads over HTTP and WebSocket: prompts, messages, and the agents of a configuration."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.support.daemon_home import BOUND, Home, eventually
from tests.support.person_client import Json, Person
from tests.support.scripted_agent import command, script
from tests.support.terminal_socket import open_websocket
from websockets.sync.client import ClientConnection

GRACE = "[command]\nstop_grace = 0.3\n"


def agents_config(**named: tuple[str, ...]) -> str:
    """A configuration with these agents, by name."""
    return GRACE + "".join(_agent(name, words) for name, words in named.items())


def _agent(name: str, words: tuple[str, ...]) -> str:
    return f"[[agents]]\nname = {json.dumps(name)}\ncommand = {json.dumps(list(words))}\n"


SCRIPTED = agents_config(scripted=command())


class Conversation:
    """One thread, as this person sees it."""

    def __init__(self, person: Person, id: str) -> None:
        self.person = person
        self.id = id

    @property
    def path(self) -> str:
        return f"threads/{self.id}"

    async def look(self, **query: Any) -> Json:
        return await self.person.get(self.path, **query)

    async def prompt(self, *steps: Json, **more: Any) -> Json:
        """Prompt the agent with these steps. Returns the route's answer."""
        return await self.say(script(*steps), **more)

    async def say(self, text: str, **more: Any) -> Json:
        return await self.person.post(f"{self.path}/prompt", {"text": text, **more})

    async def ended(self, operation: str) -> Json:
        """The agent's message of an operation, once nothing more is added to it."""

        async def look() -> Json | None:
            said = (await self.look())["said"]
            found = [m for m in said if m["operation"] == operation and m["role"] == "assistant"]
            return found[0] if found and found[0]["ended_at"] is not None else None

        return await eventually(look)

    async def heard(self, operation: str, words: str) -> Json:
        """The agent's message of an operation, once these words stand in it."""

        async def look() -> Json | None:
            said = (await self.look())["said"]
            found = [m for m in said if m["operation"] == operation and m["role"] == "assistant"]
            return next((m for m in found if words in text_of(m)), None)

        return await eventually(look)

    async def act(self, *steps: Json, **more: Any) -> Json:
        """Prompt, and wait for the whole answer."""
        return await self.ended((await self.prompt(*steps, **more))["operation"])

    async def idle(self) -> Json:
        """The thread once nothing runs for it."""

        async def look() -> Json | None:
            seen = await self.look()
            return None if seen["operation"] else seen

        return await eventually(look)


async def open_thread(person: Person, workspace: Path | None = None, **more: Any) -> Conversation:
    body = {"workspace": str(workspace) if workspace else None, "agent": "scripted", **more}
    return Conversation(person, (await person.post("threads", body))["id"])


async def session_of(home: Home, thread: Conversation) -> str:
    """The agent's session id, read from the database. No route has it."""

    async def look() -> str | None:
        with closing(sqlite3.connect(f"file:{home.places.database}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT session FROM sessions WHERE thread = ?", (thread.id,)).fetchone()
        return None if found is None else found[0]

    return await eventually(look)


def text_of(message: Json, kind: str = "text") -> str:
    return "".join(part["text"] for part in message["parts"] if part["kind"] == kind)


def parts_of(message: Json, kind: str) -> list[Json]:
    return [part for part in message["parts"] if part["kind"] == kind]


def reported_json(message: Json) -> Any:
    """The JSON that a message consists of."""
    return json.loads(text_of(message))


class ThreadFollower:
    """A thread's live WebSocket, with the messages assembled from its frames.

    Every piece of text must continue where the last one ended.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self._socket = connection
        self.rev = 0
        self.texts: dict[tuple[str, int], str] = {}
        self.data: dict[tuple[str, int], Json] = {}
        self.state: Json = {}
        self.frames = 0

    def take(self, within: float = BOUND) -> Json:
        flow = json.loads(self._socket.recv(timeout=within))
        assert flow["rev"] >= self.rev
        self.rev = flow["rev"]
        self.frames += 1
        for part in flow["parts"]:
            key = (part["message"], part["n"])
            before = self.texts.get(key, "")
            assert part["at"] <= len(before), "no piece may be missing"
            self.texts[key] = before[: part["at"]] + part["text"]
            if part["data"] is not None:
                self.data[key] = part["data"]
        self.state |= flow["state"]
        return flow

    def until(self, words: str) -> str:
        """Take frames until these words are in the text. Returns the whole text."""
        while words not in self.said:
            self.take()
        return self.said

    @property
    def said(self) -> str:
        return "".join(text for _, text in sorted(self.texts.items()))


@contextmanager
def follow_thread(person: Person, thread: str, after: int = 0) -> Generator[ThreadFollower]:
    with open_websocket(person, f"threads/{thread}/live?after={after}") as connection:
        yield ThreadFollower(connection)
