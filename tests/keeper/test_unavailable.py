"""HTTP clients get a sentence while there is no daemon, each of them and soon."""

import http.client
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from handrail.keeper import _unavailable as unavailable
from handrail.keeper._unavailable import OPEN_MAX, UnavailableResponder
from handrail.keeper.event_loop import Loop

BOUND = 30.0
SENTENCE = "Handrail's daemon is not running."


class Serving:
    """A responder that runs in a thread of its own."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.responder = UnavailableResponder(self.loop)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self.listener.getsockname()[1]
        self._over = False
        self._thread = threading.Thread(target=self._run)

    @contextmanager
    def running(self) -> Generator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over = True
            self._thread.join(BOUND)
            self.responder.close()
            self.listener.close()

    def _run(self) -> None:
        while not self._over:
            self.loop.once(0.01)
            self.responder.tick()
            self.responder.answer([self.listener], SENTENCE)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=BOUND)


@pytest.fixture
def serving() -> Iterator[Serving]:
    made = Serving()
    with made.running():
        yield made


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_is_answered_503_with_the_sentence(serving: Serving, method: str) -> None:
    body = b"x" * 200_000 if method == "POST" else None
    connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=BOUND)
    connection.request(method, "/mcp", body=body)
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Retry-After")) == (503, "2")
    assert answer.read().decode() == f"{SENTENCE}\n"
    connection.close()


def test_a_client_that_says_nothing_is_answered_and_closed(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unavailable, "CLOSE_SECONDS", 0.05)
    with serving.connect() as client:
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 503 ")


def test_more_clients_than_are_held_at_a_time_are_all_answered(serving: Serving) -> None:
    clients = [serving.connect() for _ in range(OPEN_MAX + 20)]
    for client in clients:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
    for client in clients:
        with client:
            assert client.recv(4096).startswith(b"HTTP/1.1 503 ")


def test_after_the_stop_a_connection_waits_for_the_daemon() -> None:
    serving = Serving()
    serving.responder.answer([serving.listener], SENTENCE)
    serving.responder.stop()
    with serving.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        deadline = time.monotonic() + 0.1
        while time.monotonic() < deadline:
            serving.loop.once(0.01)
        serving.listener.setblocking(True)
        with serving.listener.accept()[0] as peer:
            assert peer.recv(100).startswith(b"GET / ")
    serving.listener.close()
