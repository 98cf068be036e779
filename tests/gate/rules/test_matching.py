"""Which rules are about a claim: by tool, command, path, host and agent; the index finds what trying all would."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.rules.test_policy import some_claims, some_rules
from tests.support.policy_values import HOME, ONE, ROOT, caller, claim, rule, runs

from handrail.gate.rules.matching import Index, Matcher
from handrail.store.values import Claim, Effect, Rule


def matches(found: Rule, claimed: Claim, tool: str = "execute_command", client: str = "one") -> bool:
    return Matcher(found, ROOT, HOME).matches(tool, claimed, caller(client))


def test_a_tool_is_named_exactly() -> None:
    assert matches(rule(tool="write_file"), claim("write"), "write_file")
    assert not matches(rule(tool="write_file"), claim("write"), "write_file2")


def test_an_agent_is_named_with_stars() -> None:
    assert matches(rule(tool="t", agent="claude*"), claim("write"), "t", "claude-code")
    assert not matches(rule(tool="t", agent="claude*"), claim("write"), "t", "codex")


@pytest.mark.parametrize(("effect", "found"), [("allow", False), ("ask", True), ("deny", True)])
def test_a_program_written_with_a_path_is_itself_to_who_forbids_it_but_not_to_who_allows_it(
    effect: Effect, found: bool
) -> None:
    pushes = claim("run", words=("/usr/bin/git", "push"))
    assert matches(rule(effect, command="git push"), pushes) == found
    assert [
        each.id
        for each in Index([rule(effect, command="git push")], ROOT, HOME).matching("t", pushes, ONE, None)
    ] == (["r1"] if found else [])


def test_a_wrapper_is_seen_through_by_who_forbids_what_is_inside() -> None:
    assert any(matches(rule("deny", command="git push"), each) for each in runs("timeout 5 git push"))
    assert any(matches(rule("deny", command="sudo"), each) for each in runs("sudo rm x"))


@pytest.mark.parametrize(("effect", "found"), [("allow", False), ("ask", True), ("deny", True)])
def test_what_is_not_understood_is_matched_by_who_forbids_alone(effect: Effect, found: bool) -> None:
    opaque = claim("run", words=("git", "push"), opaque="it sets a variable")
    assert matches(rule(effect, command="git push"), opaque) == found
    assert matches(rule(effect, tool="execute_command"), opaque) == found


def test_a_command_rule_is_about_commands_whose_words_are_known() -> None:
    assert not matches(rule(command="git"), claim("run", "git status"))
    assert not matches(rule(command="git"), claim("type", "git status", words=("git", "status")))


@pytest.mark.parametrize(("effect", "found"), [("allow", False), ("ask", True), ("deny", True)])
def test_a_command_that_is_typed_is_matched_by_who_forbids_alone(effect: Effect, found: bool) -> None:
    typed = claim("type", "git push", words=("git", "push"))
    assert matches(rule(effect, command="git push"), typed) == found


@pytest.mark.parametrize("action", ["read", "write"])
def test_a_path_rule_is_about_files_inside_and_outside(action: Any) -> None:
    assert matches(rule(path="src/**"), claim(action, "/w/src/a"), "t")
    assert not matches(rule(path="src/**"), claim(action, "/w/doc/a"), "t")
    assert matches(rule(path="/etc/hosts"), claim(action, "/etc/hosts", inside=False), "t")
    assert matches(rule(path="~/notes"), claim(action, f"{HOME}/notes", inside=False), "t")
    assert not matches(rule(path="src/**"), claim("run", "/w/src/a"), "t")


def test_who_forbids_a_path_forbids_it_in_any_letter_case() -> None:
    assert matches(rule("deny", path="Secrets/**"), claim("read", "/w/secrets/key"), "t")
    assert not matches(rule("allow", path="Secrets/**"), claim("read", "/w/secrets/key"), "t")


def test_a_deletion_is_allowed_only_by_who_names_the_tool_and_the_path() -> None:
    gone = claim("delete", "/w/src/a")
    assert not matches(rule(path="src/**"), gone, "apply_diff")
    assert not matches(rule(tool="apply_diff"), gone, "apply_diff")
    assert matches(rule(tool="apply_diff", path="src/**"), gone, "apply_diff")
    assert matches(rule("deny", path="src/**"), gone, "apply_diff")
    assert matches(rule("ask", tool="apply_diff"), gone, "apply_diff")


def test_all_of_a_tool_does_not_reach_outside_the_workspace() -> None:
    outside = claim("write", "/etc/hosts", inside=False)
    assert not matches(rule(tool="write_file"), outside, "write_file")
    assert matches(rule("deny", tool="write_file"), outside, "write_file")


def test_a_host_rule_is_about_connections() -> None:
    assert matches(rule(host="*.example.org"), claim("connect", "Www.Example.org."))
    assert not matches(rule(host="example.org"), claim("run", "example.org"))


def test_rules_of_every_kind_are_found_in_the_order_they_were_given() -> None:
    rules = [
        rule("deny", "r1", command="* push"),
        rule("deny", "r2", command="git push"),
        rule("deny", "r3", agent="one"),
        rule("deny", "r4", command="git"),
    ]
    pushes = claim("run", words=("/usr/bin/git", "push"))
    for order in (rules, rules[::-1]):
        assert Index(order, ROOT, HOME).matching("t", pushes, ONE, None) == order


@given(st.lists(some_rules, max_size=8), some_claims)
def test_the_index_finds_what_trying_every_rule_finds(rules: list[Rule], claimed: Claim) -> None:
    found = Index(rules, ROOT, HOME).matching("execute_command", claimed, ONE, None)
    assert found == [each for each in rules if matches(each, claimed)]
