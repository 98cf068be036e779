"""Signing in: a code works once and for a minute, and what it gives outlives the daemon but not the keeper."""

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.mcp_servers.over_http import http_servers
from tests.support.route_table import targets
from tests.support.user_account import CONFIG, Account, until
from trio.testing import MockClock
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from handrail.server.access import Access, Person
from handrail.server.sign_ins import CODE_SECONDS, MOST_CODES
from handrail.store.journal import open_journal

New = Callable[[], Account]


@pytest.fixture(scope="module")
def account(new_account: New) -> Account:
    account = new_account()
    account.start()
    return account


def redeem(account: Account, code: str) -> tuple[int, str]:
    answer = account.http("POST", "/api/sign-in", body={"code": code})
    return answer.status, answer.json.get("bearer") or answer.detail


def bearer_of(access: Access, code: str) -> str:
    redeemed = access.sign_ins.redeem(code)
    assert not isinstance(redeemed, str)
    return redeemed[1]


def knows(account: Account, bearer: str) -> bool:
    return account.http("GET", "/api/state", bearer).status == 200


@pytest.mark.e2e
def test_a_code_stands_in_the_fragment_which_no_browser_sends(account: Account) -> None:
    link = urlsplit(account.link())
    assert link.fragment.startswith("code=")
    assert (link.path, link.query, link.netloc) == ("/", "", account.where)


@pytest.mark.e2e
def test_a_code_is_exchanged_once(account: Account) -> None:
    code = account.link().partition("#code=")[2]
    status, bearer = redeem(account, code)
    assert status == 200
    assert knows(account, bearer)


@pytest.mark.e2e
def test_a_code_used_twice_ends_the_sign_in_it_made_and_says_so(account: Account) -> None:
    other = account.sign_in()
    code = account.link().partition("#code=")[2]
    first = redeem(account, code)[1]
    status, said = redeem(account, code)
    assert status == 401
    assert "used before" in said
    assert "revoked" in said
    assert not knows(account, first)
    assert knows(account, other)
    assert redeem(account, code)[0] == 401


@pytest.mark.e2e
@pytest.mark.parametrize("code", ["", "x", "x" * 3000, "../../etc", "\x00", "null"])
def test_what_is_no_code_is_refused(account: Account, code: str) -> None:
    assert redeem(account, code)[0] in (401, 422)


BROWSER = """
import sys, time, urllib.request
place, link = sys.argv[1:]
url, _, code = link.partition("/#code=")
while not open(place + "/tried").read():
    time.sleep(0.01)
sent = urllib.request.Request(url + "/api/sign-in", b'{"code": "%s"}' % code.encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(sent) as answer, open(place + "/signed", "w") as out:
    out.write(str(answer.status))
"""
THIEF = """
import ctypes, glob, json, socket, sys, time
from urllib.parse import urlsplit

def find_link():
    while True:
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                words = open(path).read().split(chr(0))
            except OSError:
                continue
            for word in words:
                if "/#code=" in word:
                    return word
        time.sleep(0.001)

def ask(code, away):
    body = json.dumps({"code": code})
    line = socket.create_connection((where.hostname, where.port))
    head = f"POST /api/sign-in HTTP/1.1\\r\\nHost: {where.netloc}\\r\\nConnection: close\\r\\n"
    line.sendall(f"{head}Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}".encode())
    if away:  # no process has it open while it is on its way from one socket to another
        here, there = socket.socketpair()
        socket.send_fds(here, [b"x"], [line.fileno()])
        line.close()
        time.sleep(1)
        line = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
    return line.makefile().read().partition("detail")[2] or "signed in"

printed, place = sys.argv[1:]
url, _, code = find_link().partition("/#code=")
where = urlsplit(url)
told = {"read": ask(code, False), "printed": ask(printed, False), "on its way": ask(code, True)}
ctypes.CDLL(None).prctl(4, 0)
told["hidden"] = ask(code, False)
open(place + "/tried", "w").write(json.dumps(told))
"""


@pytest.mark.e2e
def test_a_link_that_a_command_reads_signs_in_the_browser_that_was_opened_and_nobody_else(
    account: Account,
) -> None:
    place, python = account.workspace, account.python
    browser = account.write(place / "browser.py", BROWSER)
    thief = account.write(place / "thief.py", THIEF)
    tried = account.write(place / "tried", "")
    printed = account.link().partition("#code=")[2]
    line = f"{python} {thief} {printed} {place}"
    asked = account.call(account.credential(), "execute_command", command=line, background=True)
    account.allow(asked["call_id"], account.sign_in())
    account.environment = {"DISPLAY": ":9", "BROWSER": f"{python} {browser} {place} %s &"}
    try:
        opened = account.handrail("open")
    finally:
        account.environment = {}
    assert "is open in your browser" in opened.stdout, opened.stderr
    told = json.loads(until(tried.read_text, "the thief tries"))
    assert "Handrail started the program" in told["read"], told
    assert "Handrail started the program" in told["printed"], told
    assert "could not be recognised" in told["hidden"], told
    assert told["on its way"] != "signed in"
    until((place / "signed").exists, "the browser is signed in")
    assert redeem(account, printed)[0] == 200, "a link that was only printed may be opened elsewhere"


SERVER_BROWSER = """
import os, sys, time, urllib.error, urllib.request
place, link = sys.argv[1:]
class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None
def follow(url):
    try:
        return urllib.request.build_opener(Stay).open(url).read().decode()
    except urllib.error.HTTPError as answer:
        return answer.headers["location"] or answer.read().decode()
back = follow(follow(link))
open(place + "/history", "w").write(back)  # as a browser's own files
while not open(place + "/tried").read():
    time.sleep(0.01)
open(place + "/signed", "w").write(follow(back))
"""
SERVER_THIEF = """
import ctypes, glob, json, os, re, sys, time, urllib.error, urllib.request

def find_link():
    while True:
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                words = open(path).read().split(chr(0))
            except OSError:
                continue
            for word in words:
                if "http://127.0.0.1:" in word and "ticket=" in word:
                    return word
        time.sleep(0.001)

def ask(url):
    try:
        return urllib.request.urlopen(url).read().decode()
    except urllib.error.HTTPError as refused:
        return refused.read().decode()

place = sys.argv[1]
link = find_link()
told = {"link": link, "begin": ask(link)}
while not os.path.exists(place + "/history") or not open(place + "/history").read():
    time.sleep(0.01)
back = re.sub("code=[^&]+", "code=of-the-thief", open(place + "/history").read())
told["back"] = ask(back)
ctypes.CDLL(None).prctl(4, 0)
told["hidden"] = [ask(link), ask(back)]
open(place + "/tried", "w").write(json.dumps(told))
"""


@pytest.mark.e2e
@pytest.mark.timeout(180)
def test_a_command_that_reads_the_arguments_of_a_browser_signs_no_server_in(new_account: New) -> None:
    """It could sign the server in to its own account, to which the person's data would go."""
    account = new_account()
    with http_servers() as web:
        config = f'[[servers]]\nname = "private"\nurl = "{web.url("private")}"\n'
        account.write(account.home / "config.toml", CONFIG + config)
        account.start()
        place, python = account.workspace, account.python
        browser = account.write(place / "browser.py", SERVER_BROWSER)
        thief = account.write(place / "thief.py", SERVER_THIEF)
        tried = account.write(place / "tried", "")
        line = f"{python} {thief} {place}"
        asked = account.call(account.credential(), "execute_command", command=line, background=True)
        account.allow(asked["call_id"], account.sign_in())
        account.environment = {"DISPLAY": ":9", "BROWSER": f"{python} {browser} {place} %s &"}
        done = account.handrail("servers", "login", "private")
        told = json.loads(until(tried.read_text, "the thief tries"))
    assert "signed in" in done.stdout, (done, told)
    assert "You are signed in to private" in (place / "signed").read_text()
    assert "state=" not in told["link"]
    assert "Handrail started the program" in told["begin"], told
    assert "Handrail started the program" in told["back"], told
    assert all("could not be recognised" in each for each in told["hidden"]), told
    assert [grant["grant_type"] for grant in web.authorization.grants] == ["authorization_code"]


@pytest.mark.e2e
@pytest.mark.timeout(180)
def test_a_sign_in_outlives_a_restart_and_a_killed_daemon_but_not_the_keeper(new_account: New) -> None:
    account = new_account()
    account.start()
    bearer, where = account.sign_in(), account.where

    assert account.handrail("restart").returncode == 0
    assert knows(account, bearer)
    assert account.where == where

    before = account.pid
    os.kill(before, signal.SIGKILL)
    account.start()
    until(lambda: account.pid != before, "another daemon is there")
    assert knows(account, bearer)
    assert account.where == where

    assert account.handrail("down").returncode == 0
    account.start()
    assert not knows(account, bearer)


@pytest.mark.e2e
@pytest.mark.timeout(180)
def test_a_sign_in_that_was_revoked_stays_so_after_a_restart(new_account: New) -> None:
    account = new_account()
    account.start()
    code = account.link().partition("#code=")[2]
    bearer = redeem(account, code)[1]
    redeem(account, code)
    assert account.handrail("restart").returncode == 0
    assert not knows(account, bearer)


LIVE = ("live", "threads/{thread}/live", "terminals/{terminal}/attach")
"""Every socket of a person."""


@pytest.mark.e2e
def test_the_sockets_of_a_sign_in_close_within_a_second_of_its_end(account: Account) -> None:
    other = account.sign_in()
    code = account.link().partition("#code=")[2]
    bearer = redeem(account, code)[1]
    thread = account.http("POST", "/api/threads", bearer, {}).json["id"]
    terminal = account.http("POST", "/api/terminals", bearer, {"command": ["sleep", "600"]}).json["id"]
    paths = [path.format(thread=thread, terminal=terminal) for path in LIVE]
    with ExitStack() as stack:
        ours = [stack.enter_context(follow(account, path, bearer)) for path in paths]
        theirs = [stack.enter_context(follow(account, path, other)) for path in paths]
        for socket in ours:
            drain(socket)
        assert redeem(account, code)[0] == 401  # used again: this revokes the sign-in
        since = time.monotonic()
        assert [close_code(socket) for socket in ours] == [4401] * len(paths)
        assert time.monotonic() - since < 1.0
        for socket in theirs:
            socket.ping().wait(10)


@pytest.mark.e2e
def test_every_socket_is_among_those_that_are_tried() -> None:
    assert {target.path.count("/") for target in targets() if target.is_socket} == {2, 4}
    assert len([target for target in targets() if target.is_socket]) == len(LIVE)


def follow(account: Account, path: str, bearer: str) -> ClientConnection:
    protocols: Any = ["handrail", f"bearer.{bearer}"]
    return connect(f"ws://{account.where}/api/{path}", subprotocols=protocols, open_timeout=60)


def drain(socket: ClientConnection) -> None:
    """Take what is there, so that the socket is in use."""
    with suppress(TimeoutError):
        socket.recv(timeout=0.5)


def close_code(socket: ClientConnection) -> int:
    """The code with which the server closes the socket, within ten seconds."""
    until = time.monotonic() + 10
    while True:
        try:
            socket.recv(timeout=max(0.0, until - time.monotonic()))
        except ConnectionClosed as end:
            return end.rcvd.code if end.rcvd else 1006


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def anyio_backend(clock: MockClock) -> tuple[str, dict[str, object]]:
    """Trio, whose clock stands still until it is told to go on."""
    return "trio", {"clock": clock}


@pytest.mark.anyio
async def test_a_code_lasts_a_minute_and_no_longer(home: Path, clock: MockClock) -> None:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [], b"")
        early, late = access.sign_ins.issue_code(), access.sign_ins.issue_code()
        clock.jump(CODE_SECONDS - 0.001)
        assert access.person(bearer_of(access, early)) is not None
        clock.jump(0.002)
        assert access.sign_ins.redeem(late) == "expired"
        assert CODE_SECONDS == 60


@pytest.mark.anyio
async def test_a_second_use_is_noticed_long_after_the_minute(home: Path, clock: MockClock) -> None:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [], b"")
        code = access.sign_ins.issue_code()
        bearer = bearer_of(access, code)
        clock.jump(3600)
        access.sign_ins.issue_code()
        assert access.sign_ins.redeem(code) == "used"
        assert access.person(bearer) is None


@pytest.mark.anyio
async def test_a_seal_voids_codes_and_the_bearers_of_command_lines(home: Path) -> None:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [], b"")
        page = bearer_of(access, access.sign_ins.issue_code())
        code, grant = access.sign_ins.issue_code(), access.grant(Person(place="command line", approves=True))
        access.seal("for a test")
        assert access.sign_ins.redeem(code) == "unknown"
        assert access.person(grant) is None
        assert access.person(page) is not None


@pytest.mark.anyio
async def test_somebody_who_keeps_asking_for_codes_makes_us_hold_a_few(home: Path) -> None:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [], b"")
        codes = [access.sign_ins.issue_code() for _ in range(MOST_CODES * 3)]
        assert [access.sign_ins.redeem(code) == "unknown" for code in codes].count(False) <= MOST_CODES
        assert access.sign_ins.redeem(codes[0]) == "unknown"


@pytest.mark.anyio
async def test_what_is_kept_over_a_restart_holds_no_bearer(home: Path) -> None:
    kept: list[bytes] = []
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [], b"")
        access.sign_ins.keep = kept.append
        bearer = bearer_of(access, access.sign_ins.issue_code())
        assert bearer.encode() not in kept[-1]
        person = Access(journal, [], kept[-1]).person(bearer)
        assert person is not None
        assert (person.place, person.approves) == ("page", True)


@pytest.mark.anyio
async def test_whoever_watches_a_bearer_hears_of_its_end(home: Path) -> None:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        access = Access(journal, [], b"")
        code = access.sign_ins.issue_code()
        page, grant = bearer_of(access, code), access.grant(Person(place="command line", approves=True))
        ended, withdrawn, other = (access.revocation(bearer) for bearer in (page, grant, "no bearer"))
        assert [event.is_set() for event in (ended, withdrawn, other)] == [False, False, True]
        access.sign_ins.redeem(code)
        assert (ended.is_set(), withdrawn.is_set()) == (True, False)
        access.seal("for a test")
        assert withdrawn.is_set()
