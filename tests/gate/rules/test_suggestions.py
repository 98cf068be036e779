"""A question suggests rules that would answer the next one like it: general, but never for what no rule can allow."""

import pytest
from tests.support.policy_values import HOME, ONE, ROOT, caller, claim, policy, rule, runs

from handrail.gate.rules.policy import FolderSettings, Policy
from handrail.gate.rules.suggestions import suggest_rules
from handrail.store.values import Claim, Rule


def commands(line: str, *rules: Rule) -> list[str | None]:
    found = suggest_rules("execute_command", runs(line), ONE, policy(*rules))
    return [each.rule.command for each in found]


@pytest.mark.parametrize(
    ("line", "patterns"),
    [
        ("git push origin main", ["git push"]),
        ("git status", ["git status"]),
        ("git push --force origin", ["git push --force origin $"]),
        ("git reset --hard", ["git reset --hard $"]),
        ("git stash pop", ["git stash pop"]),
        ("npm run test -- --watch", ["npm run test"]),
        ("npm install left-pad", ["npm install"]),
        ("pytest -x tests/a.py", ["pytest"]),
        ("python -m pytest -x", ["python -m pytest"]),
        ("python scripts/gen.py --all", ["python scripts/gen.py"]),
        ("python -c 'print(1)'", ["python -c 'print(1)' $"]),
        ("make test lint", ["make test"]),
        ("./deploy.sh now", ["./deploy.sh"]),
        (".venv/bin/python manage.py test", [".venv/bin/python manage.py"]),
        ("/usr/bin/python3.12 -c 'print(1)'", ["/usr/bin/python3.12 -c 'print(1)' $"]),
        ("python -m pip install x", ["python -m pip install"]),
        ("node_modules/.bin/tsx a.ts", ["node_modules/.bin/tsx a.ts"]),
        ("npx tsx a.ts", ["npx tsx a.ts"]),
        ("npx prettier a.ts", ["npx prettier"]),
        ("uv run pytest -x", ["uv run pytest"]),
        ("uv run python a.py", ["uv run python a.py"]),
        ("uv tool run ruff check", ["uv tool run ruff"]),
        ("poetry run python -c 1", ["poetry run python -c 1 $"]),
        ("/usr/bin/git push origin", ["/usr/bin/git push"]),
        ("/bin/rm -r build", ["/bin/rm -r build $"]),
        ("RM build", ["RM build $"]),
        ("docker compose up", ["docker compose up"]),
        ("gh auth status", ["gh auth status $"]),
        ("rm -r build", ["rm -r build $"]),
        ("cp a b", ["cp a b $"]),
        ("git add . && git commit -m 'a b'", ["git add", "git commit"]),
        ("git add a && git add b", ["git add"]),
    ],
)
def test_a_command_suggests_the_words_that_say_what_it_does(line: str, patterns: list[str]) -> None:
    assert commands(line) == patterns


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf .",
        "rm -rf *",
        "rm -rf ..",
        "/bin/rm -rf .",
        "sudo make",
        "git push > x",
        "ls | xargs rm",
        "bash x.sh",
        "make; $(x)",
        "git -c a=b status",
        "sed -i s/a/b/ x",
    ],
)
def test_nothing_is_suggested_for_roots_wrappers_and_what_is_not_understood(line: str) -> None:
    assert commands(line) == []


def test_each_suggestion_names_the_parts_it_would_decide_and_those_decided_are_left_alone() -> None:
    claims = runs("git status && npm test && git diff && npm test -- -u")
    found = suggest_rules("execute_command", claims, ONE, policy(rule(command="git")))
    assert [(each.rule.command, each.claims) for each in found] == [("npm test", (1, 3))]


def test_what_an_ask_rule_or_a_floor_asks_about_is_not_suggested_away() -> None:
    assert commands("git push", rule("ask", command="git push")) == []
    protected = [claim("write", "/w/.ssh/a", protected=True)]
    assert suggest_rules("write_file", protected, ONE, policy()) == []


@pytest.mark.parametrize(
    ("claimed", "path", "tool"),
    [
        (claim("write", "/w/src/app/a.py"), "src/app/**", None),
        (claim("write", "/w/README.md"), "README.md", None),
        (claim("delete", "/w/src/a.py"), "src/a.py", "apply_diff"),
        (claim("read", "/etc/hosts", inside=False), "/etc/hosts", None),
    ],
)
def test_a_file_suggests_its_folder_or_itself(claimed: Claim, path: str, tool: str | None) -> None:
    [found] = suggest_rules("apply_diff", [claimed], ONE, policy())
    assert (found.rule.path, found.rule.tool, found.rule.scope, found.rule.workspace) == (
        path,
        tool,
        "project",
        ROOT,
    )
    assert path in found.words


def test_a_file_whose_name_would_be_a_pattern_suggests_nothing() -> None:
    assert suggest_rules("write_file", [claim("write", "/w/a*.py")], ONE, policy()) == []


def test_a_connection_suggests_its_host() -> None:
    [found] = suggest_rules("execute_command", [claim("connect", "example.org", inside=False)], ONE, policy())
    assert found.rule.host == "example.org"


def test_a_word_that_cannot_be_written_in_a_pattern_suggests_nothing() -> None:
    assert suggest_rules("execute_command", [claim("run", words=("sed", "a\nb"))], ONE, policy()) == []


def test_without_a_workspace_nothing_is_suggested() -> None:
    nowhere = Policy((), FolderSettings(), root=None, home=HOME)
    assert suggest_rules("execute_command", runs("git status"), caller(workspace=None), nowhere) == []


@pytest.mark.parametrize(
    "line", ["git push origin main", "rm -r build", "npm run test", "python -c 'a b'", "cp a 'b c'"]
)
def test_what_is_suggested_would_have_allowed_it(line: str) -> None:
    found = suggest_rules("execute_command", runs(line), ONE, policy())
    held = policy(*(each.rule for each in found))
    assert held.decide("execute_command", runs(line), ONE).effect == "allow"
