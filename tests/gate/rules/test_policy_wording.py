"""Rules in words that a person can read on a card."""

from typing import Any

import pytest
from tests.support.policy_values import rule

from handrail.gate.rules.policy import describe_rule
from handrail.store.values import Effect


@pytest.mark.parametrize(
    ("effect", "fields", "words"),
    [
        ("allow", {"command": "git status"}, "`git status …` in every trusted folder"),
        ("deny", {"command": "git push"}, "`git push …` everywhere"),
        ("allow", {"command": "make $", "scope": "project"}, "exactly `make` in this project"),
        (
            "allow",
            {"command": "make", "tool": "execute_command", "scope": "session"},
            "`make …` in this session",
        ),
        ("ask", {"path": "src/**", "scope": "project"}, "files: `src/**` in this project"),
        ("ask", {"path": "src/**", "tool": "edit_file"}, "edit_file: `src/**` everywhere"),
        ("deny", {"host": "*.evil.org"}, "connecting to `*.evil.org` everywhere"),
        ("deny", {"tool": "write_file", "agent": "codex*"}, "all of write_file by codex* everywhere"),
        ("deny", {"server": "github"}, "all of the server github everywhere"),
        ("deny", {"agent": "codex"}, "everything by codex everywhere"),
    ],
)
def test_a_rule_says_what_it_is_about_of_whom_and_where(
    effect: Effect, fields: dict[str, Any], words: str
) -> None:
    assert describe_rule(rule(effect, **fields)) == words
