"""A rule about one of our tools is about an agent's own work of that kind too, and a new rule names the tool it is like."""

import pytest
from tests.support.policy_values import ONE, brief, claim, decide, policy, rule, runs

from handrail.gate.rules.matching import AGENT_WORK, equivalent_tools
from handrail.gate.rules.suggestions import suggest_rules
from handrail.store.values import Action, Effect


@pytest.mark.parametrize("effect", ["allow", "ask", "deny"])
def test_what_a_rule_says_of_a_command_it_says_of_one_that_an_agent_runs_itself(effect: Effect) -> None:
    held = policy(rule(effect, tool="execute_command", command="npm test"), default="ask")
    assert brief(decide(held, "npm test", tool=AGENT_WORK)) == (effect, "r1")


@pytest.mark.parametrize(
    ("tool", "action", "of"),
    [
        ("write_file", "write", AGENT_WORK),
        ("edit_file", "write", AGENT_WORK),
        ("read_file", "read", AGENT_WORK),
        ("read_file", "read", "read_text_file"),
    ],
)
def test_a_tool_that_is_forbidden_is_so_by_every_door(tool: str, action: Action, of: str) -> None:
    held = policy(rule("deny", tool=tool), default="allow")
    assert brief(decide(held, [claim(action)], tool=of)) == ("deny", "r1")


def test_a_rule_about_the_agents_own_work_is_about_nothing_of_ours() -> None:
    held = policy(rule("deny", tool=AGENT_WORK), default="allow")
    assert brief(decide(held, "npm test", tool="execute_command"))[0] == "allow"


def test_what_is_like_nothing_has_its_own_rules_alone() -> None:
    assert equivalent_tools("execute_command", "run") == ()
    assert equivalent_tools(AGENT_WORK, "type") == ()


def test_a_question_about_an_agents_command_suggests_a_rule_for_both() -> None:
    found = suggest_rules(AGENT_WORK, runs("npm test"), ONE, policy())
    assert [(each.rule.tool, each.rule.command) for each in found] == [("execute_command", "npm test")]
    held = policy(*(rule(tool=each.rule.tool, command=each.rule.command) for each in found))
    assert decide(held, "npm test", tool=AGENT_WORK).effect == "allow"
    assert decide(held, "npm test").effect == "allow"
