"""The guard before the real application, over real sockets, with requests that no client library would send."""

import socket
from collections.abc import Callable

import pytest
from tests.support.user_account import BOUND, Account, Attacker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def hostile(new_account: Callable[[], Account]) -> Attacker:
    return Attacker(new_account())


def send(account: Account, text: str) -> tuple[int, str]:
    """Send these lines as they are; the status (0 when there was no answer) and everything that came back."""
    host, _, port = account.where.partition(":")
    with socket.create_connection((host, int(port)), timeout=BOUND) as sock:
        sock.sendall(text.replace("\n", "\r\n").encode("latin-1"))
        said = b"".join(iter(lambda: sock.recv(65536), b"")).decode("latin-1")
    return (int(said.split()[1]) if said else 0), said


def get(path: str, host: str, *more: str, version: str = "1.1") -> str:
    return "\n".join([f"GET {path} HTTP/{version}", f"Host: {host}", "Connection: close", *more, "", ""])


def test_a_request_as_it_should_be_is_answered(hostile: Attacker) -> None:
    """Without this the refusals below could be those of a server that refuses everything."""
    bearer = f"Authorization: Bearer {hostile.person}"
    status, said = send(hostile.account, get("/api/state", hostile.account.where, bearer))
    assert status == 200
    assert '"seq"' in said


STATE = '"approvals"'
"""What only the snapshot says."""


@pytest.mark.parametrize(
    "lines",
    [
        "GET /api/state HTTP/1.0\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: evil.example\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\nHost: evil.example\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: evil.example\nHost: {host}\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost : {host}\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\n\tevil\nAuthorization: Bearer {person}\n\n",
        "GET http://{host}/api/state HTTP/1.1\nHost: evil.example\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: evil.example\nX-Forwarded-Host: {host}\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\nOrigin: http://evil.example\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\nOrigin: null\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\nSec-Fetch-Site: cross-site\nAuthorization: Bearer {person}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\nAuthorization: Bearer {agent}\n\n",
        "GET /api/state?bearer={person}&access_token={person} HTTP/1.1\nHost: {host}\n\n",
        "GET /api/state HTTP/1.1\nHost: {host}\nCookie: bearer={person}\n\n",
    ],
)
def test_a_foreign_request_is_not_answered(hostile: Attacker, lines: str) -> None:
    known = {"host": hostile.account.where, "person": hostile.person, "agent": hostile.agent}
    status, said = send(hostile.account, lines.format(**known).replace("\n\n", "\nConnection: close\n\n"))
    assert status in (0, 400, 401, 403, 421)
    assert STATE not in said


@pytest.mark.parametrize(
    "path",
    [
        "//api/state",
        "/./api/state",
        "/x/../api/state",
        "/assets/../api/state",
        "/%61pi/state",
        "/api%2fstate",
        "/%2fapi/state",
        "/API/state",
        "/api;x/state",
        "/api/state/",
        "/api/health/../state",
        "/api/sign-in/../state",
        "/api/health/..%2fstate",
        "/api/state%00",
        "/api/state?x",
        "/\\api\\state",
        "http://127.0.0.1/api/state",
        "http://evil.example/api/state",
        "https://evil.example:7433/api/state",
        "*",
        "/c/..%2f..%2fapi%2fstate",
        "/assets/%2e%2e/%2e%2e/api/state",
    ],
)
def test_no_spelling_of_a_path_gets_around_the_bearer(hostile: Attacker, path: str) -> None:
    status, said = send(hostile.account, get(path, hostile.account.where))
    assert STATE not in said
    assert status != 200 or "<!doctype html>" in said.lower()


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../serve.py",
        "/assets/..%2f..%2fserve.py",
        "/assets/%2e%2e/%2e%2e/guard.py",
        "/assets//etc/passwd",
    ],
)
def test_no_spelling_of_a_path_leaves_the_pages_files(hostile: Attacker, path: str) -> None:
    assert send(hostile.account, get(path, hostile.account.where))[0] in (400, 404)


@pytest.mark.parametrize("host", ["{where}", "evil.example"])
def test_each_request_of_a_connection_is_judged_by_itself(hostile: Attacker, host: str) -> None:
    """Behind a request that may, and in its body as some would read it, stands one that may not."""
    where = hostile.account.where
    hidden = get("/api/state", host.format(where=where))
    lines = (
        f"POST /api/sign-in HTTP/1.1\nHost: {where}\nAuthorization: Bearer {hostile.person}\n"
        f"Content-Length: {len(hidden) + hidden.count(chr(10))}\nTransfer-Encoding: chunked\n\n0\n\n{hidden}"
    )
    assert STATE not in send(hostile.account, lines)[1]


UPGRADE = (
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


def upgrade(account: Account, path: str, *more: str) -> tuple[int, str]:
    lines = [f"GET {path} HTTP/1.1", f"Host: {account.where}", "Connection: Upgrade", *UPGRADE, *more, "", ""]
    host, _, port = account.where.partition(":")
    with socket.create_connection((host, int(port)), timeout=BOUND) as sock:
        sock.sendall("\r\n".join(lines).encode())
        said = sock.recv(65536).decode("latin-1")
    return int(said.split()[1]), said


@pytest.mark.parametrize("path", ["/api/live", "/api/terminals/x1/attach"])
def test_a_socket_opens_to_a_person_of_our_own_origin(hostile: Attacker, path: str) -> None:
    own = f"Origin: http://{hostile.account.where}"
    bearer = f"Sec-WebSocket-Protocol: handrail, bearer.{hostile.person}"
    for more in ((own, bearer), (bearer,), (f"Authorization: Bearer {hostile.person}",)):
        status, said = upgrade(hostile.account, path, *more)
        assert status == 101
        assert (
            hostile.person not in said
        )  # the server chooses the other name, so no log of a browser holds it


@pytest.mark.parametrize("path", ["/api/live", "/api/terminals/x1/attach"])
@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1", "https://{where}", "http://{where}.evil.example"],
)
def test_a_socket_opens_to_no_other_origin(hostile: Attacker, path: str, origin: str) -> None:
    bearer = f"Authorization: Bearer {hostile.person}"
    status, _ = upgrade(
        hostile.account, path, f"Origin: {origin.format(where=hostile.account.where)}", bearer
    )
    assert status == 403


@pytest.mark.parametrize(
    "path", ["/api/live", "/api/terminals/x1/attach", "/mcp", "/", "/api/health", "/api/state"]
)
def test_a_socket_opens_to_nobody_without_a_bearer_of_a_person(hostile: Attacker, path: str) -> None:
    for more in ((), (f"Authorization: Bearer {hostile.agent}",), ("Sec-WebSocket-Protocol: bearer.x",)):
        assert upgrade(hostile.account, path, *more)[0] in (403, 404)
