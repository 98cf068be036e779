"""Rules from the command line: listed as they are evaluated, added, removed."""

import re
import shlex

import pytest
from tests.support.cli_home import Agent, Home, Json

pytestmark = pytest.mark.e2e

SHAPE = {
    "id",
    "effect",
    "words",
    "scope",
    "source",
    "hits",
    "last_used_at",
    "builtin",
    "removable",
    "in_force",
    "says",
    "expires_at",
    "workspace",
}


def listed(handrail: Home, *options: str) -> list[Json]:
    return handrail.ok("rules", "--json", *options).json


def made(handrail: Home) -> list[Json]:
    return [row for row in listed(handrail) if row["workspace"] == str(handrail.workspace)]


def test_rules_are_listed_in_the_order_of_evaluation_with_what_is_known_of_them(
    handrail: Home, agent: Agent
) -> None:
    handrail.ok("rules", "add", "allow", "touch")
    handrail.ok("rules", "add", "ask", "--path", "migrations/**")
    handrail.ok("rules", "add", "deny", "git push", "--note", "Pushing is for people.")
    agent.answer(agent.call("execute_command", command="touch a"))
    rows = listed(handrail)
    assert all(row.keys() >= SHAPE for row in rows)
    assert [row["effect"] for row in rows if not row["builtin"]] == ["deny", "ask", "allow"]
    assert rows[-1]["id"] == "default policy"
    (used,) = [row for row in rows if row["command"] == "touch"]
    assert (used["hits"], used["last_used_at"] is not None) == (1, True)
    assert f"touch a  (rule {used['id']})" in handrail.ok("calls").out
    shown = handrail.ok("rules")
    (line,) = [line for line in shown.out.splitlines() if used["id"] in line]
    assert line.split()[:5] == [used["id"], "✓", "allow", "project", "1"]
    assert "just now  command line, " in line
    assert "`touch …` in this project" in line
    assert "⊘ deny   project        never" in shown.out
    assert f"In {handrail.workspace}, which is not trusted." in shown.err


def test_rules_of_other_folders_are_listed_when_asked_for(handrail: Home) -> None:
    other = handrail.workspace.parent / "other"
    other.mkdir()
    handrail.ok("rules", "add", "allow", "touch", "--workspace", str(other))
    assert made(handrail) == []
    (elsewhere,) = [row for row in listed(handrail, "--all") if row["workspace"] == str(other)]
    assert elsewhere["says"] == f"It holds in {other} only."
    (there,) = [row for row in listed(handrail, "--workspace", str(other)) if row["workspace"] == str(other)]
    assert there["in_force"] is True


def test_without_a_project_all_rules_are_listed(handrail: Home) -> None:
    handrail.ok("rules", "add", "allow", "touch")
    done = handrail.run("rules", cwd=handrail.workspace.parents[-1])
    assert done.code == 0
    assert "`touch …` in this project" in done.out
    assert done.err.startswith("Not in a project")
    refused = handrail.run("rules", "add", "allow", "touch", cwd=handrail.workspace.parents[-1])
    assert (refused.code, "Name a project with --workspace." in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (["allow", "npm run test:*"], {"effect": "allow", "command": "npm run test:*", "tool": None}),
        (["allow", "docs/**", "--tool", "write_file"], {"path": "docs/**", "tool": "write_file"}),
        (["ask", "--path", "*.lock"], {"effect": "ask", "path": "*.lock"}),
        (
            ["deny", "--host", "*.example.org", "--agent", "claude-*"],
            {"host": "*.example.org", "agent": "claude-*"},
        ),
        (["allow", "--tool", "write_file"], {"tool": "write_file", "command": None, "path": None}),
        (
            [
                "allow",
                "make",
                "--match",
                "make test",
                "--match",
                "make",
                "--not-match",
                "makepkg",
                "--note",
                "n",
            ],
            {"match": ["make test", "make"], "not_match": ["makepkg"], "note": "n"},
        ),
        (["allow", "make", "--project"], {"scope": "project"}),
    ],
)
def test_a_rule_says_what_its_options_say(handrail: Home, words: list[str], rule: Json) -> None:
    added = handrail.ok("rules", "add", *words, "--json").json
    assert {name: added[name] for name in rule} == rule
    assert [row["id"] for row in made(handrail)] == [added["id"]]
    assert added["workspace"] == str(handrail.workspace)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["allow"], "does not say what it is about"),
        (["allow", "*"], "would allow many programs"),
        (["allow", "env"], "no rule can allow it by its own name"),
        (["allow", "git", "--host", "example.org"], "Make two rules"),
        (["allow", "git status", "--match", "git push"], "git push"),
        (["deny", "--path", "../up"], "goes up"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_a_sentence_also_for_programs(
    handrail: Home, words: list[str], sentence: str
) -> None:
    for form in ([], ["--json"]):
        refused = handrail.run("rules", "add", *words, *form)
        assert (refused.code, sentence in refused.err, refused.out) == (1, True, "")
    assert made(handrail) == []


def test_a_rule_for_every_folder_holds_where_it_is_trusted_and_one_expires(alone: Home) -> None:
    alone.up()
    told = alone.ok("rules", "add", "allow", "touch", "--user", "--expires", "2w").out
    assert "allows `touch …` in every trusted folder until " in told
    (row,) = [row for row in listed(alone) if row["removable"]]
    assert (row["scope"], row["workspace"], row["in_force"]) == ("user", None, False)
    assert "not in force: This folder is not trusted" in alone.ok("rules").out


def test_a_new_rule_answers_what_waits_and_is_held_against_the_past(handrail: Home, agent: Agent) -> None:
    request = agent.call("execute_command", command="touch waiting", wait_seconds=600)
    handrail.asked()
    told = handrail.ok("rules", "add", "allow", "touch waiting").out
    assert agent.answer(request)["structuredContent"]["status"] == "done"
    assert "would have decided 1 of your last " in told


def test_a_rule_is_removed_by_its_first_letters_and_asks_again(handrail: Home, agent: Agent) -> None:
    added = handrail.ok("rules", "add", "allow", "touch", "--json").json
    told = handrail.ok("rules", "remove", added["id"][:9]).out
    assert told == f"Removed {added['id']}: allow `touch …` in this project\n"
    assert made(handrail) == []
    agent.call("execute_command", command="touch a", wait_seconds=600)
    handrail.ok("deny", handrail.asked()[0]["id"])
    gone = handrail.run("rules", "remove", added["id"])
    assert gone.err == f"There is no rule {added['id']}. `handrail rules` lists what there is.\n"
    assert handrail.run("rules", "remove", "default policy").code == 1


def test_a_rule_in_a_file_is_removed_there(handrail: Home) -> None:
    (handrail.workspace / ".handrail").mkdir()
    (handrail.workspace / ".handrail" / "config.toml").write_text(
        '[[rules]]\neffect = "deny"\ncommand = "git push"\n'
    )
    (row,) = made(handrail)
    assert row["source"] == ".handrail/config.toml:1"
    refused = handrail.run("rules", "remove", row["id"])
    assert (refused.code, "stands in .handrail/config.toml:1. Change it there." in refused.err) == (1, True)


def test_what_is_answered_alike_again_and_again_is_suggested_with_the_command_for_it(
    handrail: Home, agent: Agent
) -> None:
    for number in range(5):
        request = agent.call("execute_command", command=f"touch often-{number}", wait_seconds=600)
        handrail.ok("approve", handrail.asked()[0]["id"])
        agent.answer(request)
    told = handrail.ok("rules").err
    assert f"handrail rules add allow touch --workspace {handrail.workspace}\n" in told


def test_a_note_that_would_drive_the_terminal_does_not(handrail: Home) -> None:
    handrail.ok("rules", "add", "deny", "git push", "--note", "a\x1b[2J\nRule r0 allows everything")
    out = handrail.ok("rules").out
    assert "a\\e[2J\\nRule r0 allows everything" in out


def test_what_decides_needs_a_person_and_looking_does_not(handrail: Home, agent: Agent) -> None:
    """Each is tried by a command of the agent's own; the question for it was answered from outside."""
    rule = handrail.ok("rules", "add", "allow", "touch", "--json").json["id"]
    tries = [
        ["rules"],
        ["trust", "--list"],
        ["rules", "add", "allow", "rm"],
        ["rules", "remove", rule],
        ["rules", "test", "ls"],
        ["trust"],
        ["trust", "--undo"],
        ["undo", "c1", "--dry-run"],
        ["approve", "a1", "--always"],
    ]
    names = ("HANDRAIL_HOME", "PYTHONPATH")
    env = " ".join(shlex.quote(f"{name}={handrail.env[name]}") for name in names)
    lines = [f"env {env} {shlex.join(handrail.argv(*words))} 2>&1; echo ended $?" for words in tries]
    request = agent.call("execute_command", command="\n".join(lines), wait_seconds=600)
    handrail.ok("approve", handrail.asked()[0]["id"])
    output: str = agent.answer(request)["structuredContent"]["output"]
    assert re.findall(r"ended (\d+)", output) == ["0", "0", *["1"] * (len(tries) - 2)]
    assert output.count("Do it on the page") == len(tries) - 2
    assert [row["id"] for row in made(handrail)] == [rule]


def test_a_rule_is_disabled_enabled_moved_and_edited(handrail: Home, agent: Agent) -> None:
    handrail.ok("rules", "add", "allow", "touch")
    handrail.ok("rules", "add", "allow", "touch b")
    first, second = made(handrail)
    off = handrail.ok("rules", "disable", first["id"])
    assert (
        f"Disabled {first['id']}: allow `touch …` in this project · not in force: It is disabled." in off.out
    )
    assert handrail.ok("rules", "test", "touch a", "--json").json["effect"] == "ask"
    assert handrail.ok("rules", "enable", first["id"], "--json").json["disabled"] is False
    assert handrail.ok("rules", "test", "touch b", "--json").json["rule"] == first["id"]
    handrail.ok("rules", "move", second["id"], "--before", first["id"])
    assert handrail.ok("rules", "test", "touch b", "--json").json["rule"] == second["id"]
    handrail.ok("rules", "move", second["id"], "--last")
    assert [row["id"] for row in made(handrail)] == [first["id"], second["id"]]
    handrail.ok("rules", "edit", second["id"], "mkdir", "--note", "Folders are fine.")
    changed = made(handrail)[-1]
    assert (changed["command"], changed["note"], changed["effect"]) == ("mkdir", "Folders are fine.", "allow")
    assert second["id"] not in {row["id"] for row in made(handrail)}
    refused = handrail.run("rules", "move", first["id"])
    assert (refused.code, "Give --before ID, or --last." in refused.err) == (2, True)
