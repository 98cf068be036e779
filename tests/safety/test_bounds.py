"""Memory is bounded whatever a client sends: on the door's socket, on the keeper's, and over HTTP."""

import json
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.user_account import BOUND, Account, Attacker

from handrail.server.guard import MOST_BYTES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MEGABYTE = 1024 * 1024
FLOOD = 200
"""Megabytes of each flood: many times what may be held of it."""
MOST_HELD = 128 * MEGABYTE
"""What a flood may add to the daemon at its worst: one message of the longest kind, and its copy while it grows."""

HUNG_UP = 0
"""In the place of a status: the answer was lost as the connection was closed on what we still sent."""

FLOODER = """
import json, socket, sys
path, hello, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
sock = socket.socket(socket.AF_UNIX)
sock.connect(path)
if hello:
    sock.sendall(hello.encode() + b"\\n")
    sock.recv(65536)
block = b"x" * (1 << 20)
try:
    for _ in range(megabytes):
        sock.sendall(block)
    sock.sendall(b"\\n")
    sock.settimeout(60)
    sys.stdout.write(sock.recv(65536).decode())
except (BrokenPipeError, ConnectionResetError):
    sys.stdout.write("hung up")
"""


@pytest.fixture(scope="module")
def hostile(new_account: Callable[[], Account]) -> Attacker:
    return Attacker(new_account())


@pytest.fixture
def daemon(hostile: Attacker) -> Iterator[Attacker]:
    """The daemon, which must not have held much of what was sent, and must still be the same one and at work."""
    with held_little(hostile.account.pid), held_little(hostile.account.keeper):
        before = hostile.account.pid
        yield hostile
        assert hostile.account.pid == before
        assert hostile.account.http("GET", "/api/state", hostile.person).status == 200


@contextmanager
def held_little(pid: int) -> Generator[None]:
    """The most memory a process ever had does not grow by more than a flood may add."""
    before = peak(pid)
    yield
    assert peak(pid) - before < MOST_HELD


def peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def flood(hostile: Attacker, name: str, hello: object) -> str:
    greeting = json.dumps(hello) if hello else ""
    path = str(hostile.account.home / name)
    return hostile.account.run(hostile.account.python, "-c", FLOODER, path, greeting, str(FLOOD)).stdout


def test_a_line_without_end_on_a_door_is_skipped_and_said_to_be_too_long(daemon: Attacker) -> None:
    said = flood(daemon, "daemon.sock", {"handrail": 1, "want": "mcp", "cwd": "/"})
    assert "longer than" in said


def test_a_greeting_without_end_is_not_kept(daemon: Attacker) -> None:
    said = flood(daemon, "daemon.sock", None)
    assert said in ("", "hung up") or "not understood" in said


@pytest.mark.parametrize("want", ["person", "read"])
def test_who_goes_on_talking_after_a_greeting_is_not_listened_to(daemon: Attacker, want: str) -> None:
    assert flood(daemon, "daemon.sock", {"handrail": 1, "want": want}) in ("", "hung up")


def test_a_line_without_end_on_the_keepers_socket_is_refused(daemon: Attacker) -> None:
    said = flood(daemon, "keeper.sock", None)
    assert said == "hung up" or "longer than" in said


@pytest.mark.parametrize("framing", ["announced", "chunked"])
@pytest.mark.parametrize(
    ("path", "bearer"), [("/api/sign-in", None), ("/mcp", "agent"), ("/api/credentials", "person")]
)
def test_a_body_without_end_is_refused(daemon: Attacker, framing: str, path: str, bearer: str | None) -> None:
    known = {"agent": daemon.agent, "person": daemon.person}
    status = post_forever(daemon.account, path, known[bearer] if bearer else "", framing)
    assert status in (413, HUNG_UP)


def test_a_body_as_long_as_is_allowed_is_heard(daemon: Attacker) -> None:
    """The control: what is refused above is refused for its length."""
    text = "x" * (MOST_BYTES - 1000)
    answer = daemon.account.http("POST", "/api/credentials", daemon.person, {"name": text, "workspace": "/"})
    assert answer.status == 422


def post_forever(account: Account, path: str, bearer: str, framing: str) -> int:
    """The status of the answer to a body that goes on and on."""
    host, _, port = account.where.partition(":")
    length = f"Content-Length: {FLOOD * MEGABYTE}" if framing == "announced" else "Transfer-Encoding: chunked"
    head = (f"POST {path} HTTP/1.1", f"Host: {account.where}", f"Authorization: Bearer {bearer}", length)
    more = ("Content-Type: application/json", "Accept: application/json, text/event-stream", "", "")
    chunk = b"%x\r\n" % MEGABYTE + b"x" * MEGABYTE + b"\r\n"
    with socket.create_connection((host, int(port)), timeout=BOUND) as sock:
        sock.sendall("\r\n".join((*head, *more)).encode())
        try:
            for _ in range(FLOOD):
                sock.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has heard enough
        try:
            return int(sock.recv(100).split()[1])
        except ConnectionResetError:
            return HUNG_UP
