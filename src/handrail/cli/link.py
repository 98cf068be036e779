"""The way from a command to the daemon: a greeting on its socket, then HTTP with the bearer from it.

Owns who we say we are (a reader or a person), the requests, and the sentences when they fail. Does not know what any
route means. The bearer lives as long as the socket, and is written nowhere.
"""

import http.client
import json
import os
import socket
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit

from handrail.cli.failure import Code, Failure
from handrail.door.connect import DaemonNotRunning, HelloRefused, connect, say_hello
from handrail.places import Places

Want = Literal["read", "person"]

REQUEST_SECONDS = 30.0
"""A daemon answers in milliseconds; bounds the wait for one that hangs."""


@dataclass(frozen=True, slots=True)
class Link:
    """A daemon that let us in, for as long as its socket is open."""

    url: str
    pid: int
    version: str
    bearer: str

    def get(self, *path: str, **query: object) -> Any:
        return self._request("GET", path, None, query)

    def post(self, *path: str, body: object = None, **query: object) -> Any:
        return self._request("POST", path, body, query)

    def delete(self, *path: str) -> Any:
        return self._request("DELETE", path, None, {})

    def patch(self, *path: str, body: object) -> Any:
        return self._request("PATCH", path, body, {})

    def fetch(self, *path: str, **query: object) -> bytes:
        """What is there as it is, where it is no answer but a file."""
        return self._exchange("GET", path, None, query)

    def _request(self, method: str, path: Sequence[str], body: object, query: dict[str, object]) -> Any:
        answer = self._exchange(method, path, body, query)
        try:
            return json.loads(answer) if answer else None
        except ValueError:
            raise Failure("The daemon's answer is not JSON. Try `handrail restart`.") from None

    def _exchange(self, method: str, path: Sequence[str], body: object, query: dict[str, object]) -> bytes:
        given = {name: value for name, value in query.items() if value is not None}
        target = "/".join(("/api", *(quote(part, safe="") for part in path)))
        target += f"?{urlencode(given)}" if given else ""
        headers = {"Authorization": f"Bearer {self.bearer}", "Content-Type": "application/json"}
        sent = None if body is None else json.dumps(body)
        where = urlsplit(self.url).netloc
        try:
            with closing(http.client.HTTPConnection(where, timeout=REQUEST_SECONDS)) as connection:
                connection.request(method, target, sent, headers)
                response = connection.getresponse()
                return _answer(response.status, response.read())
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
) -> Generator[Link]:
    """A link to the daemon, which is started if asked to, with the variables named in `keep`. Raises Failure, which says
    what helps."""
    try:
        sock = connect(places or Places.find(os.environ), start=start, argv=argv, keep=keep)
        with closing(sock):
            yield _greet(sock, want)
    except DaemonNotRunning as problem:
        raise Failure(str(problem), Code.NO_DAEMON) from None


def _greet(sock: socket.socket, want: Want) -> Link:
    try:
        reply = say_hello(sock, want)
    except HelloRefused as refused:
        raise Failure(refused.why, Code.NO_DAEMON if refused.hung_up else Code.FAILED) from None
    return Link(url=reply["url"], pid=reply["pid"], version=reply["version"], bearer=reply["bearer"])


def _answer(status: int, body: bytes) -> bytes:
    if status == 401:
        # Whoever let us in is gone, and our bearer with it; another daemon has its port now.
        raise Failure("The daemon was replaced meanwhile. Try again.", Code.NO_DAEMON)
    if status >= 400:
        raise Failure(_detail(body, status))
    return body


def _detail(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, TypeError, KeyError):
        return f"The daemon refused this ({status}) without a reason. `handrail doctor` may say more."
