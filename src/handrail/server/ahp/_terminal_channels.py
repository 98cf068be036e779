"""Terminals as channels: output, exit, size and claim of each terminal that a client watches.

A terminal of a running call is claimed by its session, turn and call; a claim without the call means that the person wants
the call completed. Input and size are a person's; `host_actions` checks that.
"""

import codecs
from collections.abc import Callable

import anyio

from handrail.server.ahp.ahp_wire import NOT_FOUND, Obj, RpcError, file_uri, without_none
from handrail.server.ahp.channels import Channels
from handrail.server.ahp.reducers import reduce_terminal
from handrail.terminal.terminal import Terminal
from handrail.terminal.terminals import Terminals

SCROLLBACK = 256 * 1024
"""Bytes of earlier output in a snapshot."""
KEPT = 1024 * 1024
"""Characters of output in the state of a channel. Bounds memory; a later snapshot begins later."""
SCHEME = "ahp-terminal:/"


class TerminalChannels:
    """The channels of terminals."""

    def __init__(
        self,
        channels: Channels,
        terminals: Terminals,
        find_claim: Callable[[Terminal], Obj],
    ) -> None:
        self._channels = channels
        self._terminals = terminals
        self._find_claim = find_claim
        self._own: dict[str, tuple[str, Obj]] = {}
        """Terminals that clients opened: the terminal's id and its claim, by URI."""
        self._positions: dict[str, tuple[int, codecs.IncrementalDecoder]] = {}
        """Where the output of a snapshot ends, until its follower begins."""

    def adopt(self, uri: str, terminal: str, claim: Obj) -> None:
        """A client opened this terminal under its own URI."""
        self._own[uri] = terminal, claim

    def release(self, uri: str) -> None:
        self._own.pop(uri, None)

    def is_own(self, uri: str) -> bool:
        """Whether a client opened the terminal of this URI."""
        return uri in self._own

    def find(self, uri: str) -> Terminal:
        """The terminal of a URI. Raises RpcError."""
        name = self._own[uri][0] if uri in self._own else uri.removeprefix(SCHEME)
        live = None if name == uri else self._terminals.get(name)
        if live is None or live.pipes:
            raise RpcError(NOT_FOUND, f"There is no terminal {uri[:200]} any more.")
        return live

    def listed(self) -> list[Obj]:
        """The running terminals, for the root state."""
        return [
            {"resource": uri, "title": live.note.name, "claim": self.claim(uri, live), **_lifecycle(live)}
            for uri, live in self._known()
        ]

    def _known(self) -> list[tuple[str, Terminal]]:
        own = {name: uri for uri, (name, _) in self._own.items()}
        running = [live for live in self._terminals.live.values() if not live.pipes and live.exit is None]
        return [(own.get(live.id, SCHEME + live.id), live) for live in running]

    def claim(self, uri: str, live: Terminal) -> Obj:
        """Who works with a terminal: the client that opened it, or the session and the call that runs in it."""
        if uri in self._own:
            return self._own[uri][1]
        return self._find_claim(live)

    def open(self, uri: str) -> None:
        """Open a terminal's channel. Raises RpcError."""
        live = self.find(uri)
        decoder = _decoder()
        end = live.tail.end
        begin = max(live.tail.first, end - SCROLLBACK)
        text = decoder.decode(live.tail.read_range(begin, end))
        state: Obj = {
            "title": live.note.name,
            "cwd": file_uri(live.cwd),
            "cols": live.size[0],
            "rows": live.size[1],
            "content": [{"type": "unclassified", "value": text}] if text else [],
            "claim": self.claim(uri, live),
            "isPty": True,
            **_lifecycle(live),
        }
        self._channels.open(uri, state, reduce_terminal)
        self._positions[uri] = end, decoder

    def publish_claims(self) -> None:
        """Publish the claims that changed: a call that has ended, or was handed back, no longer has its terminal."""
        for uri, live in self._known():
            channel = self._channels.get(uri)
            claim = self.claim(uri, live)
            if channel is not None and channel.state["claim"] != claim:
                self._channels.publish(uri, {"type": "terminal/claimed", "claim": claim})

    async def follow(self, uri: str) -> None:
        """Publish output and size until the terminal has ended."""
        live = self.find(uri)
        begin, decoder = self._positions.pop(uri)

        async def send(data: bytes, _offset: int) -> None:
            if text := decoder.decode(data):
                self._channels.publish(uri, {"type": "terminal/data", "data": text})
                self._trim(uri)
                await self._drain(uri)

        async with anyio.create_task_group() as group:
            group.start_soon(self._follow_size, uri, live)
            await live.tail.follow(begin, send)
            group.cancel_scope.cancel()
        code = None if live.exit is None else live.exit.code
        self._channels.publish(uri, without_none(type="terminal/exited", exitCode=code))

    async def _follow_size(self, uri: str, live: Terminal) -> None:
        while True:
            channel = self._channels.get(uri)
            if channel is not None and (channel.state["cols"], channel.state["rows"]) != live.size:
                self._channels.publish(
                    uri, {"type": "terminal/resized", "cols": live.size[0], "rows": live.size[1]}
                )
            await live.changed()

    def _trim(self, uri: str) -> None:
        channel = self._channels.get(uri)
        content: list[Obj] = [] if channel is None else channel.state["content"]
        if channel is not None and content and len(content[-1].get("value", "")) > KEPT:
            value = content[-1]["value"][-KEPT // 2 :]
            channel.state = {**channel.state, "content": [{"type": "unclassified", "value": value}]}

    async def _drain(self, uri: str) -> None:
        """Wait for clients that read slowly, so that output does not fill their queues."""
        channel = self._channels.get(uri)
        for subscriber in () if channel is None else tuple(channel.subscribers):
            await subscriber.drained()


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


def _lifecycle(live: Terminal) -> Obj:
    if live.exit is None:
        return {"lifecycle": {"status": "running"}}
    return {"lifecycle": {"status": "exited", "exitCode": live.exit.code}}
