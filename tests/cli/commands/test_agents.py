"""`handrail agents`."""

import pytest
from tests.support.cli_home import Home

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
