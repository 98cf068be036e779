"""The port of VS Code's agent host, as an ordinary user: its token is in a file that every command can read."""

import socket
from collections.abc import Callable

import pytest
from tests.support.daemon_home import free_port
from tests.support.user_account import CONFIG, Account, until

from handrail.terminal.loopback_peer import NO_PROCESS

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

TOKEN = "0123456789abcdef0123"
CONNECT = """
import ctypes, os, re, socket, sys
from handrail.keeper.lineage import mark
text = open(os.environ["HANDRAIL_HOME"] + "/config.toml").read()
port, token = re.search(r"^port = (\\d+)", text, re.M)[1], re.search(r'token = "(.*)"', text)[1]
if "marked" in sys.argv:
    mark()
if "hidden" in sys.argv:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as sock:
    lines = [f"GET /?tkn={token} HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"]
    sock.sendall(("\\r\\n".join(lines) + "\\r\\n\\r\\n").encode())
    print(sock.recv(65536).decode())
"""


@pytest.fixture(scope="module")
def account(new_account: Callable[[], Account]) -> Account:
    account, port = new_account(), free_port()
    account.write(
        account.home / "config.toml",
        f'{CONFIG}[ahp]\nenabled = true\nport = {port}\ntoken = "{TOKEN}"\n',
    )
    account.start()
    until(lambda: is_open(port), "the agent host listens")
    return account


def is_open(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def connect(account: Account, *how: str) -> str:
    done = account.run(account.python, "-c", CONNECT, *how)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_program_of_the_person_watches_with_the_token(account: Account) -> None:
    assert connect(account).startswith("HTTP/1.1 101")


def test_what_handrail_started_sees_nothing_with_the_token(account: Account) -> None:
    answer = connect(account, "marked")
    assert answer.startswith("HTTP/1.1 403")
    assert "Do it on the page" in answer


def test_a_program_that_hides_from_the_daemon_sees_nothing_with_the_token(account: Account) -> None:
    answer = connect(account, "hidden")
    assert answer.startswith("HTTP/1.1 403")
    assert NO_PROCESS in answer
