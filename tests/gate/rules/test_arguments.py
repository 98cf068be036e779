"""Rules about arguments of forwarded calls: what matches, and that what cannot be compared asks."""

import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.gate.rules.arguments import TextGlob, flatten_arguments
from handrail.gate.rules.policy import Decision, FolderSettings, Policy
from handrail.gate.rules.rule_builder import BadRule, RuleBase, check_rule
from handrail.gate.rules.suggestions import suggest_rules
from handrail.store.values import Caller, Claim, Effect, Rule

CALLER = Caller(door="stdio", client="x", key="k", workspace="/w")
TOOL = "github__create_issue"


def rule(effect: Effect, **arguments: str) -> Rule:
    return Rule(id="r1", effect=effect, tool=TOOL, arguments=tuple(arguments.items()))


def claim(arguments: dict[str, Any]) -> Claim:
    flat = flatten_arguments(arguments)
    return Claim(action="run", resource="github create_issue", inside=True, server="github", arguments=flat)


def decide(one: Rule, arguments: dict[str, Any]) -> Decision:
    policy = Policy([one], FolderSettings(default="ask", trusted=True), root="/w")
    return policy.decide(TOOL, [claim(arguments)], CALLER)


@pytest.mark.parametrize(
    ("glob", "value", "allowed"),
    [
        ("acme/*", "acme/site", True),
        ("acme/*", "acme/site/more", False),
        ("acme/**", "acme/site/more", True),
        ("acme/*", "other/site", False),
        ("acme/*", "ACME/site", False),
        ("acme/**", "acme/../other", False),
        ("acme/**", "acme/a%2f..%2fb", False),
        ("acme/*", "acme/..\\other", False),
        ("https://api.example/**", "https://api.example/v1/x", True),
        ("*", "50% of a", True),
        ("*", "a/b", False),
        ("**", "a/b", True),
        ("acme/*", ["acme/site"], False),
        ("acme/*", {"name": "acme/site"}, False),
        ("acme/*", "acme/" + "x" * 400, False),
        ("acme/*", "acme/si\u200bte", False),
        ("acme/*", None, False),
        ("3", 3, True),
        ("3", 3.0, True),
        ("true", True, True),
        ("1", True, False),
    ],
)
def test_an_allow_rule_matches_only_what_is_surely_meant(glob: str, value: Any, allowed: bool) -> None:
    decision = decide(rule("allow", repo=glob), {"repo": value, "title": "x"})
    assert decision.effect == ("allow" if allowed else "ask")


@pytest.mark.parametrize(
    ("value", "effect"),
    [
        ("acme/site", "deny"),
        ("ACME/Site", "deny"),
        ("\uff21cme/site", "deny"),
        ("other/site", "allow"),
        (["acme/site"], "ask"),
        ({"name": "acme/site"}, "ask"),
        ("acme/si\u200bte", "ask"),
        ("x" * 400, "ask"),
    ],
)
def test_a_deny_rule_asks_where_it_cannot_compare(value: Any, effect: Effect) -> None:
    here = FolderSettings(default="ask", trusted=True)
    every = Rule(id="r2", effect="allow", tool=TOOL)
    policy = Policy([rule("deny", repo="acme/*"), every], here, root="/w")
    decision = policy.decide(TOOL, [claim({"repo": value})], CALLER)
    assert decision.effect == effect
    assert ("so you are asked" in decision.why) == (effect == "ask")


def test_all_named_arguments_must_match_and_nested_ones_have_names() -> None:
    both = rule("allow", **{"repo": "acme/*", "options.draft": "true"})
    assert decide(both, {"repo": "acme/x", "options": {"draft": True}}).effect == "allow"
    assert decide(both, {"repo": "acme/x", "options": {"draft": False}}).effect == "ask"
    assert decide(both, {"repo": "acme/x"}).effect == "ask"
    assert (
        decide(both, {"repo": "acme/x", "options.draft": "true", "options": {"draft": False}}).effect == "ask"
    )


@pytest.mark.parametrize(
    "arguments", [{"repo": "acme/x", "Repo": "evil/y"}, {"REPO": "evil/y", "repo": "acme/x"}]
)
def test_a_second_name_in_another_letter_case_is_uncertain(arguments: dict[str, Any]) -> None:
    """Servers in Go may ignore the letter case of names, and take the last one."""
    assert decide(rule("allow", repo="acme/*"), arguments).effect == "ask"


def test_a_deny_rule_asks_about_its_name_in_another_letter_case() -> None:
    policy = Policy([rule("deny", repo="evil/*")], FolderSettings(default="allow", trusted=True), root="/w")
    assert policy.decide(TOOL, [claim({"Repo": "evil/y"})], CALLER).effect == "ask"
    assert policy.decide(TOOL, [claim({"repo": "evil/y"})], CALLER).effect == "deny"
    assert policy.decide(TOOL, [claim({"owner": "acme"})], CALLER).effect == "allow"


def test_more_arguments_than_can_be_noted_ask() -> None:
    many: dict[str, Any] = {f"a{number}": "x" for number in range(100)}
    assert decide(rule("allow", repo="acme/*"), {**many, "repo": "acme/x"}).effect == "ask"
    policy = Policy([rule("deny", repo="acme/*")], FolderSettings(default="allow", trusted=True), root="/w")
    assert policy.decide(TOOL, [claim({**many, "repo": "acme/x"})], CALLER).effect == "ask"


def test_a_rule_about_arguments_names_a_tool_of_a_server() -> None:
    ground = RuleBase(root="/w", home="/h")
    check_rule(rule("allow", repo="acme/*"), ground)
    check_rule(Rule(id="r", effect="deny", server="github", arguments=(("repo", "x"),)), ground)
    for wrong in (
        Rule(id="r", effect="deny", tool="write_file", arguments=(("path", "x"),)),
        Rule(id="r", effect="deny", command="git", arguments=(("path", "x"),)),
        Rule(id="r", effect="deny", tool=TOOL, path="x", arguments=(("path", "x"),)),
        Rule(id="r", effect="deny", tool=TOOL, arguments=(("a\u200b", "x"),)),
    ):
        with pytest.raises(BadRule):
            check_rule(wrong, ground)


def test_the_first_suggestion_names_where_the_call_acts() -> None:
    policy = Policy([], FolderSettings(trusted=True), root="/w")
    found = suggest_rules(TOOL, [claim({"repo": "acme/x", "title": "Hello"})], CALLER, policy)
    assert [each.rule.arguments for each in found] == [(("repo", "acme/x"),), ()]
    assert found[0].words == "github__create_issue with repo = `acme/x` in this project"
    star = suggest_rules(TOOL, [claim({"repo": "acme/*"})], CALLER, policy)
    assert [each.rule.arguments for each in star] == [()]


ALPHABET = st.text(st.sampled_from("ab/*"), max_size=12)


@given(ALPHABET, ALPHABET.map(lambda text: text.replace("*", "c")))
def test_globs_match_as_the_expression_that_they_stand_for(glob: str, text: str) -> None:
    pieces = cast("list[str]", re.findall(r"\*+|[^*]", glob))
    words = ["[^/]*" if each == "*" else ".*" if each[0] == "*" else re.escape(each) for each in pieces]
    assert TextGlob.of(glob).fits(text) == bool(re.fullmatch("".join(words), text))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.text(max_size=6))
def test_an_allow_rule_for_one_text_allows_nothing_else(value: Any, glob: str) -> None:
    wanted = glob.replace("*", "")
    try:
        one = check_rule(rule("allow", repo=wanted), RuleBase(root="/w", home="/h"))
    except BadRule:
        return
    if decide(one, {"repo": value}).effect == "allow":
        assert not isinstance(value, (list, dict))
        flat = dict(flatten_arguments({"repo": value}))["repo"]
        assert flat == wanted.strip()
