"""Which rules come of an answer."""

from typing import Any

import pytest

from handrail.cli.commands.approvals import (
    offered_suggestions,
    rule_with_pattern,
    suggested_rules,
    uncovered_resources,
)
from handrail.cli.failure import Failure

SCOPE = ("scope", "workspace", "expires_in")


def suggestion(claims: list[int], **about: str) -> Any:
    none: dict[str, Any] = {"tool": None, "command": None, "path": None, "host": None}
    return {"rule": {**none, **about, "effect": "allow"}, "words": "", "claims": claims}


def asked(*suggestions: Any) -> Any:
    return {
        "id": "a1",
        "tool": "write_file",
        "caller": {"workspace": "/home/me/api"},
        "suggestions": list(suggestions),
    }


def test_of_several_suggestions_for_the_same_part_the_first_is_taken() -> None:
    first, other, second = (
        suggestion([0, 1], command="git add"),
        suggestion([1], command="git add x"),
        suggestion([2], host="example.org"),
    )
    assert offered_suggestions(asked(first, other, second)) == [first, second]


def test_rules_reach_as_far_as_is_wanted() -> None:
    question = asked(suggestion([0], command="git add"))
    (session,) = suggested_rules(question, "session")
    assert [session.get(name) for name in SCOPE] == ["session", "/home/me/api", None]
    (user,) = suggested_rules(question, "user", 60)
    assert [user.get(name) for name in SCOPE] == ["user", None, 60]


def test_a_pattern_of_ones_own_is_about_the_kind_of_thing_that_is_suggested() -> None:
    rule = rule_with_pattern(asked(suggestion([0], path="src/**")), "docs/**", "project")
    assert rule.get("path") == "docs/**"
    rule = rule_with_pattern(
        asked(suggestion([0], tool="execute_command", command="git add")), "git *", "project"
    )
    assert (rule.get("tool"), rule.get("command")) == ("execute_command", "git *")
    bare = rule_with_pattern(asked(), "docs/**", "project")
    assert (bare.get("tool"), bare.get("pattern")) == ("write_file", "docs/**")


def test_where_nothing_can_be_suggested_that_is_said_with_what_helps() -> None:
    with pytest.raises(
        Failure, match=r"No rule can cover this call: .* `handrail approve a1` allows it once"
    ):
        suggested_rules(asked(), "session")


def test_parts_for_which_no_rule_is_offered_are_named() -> None:
    verdicts = [{"claim": place, "effect": effect} for place, effect in enumerate(("ask", "allow", "ask"))]
    claims = [{"resource": words} for words in ("git add .", "ls", "rm -rf x")]
    question: Any = {**asked(suggestion([0], command="git add")), "claims": claims, "verdicts": verdicts}
    assert uncovered_resources(question) == ["rm -rf x"]
