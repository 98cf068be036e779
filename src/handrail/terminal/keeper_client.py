"""Our end of the keeper's socket: requests and their replies, notices, and what to do when it is lost.

Owns the connection and who waits for which reply. Does not know what a terminal is: notices go to a listener, at
once and in order.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
from anyio.abc import SocketAttribute

from handrail.framing import LineBuffer, LineTooLong
from handrail.keeper.message_framing import FRAME_MAX, FrameError, encode
from handrail.keeper.protocol import (
    PROTOCOL,
    Attached,
    Done,
    Exited,
    Failed,
    Grown,
    Health,
    Healthy,
    Hello,
    Kept,
    Listen,
    Listening,
    Overheard,
    Recall,
    Recalled,
    Refused,
    Replaced,
    Reply,
    Request,
    Resized,
    Shutdown,
    Started,
    Stop,
    Swept,
    Unrecorded,
    Welcome,
    from_keeper,
    skew,
)
from handrail.terminal.start_keeper import Birth, NoKeeperError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyio.abc import TaskStatus, UNIXSocketStream

    from handrail.keeper.protocol import Notice
    from handrail.paths import Places


R = TypeVar("R", bound=Reply)
BACK_OFF_MAX = 5.0
"""Seconds between attempts to reach a keeper when none can be had."""
HELLO_SECONDS = 5.0
"""What a keeper gets to answer a hello: it never blocks, so one that takes longer is not well."""
HELLO_TRIES = 5
HELLO_APART = 0.1
"""A keeper that is ending still takes connections for a moment; how often, and seconds between, another is sought."""
REPLY_SECONDS = 20.0
"""Above a stop's grace: what a keeper gets for any answer. Only one that hangs, or a system that does, takes longer."""


class KeeperError(Exception):
    """The keeper refused, or there is none; the sentence says which and why.

    `code` is that of the refusal (`protocol.Failed`), empty where there is none.
    """

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code


class _HungUp(KeeperError):
    """It closed the connection before it answered: one that was just ending, after which another can be had."""


class Listener(Protocol):
    """Who is told what the keeper says of its own accord. None of these may block or await."""

    def adopt(self, kept: list[Kept]) -> None: ...
    def hear(self, notice: Notice) -> None: ...
    def lost(self, why: str) -> None: ...


@dataclass(slots=True)
class _Waiting:
    on_reply: Callable[[Reply, tuple[int, ...]], None] | None
    answered: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None


class Keeper:
    """The keeper, as the daemon sees it. `run` holds the connection; requests fail while there is none."""

    def __init__(self, places: Places, *, idle_seconds: float = 60.0) -> None:
        self.pid = 0
        self.listener: Listener | None = None
        self._birth = Birth(places, idle_seconds)
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._lines = LineBuffer(FRAME_MAX)
        self._kept: list[Kept] = []
        self._expected: int | None = None
        self._descriptors: deque[int] = deque()
        self._outbox = bytearray()
        self._posted = anyio.Event()
        self._connected = False
        self._final = False
        self._replaced = False
        self._why_gone = "The keeper has not been reached yet."

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Stay connected until the keeper is shut down or another daemon takes our place.

        Raises KeeperError when no keeper can be had at the start; later it goes on trying.
        """
        await self._serve(await self._reach(), task_status)
        while not self._final:
            await self._serve(await self._reach_again(), anyio.TASK_STATUS_IGNORED)

    def number(self) -> int:
        """An id for a request."""
        return next(self._numbers)

    async def request(
        self,
        request: Request,
        kind: type[R],
        on_reply: Callable[[Reply, tuple[int, ...]], None] | None = None,
    ) -> R:
        """The reply, or KeeperError. `on_reply` is called as the reply arrives, before any later notice is heard."""
        waiting = self._waiting[request.id] = _Waiting(on_reply)
        self.post(request)
        if not self._connected:
            waiting.answered.set()
        try:
            with anyio.move_on_after(_patience(request)) as bound:
                await waiting.answered.wait()
        finally:
            self._waiting.pop(request.id, None)
        if bound.cancelled_caught and not waiting.answered.is_set():
            raise KeeperError(
                f"The keeper has not answered for {_patience(request):g} s, so nobody knows whether it did what it was "
                "told. Run `handrail doctor`; `handrail down` ends it and all that it keeps."
            )
        reply = waiting.reply
        if isinstance(reply, kind):
            return reply
        if isinstance(reply, Failed):
            raise KeeperError(reply.why, reply.code)
        raise KeeperError(self._why_gone)

    def post(self, request: Request) -> None:
        """Send a request without waiting for its reply. Dropped when there is no connection."""
        if self._connected:
            self._outbox += encode(request)
            self._posted.set()

    async def recall(self, key: str) -> bytes | None:
        return (await self.request(Recall(self.number(), key), Recalled)).value

    async def listen(self, *ports: int) -> socket.socket:
        """A listening socket on the first of these ports that can be had, else on any; the keeper holds it too."""
        given: list[int] = []
        request = Listen(self.number(), ports)
        await self.request(request, Listening, lambda _reply, descriptors: given.extend(descriptors))
        os.set_inheritable(given[0], False)
        return socket.socket(fileno=given[0])

    async def health(self) -> Healthy:
        return await self.request(Health(self.number()), Healthy)

    async def shutdown(self, grace: float = 2.0) -> None:
        """End every tree and the keeper itself."""
        self._final = True
        await self.request(Shutdown(self.number(), grace), Done)

    def leave(self) -> None:
        """Give no more orders: what runs stays with the keeper, for the next daemon, whatever is cancelled here."""
        self._why_gone = "This daemon is leaving."
        self._disconnect()

    async def _reach_again(self) -> UNIXSocketStream:
        pause = 0.05
        while True:
            try:
                return await self._reach()
            except KeeperError as error:
                self._why_gone = str(error)
            await anyio.sleep(pause)
            pause = min(pause * 2, BACK_OFF_MAX)

    async def _reach(self) -> UNIXSocketStream:
        for tries_left in reversed(range(HELLO_TRIES)):
            stream = await self._find()
            try:
                await self._greet(stream)
            except _HungUp:
                await anyio.aclose_forcefully(stream)
                if not tries_left:
                    raise
                await anyio.sleep(HELLO_APART)
            except BaseException:
                await anyio.aclose_forcefully(stream)
                raise
            else:
                return stream
        raise AssertionError("the last try returns or raises")

    async def _find(self) -> UNIXSocketStream:
        """A connection to the keeper there is, or to a new one."""
        try:
            stream = await self._birth.connect()
            if stream is None:
                self._lose("The keeper has died, so its wardens have ended what ran.")
                stream = await self._birth.start()
        except NoKeeperError as error:
            self._lose("The keeper has died, and no other could be had.")
            raise KeeperError(str(error)) from error
        return stream

    async def _greet(self, stream: UNIXSocketStream) -> None:
        self._lines, self._kept, self._expected = LineBuffer(FRAME_MAX), [], None
        try:
            with anyio.fail_after(HELLO_SECONDS):
                await stream.send(encode(Hello(PROTOCOL, "daemon")))
                while self._expected is None or len(self._kept) < self._expected:
                    await self._receive(stream)
        except (TimeoutError, FrameError, LineTooLong) as error:
            raise KeeperError(_unanswered(error)) from error
        except (anyio.EndOfStream, anyio.BrokenResourceError, OSError) as error:
            raise _HungUp(_unanswered(error)) from error

    def _adopt(self) -> None:
        """As soon as the last `Kept` is heard: a notice about one of them may come in the same read."""
        if len(self._kept) == self._expected:
            self._connected = True
            if self.listener is not None:
                self.listener.adopt(self._kept)

    async def _serve(self, stream: UNIXSocketStream, task_status: TaskStatus[None]) -> None:
        async with stream:
            task_status.started()
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._write, stream)
                    await self._read(stream)
                    group.cancel_scope.cancel()
            finally:
                self._disconnect()
        if self._final:
            self._birth.reap()

    async def _read(self, stream: UNIXSocketStream) -> None:
        """Until the other end is gone."""
        try:
            while True:
                await self._receive(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError, OSError):
            self._why_gone = (
                "Another daemon has taken over the keeper." if self._replaced else "The keeper has gone."
            )
        except (FrameError, LineTooLong) as error:
            self._why_gone = f"The keeper made no sense: {error}"

    async def _write(self, stream: UNIXSocketStream) -> None:
        try:
            while True:
                await self._posted.wait()
                self._posted = anyio.Event()
                data, self._outbox = bytes(self._outbox), bytearray()
                await stream.send(data)
        except (anyio.BrokenResourceError, OSError):
            pass  # the reader notices

    async def _receive(self, stream: UNIXSocketStream) -> None:
        # Apart from the receive, whose own wait fails on asyncio where it is cancelled as data comes.
        await anyio.wait_readable(stream.extra(SocketAttribute.raw_socket))
        data, descriptors = await stream.receive_fds(65536, 16)
        self._descriptors += descriptors
        for line in self._lines.feed(data):
            self._hear(from_keeper(line))

    def _hear(self, message: Welcome | Refused | Reply | Notice) -> None:
        match message:
            case Welcome():
                self._welcome(message)
            case Refused(why):
                raise KeeperError(why)
            case Kept():
                self._kept.append(message)
                self._adopt()
            case Grown() | Unrecorded() | Exited() | Swept() | Overheard() | Resized() | Attached():
                if self.listener is not None:
                    self.listener.hear(message)
            case Replaced():
                self._final = self._replaced = True
            case _:
                self._settle(message)

    def _welcome(self, welcome: Welcome) -> None:
        why = skew(welcome.protocol)
        if why is not None:
            raise KeeperError(why)
        if welcome.pid != self.pid:
            self._lose("The keeper was replaced by another, so what ran under it has ended.")
        self.pid, self._expected = welcome.pid, welcome.kept
        self._adopt()

    def _settle(self, reply: Reply) -> None:
        wanted = reply.descriptors if isinstance(reply, Started | Listening) else 0
        descriptors = tuple(self._descriptors.popleft() for _ in range(wanted))
        waiting = self._waiting.get(reply.id)
        if waiting is None or (descriptors and waiting.on_reply is None):
            close_all(descriptors)
        if waiting is not None:
            if waiting.on_reply is not None:
                waiting.on_reply(reply, descriptors)
            waiting.reply = reply
            waiting.answered.set()

    def _disconnect(self) -> None:
        self._connected = False
        self._outbox.clear()
        for waiting in self._waiting.values():
            waiting.answered.set()
        close_all(self._descriptors)
        self._descriptors.clear()
        if self._final:
            self._lose(self._why_gone)

    def _lose(self, why: str) -> None:
        if self.pid and self.listener is not None:
            self.listener.lost(why)
        self.pid = 0


def _unanswered(error: Exception) -> str:
    return f"The keeper did not answer a hello: {str(error) or type(error).__name__}."


def _patience(request: Request) -> float:
    return REPLY_SECONDS + (request.grace if isinstance(request, Stop | Shutdown) else 0.0)


def close_all(descriptors: Iterable[int]) -> None:
    for fd in descriptors:
        os.close(fd)
