"""Trusting a folder: what it changes is shown, and just that is trusted."""

import hashlib
from pathlib import Path

import pytest
from tests.support.cli_home import Agent, Home, Screen

from handrail.cli.interactive.keyboard import GUARD_SECONDS

pytestmark = pytest.mark.e2e

ALLOWS = '[[rules]]\neffect = "allow"\ncommand = "touch"\n'


def project_file(folder: Path, text: str = ALLOWS) -> Path:
    file = folder / ".handrail" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def test_what_the_file_allows_is_shown_and_holds_until_it_changes(handrail: Home, agent: Agent) -> None:
    file = project_file(handrail.workspace)
    out = handrail.ok("trust").out
    assert f"{handrail.workspace}\n" in out
    assert (
        "Its .handrail/config.toml would from then on, until it changes:\n  allow command touch   (line 1)\n"
        in out
    )
    assert out.endswith(f"✓ trusted  {handrail.workspace}\n")
    done = agent.answer(agent.call("execute_command", command="touch a"))
    assert done["structuredContent"]["status"] == "done"
    file.write_text(ALLOWS + "# more\n")
    agent.call("execute_command", command="touch b", wait_seconds=600)
    handrail.ok("deny", handrail.asked()[0]["id"])
    assert "is not the one that was trusted" in handrail.ok("trust", "--list").out


def test_a_folder_is_trusted_no_longer(handrail: Home, agent: Agent) -> None:
    project_file(handrail.workspace)
    handrail.ok("trust", str(handrail.workspace))
    assert "which is trusted." in handrail.ok("rules").err
    told = handrail.ok("trust", "--undo").out
    assert told == f"● not trusted  {handrail.workspace}\n"
    agent.call("execute_command", command="touch b", wait_seconds=600)
    handrail.ok("deny", handrail.asked()[0]["id"])


def test_ones_own_rules_that_wait_for_trust_are_shown(alone: Home) -> None:
    alone.up()
    rule = alone.ok("rules", "add", "allow", "npm test", "--user", "--json").json
    alone.ok("rules", "add", "deny", "git push", "--user")
    out = alone.ok("trust").out
    assert "It brings no rules of its own.\n" in out
    assert f"would also apply in it:\n  allow `npm test …` in every trusted folder   ({rule['id']})\n" in out
    assert "git push" not in out


def test_programs_get_the_folder_with_the_hash_of_what_was_trusted(handrail: Home) -> None:
    file = project_file(handrail.workspace)
    told = handrail.ok("trust", "--json").json
    assert (told["folder"], told["trusted"]) == (str(handrail.workspace), True)
    assert told["config"] == hashlib.sha256(file.read_bytes()).hexdigest()
    known = handrail.ok("trust", "--list", "--json").json
    assert [row["trusted"] for row in known if row["folder"] == str(handrail.workspace)] == [True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nonsense", "is not valid TOML"),
        ('[[rules]]\neffect = "allow"\ncommand = "env"\n', "no rule can allow it by its own name"),
    ],
)
def test_a_file_that_is_wrong_is_not_trusted(handrail: Home, text: str, sentence: str) -> None:
    project_file(handrail.workspace, text)
    refused = handrail.run("trust")
    assert refused.code == 1
    assert "cannot be trusted while its file is wrong" in refused.err
    assert sentence in refused.err
    assert "not trusted" in handrail.ok("rules").err


def test_home_the_root_and_what_is_not_there_cannot_be_trusted(handrail: Home) -> None:
    for folder, sentence in (("/", "too wide"), ("missing", "is not a directory")):
        refused = handrail.run("trust", folder)
        assert (refused.code, sentence in refused.err) == (1, True)
        assert "handrail trust DIR" in refused.err


def test_a_folder_within_a_repository_is_not_what_agents_work_in_and_that_is_said(handrail: Home) -> None:
    (handrail.workspace / ".git").mkdir()
    inner = handrail.workspace / "inner"
    inner.mkdir()
    told = handrail.ok("trust", str(inner))
    assert f"Agents started in it have the workspace {handrail.workspace}" in told.err


def test_on_a_terminal_it_is_asked_for_and_keys_from_before_answer_nothing(handrail: Home) -> None:
    project_file(handrail.workspace)
    with Screen(handrail, "trust") as screen:
        screen.type("yyyy")
        seen = screen.shows("[n]o")
        assert "allow command touch" in seen
        screen.type("y")
        assert screen.stays_without("✓ trusted", GUARD_SECONDS + 0.2)
        screen.press("n", "Nothing was changed.")
        assert screen.ends() == 1
    assert "not trusted" in handrail.ok("rules").err
    with Screen(handrail, "trust") as screen:
        screen.shows("[n]o")
        assert screen.stays_without("✓ trusted", GUARD_SECONDS + 0.2)
        screen.press("y", "✓ trusted")
        assert screen.ends() == 0
    with Screen(handrail, "trust", "--yes") as screen:
        screen.shows("✓ trusted")


def test_a_file_that_changes_while_it_is_looked_at_is_not_trusted(handrail: Home) -> None:
    file = project_file(handrail.workspace)
    with Screen(handrail, "trust") as screen:
        screen.shows("[n]o")
        file.write_text('[[rules]]\neffect = "allow"\ncommand = "curl"\n')
        assert screen.stays_without("✓ trusted", GUARD_SECONDS + 0.2)
        screen.press("y", "is not as you saw it.")
        assert screen.ends() == 1
    assert "not trusted" in handrail.ok("rules").err
