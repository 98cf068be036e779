"""The transport and the sessions of the scripted agent."""

import asyncio
import json
from typing import Any

from tests.support.scripted_agent import Obj


class Ended(Exception):
    """A step ended the prompt, with this answer."""

    def __init__(self, answer: Obj) -> None:
        self.answer = answer


class Refused(Exception):
    """A step fails the request it is acted out in."""

    def __init__(self, error: Obj) -> None:
        self.error = error


class Wire:
    """Lines on stdin and stdout; `raw` sends what is no message."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heard: list[str] = []
        self.waiting: dict[Any, asyncio.Future[Obj]] = {}
        self.reads = True
        self.answers: dict[str, str] = {}

    async def send(self, message: Obj) -> None:
        await self.raw(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> Obj | None:
        while line := await self.reader.readline():
            message = json.loads(line)
            if "method" in message:
                self.heard.append(message["method"])
                if message["method"] in self.answers:
                    line = self.answers[message["method"]].replace("ID", json.dumps(message["id"]))
                    await self.raw(line.encode() + b"\n")
                    continue
            elif message.get("id") in self.waiting:
                waiting = self.waiting.pop(message["id"])
                if not waiting.done():
                    waiting.set_result(message)
                continue
            if not self.reads:
                await asyncio.Event().wait()
            return message
        return None

    async def close(self) -> None:
        self.writer.close()


class Session:
    """One conversation, as this agent keeps it."""

    def __init__(self, id: str, opened: Obj) -> None:
        self.id, self.opened = id, opened
        self.said: list[Obj] = []
        self.prompt: list[Obj] = []
        self.ignores_cancel = self.was_cancelled = False
        self.on_cancel: list[Obj] = []
        self.cancel_stop = "cancelled"
        self.waits_for_answers = False
        self.running: asyncio.Task[Any] | None = None
        self.steered: asyncio.Queue[str] = asyncio.Queue()
        """Messages that came while it worked."""
        self.doing: dict[str, asyncio.Event] = {}
        """The open activities; an event is set when its activity is cancelled."""
