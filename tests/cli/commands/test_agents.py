"""`handrail agents`."""

import json
from pathlib import Path

import pytest
from tests.support.cli_home import Home
from tests.support.file_keyring import use_keyring_in_file

pytestmark = pytest.mark.e2e


def test_what_is_there_and_what_is_missing_with_the_command_that_installs_it(handrail: Home) -> None:
    rows = {row["name"]: row for row in handrail.ok("agents", "--json").json}
    assert rows["demo"]["found"]
    assert {"name", "found", "version", "command"} <= set(rows["claude"])
    shown = handrail.ok("agents")
    assert "handrail.demo.acp_agent" in shown.out
    if not rows["claude"]["found"]:
        assert rows["claude"]["install"] in shown.out


def test_our_own_agent_is_there_and_says_that_it_has_no_key_until_it_has_one(alone: Home) -> None:
    """In a home of its own: elsewhere, another test's agent may still run."""
    alone.up()
    rows = {row["name"]: row for row in alone.ok("agents", "--json").json}
    assert rows["handrail"]["found"]
    assert rows["handrail"]["source"] == "built in"
    without = alone.ok("agents")
    assert "! no key" in without.out
    assert "`handrail keys set anthropic`" in without.err
    alone.env["ANTHROPIC_API_KEY"] = "sk-somebody"
    with_one = alone.ok("agents")
    assert "no key" not in with_one.out + with_one.err
    assert "handrail chat --agent handrail starts" in with_one.err


def test_a_key_in_the_keyring_counts_for_the_command_line_as_for_the_page(alone: Home) -> None:
    ring = use_keyring_in_file(alone.env, alone.path)
    ring.write_text(json.dumps({"handrail GEMINI_API_KEY": "k"}))
    alone.up()
    shown = alone.ok("agents")
    assert "no key" not in shown.out + shown.err
    ring.unlink()
    assert "! no key" in alone.ok("agents").out


def test_refresh_shows_the_newest_versions_and_names_what_was_not_found(
    handrail: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text('#!/bin/sh\ncase "$2" in *claude*) echo 99.1.0 ;; *) exit 1 ;; esac\n')
    npm.chmod(0o755)
    monkeypatch.setitem(handrail.env, "PATH", f"{tmp_path}:{handrail.env['PATH']}")
    monkeypatch.setitem(handrail.env, "PIP_NO_INDEX", "1")
    shown = handrail.ok("agents", "--refresh")
    (claude,) = [line for line in shown.out.splitlines() if line.split()[0] == "claude"]
    assert "99.1.0" in claude
    assert "No version was found for" in shown.err
    npm.write_text("#!/bin/sh\nexit 1\n")
    silent = handrail.run("agents", "--refresh")
    assert (silent.code, "No registry answered" in silent.err) == (1, True)
