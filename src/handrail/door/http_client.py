"""One request of a person's program to the daemon, without the modules that would take longer to load than it takes.

Owns a greeting as a person and a POST of JSON. Does not know what any route means. The command line for people, which
is not in such a hurry, has a link of its own.
"""

from __future__ import annotations

import json
import socket
import time

from handrail.door.connect import START_SECONDS, DaemonNotRunning, HelloRefused, connect, say_hello

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from handrail.paths import Places


REQUEST_SECONDS = 30.0
"""A daemon answers in milliseconds; bounds the wait for one that hangs."""

ANSWER_MAX = 8 << 20
"""Bytes of an answer; bounds what a wrong peer can make us hold."""


class Refused(Exception):
    """The daemon did not do it; the sentence says why."""

    def __init__(self, why: str, is_gone: bool = False) -> None:
        super().__init__(why)
        self.is_gone = is_gone
        """There was nobody to do it."""


def post(places: Places, path: str, body: object, within: float | None = None) -> Any:
    """As a person, ask the daemon, which is started if need be, in that time. Raises Refused."""
    try:
        # The bearer holds for as long as this connection.
        with connect(places, within=START_SECONDS if within is None else within) as sock:
            reply = say_hello(sock, "person")
            return _ask(str(reply["url"]), path, str(reply["bearer"]), json.dumps(body).encode())
    except DaemonNotRunning as problem:
        raise Refused(str(problem), is_gone=True) from None
    except HelloRefused as refused:
        raise Refused(refused.why, is_gone=refused.hung_up) from None
    except (OSError, ValueError) as error:
        raise Refused(f"The daemon went away ({error}). Start it with `handrail up`.", is_gone=True) from None


def _ask(url: str, path: str, bearer: str, body: bytes) -> Any:
    host = url.removeprefix("http://")
    name, _, port = host.rpartition(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {bearer}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    deadline = time.monotonic() + REQUEST_SECONDS
    with socket.create_connection((name, int(port)), REQUEST_SECONDS) as sock:
        sock.sendall(head.encode() + body)
        answer = b""
        while data := sock.recv(1 << 16):
            answer += data
            if time.monotonic() > deadline or len(answer) > ANSWER_MAX:
                raise TimeoutError("its answer did not end")
    return _answer(answer)


def _answer(whole: bytes) -> Any:
    head, _, body = whole.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.") else 0
    found = json.loads(body)
    if not 200 <= status < 300:
        raise Refused(_detail(found, status))
    return found


def _detail(answer: Any, status: int) -> str:
    try:
        return str(answer["detail"])
    except (TypeError, KeyError):
        return f"The daemon refused this ({status}) without a reason. `handrail doctor` may say more."
