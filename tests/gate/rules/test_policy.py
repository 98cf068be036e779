"""What is allowed, asked and refused: a pure decision about claims, step by step."""

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.policy_values import ONE, brief, caller, claim, decide, policy, rule, runs

from handrail.gate.rules.policy import Policy
from handrail.store.values import Action, Claim, Effect, Rule

ACTIONS: tuple[Action, ...] = get_args(Action)
STRICTNESS: tuple[Effect, ...] = ("allow", "ask", "deny")

some_words = st.lists(st.sampled_from(["git", "push", "status", "rm", "x"]), max_size=3).map(tuple)
some_claims = st.builds(
    Claim,
    action=st.sampled_from(ACTIONS),
    resource=st.sampled_from(["/w/a", "/w/src/b", "/etc/c", "example.org"]),
    inside=st.booleans(),
    protected=st.booleans(),
    words=some_words,
    opaque=st.sampled_from(["", "", "it holds an expansion"]),
)
some_rules = st.builds(
    Rule,
    id=st.text("abcdef", min_size=3, max_size=3).map(lambda text: f"r{text}"),
    effect=st.sampled_from(STRICTNESS),
    tool=st.sampled_from([None, "execute_command", "other"]),
    command=st.sampled_from([None, None, "git", "git push", "rm $", "* push"]),
    scope=st.sampled_from(["user", "session"]),
    session=st.sampled_from(["one@/w", "two@/w"]),
).map(lambda made: replace(made, id=f"{made.effect}-{made.id}"))
"""No two of different effect share an id."""
law = st.fixed_dictionaries(
    {"default": st.sampled_from(STRICTNESS), "human_in_the_loop": st.booleans(), "trusted": st.booleans()}
)


def strictness(effect: Effect) -> int:
    return STRICTNESS.index(effect)


@pytest.mark.parametrize(
    ("claimed", "effect", "named"),
    [
        (claim("read"), "allow", "reads in the workspace"),
        (claim("recall"), "allow", "own record"),
        (claim("stop"), "allow", "own terminals"),
        (claim("read", inside=False), "ask", "default policy"),
        (claim("read", protected=True), "ask", "protected place"),
        (claim("write"), "ask", "default policy"),
        (claim("delete"), "ask", "default policy"),
        (claim("run"), "ask", "default policy"),
        (claim("run", opaque="it holds an expansion"), "ask", "not understood"),
        (claim("connect", "example.org"), "ask", "default policy"),
        (claim("type"), "ask", "default policy"),
        (claim("type", protected=True), "ask", "protected place"),
        (claim("stop", inside=False), "ask", "default policy"),
        (claim("stop", protected=True), "ask", "protected place"),
    ],
)
def test_without_rules_reads_here_and_ends_of_own_terminals_are_allowed_and_all_else_asks(
    claimed: Claim, effect: Effect, named: str
) -> None:
    decision = decide(policy(), [claimed])
    assert brief(decision) == (effect, named)
    assert decision.why.endswith(".")
    assert [(each.claim, each.effect, each.rule, each.why) for each in decision.verdicts] == [
        (0, effect, named, decision.why)
    ]


def test_a_deny_rule_comes_before_everything() -> None:
    held = policy(
        rule("allow", "r1", command="git push"),
        rule("deny", "r2", command="git push"),
        rule("ask", "r3", command="git push"),
        default="allow",
    )
    assert brief(decide(held, "git push")) == ("deny", "r2")
    assert brief(decide(held, [claim("run", words=("git", "push"), protected=True)])) == ("deny", "r2")
    assert brief(decide(held, [claim("run", words=("git", "push"))], caller(workspace=None))) == (
        "deny",
        "r2",
    )


@pytest.mark.parametrize(
    ("claimed", "floor"),
    [
        (claim("write", "/w/.ssh/a", protected=True), "protected place"),
        (claim("run", words=("git", "status"), opaque="it sets a variable"), "not understood"),
        (claim("type", protected=True), "protected place"),
    ],
)
@pytest.mark.parametrize("settings", [{"default": "allow"}, {"human_in_the_loop": False}, {}])
def test_no_rule_and_no_setting_overrides_a_floor(
    claimed: Claim, floor: str, settings: dict[str, Any]
) -> None:
    everything = [
        rule("allow", "r1", tool="execute_command"),
        rule("allow", "r2", command="git status"),
        rule("allow", "r3", path="/w/**"),
        rule("allow", "r4", tool="execute_command", path="/w/**", scope="project", workspace="/w"),
        rule("allow", "r5", tool="execute_command", scope="session", session=ONE.key),
    ]
    assert brief(decide(policy(*everything, **settings), [claimed])) == ("ask", floor)


def test_without_a_workspace_everything_but_our_own_record_and_an_agents_notes_asks() -> None:
    nowhere = caller(workspace=None)
    held = policy(rule("allow", tool="execute_command"), default="allow", root=None)
    for action in ACTIONS:
        expected = ("allow", "r1") if action in ("recall", "plan") else ("ask", "no workspace")
        assert brief(decide(held, [claim(action)], nowhere)) == expected
    assert brief(decide(policy(root=None), [claim("recall")], nowhere)) == ("allow", "own record")
    assert brief(decide(policy(root=None), [claim("plan")], nowhere)) == ("allow", "own notes")


def test_what_is_not_understood_says_why() -> None:
    decision = decide(policy(), "git status > out")
    assert decision.rule == "not understood"
    assert "redirects" in decision.why


def test_an_ask_rule_comes_before_what_allows() -> None:
    held = policy(rule("allow", "r1", command="git"), rule("ask", "r2", command="git push"), default="allow")
    assert brief(decide(held, "git status")) == ("allow", "r1")
    assert brief(decide(held, "git push")) == ("ask", "r2")
    reads = policy(rule("ask", "r3", path="secrets/**"))
    assert brief(decide(reads, [claim("read", "/w/secrets/a")], tool="read_file")) == ("ask", "r3")


def test_an_allow_rule_comes_before_the_default() -> None:
    held = policy(rule("allow", command="git status"), default="deny")
    assert brief(decide(held, "git status -s")) == ("allow", "r1")
    assert brief(decide(held, "git push")) == ("deny", "default policy")


@pytest.mark.parametrize("default", STRICTNESS)
def test_the_default_policy_decides_what_no_rule_is_about(default: Effect) -> None:
    assert brief(decide(policy(default=default), [claim("write")])) == (default, "default policy")


def test_an_untrusted_folder_asks_for_what_acts_and_reads_all_the_same() -> None:
    held = policy(trusted=False, default="allow", human_in_the_loop=False)
    assert brief(decide(held, [claim("write")])) == ("ask", "untrusted folder")
    assert brief(decide(held, "ls")) == ("ask", "untrusted folder")
    assert brief(decide(held, [claim("read")])) == ("allow", "reads in the workspace")
    assert brief(decide(held, [claim("recall")])) == ("allow", "own record")


def test_an_untrusted_folder_is_no_way_around_a_default_that_refuses() -> None:
    assert brief(decide(policy(trusted=False, default="deny"), [claim("write")])) == (
        "deny",
        "default policy",
    )


def test_low_risk_passes_where_no_human_is_in_the_loop() -> None:
    held = policy(human_in_the_loop=False)
    assert brief(decide(held, "ls src && grep -n x a.py")) == ("allow", "low risk")
    assert brief(decide(policy(), "ls src")) == ("ask", "default policy")
    assert brief(decide(held, "ls src && make")) == ("ask", "default policy")
    assert brief(decide(held, [claim("write")])) == ("ask", "default policy")
    assert brief(decide(policy(rule("ask", command="ls"), human_in_the_loop=False), "ls")) == ("ask", "r1")


@pytest.mark.parametrize(
    "claimed",
    [
        claim("write", inside=False),
        claim("read", inside=False),
        claim("run", inside=False),
        claim("type", inside=False),
        claim("stop", inside=False),
    ],
)
def test_high_risk_asks_even_when_everything_is_approved_by_itself(claimed: Claim) -> None:
    assert brief(decide(policy(default="allow"), [claimed])) == ("ask", "high risk")


def test_the_strictest_part_decides_for_all() -> None:
    held = policy(
        rule("allow", "r1", command="git"), rule("ask", "r2", command="npm"), rule("deny", "r3", command="rm")
    )
    assert brief(decide(held, "git status && git diff")) == ("allow", "r1")
    assert brief(decide(held, "git status && npm i")) == ("ask", "r2")
    decision = decide(held, "git status; npm i | rm x")
    assert brief(decision) == ("deny", "r3")
    assert [(each.effect, each.rule) for each in decision.verdicts] == [
        ("allow", "r1"),
        ("ask", "r2"),
        ("deny", "r3"),
    ]
    assert decision.rules == ("r1", "r2", "r3")


def test_a_call_that_claims_nothing_asks() -> None:
    assert brief(decide(policy(default="allow"), [])) == ("ask", "nothing claimed")
    assert brief(decide(policy(default="deny"), [])) == ("deny", "default policy")


def test_the_reason_names_the_rule_its_source_and_its_note() -> None:
    held = policy(rule("deny", "r7", command="git push", source="config.toml:3", note="Ask the release team"))
    why = decide(held, "git push").why
    assert why == "Rule r7 refuses `git push …` everywhere (config.toml:3). Ask the release team."


def test_the_basis_changes_with_what_would_keep_it_from_running_and_with_nothing_else() -> None:
    push = [rule("ask", "r1", command="git push")]
    before = decide(policy(*push), "git push").basis
    assert decide(policy(*push, rule("deny", "r9", command="npm")), "git push").basis == before
    assert decide(policy(*push, rule("allow", "r9", command="git")), "git push").basis == before
    assert decide(policy(*push, rule("ask", "r9", command="git")), "git push").basis != before
    assert decide(policy(*push, rule("deny", "r9", command="git")), "git push").basis != before
    assert decide(policy(*push, default="deny"), "git push").basis != before
    assert decide(policy(), "git push").basis != before
    open_to_all, guarded = [claim("write")], [claim("write", protected=True)]
    assert decide(policy(), open_to_all).basis != decide(policy(), guarded).basis


def test_a_rule_of_a_session_holds_for_that_client_alone() -> None:
    held = policy(rule("allow", command="git", scope="session", session="one@/w"))
    assert decide(held, "git status", caller(key="one@/w")).effect == "allow"
    assert decide(held, "git status", caller(key="two@/w")).effect == "ask"


def test_a_rule_about_a_server_holds_for_what_that_server_does() -> None:
    held = policy(rule("allow", server="github"))
    asked = claim("type")
    assert held.decide("create_issue", [asked], ONE, "github").effect == "allow"
    assert held.decide("create_issue", [asked], ONE).effect == "ask"


@given(
    st.lists(some_claims, min_size=1, max_size=4),
    some_claims,
    st.lists(some_rules, max_size=5),
    law,
    st.booleans(),
)
def test_claiming_more_never_lowers_a_decision(
    few: list[Claim], more: Claim, rules: list[Rule], settings: dict[str, Any], placed: bool
) -> None:
    held = policy(*rules, **settings)
    who = caller(workspace="/w" if placed else None)
    before, after = decide(held, few, who).effect, decide(held, [*few, more], who).effect
    assert strictness(after) >= strictness(before)


@given(st.lists(some_claims, min_size=1, max_size=4), st.lists(some_rules, max_size=5), some_rules, law)
def test_adding_a_rule_that_refuses_never_lowers_a_decision(
    claims: list[Claim], rules: list[Rule], more: Rule, settings: dict[str, Any]
) -> None:
    before = decide(policy(*rules, **settings), claims)
    after = decide(policy(*rules, replace(more, id="more", effect="deny"), **settings), claims)
    assert strictness(after.effect) >= strictness(before.effect)


@given(st.lists(some_claims, min_size=1, max_size=4), st.lists(some_rules, max_size=5), some_rules, law)
def test_adding_any_rule_never_gets_past_a_refusal_or_a_floor(
    claims: list[Claim], rules: list[Rule], more: Rule, settings: dict[str, Any]
) -> None:
    before = decide(policy(*rules, **settings), claims)
    after = decide(policy(*rules, replace(more, id="more"), **settings), claims)
    if before.rule in {rule.id for rule in rules if rule.effect == "deny"}:
        assert after.effect == "deny"
    if before.rule in {"protected place", "not understood", "no workspace"}:
        assert after.effect != "allow"


@given(st.lists(some_claims, min_size=1, max_size=4), st.lists(some_rules, max_size=5), some_rules, law)
def test_a_rule_that_asks_is_not_got_past_by_one_that_allows(
    claims: list[Claim], rules: list[Rule], more: Rule, settings: dict[str, Any]
) -> None:
    before = decide(policy(*rules, **settings), claims)
    after = decide(policy(*rules, replace(more, id="more", effect="allow"), **settings), claims)
    if before.rule in {rule.id for rule in rules if rule.effect == "ask"}:
        assert after.effect == "ask"


@given(st.lists(some_claims, min_size=1, max_size=4), st.lists(some_rules, max_size=5), law)
def test_nothing_allows_what_is_protected_opaque_or_homeless(
    claims: list[Claim], rules: list[Rule], settings: dict[str, Any]
) -> None:
    decision = decide(policy(*rules, **settings), claims)
    if any(each.protected or each.opaque for each in claims):
        assert decision.effect != "allow"
    if any(each.action not in ("recall", "plan") for each in claims):
        assert decide(policy(*rules, **settings), claims, caller(workspace=None)).effect != "allow"


@given(st.lists(some_claims, min_size=1, max_size=4), st.lists(some_rules, max_size=5), law)
def test_removing_an_allow_rule_never_allows_more(
    claims: list[Claim], rules: list[Rule], settings: dict[str, Any]
) -> None:
    without = [rule for rule in rules if rule.effect != "allow"]
    if decide(policy(*without, **settings), claims).effect == "allow":
        assert decide(policy(*rules, **settings), claims).effect == "allow"


@given(st.lists(some_claims, min_size=1, max_size=4), st.lists(some_rules, max_size=5), law)
def test_the_same_is_decided_in_whichever_order_rules_of_one_effect_stand(
    claims: list[Claim], rules: list[Rule], settings: dict[str, Any]
) -> None:
    there, back = policy(*rules, **settings), policy(*reversed(rules), **settings)
    assert decide(there, claims).effect == decide(back, claims).effect
    assert decide(there, claims).basis == decide(back, claims).basis


def test_a_policy_made_of_nothing_trusts_nothing() -> None:
    assert brief(Policy().decide("execute_command", runs("ls"), ONE)) == ("ask", "untrusted folder")


def test_of_several_reasons_to_ask_the_one_that_no_rule_could_change_is_told() -> None:
    held = policy(rule("ask", "r2", command="npm"))
    assert decide(held, "make && npm i").rule == "r2"
    assert decide(held, "make && npm i > out").rule == "not understood"
