"""Rules, trust and settings that change behind the daemon's back are not taken up, and are shown to the person.

An approved command can write every file of its user, kill the daemon and the keeper, and have another daemon started by
a door or by the keeper. It cannot make the next call run without a question.
"""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.user_account import BOUND, NO_RESTART, Account, until

ALLOW_ALL = 'default_policy = "allow"\n[[rules]]\neffect = "allow"\ncommand = "touch"\n'
PLANTED_ADDRESSES = """
[[servers]]
name = "planted"
url = "http://127.0.0.1:9/mcp"
oauth = {client_id = "a", client_secret = "{secret:GITHUB_TOKEN}"}
[devices]
behind_proxy = true
name = "planted.example"
"""
TAMPER = """
import hashlib, json, sqlite3, sys
from pathlib import Path
from handrail.store.hash_chain import GENESIS, Link, HeadFile, chained, payload_hash
home = Path(sys.argv[1])
db = sqlite3.connect(home / "handrail.db")
exec(sys.argv[2])
if len(sys.argv) > 3:
    before = GENESIS
    for seq, at, kind, payload in db.execute("SELECT seq, at, kind, payload FROM events ORDER BY seq").fetchall():
        hashed = payload_hash(payload)
        before = chained(before, seq, at, kind, hashed)
        db.execute("UPDATE events SET payload_hash = ?, chain = ? WHERE seq = ?", (hashed, before, seq))
    HeadFile(home / "handrail.head").write(Link(seq, before))
db.commit()
"""
ASK_KEEPER = """
import socket, sys, time
reply = b""
until = time.monotonic() + 30
while b"started" not in reply and time.monotonic() < until:  # the keeper may not have noticed the death yet
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.connect(sys.argv[1])
        keeper.sendall(b'{"is": "hello", "protocol": 1, "want": "start_daemon"}\\n')
        reply = keeper.recv(4096)
    time.sleep(0.05)
print(reply)
"""
RULE = {"id": "r666", "effect": "allow", "command": "touch", "scope": "user"}
INSERT_ROWS = f"""
db.execute("INSERT INTO rules VALUES ('r666', ?, 'person', NULL, 1, NULL, NULL, 1)", ({json.dumps(json.dumps(RULE))},))
db.execute("INSERT INTO folders VALUES ('/usr', NULL, 'person', 1)")
db.execute("INSERT INTO mcp_servers VALUES ('hostile', '[]', '{{}}', 1)")
"""
APPEND_EVENT = f"""
from handrail.store.events import RuleAdded, encode
from handrail.store.rules import statement
from handrail.store.values import Rule
event, payload = encode(RuleAdded(rule=Rule(**{RULE!r}), by="person"))
seq = db.execute("SELECT max(seq) FROM events").fetchone()[0] + 1
db.execute("INSERT INTO events VALUES (?, 1, 'RuleAdded', ?, x'', x'')", (seq, payload))
db.execute(*statement(seq, 1, event))
"""
ALTER_EVENT = """
db.execute("UPDATE events SET payload = replace(payload, 'innocent', 'harmless') WHERE kind = 'RuleAdded'")
db.execute("UPDATE rules SET rule = replace(rule, 'innocent', 'harmless')")
"""

FORGE_COMPACTION = """
from handrail.store.journal_compaction import Gap, JournalCompacted, statements
from handrail.store.events import encode
first, gone = db.execute("SELECT seq, chain FROM events ORDER BY seq LIMIT 1").fetchone()
last, before = db.execute("SELECT seq, chain FROM events ORDER BY seq DESC LIMIT 1").fetchone()
gap = Gap(first=first, last=first, chain=gone.hex(), events=1)
event, payload = encode(JournalCompacted(before=2**52, events=1, gaps=(gap,)))
hashed = payload_hash(payload)
chain = chained(before, last + 1, 1, event.kind, hashed)
db.execute("INSERT INTO events VALUES (?, 1, ?, ?, ?, ?)", (last + 1, event.kind, payload, hashed, chain))
for statement in statements(last + 1, event):
    db.execute(*statement)
HeadFile(home / "handrail.head").write(Link(last + 1, chain))
"""


class Ground:
    """An account in which a person has one rule and trusts the workspace, and an agent that asks to touch a file."""

    def __init__(self, account: Account) -> None:
        self.account = account
        account.write(
            account.home / "config.toml", f"{NO_RESTART}[command]\nstop_grace = 0.2\nwait_seconds = 1\n"
        )
        account.start()
        account.trust()
        self.agent = account.credential()
        self.person = account.sign_in()
        rule = {"command": "innocent", "workspace": str(account.workspace)}
        assert account.http("POST", "/api/rules", self.person, rule).status == 201

    def runs_unasked(self) -> bool:
        """Whether the agent's next command runs without a question."""
        name = f"made-{time.monotonic_ns()}"
        told = self.account.call(self.agent, "execute_command", command=f"touch {name}", wait_seconds=0)
        status = until(lambda: self.settled_status(told["call_id"]), "the command asks or ends")
        assert status in ("done", "waiting"), status
        assert (self.account.workspace / name).exists() == (status == "done")
        return status == "done"

    def settled_status(self, call: str) -> str:
        """The status of a call, empty while it is being judged or runs."""
        status = self.account.call(self.agent, "get_call", call_id=call)["call"]["status"]
        return "" if status == "running" else status

    def tamper(self, code: str, *, recompute: bool = False) -> None:
        done = self.account.run(
            self.account.python, "-c", TAMPER, str(self.account.home), code, *["yes"] * recompute
        )
        assert done.returncode == 0, done.stderr

    def write_config(self, text: str) -> None:
        self.account.write(
            self.account.home / "config.toml",
            f"{text}{NO_RESTART}[command]\nstop_grace = 0.2\nwait_seconds = 1\n",
        )

    def kill_daemon(self) -> None:
        pid = self.account.pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: _is_gone(pid), "the daemon is gone")

    def kill_keeper(self) -> None:
        pid = self.account.keeper
        os.kill(pid, signal.SIGKILL)
        until(lambda: _is_gone(pid), "the keeper is gone")

    def start_by_keeper(self) -> None:
        """As any process of the user can."""
        (self.account.home / "daemon.json").unlink(missing_ok=True)
        done = self.account.run(self.account.python, "-c", ASK_KEEPER, str(self.account.home / "keeper.sock"))
        assert "started" in done.stdout, done.stdout + done.stderr
        until(lambda: self.account.about, "the daemon writes where it is")

    def start_by_door(self) -> None:
        """As an agent's `handrail mcp` does when it finds no daemon. The shell is the agent, not this test."""
        (self.account.home / "daemon.json").unlink(missing_ok=True)
        line = '"$0" -m handrail mcp; exit'
        with self.account.spawn("sh", "-c", line, self.account.python, stdin=subprocess.PIPE) as agent:
            until(lambda: self.account.about, "the daemon writes where it is")
            agent.communicate(timeout=BOUND)

    def policy(self) -> dict[str, Any]:
        return self.account.http("GET", "/api/policy", self.account.sign_in()).json

    def wait_for_head(self) -> None:
        """Wait until the keeper knows a head of the journal with the person's rule in it: the daemon reports it later."""
        with contextlib.closing(sqlite3.connect(self.account.home / "handrail.db")) as db:
            (rule,) = db.execute("SELECT max(seq) FROM events WHERE kind = 'RuleAdded'").fetchone()
        until(lambda: (self.policy()["kept_seq"] or 0) >= rule, "the keeper knows the rule")

    def changes(self) -> list[str]:
        return [f"{change['change']} {change['what']}" for change in self.policy()["changes"]]


def _is_gone(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.fixture
def ground(new_account: Callable[..., Account]) -> Iterator[Ground]:
    account = new_account()
    yield Ground(account)
    account.down()


def test_a_config_that_a_person_edits_before_a_restart_is_in_force_and_after_a_crash_too(
    ground: Ground,
) -> None:
    ground.write_config(ALLOW_ALL)
    done = ground.account.handrail("restart")
    assert done.returncode == 0
    assert 'added    default_policy = "allow"' in done.stdout
    assert (ground.changes(), ground.runs_unasked()) == ([], True)
    ground.kill_daemon()
    ground.start_by_keeper()
    assert ground.changes() == []
    assert ground.runs_unasked()


def test_a_row_in_the_tables_is_no_rule_and_is_reported(ground: Ground) -> None:
    ground.tamper(INSERT_ROWS)
    doctor = ground.account.handrail("doctor").stdout
    assert "a rule r666 that no event added" in doctor
    assert "accepted tools of hostile that no event added" in doctor
    ground.kill_daemon()
    ground.start_by_keeper()
    assert not ground.runs_unasked()
    assert any("r666" in change for change in ground.changes())
    assert any("tools of hostile" in change for change in ground.changes())
    assert ground.account.handrail("rules", "accept", "--yes").returncode == 0
    assert not ground.runs_unasked(), "the row is no rule, accepted or not"
    assert "r666" not in ground.account.handrail("rules", "--all").stdout

    ground.tamper(APPEND_EVENT, recompute=True)
    ground.kill_daemon()
    ground.start_by_keeper()
    assert ground.changes() != []
    assert ground.account.handrail("rules", "remove", "r666").returncode == 0
    assert ground.changes() == [], "a person may remove what was added, instead of accepting it"


def test_a_forged_event_with_a_recomputed_chain_is_no_rule_until_a_person_accepts_it(ground: Ground) -> None:
    ground.tamper(APPEND_EVENT, recompute=True)
    ground.kill_daemon()
    ground.start_by_keeper()
    assert not ground.runs_unasked()
    assert "added rule r666: allow `touch …` in every trusted folder" in ground.changes()
    status = ground.account.handrail("status")
    assert "r666" in status.stdout, status.stdout
    assert json.loads(ground.account.handrail("status", "--json").stdout)["held"]
    refused = ground.account.http(
        "POST", "/api/policy/accept", ground.account.sign_in(), {"digest": "0" * 64}
    )
    assert refused.status == 409
    assert ground.account.handrail("rules", "accept", "--yes").returncode == 0
    assert ground.runs_unasked()
    ground.kill_daemon()
    ground.start_by_keeper()
    assert ground.runs_unasked(), "what was accepted stays accepted"


def test_a_changed_config_is_not_taken_up_by_a_daemon_that_no_person_restarted(ground: Ground) -> None:
    ground.write_config(ALLOW_ALL + PLANTED_ADDRESSES)
    ground.kill_daemon()
    ground.start_by_door()
    person = ground.account.sign_in()
    for path in ("/api/logins/planted", "/api/devices/listener"):
        refused = ground.account.http("POST", path, person, {})
        assert (refused.status, "Accept the changes first" in refused.json["detail"]) == (409, True), path
    assert not ground.runs_unasked()
    assert 'added default_policy = "allow"' in ground.changes()
    assert not ground.account.http("GET", "/api/state", ground.account.sign_in()).json["auto_approve"]
    ground.kill_daemon()
    ground.start_by_keeper()
    assert not ground.runs_unasked(), "a second start, by the keeper, changes nothing"
    check_that_a_command_cannot_accept(ground)
    restarted = ground.account.handrail("restart")
    assert restarted.returncode == 0
    assert "handrail rules accept" in restarted.stderr
    assert not ground.runs_unasked(), "a restart takes up nothing that was held back before"
    assert ground.account.handrail("rules", "accept", "--yes").returncode == 0
    assert ground.runs_unasked()


def test_with_the_keeper_killed_too_nothing_is_taken_up(ground: Ground) -> None:
    ground.write_config(ALLOW_ALL)
    ground.tamper(APPEND_EVENT, recompute=True)
    ground.kill_daemon()
    ground.kill_keeper()
    ground.start_by_door()
    assert not ground.runs_unasked()
    policy = ground.policy()
    assert (policy["known"], len(policy["changes"])) == (False, 6)
    assert ground.account.handrail("rules", "accept", "--yes").returncode == 0
    assert ground.runs_unasked()


def test_a_config_that_changes_after_the_person_restarted_is_not_taken_up(
    ground: Ground,
) -> None:
    """The restart is bound to the settings that it saw."""
    ground.write_config("[notify]\ndesktop = false\n")
    digest = ground.account.run(
        ground.account.python,
        "-c",
        "import sys, pathlib; from handrail.config import *; from handrail.flat_settings import describe_settings as d, "
        "hash_settings as h; print(h(d(load(pathlib.Path(sys.argv[1])))))",
        str(ground.account.home / "config.toml"),
    ).stdout.strip()
    sent = ground.account.http("POST", "/api/policy/expect", ground.person, {"config": digest})
    assert sent.status == 204
    ground.write_config(ALLOW_ALL)
    ground.kill_daemon()
    ground.start_by_keeper()
    assert not ground.runs_unasked()

    assert ground.account.handrail("down").returncode == 0
    done = ground.account.handrail("up", "--no-open")
    assert done.returncode == 0
    assert 'default_policy = "allow"' in done.stdout
    assert ground.runs_unasked()


def check_that_a_command_cannot_accept(ground: Ground) -> None:
    # A command does not inherit HANDRAIL_HOME: without it, the attack would not find the daemon.
    line = f"HANDRAIL_HOME={ground.account.home} {ground.account.python} -m handrail rules accept --yes"
    call = ground.account.call(ground.agent, "execute_command", command=line, wait_seconds=0)
    ground.account.allow(call["call_id"], ground.account.sign_in())

    def end() -> str:
        told = ground.account.call(ground.agent, "wait_for_call", call_id=call["call_id"])
        is_open = "call" not in told or told["call"]["status"] in ("waiting", "running")
        return "" if is_open else json.dumps(told)

    assert "neither can decide for a person" in until(end, "the command ends")
    assert ground.changes()


def test_a_recomputed_chain_is_reported_by_doctor_and_held_back_after_a_restart(ground: Ground) -> None:
    assert "✓ ok   journal" in ground.account.handrail("doctor").stdout
    ground.wait_for_head()
    ground.tamper(ALTER_EVENT, recompute=True)
    doctor = ground.account.handrail("doctor")
    assert "✗ bad  journal" in doctor.stdout, doctor.stdout
    ground.kill_daemon()
    ground.start_by_keeper()
    assert any("is gone or altered" in change for change in ground.changes())
    assert "✗ bad" in ground.account.handrail("doctor").stdout


def test_a_compaction_that_the_daemon_did_not_do_is_reported_after_a_restart(ground: Ground) -> None:
    until(lambda: ground.policy()["head_seq"], "the daemon has a head")
    ground.kill_daemon()
    ground.tamper(FORGE_COMPACTION)
    ground.start_by_keeper()
    assert any("the daemon did not do that" in change for change in ground.changes())
    assert not ground.runs_unasked()


def test_a_rule_and_trust_that_cannot_be_recorded_are_refused_and_not_in_force(ground: Ground) -> None:
    assert ground.account.handrail("trust", "--undo", str(ground.account.workspace)).returncode == 0
    ground.tamper(
        "db.execute(\"CREATE TRIGGER full BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'disk full'); END\")"
    )
    rule = {"command": "touch", "workspace": str(ground.account.workspace)}
    assert ground.account.http("POST", "/api/rules", ground.person, rule).status == 503
    assert ground.account.handrail("trust", "--yes", str(ground.account.workspace)).returncode == 1
    ground.tamper('db.execute("DROP TRIGGER full")')
    assert not ground.runs_unasked()
    folders = ground.account.http("GET", "/api/folders", ground.person).json
    assert [row["trusted"] for row in folders if row["folder"] == str(ground.account.workspace)] in (
        [],
        [False],
    )
    ground.account.trust()
    check_that_a_new_keeper_knows_what_the_killed_one_knew(ground)


def check_that_a_new_keeper_knows_what_the_killed_one_knew(ground: Ground) -> None:
    """A person restarts when the keeper has died; that must not take up what was changed meanwhile."""
    killed = ground.account.keeper
    ground.kill_keeper()

    def is_replaced() -> bool:
        with contextlib.suppress(ValueError):
            return ground.account.keeper != killed
        return False

    until(is_replaced, "the daemon starts another keeper")
    ground.tamper(APPEND_EVENT, recompute=True)
    restarted = ground.account.handrail("restart")
    assert restarted.returncode == 0
    assert "r666" in restarted.stderr
    assert not ground.runs_unasked()
    assert ground.policy()["known"]
