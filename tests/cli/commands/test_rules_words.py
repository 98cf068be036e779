"""Rules as the command line speaks of them."""

import shlex
from typing import Any

from handrail.cli.commands.rules import (
    add_rule_command,
    describe_impact,
    describe_new_rule,
    describe_rule,
    describe_source,
    flatten_rule,
    rule_cells,
    rule_columns,
)
from handrail.cli.render.formats import format_minute

NOW = 1_800_000_000_000

VIEW: dict[str, Any] = {
    "rule": {
        "id": "r1f",
        "effect": "allow",
        "scope": "project",
        "workspace": "/home/me/api",
        "source": "",
        "note": "",
        "expires_at": None,
    },
    "words": "`npm test …` in this project",
    "builtin": False,
    "removable": True,
    "in_force": True,
    "says": "",
    "hits": 3,
    "last_used_at": NOW - 7_200_000,
    "added_at": NOW - 86_400_000,
    "added_by": "a person on the page",
}


def row(**more: Any) -> Any:
    """The view of a rule with some fields replaced, in the view or in its rule."""
    rule = {name: more.get(name, value) for name, value in VIEW["rule"].items()}
    return {**VIEW, **{name: value for name, value in more.items() if name not in rule}, "rule": rule}


def test_json_output_has_the_fields_of_the_rule_beside_those_of_the_view() -> None:
    flat = flatten_rule(row(effect="deny", hits=5))
    assert (flat["id"], flat["effect"], flat["hits"]) == ("r1f", "deny", 5)
    assert "rule" not in flat


def test_a_row_has_a_cell_for_each_column_and_where_there_is_little_room_the_source_goes_last() -> None:
    for wide in (True, False):
        assert len(rule_cells(row(), NOW, wide)) == len(rule_columns(wide))
    texts = [cell if isinstance(cell, str) else cell[0] for cell in rule_cells(row(), NOW, wide=True)]
    assert texts[:5] == ["r1f", "✓ allow", "project", "3", "2 h ago"]
    narrow = rule_cells(row(source="config.toml:3"), NOW, wide=False)
    assert narrow[2] == "3, 2 h ago"
    assert narrow[-1] == ("`npm test …` in this project · config.toml:3", "")


def test_what_a_rule_is_about_says_until_when_and_whether_it_holds() -> None:
    lapsed = row(expires_at=NOW, in_force=False, says="It expired.", note="For the release")
    assert describe_rule(lapsed) == (
        f"`npm test …` in this project until {format_minute(NOW)} (For the release) · not in force: It expired."
    )


def test_a_source_is_a_line_of_a_file_or_where_somebody_sat() -> None:
    assert describe_source(row()) == f"page, {format_minute(NOW - 86_400_000)}"
    assert describe_source(row(source=".handrail/config.toml:4")) == ".handrail/config.toml:4"
    assert describe_source(row(added_by=None, added_at=None)) == ""


def test_a_new_rule_says_how_it_is_removed() -> None:
    told = "".join(
        piece if isinstance(piece, str) else piece[0] for piece in describe_new_rule(row(effect="deny"))
    )
    assert told == "Rule r1f refuses `npm test …` in this project. `handrail rules remove r1f` removes it."


def test_the_past_is_told_where_there_is_one() -> None:
    proposed: Any = {"calls": 0, "matches": 0, "prompts": 0, "decided": 0}
    assert describe_impact(proposed) == ""
    proposed = {"calls": 1, "matches": 1, "prompts": 57, "decided": 41}
    assert describe_impact(proposed) == (
        "It matches 1 of the last 1 call and would have decided 41 of your last 57 questions."
    )


def test_the_command_for_a_suggestion_makes_that_rule_also_where_it_has_odd_characters() -> None:
    body: Any = {
        "effect": "allow",
        "tool": "execute_command",
        "command": "npm run 'a b'",
        "pattern": None,
        "path": None,
        "host": None,
        "agent": None,
        "scope": "project",
        "workspace": "/home/me/my api",
    }
    words = ["handrail", "rules", "add", "allow", "npm run 'a b'", "--workspace", "/home/me/my api"]
    assert shlex.split(add_rule_command(body)) == words
    delete: Any = {**body, "tool": "apply_diff", "command": None, "path": "a.md", "scope": "user"}
    assert add_rule_command(delete) == "handrail rules add allow --tool apply_diff --path a.md --user"
