"""Doctor sends a canary through the hook of every connected client, and says what switches the hooks off."""

import json
import os
import sys
from pathlib import Path

import pytest
from tests.support.cli_home import Home

pytestmark = pytest.mark.e2e


@pytest.fixture
def connected(alone: Home, tmp_path: Path) -> Home:
    """A Handrail with a running daemon, and Claude Code connected to it by a launcher that can be removed."""
    user, folder = tmp_path / "user", tmp_path / "bin"
    (user / ".claude").mkdir(parents=True)
    folder.mkdir()
    launcher = folder / "handrail"
    launcher.write_text(
        f'#!/bin/sh\nPYTHONPATH={alone.env["PYTHONPATH"]} exec {sys.executable} -m handrail "$@"\n'
    )
    launcher.chmod(0o755)
    alone.env |= {"HOME": str(user), "PATH": f"{folder}:/usr/bin:/bin"}
    alone.up()
    alone.ok("connect", "claude", "--force", "--yes", "--no-mcp", "--launcher", str(launcher))
    return alone


def findings(home: Home) -> dict[str, str]:
    rows = home.run("doctor", "--json").json["findings"]
    return {row["says"]: row["level"] for row in rows if row["name"] == "claude"}


def test_a_canary_reaches_the_daemon_and_no_person_is_asked(connected: Home) -> None:
    [(says, level)] = findings(connected).items()
    assert says.startswith("Claude Code's hook was answered in ")
    assert level in ("ok", "warn")  # warn: it took longer than a second
    assert connected.ok("calls", "--json").json == []
    # Whoever runs doctor is still a person.
    connected.ok("disconnect", "claude", "--yes")


def test_a_project_that_switches_the_hooks_off_and_a_missing_launcher_are_named(connected: Home) -> None:
    settings = connected.workspace / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"disableAllHooks": True}))
    Path(connected.env["PATH"].partition(os.pathsep)[0], "handrail").unlink()

    found = findings(connected)

    assert [
        says for says in found if "did not reach the daemon" in says and "did not answer; refused" in says
    ]
    assert [says for says in found if says.startswith(f"{settings} has disableAllHooks")]
    assert {*found.values()} == {"bad"}


def test_a_hook_without_a_daemon_is_reported(connected: Home) -> None:
    connected.end()
    assert [says for says, level in findings(connected).items() if level == "bad"]
