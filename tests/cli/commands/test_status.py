"""Looking at Handrail itself: status, config, and the doctor's findings with their exit status."""

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli_home import Agent, Home


def findings(home: Home, code: int) -> dict[str, dict[str, Any]]:
    done = home.run("doctor", "--json")
    assert done.code == code, done.out
    assert done.json["ok"] == (code == 0)
    return {finding["name"]: finding for finding in done.json["findings"]}


def levels(home: Home, code: int) -> dict[str, str]:
    return {name: finding["level"] for name, finding in findings(home, code).items()}


def altered(home: Home, statement: str) -> None:
    with closing(sqlite3.connect(home.path / "handrail.db")) as database:
        database.execute(statement)
        database.commit()


@pytest.mark.e2e
def test_a_well_daemon_is_ok_in_every_point(alone: Home, lone_agent: Agent) -> None:
    lone_agent.answer(lone_agent.call("list_files"))
    found = levels(alone, 0)
    for name in ("daemon", "version", "keeper", "config", "permissions", "journal", "disk"):
        assert found[name] == "ok", name
    assert "✓ ok   journal     The journal is whole" in alone.ok("doctor").out


@pytest.mark.e2e
def test_an_altered_journal_is_bad_and_the_exit_status_says_so(alone: Home, lone_agent: Agent) -> None:
    lone_agent.answer(lone_agent.call("list_files"))
    alone.ok("down")
    altered(
        alone,
        "UPDATE events SET payload = replace(payload, 'list_files', 'read_file') WHERE kind = 'CallOpened'",
    )
    found = findings(alone, 1)["journal"]
    assert found["level"] == "bad"
    assert re.search(r"At \d+: its payload is not the one that was written", found["says"])
    assert "--backup" in found["fix"]


@pytest.mark.e2e
def test_a_cut_tail_is_found_while_the_daemon_is_down(alone: Home, lone_agent: Agent) -> None:
    lone_agent.answer(lone_agent.call("list_files"))
    alone.ok("down")
    altered(alone, "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    assert levels(alone, 1)["journal"] == "bad"


@pytest.mark.e2e
def test_a_backup_is_a_whole_copy_and_never_overwrites(
    alone: Home, lone_agent: Agent, tmp_path: Path
) -> None:
    lone_agent.answer(lone_agent.call("list_files"))
    copy = tmp_path / "copy.db"

    done = alone.ok("doctor", "--backup", str(copy))

    assert f"events are in {copy}." in done.out
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT count(*) FROM events WHERE kind = 'CallOpened'").fetchone() == (1,)
    before = copy.read_bytes()
    again = alone.run("doctor", "--backup", str(copy))
    assert again.code == 1
    assert "is already there and was left as it is" in again.out
    assert copy.read_bytes() == before


@pytest.mark.e2e
def test_status_has_the_shape_that_scripts_rely_on(alone: Home) -> None:
    alone.up()
    known = alone.ok("status", "--json").json
    assert known["home"] == str(alone.path)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", known["url"])
    assert known["version"]
    for pid in (known["pid"], known["keeper_pid"]):
        os.kill(pid, 0)
    assert known["url"] in alone.ok("status").out


def test_config_tells_each_value_and_where_it_came_from(alone: Home) -> None:
    file = alone.path / "config.toml"
    file.write_text("[command]\nwait_seconds = 30\n")
    shown = alone.ok("config", "--show-origin").out
    assert re.search(rf"command\.wait_seconds +30\.0 +{re.escape(str(file))}:2", shown)
    assert re.search(r"server\.port +7433 +default", shown)
    assert {"name": "default_policy", "value": "ask", "origin": "default"} in alone.ok(
        "config", "--json"
    ).json


def test_config_never_prints_a_secret(alone: Home) -> None:
    agent = '[[agents]]\nname = "mine"\ncommand = ["mine"]\nenv = { ANTHROPIC_API_KEY = "sk-hidden-1", LANG = "C" }\n'
    (alone.path / "config.toml").write_text(f'[ahp]\ntoken = "hidden-2"\n{agent}')
    for words in (("config",), ("config", "--json"), ("config", "--show-origin")):
        shown = alone.ok(*words).out
        assert "hidden" not in shown
        assert "ANTHROPIC_API_KEY" in shown
        assert "ahp.token" in shown


def test_config_and_up_refuse_a_rule_whose_example_does_not_hold(alone: Home) -> None:
    (alone.path / "config.toml").write_text(
        '[[rules]]\neffect = "allow"\ncommand = "git status"\nmatch = ["git push"]\n'
    )
    for words in (("config",), ("up", "--no-open")):
        failed = alone.run(*words)
        assert failed.code == 1
        assert "line 1: `match` has the example `git push`" in failed.err


def test_a_home_that_others_can_read_is_bad_and_the_command_mends_it(alone: Home) -> None:
    alone.path.chmod(0o755)
    found = findings(alone, 1)["permissions"]
    assert found["fix"] == f"chmod 700 {alone.path}"
    alone.path.chmod(0o700)
    assert levels(alone, 0)["permissions"] == "ok"


def test_a_bad_setting_is_bad(alone: Home) -> None:
    (alone.path / "config.toml").write_text("colour = 1\n")
    assert "there is no setting `colour`" in findings(alone, 1)["config"]["says"]
