"""Facts as they happen, over however many daemons.

Owns the cursor: after a reconnect it goes on from the last fact it saw. Does not know what the facts mean.
"""

import json
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal, Self

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket

from handrail.cli.failure import Code, Failure
from handrail.cli.link import Link, Want, reach
from handrail.cli.show import as_json, note
from handrail.cli.words import Row

GONE_SECONDS = 60.0
"""How long a daemon may be away before a follower gives up: a restart takes two seconds, a `down` is for good."""
RETRY = 0.25
MESSAGE_MAX = 1 << 28
"""Bytes of one message: a batch of facts with the results in them. From our own daemon; bounds a fault."""


class Live:
    """A follower of the journal, from a snapshot on."""

    link: Link

    def __init__(self, want: Want) -> None:
        self._want: Want = want
        self._held = ExitStack()
        self._socket: ClientConnection
        self.state: Row = {}
        """The snapshot that the first fact follows."""
        self._after = 0

    def __enter__(self) -> Self:
        self.link = self._held.enter_context(reach(self._want))
        self.state = self.link.get("state")
        self._after = self.state["seq"]
        self._listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def wait(self, seconds: float | None = None) -> list[Row]:
        """The next facts; none when that time has passed, or when the daemon had to be found again."""
        try:
            message: Any = json.loads(self._socket.recv(timeout=seconds))
        except TimeoutError:
            return []
        except (WebSocketException, OSError):
            self._again()
            return []
        entries: list[Row] = message["entries"]
        if entries:
            self._after = entries[-1]["seq"]
        return entries

    def changed(self, noun: str) -> Generator[Row]:
        """Each call, or approval, that a fact was about, as it is now; for ever, over every reconnect."""
        pending: dict[str, None] = {}
        while True:
            about = (entry["event"].get(noun) for entry in self.wait())
            pending |= dict.fromkeys(name for name in about if name)
            try:
                for name in list(pending):
                    row = self.link.get(f"{noun}s", name)
                    del pending[name]
                    yield row
            except Failure as problem:
                if problem.code is not Code.NO_DAEMON:
                    raise

    def _listen(self) -> None:
        self._socket = self._held.enter_context(listen(self.link, f"live?after={self._after}"))

    def _again(self) -> None:
        self._held.close()
        note(("The daemon went away; waiting for it to come back.", "yellow"))
        until = time.monotonic() + GONE_SECONDS
        while time.monotonic() < until:
            try:
                self.link = self._held.enter_context(reach(self._want))
                self._listen()
            except (Failure, WebSocketException, OSError) as problem:
                self._held.close()
                if isinstance(problem, Failure) and problem.code is not Code.NO_DAEMON:
                    raise
                time.sleep(RETRY)
            else:
                note(("The daemon is back.", "green"))
                return
        raise Failure(
            "The daemon has not come back for a minute. Start it with `handrail up`.", Code.NO_DAEMON
        )


def listen(link: Link, path: str) -> ClientConnection:
    """A socket of the daemon's, below `/api`."""
    url = f"ws{link.url.removeprefix('http')}/api/{path}"
    bearer = {"Authorization": f"Bearer {link.bearer}"}
    return connect_websocket(url, additional_headers=bearer, proxy=None, max_size=MESSAGE_MAX)


def follow_status(noun: Literal["approval", "call"], show: Callable[[Row], None], for_programs: bool) -> None:
    """Show each open row, then each row whose status changes; as a line of JSON for programs."""
    shown: dict[str, str] = {}

    def update(row: Row) -> None:
        if shown.get(row["id"]) == row["status"]:
            return
        shown[row["id"]] = row["status"]
        if for_programs:
            as_json(row, line=True)
        else:
            show(row)

    with Live("read") as live:
        for row in live.state[f"{noun}s"]:
            update(row)
        for row in live.changed(noun):
            update(row)
