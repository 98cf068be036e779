"""`handrail agents`."""

import pytest
from tests.cli.scene import Home

pytestmark = pytest.mark.e2e


def test_what_is_there_and_what_is_missing_with_the_command_that_installs_it(handrail: Home) -> None:
    rows = {row["name"]: row for row in handrail.ok("agents", "--json").json}
    assert rows["demo"]["found"]
    assert {"name", "found", "version", "command"} <= set(rows["claude"])
    shown = handrail.ok("agents")
    assert "handrail.demo.mind" in shown.out
    if not rows["claude"]["found"]:
        assert rows["claude"]["install"] in shown.out
