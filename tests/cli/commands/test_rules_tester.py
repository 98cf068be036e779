"""What would be decided, by which rule, and why; without any effect."""

import pytest
from tests.support.cli_home import Home

pytestmark = pytest.mark.e2e


def test_the_decision_has_the_shape_that_scripts_rely_on(handrail: Home) -> None:
    rule = handrail.ok("rules", "add", "allow", "git status", "--json").json
    told = handrail.ok("rules", "test", "git status && touch x", "--json").json
    assert told.keys() >= {"effect", "rule", "why", "parts", "chain", "risk", "reasons", "trusted"}
    assert (told["effect"], told["rule"]) == ("ask", "untrusted folder")
    assert [(part["text"], part["effect"], part["rule"]) for part in told["parts"]] == [
        ("git status", "allow", rule["id"]),
        ("touch x", "ask", "untrusted folder"),
    ]
    assert not (handrail.workspace / "x").exists()


@pytest.mark.parametrize(("effect", "ends"), [("allow", 0), ("ask", 0), ("deny", 0)])
def test_whatever_is_decided_the_test_itself_succeeds(handrail: Home, effect: str, ends: int) -> None:
    handrail.ok("rules", "add", effect, "git push")
    done = handrail.run("rules", "test", "git push -f", "--json")
    assert (done.code, done.json["effect"]) == (ends, effect)


def test_people_see_the_decision_the_parts_and_all_that_was_looked_at(handrail: Home) -> None:
    rule = handrail.ok("rules", "add", "deny", "git push", "--note", "Pushing is for people.", "--json").json
    lines = handrail.ok("rules", "test", "ls && git push -f").out.splitlines()
    assert lines[0] == f"⊘ deny  by {rule['id']}   HIGH risk, in {handrail.workspace}, not trusted"
    assert lines[1] == f"Rule {rule['id']} refuses `git push …` in this project. Pushing is for people."
    assert lines[2].startswith("Risk: publishes · ")
    assert [line.split() for line in lines if line.endswith("  git push -f")] == [
        ["2", "⊘", "deny", rule["id"], "git", "push", "-f"]
    ]
    (deciding,) = [line for line in lines if line.startswith("→") and rule["id"] in line]
    assert deciding.split()[:5] == ["→", rule["id"], "⊘", "deny", "2"]
    assert lines[-1].split()[:4] == ["default", "policy", "●", "ask"]


def test_another_tool_another_folder_and_another_agent_can_be_tried(handrail: Home) -> None:
    other = handrail.workspace.parent / "other"
    other.mkdir()
    handrail.ok(
        "rules", "add", "allow", "--tool", "write_file", "--agent", "claude-*", "--workspace", str(other)
    )
    given = ["--tool", "write_file", "--input", '{"path": "a.md", "content": "x"}', "--workspace", str(other)]
    assert handrail.ok("rules", "test", *given, "--agent", "claude-code", "--json").json["effect"] == "allow"
    assert handrail.ok("rules", "test", *given, "--agent", "codex", "--json").json["effect"] == "ask"
    assert not (other / "a.md").exists()
    assert handrail.run("rules", "test", "--tool", "nope").code == 1


def test_where_there_is_no_workspace_everything_asks(handrail: Home) -> None:
    told = handrail.run("rules", "test", "ls", cwd=handrail.workspace.parents[-1])
    assert told.out.startswith("● ask  by no workspace   ")
    assert "without a workspace\n" in told.out


def test_what_hides_in_a_line_is_spelled_out(handrail: Home) -> None:
    out = handrail.ok("rules", "test", "ls \u202e\x1b[2J").out
    assert "\\u{202e}" in out
    assert "\x1b" not in out


def test_a_command_that_only_reads_passes_in_a_trusted_folder_by_a_rule_that_is_listed(
    handrail: Home,
) -> None:
    line = "ls -l && head -5 notes.txt"
    told = handrail.ok("rules", "test", line, "--json").json
    assert (told["effect"], told["rule"]) == ("ask", "untrusted folder")
    handrail.ok("trust", "--yes", str(handrail.workspace))
    told = handrail.ok("rules", "test", line, "--json").json
    assert (told["effect"], told["rule"], told["risk"]) == ("allow", "reading commands", "low")
    assert "`allow_reading_commands` is on" in told["why"]
    assert handrail.ok("rules", "test", f"{line} > out", "--json").json["effect"] == "ask"
    assert "reading commands" in handrail.ok("rules").out
