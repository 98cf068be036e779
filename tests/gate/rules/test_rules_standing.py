"""The rules in a person's config.toml: with their lines, and refused when an example does not hold."""

from datetime import datetime
from pathlib import Path

import pytest

from handrail.config import BadConfig, load
from handrail.gate.rules.rules import UserRules


def standing(folder: Path, text: str) -> UserRules:
    path = folder / "config.toml"
    path.write_text(text)
    return UserRules.of(load(path), path, "/home/ann")


def test_what_a_file_says_becomes_rules_that_tell_their_line(tmp_path: Path) -> None:
    text = 'default_policy = "deny"\nhuman_in_the_loop = false\n[[rules]]\neffect = "allow"\ntool = "execute_command"\npattern = "git status"\n'
    found = standing(tmp_path, text)
    assert (found.default, found.human_in_the_loop) == ("deny", False)
    [rule] = found.rules
    assert (rule.tool, rule.command, rule.scope, rule.source) == (
        "execute_command",
        "git status",
        "user",
        "config.toml:3",
    )
    moved = standing(tmp_path, f"# one line more\n{text}").rules[0]
    assert (moved.id, moved.source) == (rule.id, "config.toml:4")


def test_a_day_ends_with_its_last_moment(tmp_path: Path) -> None:
    [day, hour] = standing(
        tmp_path,
        '[[rules]]\neffect = "deny"\ntool = "t"\nexpires = 2030-01-01\n'
        '[[rules]]\neffect = "deny"\ntool = "t"\nexpires = 2030-01-01T12:00:00Z\n',
    ).rules
    assert day.expires_at == datetime(2030, 1, 2).astimezone().timestamp() * 1000
    assert hour.expires_at == datetime.fromisoformat("2030-01-01T12:00:00Z").timestamp() * 1000


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[[rules]]\neffect = "allow"\n', 1, "does not say what it is about"),
        ('[[rules]]\neffect = "deny"\nserver = "github"\nhost = "a"\n', 1, "takes no command and no host"),
        ('\n[[rules]]\neffect = "allow"\ncommand = "git $ push"\n', 2, "`$` only at the end"),
        (
            '[[rules]]\neffect = "deny"\ncommand = "rm"\n[[rules]]\neffect = "allow"\ncommand = "git status"\nnot_match = ["git status -s"]\n',
            4,
            "`not_match` has the example `git status -s`, but the rule matches it",
        ),
        (
            '[[rules]]\neffect = "allow"\ncommand = "git status"\nmatch = ["FOO=1 git status"]\n',
            1,
            "not fully understood",
        ),
    ],
)
def test_a_rule_that_cannot_hold_is_refused_with_file_line_and_example(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(BadConfig) as caught:
        standing(tmp_path, text)
    sentence = str(caught.value)
    assert sentence.startswith(f"{tmp_path / 'config.toml'}, line {line}: ")
    assert words in sentence
    assert "Fix or remove" in sentence
