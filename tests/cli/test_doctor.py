"""The doctor: says what is wrong, and the command that mends it."""

import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.agent import Agent
from tests.cli.scene import Home

from handrail.doctor.machine import disk, page, private
from handrail.doctor.processes import check_processes
from handrail.places import Places


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
    altered(alone, "UPDATE events SET payload = replace(payload, 'list_files', 'read_file') WHERE seq = 2")
    found = findings(alone, 1)["journal"]
    assert found["level"] == "bad"
    assert "At 2: its payload is not the one that was written" in found["says"]
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
def test_a_daemon_that_is_down_or_was_killed_is_a_warning_with_its_command(alone: Home) -> None:
    down = findings(alone, 0)
    assert (down["daemon"]["level"], down["daemon"]["fix"]) == ("warn", "handrail up")
    alone.up()
    known = alone.ok("status", "--json").json
    os.kill(known["pid"], signal.SIGKILL)
    found = findings(alone, 0)
    assert found["daemon"]["level"] == "warn"
    assert "still holds what the last daemon started" in found["keeper"]["says"]
    alone.ok("down")


@pytest.mark.e2e
def test_a_daemon_that_hangs_is_bad(alone: Home) -> None:
    alone.up()
    pid = alone.ok("status", "--json").json["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        found = next(check_processes(Places.under(alone.path), within=0.5))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (found.name, found.level, found.fix) == ("daemon", "bad", "handrail restart")


def test_a_home_that_others_can_read_is_bad_and_the_command_mends_it(alone: Home) -> None:
    alone.path.chmod(0o755)
    found = findings(alone, 1)["permissions"]
    assert found["fix"] == f"chmod 700 {alone.path}"
    alone.path.chmod(0o700)
    assert levels(alone, 0)["permissions"] == "ok"


def test_a_file_that_others_can_read_is_named(home: Path) -> None:
    places = Places.under(home)
    places.make()
    places.database.touch(0o644)
    [found] = private(places)
    assert (found.level, found.fix) == ("bad", f"chmod 600 {places.database}")


def test_a_bad_setting_is_bad(alone: Home) -> None:
    (alone.path / "config.toml").write_text("colour = 1\n")
    assert "there is no setting `colour`" in findings(alone, 1)["config"]["says"]


def test_a_page_that_was_not_built_is_bad(tmp_path: Path) -> None:
    assert page(tmp_path).level == "bad"
    (tmp_path / "server" / "static").mkdir(parents=True)
    (tmp_path / "server" / "static" / "index.html").touch()
    assert page(tmp_path).level == "ok"


@pytest.mark.parametrize(("bound", "level"), [("LOW_BYTES", "warn"), ("NO_BYTES", "bad")])
def test_little_space_is_told_before_there_is_none(
    home: Path, bound: str, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert disk(Places.under(home)).level == "ok"
    monkeypatch.setattr(f"handrail.doctor.machine.{bound}", 1 << 60)
    assert disk(Places.under(home / "not" / "made")).level == level
