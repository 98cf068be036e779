"""`handrail pause` and `resume`: what rules allow waits, `status` says so, and a person's own commands go on working."""

import pytest
from tests.support.cli_home import Agent, Home


@pytest.mark.e2e
def test_a_paused_call_waits_until_it_is_resumed(handrail: Home, agent: Agent) -> None:
    try:
        assert "All agents are paused." in handrail.ok("pause").out
        assert "paused already" in handrail.ok("pause").out
        held = agent.call("list_files")
        (row,) = handrail.asked()
        assert row["why"].startswith("All agents are paused.")
        assert "`handrail resume` ends it" in handrail.ok("status").out
        assert handrail.ok("status", "--json").json["paused_since"] > 0
        handrail.ok("approve", row["id"])
        assert not agent.answer(held)["isError"]
        later = agent.call("list_files")
        handrail.asked()
    finally:
        resumed = handrail.ok("resume").out
    assert "Your rules decide again" in resumed
    assert not agent.answer(later)["isError"]
    assert "not paused" in handrail.ok("resume").out
    assert handrail.ok("status", "--json").json["paused_since"] is None
