"""Client of the daemon: a hello on its unix socket, then HTTP with the bearer token from the reply.

`reach` asks for the rights of a reader or of a person. Errors become a `Failure` with a message for people. The token is
valid while the socket is open, and is never stored. `Live` follows the journal and reconnects when the daemon restarts.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload
from urllib.parse import quote, urlencode, urlsplit

from handrail.cli.failure import Code, Failure
from handrail.cli.render.output import note, print_json
from handrail.door.connect import (
    HELLO_SECONDS,
    DaemonNotRunning,
    HelloRefused,
    Impostor,
    check_lives,
    connect,
    repeat_greeting,
    say_hello,
)
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

    from handrail.cli.wire import (
        ApprovalView,
        CallView,
        Delete,
        Entry,
        Get,
        LiveEntries,
        Patch,
        Post,
        Put,
        State,
    )

Noun = Literal["approval", "call"]
Want = Literal["read", "person"]

REQUEST_SECONDS = 30.0
"""Timeout of one request. The daemon answers in milliseconds; bounds the wait for one that hangs."""


@dataclass(frozen=True, slots=True)
class Link:
    """An authenticated connection to the daemon, valid while its socket is open.

    `get`, `post`, `put`, `patch` and `delete` take the segments of a path below `/api`; `wire` has the types of each route.
    """

    url: str
    pid: int
    version: str
    bearer: str
    recognised: socket.socket
    """The socket on which the daemon was recognised. It closes when that process ends."""

    @property
    def get(self) -> Get:
        return partial(self._request, "GET")

    @property
    def post(self) -> Post:
        return partial(self._request, "POST")

    @property
    def delete(self) -> Delete:
        return partial(self._request, "DELETE")

    @property
    def put(self) -> Put:
        return partial(self._request, "PUT")

    @property
    def patch(self) -> Patch:
        return partial(self._request, "PATCH")

    def fetch(self, *path: str, **query: object) -> bytes:
        """GET the raw body of a route that returns a file."""
        return self._exchange("GET", path, None, query)

    def _request(self, method: str, /, *path: str, body: object = None, **query: object) -> Any:
        answer = self._exchange(method, path, body, query)
        try:
            return json.loads(answer) if answer else None
        except ValueError:
            raise Failure("The daemon's answer is not JSON. Try `handrail restart`.") from None

    def _exchange(self, method: str, path: Sequence[str], body: object, query: dict[str, object]) -> bytes:
        params = {name: value for name, value in query.items() if value is not None}
        target = "/".join(("/api", *(quote(part, safe="") for part in path)))
        target += f"?{urlencode(params, doseq=True)}" if params else ""
        headers = {"Authorization": f"Bearer {self.bearer}", "Content-Type": "application/json"}
        payload = None if body is None else json.dumps(body)
        address = urlsplit(self.url).netloc
        try:
            with closing(http.client.HTTPConnection(address, timeout=REQUEST_SECONDS)) as connection:
                connection.connect()
                check_lives(self.recognised)
                connection.request(method, target, payload, headers)
                response = connection.getresponse()
                return _check_status(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            raise Failure(
                f"The daemon at {self.url} went away ({error}). Start it with `handrail up`.", Code.NO_DAEMON
            ) from None


@contextmanager
def reach(
    want: Want,
    *,
    start: bool = False,
    argv: Sequence[str] | None = None,
    places: Places | None = None,
    keep: Sequence[str] = (),
    within: float = HELLO_SECONDS,
    ends: bool = False,
) -> Generator[Link]:
    """Connect to the daemon. With `start`, start it if needed, passing on the variables named in `keep`. Raises Failure.

    `within` bounds the wait for its hello. A process that is not recognised as our daemon is only read from, or with
    `ends` stopped: it gets no secret.
    """
    where = places or Places.find(os.environ)

    def greet() -> Link:
        gives_nothing = ends or (want == "read" and not start)
        sock, is_known = _connect(where, start, argv, keep, gives_nothing=gives_nothing)
        return _open_link(sock, want, within, is_known)

    try:
        link = repeat_greeting(greet)
        with closing(link.recognised):
            yield link
    except HelloRefused as refused:
        is_gone = refused.hung_up or refused.timed_out
        why = f"The daemon: {refused.why}" if refused.timed_out else refused.why
        raise Failure(why, Code.NO_DAEMON if is_gone else Code.FAILED) from None
    except Impostor as impostor:
        raise Failure(str(impostor)) from None
    except DaemonNotRunning as problem:
        raise Failure(str(problem), Code.NO_DAEMON) from None


def _connect(
    places: Places, start: bool, argv: Sequence[str] | None, keep: Sequence[str], *, gives_nothing: bool
) -> tuple[socket.socket, bool]:
    """Connect, and whether the listener is recognised as our daemon. Raises Impostor, unless `gives_nothing`."""
    try:
        return connect(places, start=start, argv=argv, keep=keep), True
    except Impostor as impostor:
        if not gives_nothing:
            raise
        note(str(impostor))
        return connect(places, start=False, check=False), False


def _open_link(sock: socket.socket, want: Want, within: float, is_known: bool) -> Link:
    try:
        reply = say_hello(sock, want, within=within, check=is_known)
    except HelloRefused:
        sock.close()
        raise
    return Link(
        url=reply["url"],
        pid=reply["pid"],
        version=reply["version"],
        bearer=reply["bearer"],
        recognised=sock,
    )


def _check_status(status: int, body: bytes) -> bytes:
    if status == 401:
        # The daemon that issued our token is gone, and another one uses its port.
        raise Failure("The daemon was replaced meanwhile. Try again.", Code.NO_DAEMON)
    if status >= 400:
        raise Failure(_error_detail(body, status))
    return body


def _error_detail(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, TypeError, KeyError):
        return f"The daemon refused this ({status}) without a reason. `handrail doctor` may show why."


GONE_SECONDS = 60.0
"""How long a follower waits for a lost daemon. A restart takes two seconds; after `handrail down` none comes back."""
RETRY = 0.25
MESSAGE_MAX = 1 << 28
"""Maximum bytes of one message: a batch of events with their results. Bounds memory if the daemon misbehaves."""


class Live:
    """Follows the journal, starting from a snapshot."""

    link: Link
    state: State
    """The snapshot taken before the first event."""

    def __init__(self, want: Want) -> None:
        self._want: Want = want
        self._held = ExitStack()
        self._socket: ClientConnection
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

    def wait(self, seconds: float | None = None) -> list[Entry]:
        """The next journal entries; empty after a timeout or after a reconnect."""
        try:
            message: LiveEntries = json.loads(self._socket.recv(timeout=seconds))
        except TimeoutError:
            return []
        except _socket_errors():
            self._reconnect()
            return []
        entries = message["entries"]
        if entries:
            self._after = entries[-1]["seq"]
        return entries

    def changed_rows(self, noun: Noun) -> Generator[ApprovalView | CallView]:
        """Yield the current row of each call or approval named by an event. Never ends; survives reconnects."""
        pending: dict[str, None] = {}
        while True:
            about = (entry["event"].get(noun) for entry in self.wait())
            pending |= dict.fromkeys(name for name in about if name)
            try:
                for name in list(pending):
                    row = self._load(noun, name)
                    del pending[name]
                    yield row
            except Failure as problem:
                if problem.code is not Code.NO_DAEMON:
                    raise

    def _load(self, noun: Noun, id: str) -> ApprovalView | CallView:
        return self.link.get("calls", id) if noun == "call" else self.link.get("approvals", id)

    def _listen(self) -> None:
        self._socket = self._held.enter_context(open_websocket(self.link, f"live?after={self._after}"))

    def _reconnect(self) -> None:
        self._held.close()
        note(("The daemon went away; waiting for it to come back.", "yellow"))
        until = time.monotonic() + GONE_SECONDS
        while time.monotonic() < until:
            try:
                self.link = self._held.enter_context(reach(self._want))
                self._listen()
            except (Failure, *_socket_errors()) as problem:
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


def _socket_errors() -> tuple[type[Exception], ...]:
    from websockets.exceptions import WebSocketException  # noqa: PLC0415 - most commands open no WebSocket

    return WebSocketException, OSError


def open_websocket(link: Link, path: str) -> ClientConnection:
    """Open a WebSocket of the daemon, below `/api`."""
    url = f"ws{link.url.removeprefix('http')}/api/{path}"
    bearer = {"Authorization": f"Bearer {link.bearer}"}
    from websockets.sync.client import connect as connect_websocket  # noqa: PLC0415 - as above

    return connect_websocket(url, additional_headers=bearer, proxy=None, max_size=MESSAGE_MAX)


@overload
def follow_status(
    noun: Literal["approval"], show: Callable[[ApprovalView], None], for_programs: bool
) -> None: ...
@overload
def follow_status(noun: Literal["call"], show: Callable[[CallView], None], for_programs: bool) -> None: ...
def follow_status(noun: Noun, show: Callable[[Any], None], for_programs: bool) -> None:
    """Show each open row, then each row whose status changes; one JSON line per row if `for_programs`."""
    statuses: dict[str, str] = {}

    def update(row: ApprovalView | CallView) -> None:
        if statuses.get(row["id"]) == row["status"]:
            return
        statuses[row["id"]] = row["status"]
        if for_programs:
            print_json(row, line=True)
        else:
            show(row)

    with Live("read") as live:
        for row in live.state["calls"] if noun == "call" else live.state["approvals"]:
            update(row)
        for row in live.changed_rows(noun):
            update(row)
