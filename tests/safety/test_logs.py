"""Logs hold no input, no output and no secret, whatever happens; nor does anything but the record and the spool."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.user_account import Account, Attacker, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

INPUT, OUTPUT, CONTENT, REASON = "marked-input", "marked-output", "marked-content", "marked-reason"
SECRET, ENVIRONMENT = "marked-secret", "marked-environment"
MARKS = (INPUT, OUTPUT, CONTENT, REASON, SECRET, ENVIRONMENT)


@pytest.fixture(scope="module")
def lived(new_account: Callable[..., Account]) -> Attacker:
    """A home in which much has happened and gone wrong, each thing with a mark in it."""
    hostile = Attacker(new_account(environment={"FAKE_API_KEY": SECRET}))
    account, agent = hostile.account, hostile.agent
    account.call(
        agent, "execute_command", command=f"printf {OUTPUT[:6]}; echo {OUTPUT[6:]}", env={"X": ENVIRONMENT}
    )
    account.call(agent, "execute_command", command=f"cat /nowhere/{INPUT}")
    account.call(agent, "execute_command", command=f"sleep 60 # {INPUT}", timeout_seconds=0.2)
    account.call(agent, "execute_command", command=f"true {INPUT}", cwd=f"/nowhere/{INPUT}")
    account.call(agent, "execute_command", command=INPUT, output_grep=f"(({INPUT}")
    account.call(agent, "write_file", path=f"{INPUT}.txt", content=CONTENT)
    account.call(agent, "write_file", path=f"/nowhere/{INPUT}", content=CONTENT)
    account.call(agent, "edit_file", path=f"{INPUT}.txt", old_string=CONTENT, new_string=INPUT)
    account.call(agent, "read_file", path=f"{INPUT}.missing")
    account.call(agent, INPUT, no_such=INPUT)
    account.call(agent, "execute_command", command={"not": INPUT})
    account.handrail("deny", hostile.ids["approval"], "-m", REASON)
    for path in (f"/api/calls/{INPUT}", f"/api/calls?q={INPUT}", f"/{INPUT}", f"/api/approvals/{INPUT}"):
        account.http("GET", path, hostile.person)
    account.http("POST", "/api/sign-in", body={"code": SECRET})
    account.http("POST", f"/api/approvals/{INPUT}/answer", hostile.person, {"answer": INPUT})
    account.http("POST", "/mcp", agent, {"jsonrpc": INPUT, "method": [INPUT]})
    account.http("POST", "/mcp", SECRET, {"jsonrpc": INPUT})
    send(account, b'{"handrail": 1, "want": "' + INPUT.encode() + b'"}\n')
    send(
        account,
        b'{"handrail": 1, "want": "mcp"}\n' + INPUT.encode() + b"\n" + b'{"x": "' + INPUT.encode() + b'"}\n',
    )
    os.kill(account.keeper, signal.SIGKILL)
    until(lambda: "keeper was lost" in text(account), "the log tells of the keeper")
    return hostile


def send(account: Account, data: bytes) -> None:
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(bytes.fromhex(sys.argv[2])); s.shutdown(1); s.recv(65536)"
    )
    # By a shell of its own, since whoever launches what greets like a door is taken for an agent.
    line = f"{account.python} -c '{program}' {account.home / 'daemon.sock'} {data.hex()}; true"
    account.run("sh", "-c", line)


def logs(account: Account) -> list[Path]:
    return [path for path in (account.home / "logs").rglob("*") if path.is_file()]


def text(account: Account) -> str:
    return "".join(path.read_text(errors="replace") for path in logs(account))


def test_the_logs_tell_of_what_went_wrong(lived: Attacker) -> None:
    """Without this, logs that are empty would pass for logs that are discreet."""
    assert {"daemon.log", "keeper.log"} <= {path.name for path in logs(lived.account)}
    assert "keeper was lost" in text(lived.account)


@pytest.mark.parametrize("mark", MARKS)
def test_no_log_holds_an_input_an_output_or_a_secret(lived: Attacker, mark: str) -> None:
    assert [line for line in text(lived.account).splitlines() if mark in line] == []


def test_no_log_holds_a_bearer_or_a_code(lived: Attacker) -> None:
    told = text(lived.account)
    assert lived.person not in told
    assert lived.agent not in told
    assert "code=" not in told


@pytest.mark.parametrize("mark", [SECRET])
def test_what_the_daemon_alone_knows_is_in_no_file_at_all(lived: Attacker, mark: str) -> None:
    found = [
        path
        for path in lived.account.home.rglob("*")
        if path.is_file() and mark.encode() in path.read_bytes()
    ]
    assert found == []


def test_every_log_is_closed_to_other_users(lived: Attacker) -> None:
    assert [path for path in logs(lived.account) if path.stat().st_mode & 0o077] == []
