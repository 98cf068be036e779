"""Terminals that people and agents share: what an agent, or a program inside one, gets by them. As an ordinary user.

That an answer holds for exactly what was shown, and that hidden input goes nowhere, is tried where that is done
(tools/terminals/test_send_to_terminal.py, terminal/input/test_typing_history.py, e2e/test_attach.py); here it is the whole, attacked from outside.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.user_account import Account, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

MARKER = "words-of-another-place"
SECRET = "Tr0ub4dor-never-written"
INSIDE = "neither can decide for a person"
"""Part of what whoever is inside is told."""


class House:
    """An account in use: a person signed in, and an agent of its workspace."""

    def __init__(self, account: Account) -> None:
        self.account = account
        account.start()
        account.trust()
        self.person, self.agent = account.sign_in(), account.credential()

    def open(self, *command: str, **more: Any) -> str:
        """A terminal of the person's; its id."""
        answer = self.account.http("POST", "/api/terminals", self.person, {"command": list(command), **more})
        assert answer.status == 201, answer.body
        return answer.json["id"]

    def type(self, terminal: str, text: str) -> None:
        answer = self.account.http("POST", f"/api/terminals/{terminal}/input", self.person, {"text": text})
        assert answer.status == 200, answer.body

    def text(self, terminal: str, mode: str = "text") -> str:
        path = f"/api/terminals/{terminal}/output?mode={mode}&lines=1000"
        return self.account.http("GET", path, self.person).json["text"]

    def run(self, terminal: str, line: str) -> str:
        """What a line typed into a shell prints."""
        mark = f"end{time.monotonic_ns()}"
        self.type(terminal, f"{line}; echo {mark[:3]}''{mark[3:]}")
        said = until(lambda: self.text(terminal) if f"\n{mark}" in self.text(terminal) else "", line)
        return said.partition(f"''{mark[3:]}")[2].partition(mark)[0]

    def use(self, tool: str, **input: Any) -> dict[str, Any]:
        return self.account.call(self.agent, tool, **input)

    def calm(self) -> int:
        """The daemon's memory in bytes."""
        return self.account.http("GET", "/api/health", self.person).json["daemon"]["rss_bytes"]


@pytest.fixture(scope="module")
def house(new_account: Callable[..., Account]) -> House:
    return House(new_account())


@pytest.fixture(scope="module")
def elsewhere(house: House) -> str:
    """A person's own shell, not in the workspace, that has printed something."""
    terminal = house.open("bash", "--norc", cwd="/")
    house.run(terminal, f"echo {MARKER}")
    until(lambda: house.text(terminal).endswith("$ "), "the shell is ready for the next line")
    return terminal


@pytest.fixture(scope="module")
def here(house: House) -> str:
    """The same, in the agent's workspace."""
    return house.open("bash", "--norc", cwd=str(house.account.workspace))


@pytest.mark.parametrize(
    ("tool", "input"),
    [
        ("get_terminal_buffer", {}),
        ("get_terminal_buffer", {"mode": "screen"}),
        ("get_terminal_buffer", {"mode": "raw", "after": 0}),
        ("search_terminal_buffer", {"pattern": MARKER}),
        ("wait_for_terminal", {"until": "pattern", "value": MARKER, "after": 0}),
        ("send_to_terminal", {"text": "true"}),
        ("execute_command", {"command": "true"}),
        ("close_terminal", {}),
    ],
)
def test_of_a_persons_shell_elsewhere_an_agent_gets_nothing_unasked_even_where_all_is_allowed(
    house: House, elsewhere: str, tool: str, input: dict[str, Any]
) -> None:
    before = house.text(elsewhere)
    name = "terminal_id" if tool == "execute_command" else "terminalId"
    told = house.use(tool, **{name: elsewhere}, **input)
    assert told["status"] == "waiting"
    assert MARKER not in json.dumps(told)
    assert house.text(elsewhere) == before


@pytest.mark.parametrize("tool", ["send_to_terminal", "execute_command", "close_terminal"])
def test_into_a_persons_own_terminal_nothing_is_typed_unasked_wherever_it_is(
    house: House, here: str, tool: str
) -> None:
    wanted = {
        "send_to_terminal": {"terminalId": here, "text": "touch typed"},
        "execute_command": {"terminal_id": here, "command": "touch typed"},
        "close_terminal": {"terminalId": here},
    }[tool]
    assert house.use(tool, **wanted)["status"] == "waiting"
    assert house.run(here, "ls").split() == []
    asked = house.account.http("GET", "/api/approvals?open=true", house.person).json[0]
    assert asked["risk"] == "high"


def test_the_list_names_a_persons_shell_but_nothing_that_it_shows_or_runs(
    house: House, elsewhere: str
) -> None:
    told = house.use("list_tracked_terminals", response_format="json")
    (row,) = [one for one in told["terminals"] if one["id"] == elsewhere]
    assert "commands" not in row
    assert "waiting_for_input" not in row
    assert MARKER not in json.dumps(told)


def test_a_workspace_that_only_begins_like_the_terminals_place_reads_nothing(house: House) -> None:
    near = Path(f"{house.account.workspace}-evil")
    near.mkdir()
    os.chown(near, house.account.uid, house.account.uid)
    terminal = house.open("cat", cwd=str(near))
    assert house.use("get_terminal_buffer", terminalId=terminal)["status"] == "waiting"


@pytest.mark.parametrize("kind", ["a person's", "an agent's", "a window's"])
def test_what_runs_in_a_terminal_is_refused_every_verb_of_a_person(house: House, kind: str) -> None:
    account, terminal = house.account, _opened(house, kind)
    told = [
        house.run(terminal, f"{_cli(account)} {line} 2>&1 | tail -n 3")
        for line in (
            f"terminal send {terminal} x",
            f"terminal read {terminal}",
            f"terminal close {terminal}",
            "approve a1",
            "open --print",
            "shell --keep -- touch ran",
        )
    ]
    assert [said for said in told if INSIDE not in " ".join(said.split())] == []
    assert not (account.workspace / "ran").exists()


@pytest.mark.parametrize("kind", ["a person's", "an agent's", "a window's"])
def test_what_runs_in_a_terminal_cannot_attach_to_the_keeper(house: House, kind: str) -> None:
    account, terminal = house.account, _opened(house, kind)
    script = account.write(account.root / "attach.py", ATTACH)
    said = house.run(terminal, f"{account.python} {script} {account.home}/keeper.sock {terminal}")
    assert '"failed"' in said.lower() or "refus" in said.lower(), said
    assert "welcome" not in said.lower()


def test_from_outside_the_same_user_may_attach(house: House, here: str) -> None:
    """The control: what is refused above is refused because of where it comes from."""
    account = house.account
    script = account.write(account.root / "attach.py", ATTACH)
    assert (
        "welcome"
        in account.run(account.python, str(script), f"{account.home}/keeper.sock", here).stdout.lower()
    )


def test_a_secret_given_by_the_command_line_is_found_nowhere(house: House) -> None:
    account = house.account
    asks = "read -s -p 'Password: ' x; echo; echo got ${#x} letters; sleep 100"
    terminal = house.open("bash", "-c", asks, cwd="/")
    until(lambda: "Password:" in house.text(terminal), "it asks")
    assert account.handrail("terminal", "send", terminal, SECRET).returncode == 0
    until(lambda: f"got {len(SECRET)} letters" in house.text(terminal), "it has the secret")
    for body in ({"text": [SECRET]}, {"text": "", "keys": [SECRET]}, {"txt": SECRET}):
        path = f"/api/terminals/{terminal}/input"
        assert account.http("POST", path, house.person, body).status == 422
    typed = f"/api/terminals/{terminal}"
    until(
        lambda: account.http("GET", typed, house.person).json["typed"], "its history tells that it was typed"
    )
    holds = [
        path for path in account.home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]
    assert holds == []
    for route in ("events", "state", "terminals", "approvals", "calls"):
        assert SECRET.encode() not in account.http("GET", f"/api/{route}", house.person).body


@pytest.mark.parametrize(
    "bomb",
    [
        r"i=0; while [ $((i+=1)) -le 40000 ]; do printf '\033[65535G.\r\n'; done",
        r"printf 'x\033[65535b%.0s' $(seq 60000)",
        r"printf '\033c%.0s' $(seq 200000)",
    ],
    ids=["blanks", "repeat", "reset"],
)
def test_hostile_output_costs_neither_memory_nor_the_daemons_time(house: House, bomb: str) -> None:
    terminal = house.open("bash", "-c", f"{bomb}; printf 'all told'; sleep 1000", cwd="/")
    detail = f"/api/terminals/{terminal}"
    until(lambda: "all told" in house.text(terminal), "it has printed all")
    before = house.calm()
    for _ in range(3):
        assert "all told" in house.text(terminal, "screen")
        assert "all told" in house.text(terminal)
        found = house.account.http("GET", f"{detail}/search?pattern=told", house.person)
        assert found.json["matches"], "it is searched in time"
        assert len(found.body) < 1 << 20
    assert house.calm() - before < 64 << 20
    house.account.http("POST", f"{detail}/close", house.person, {})


def test_a_program_that_stops_its_warden_is_seen_to_end_and_nothing_of_it_lives_on(house: House) -> None:
    terminal = house.open("sh", "-c", "setsid sleep 986421 & kill -STOP $PPID; exit 3", cwd="/")
    detail = f"/api/terminals/{terminal}"
    until(lambda: house.account.http("GET", detail, house.person).json["exit_code"] == 3, "its end is seen")
    until(lambda: house.account.run("pgrep", "-f", "sleep 986421").returncode == 1, "nothing is left of it")


def _opened(house: House, kind: str) -> str:
    """A shell in the workspace that is a person's, an agent's, or of the kind that `handrail shell` opens."""
    place = str(house.account.workspace)
    if kind == "an agent's":
        return house.use("create_tracked_terminal", shellPath="bash", shellArgs=["--norc"])["terminal_id"]
    if kind == "a person's":
        return house.open("bash", "--norc", cwd=place)
    env = {"PATH": os.environ["PATH"], "HOME": place, "TERM": "dumb"}
    return house.open("bash", "--norc", cwd=place, of="shell", keep=True, env=env)


def _cli(account: Account) -> str:
    """Without the variable that says where it runs, which is a courtesy and no guard."""
    return f"env -u HANDRAIL_TERMINAL HANDRAIL_HOME={account.home} {account.python} -m handrail"


ATTACH = """
import socket, sys
from handrail.keeper.message_framing import encode
from handrail.keeper.protocol import PROTOCOL, Hello
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.settimeout(10)
sock.sendall(encode(Hello(protocol=PROTOCOL, want="attach", terminal=sys.argv[2])))
print(sock.recv(65536).decode(errors="replace")[:300])
"""
