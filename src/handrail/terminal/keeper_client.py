"""Client for the keeper's socket: requests and replies, notices, reconnection.

Holds the connection and matches replies to pending requests. Notices go to a `Listener`, synchronously and in order.
Terminals are not known here.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from contextlib import suppress
from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
from anyio.abc import SocketAttribute

from handrail.framing import LineBuffer, LineTooLong
from handrail.keeper import lineage
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
    Look,
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
from handrail.lazy_dataclass import dataclass
from handrail.process_state import END_BY_FORCE, describe_hang
from handrail.terminal.start_keeper import KeeperLauncher, NoKeeperError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyio.abc import TaskStatus, UNIXSocketStream

    from handrail.keeper.protocol import Notice
    from handrail.paths import Places


R = TypeVar("R", bound=Reply)
BACK_OFF_MAX = 5.0
"""Upper bound in seconds of the reconnect backoff."""
HELLO_SECONDS = 5.0
"""Time limit for the answer to a hello. The keeper never blocks, so a slower one is broken."""
HEALTH_SECONDS = 0.7
"""Time limit for the keeper's health: whoever asks for ours gets an answer within a second."""
QUESTION_SECONDS = 2.0
"""Time limit for a question that the keeper answers from memory."""
HELLO_TRIES = 5
HELLO_APART = 0.1
"""Retries and the seconds between them: a keeper that is shutting down still accepts connections for a moment."""
REPLY_SECONDS = 20.0
"""Time limit for any other reply, on top of a stop's grace. Only a hung keeper or system takes longer."""


class KeeperError(Exception):
    """The keeper refused, or is not connected; the message gives the reason.

    `code` comes from the refusal (`protocol.Failed`), else it is empty.
    """

    def __init__(self, why: str, code: str = "") -> None:
        super().__init__(why)
        self.code = code


class KeeperHangs(KeeperError):
    """The keeper is connected but has not answered in time."""


class _KeeperClosed(KeeperError):
    """The keeper closed the connection before it answered the hello, as it does while shutting down: retry."""


class Listener(Protocol):
    """Receives the keeper's notices. These methods must not block."""

    def adopt(self, kept: list[Kept]) -> None: ...
    def hear(self, notice: Notice) -> None: ...
    def lost(self, why: str) -> None: ...


@dataclass(slots=True)
class _PendingRequest:
    on_reply: Callable[[Reply, tuple[int, ...]], None] | None
    answered: anyio.Event = field(default_factory=anyio.Event)
    reply: Reply | None = None


class Keeper:
    """The daemon's connection to the keeper. `run` keeps it open; requests fail while it is down."""

    def __init__(self, places: Places, *, idle_seconds: float = 60.0) -> None:
        self.pid = 0
        self.listener: Listener | None = None
        self._launcher = KeeperLauncher(places, idle_seconds)
        self._numbers = count(1)
        self._pending: dict[int, _PendingRequest] = {}
        self._lines = LineBuffer(FRAME_MAX)
        self._kept: list[Kept] = []
        self._expected: int | None = None
        self._descriptors: deque[int] = deque()
        self._outbox = bytearray()
        self._has_output = anyio.Event()
        self._socket: socket.socket | None = None
        """The connection while its writer is idle: a request is sent without waking the writer."""
        self._connected = False
        self._final = False
        self._replaced = False
        self._why_gone = "The keeper has not been reached yet."

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Stay connected until the keeper is shut down or another daemon replaces us.

        Raises KeeperError when the first connection fails; later failures are retried with backoff.
        """
        await self._serve(await self._connect(), task_status)
        while not self._final:
            await self._serve(await self._reconnect(), anyio.TASK_STATUS_IGNORED)

    def number(self) -> int:
        """Allocate a request id."""
        return next(self._numbers)

    async def request(
        self,
        request: Request,
        kind: type[R],
        on_reply: Callable[[Reply, tuple[int, ...]], None] | None = None,
    ) -> R:
        """Send a request and return its reply. Raises KeeperError.

        `on_reply` is called when the reply arrives, before any later notice is handled.
        """
        waiting = self._pending[request.id] = _PendingRequest(on_reply)
        self.post(request)
        if not self._connected:
            waiting.answered.set()
        try:
            with anyio.move_on_after(_reply_seconds(request)) as bound:
                await waiting.answered.wait()
        finally:
            self._pending.pop(request.id, None)
        if bound.cancelled_caught and not waiting.answered.is_set():
            raise KeeperHangs(
                f"{describe_hang('keeper', self.pid, '')}It has not answered for {_reply_seconds(request):g} s, so it is "
                f"unknown whether the request was carried out. {END_BY_FORCE}"
            )
        reply = waiting.reply
        if isinstance(reply, kind):
            return reply
        if isinstance(reply, Failed):
            raise KeeperError(reply.why, reply.code)
        raise KeeperError(self._why_gone)

    def post(self, request: Request) -> None:
        """Send a request without waiting for its reply. Dropped while disconnected."""
        if self._connected:
            self._outbox += encode(request)
            self._send_now()
            if self._outbox:
                self._has_output.set()

    def _send_now(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it is full, or closed, which `_read` handles
                del self._outbox[: self._socket.send(self._outbox)]

    async def recall(self, key: str) -> bytes | None:
        return (await self.request(Recall(self.number(), key), Recalled)).value

    async def listen(self, *ports: int) -> socket.socket:
        """A listening socket on the first free one of these ports, else on any port; the keeper keeps it open too."""
        (listener,) = await self._listen(ports, both=False)
        return listener

    async def listen_both(self, *ports: int) -> list[socket.socket]:
        """Like `listen` for IPv4 and, if it is available, for the same port of IPv6."""
        return await self._listen(ports, both=True)

    async def listen_at(self, host: str, port: int) -> socket.socket:
        """A listening socket on exactly this address, which the keeper keeps open too. Raises KeeperError."""
        (listener,) = await self._listen((port,), both=False, host=host)
        if listener.getsockname()[:2] == (host, port):
            return listener
        listener.close()
        raise KeeperError(
            "The running keeper is of an older version and cannot do this. Run `handrail down`, then `handrail up`."
        )

    async def release(self, host: str, port: int) -> None:
        """Let the keeper close the socket of `listen_at`."""
        await self.request(Listen(self.number(), (port,), host=host, release=True), Listening)

    async def _listen(self, ports: tuple[int, ...], both: bool, host: str = "") -> list[socket.socket]:
        received: list[int] = []
        request = Listen(self.number(), ports, both, host)
        await self.request(request, Listening, lambda _reply, descriptors: received.extend(descriptors))
        for descriptor in received:
            os.set_inheritable(descriptor, False)
        return [socket.socket(fileno=descriptor) for descriptor in received]

    async def health(self) -> Healthy:
        return await self.request(Health(self.number()), Healthy)

    async def shutdown(self, grace: float = 2.0) -> None:
        """Stop every process tree and the keeper."""
        self._final = True
        await self.request(Shutdown(self.number(), grace), Done)

    def leave(self) -> None:
        """Disconnect, so that later cancellations here stop nothing: running processes stay for the next daemon."""
        self._why_gone = "This daemon is leaving."
        self._disconnect()

    async def _reconnect(self) -> UNIXSocketStream:
        pause = 0.05
        while True:
            try:
                return await self._connect()
            except KeeperError as error:
                self._why_gone = str(error)
            await anyio.sleep(pause)
            pause = min(pause * 2, BACK_OFF_MAX)

    async def _connect(self) -> UNIXSocketStream:
        for tries_left in reversed(range(HELLO_TRIES)):
            stream = await self._open_stream()
            try:
                await self._greet(stream)
            except _KeeperClosed:
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

    async def _open_stream(self) -> UNIXSocketStream:
        """Connect to the running keeper, or start one."""
        try:
            stream = await self._launcher.connect()
            if stream is None:
                self._report_loss("The keeper has died, so its wardens have ended what ran.")
                stream = await self._launcher.start()
        except NoKeeperError as error:
            self._report_loss("The keeper has died, and no new one could be started.")
            raise KeeperError(str(error)) from error
        return stream

    async def _greet(self, stream: UNIXSocketStream) -> None:
        self._lines, self._kept, self._expected = LineBuffer(FRAME_MAX), [], None
        try:
            with anyio.fail_after(HELLO_SECONDS):
                await stream.send(encode(Hello(PROTOCOL, "daemon")))
                raw = stream.extra(SocketAttribute.raw_socket)
                while self._expected is None or len(self._kept) < self._expected:
                    await self._receive(raw)
        except TimeoutError as error:
            raise KeeperHangs(_describe_silence(stream)) from error
        except (FrameError, LineTooLong) as error:
            raise KeeperError(_hello_failure(error)) from error
        except (anyio.EndOfStream, anyio.BrokenResourceError, OSError) as error:
            raise _KeeperClosed(_hello_failure(error)) from error

    def _adopt_if_complete(self) -> None:
        """Call `adopt` as soon as the last `Kept` arrives: a notice about a terminal may come in the same read."""
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
            self._launcher.reap()

    async def _read(self, stream: UNIXSocketStream) -> None:
        """Read until the keeper closes the connection."""
        raw = stream.extra(SocketAttribute.raw_socket)
        try:
            while True:
                await self._receive(raw)
        except (anyio.EndOfStream, anyio.BrokenResourceError, OSError):
            self._why_gone = (
                "Another daemon has taken over the keeper." if self._replaced else "The keeper has gone."
            )
        except (FrameError, LineTooLong) as error:
            self._why_gone = f"The keeper sent an invalid message: {error}"

    async def _write(self, stream: UNIXSocketStream) -> None:
        try:
            while True:
                self._socket = None if self._outbox else stream.extra(SocketAttribute.raw_socket)
                await self._has_output.wait()
                self._socket, self._has_output = None, anyio.Event()
                data, self._outbox = bytes(self._outbox), bytearray()
                await stream.send(data)
        except (anyio.BrokenResourceError, OSError):
            pass  # `_read` handles the closed connection
        finally:
            self._socket = None

    async def _receive(self, raw: socket.socket) -> None:
        # Not `receive_fds`: on asyncio it fails if it is cancelled while data arrives, and waits for a turn of the loop.
        await anyio.wait_readable(raw)
        try:
            data, descriptors, _, _ = socket.recv_fds(raw, 65536, 16)
        except BlockingIOError:
            return
        if not data:
            raise anyio.EndOfStream
        self._descriptors += descriptors
        for line in self._lines.feed(data):
            self._handle(from_keeper(line))

    def _handle(self, message: Welcome | Refused | Reply | Notice) -> None:
        match message:
            case Welcome():
                self._welcome(message)
            case Refused(why):
                raise KeeperError(why)
            case Kept():
                self._kept.append(message)
                self._adopt_if_complete()
            case Grown() | Unrecorded() | Exited() | Swept() | Overheard() | Resized() | Attached():
                if self.listener is not None:
                    self.listener.hear(message)
            case Replaced():
                self._final = self._replaced = True
            case _:
                self._resolve(message)

    def _welcome(self, welcome: Welcome) -> None:
        why = skew(welcome.protocol)
        if why is not None:
            raise KeeperError(why)
        if welcome.pid != self.pid:
            self._report_loss("The keeper was replaced by another, so what ran under it has ended.")
        self.pid, self._expected = welcome.pid, welcome.kept
        self._adopt_if_complete()

    def _resolve(self, reply: Reply) -> None:
        count = reply.descriptors if isinstance(reply, Started | Listening) else 0
        descriptors = tuple(self._descriptors.popleft() for _ in range(count))
        waiting = self._pending.get(reply.id)
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
        for waiting in self._pending.values():
            waiting.answered.set()
        close_all(self._descriptors)
        self._descriptors.clear()
        if self._final:
            self._report_loss(self._why_gone)

    def _report_loss(self, why: str) -> None:
        if self.pid and self.listener is not None:
            self.listener.lost(why)
        self.pid = 0


def _hello_failure(error: Exception) -> str:
    return f"The keeper did not answer a hello: {str(error) or type(error).__name__}."


def _describe_silence(stream: UNIXSocketStream) -> str:
    peer = lineage.Peer.of(stream.extra(SocketAttribute.raw_socket))
    peer.close()
    return describe_hang("keeper", peer.pid, END_BY_FORCE)


def _reply_seconds(request: Request) -> float:
    match request:
        case Health():
            return HEALTH_SECONDS
        case Look():
            return QUESTION_SECONDS
        case Recall() | Listen():
            return HELLO_SECONDS
        case Stop() | Shutdown():
            return REPLY_SECONDS + request.grace
        case _:
            return REPLY_SECONDS


def close_all(descriptors: Iterable[int]) -> None:
    for fd in descriptors:
        os.close(fd)
