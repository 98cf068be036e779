"""Names: a newcomer finds a subject by file name alone, and no two modules of different nouns share a name."""

import re
from collections import Counter

import pytest
from tests.house.source import ROOT, SRC, Module, modules
from tests.house.source import imports as imports_of

QUESTIONS = {
    "Where is Cancel?": ("cancel", "handrail/gate/person_actions.py"),
    "Where is the diff review?": ("review", "handrail/tools/files/review.py"),
    "Where is the hash chain?": ("hash_chain", "handrail/store/hash_chain.py"),
    "Where are threads deleted?": ("threads", "handrail/store/threads/threads.py"),
    "Where is the shell parser?": ("shell_parser", "handrail/gate/shell/shell_parser.py"),
    "Where is the PTY reader?": ("pty", "handrail/keeper/pty.py"),
    "Where is the sign-in code?": ("sign_in", "handrail/server/api/sign_in.py"),
    "Where are the rule suggestions?": ("suggestions", "handrail/gate/rules/suggestions.py"),
    "Where is the compaction?": ("compaction", "handrail/own_agent/compaction.py"),
    "Where is the notification?": ("notifications", "handrail/daemon/notifications.py"),
}
SHARED = {
    "agents", "approvals", "calls", "clients", "connect", "credentials", "editors", "keys", "logins", "mcp_servers", "operations", "pause", "rules",
    "secrets", "servers", "shell", "sign_ins", "terminals", "threads", "transcripts", "trust", "undo",
}  # fmt: skip
"""Nouns that several layers have a module for. Any other name stands for one module. `connect` is a command, and what a door
does first; `keys` are those of a keyboard, and API keys."""
LINES_MAX = 500
SINGLE_IMPORTER_MAX = 0.09
WALK_MAX = 60


def named() -> list[Module]:
    return [module for module in modules() if module.path.name not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_newcomers_question_is_answered_by_a_file_name(question: str) -> None:
    subject, path = QUESTIONS[question]
    assert (SRC / path).is_file()
    found = [str(module.path.relative_to(SRC)) for module in named() if module.path.stem == subject]
    assert path in found or subject == "cancel"


def test_cancel_is_an_action_of_a_person() -> None:
    assert re.search(
        r"^def cancel\(", (SRC / "handrail/gate/person_actions.py").read_text(), flags=re.MULTILINE
    )


def test_only_nouns_of_several_layers_share_a_module_name() -> None:
    names = Counter(module.path.stem for module in named())
    assert {name for name, count in names.items() if count > 1} <= SHARED


def test_a_module_name_is_a_word_of_plain_letters() -> None:
    assert [
        module.name for module in named() if not re.fullmatch(r"_?[a-z]+(_[a-z]+)*", module.path.stem)
    ] == []


def test_no_module_is_too_long() -> None:
    """Generated files aside: nobody reads or edits them."""
    written = [module for module in modules() if not module.path.read_text().startswith("# Generated")]
    assert [module.name for module in written if len(module.path.read_text().splitlines()) > LINES_MAX] == []


def test_few_public_modules_have_one_importer_beside_them() -> None:
    known = frozenset(module.name for module in modules())
    importers: dict[str, set[Module]] = {}
    for module in modules():
        for name in imports_of(module, known):
            importers.setdefault(name, set()).add(module)
    single = [
        module.name
        for module in named()
        if not module.path.stem.startswith("_")
        if [other.path.parent for other in importers.get(module.name, ())] == [module.path.parent]
    ]
    assert len(single) / len(named()) < SINGLE_IMPORTER_MAX, single


def test_the_walk_of_a_command_names_modules_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text().partition("## For contributors")[2]
    walk = re.findall(r"`([a-z_]+(?:/[a-z_]+)*)`", text)
    walk = [name for name in walk if "/" in name or name in ("framing", "hidden_text", "__main__")]
    assert [name for name in walk if not (SRC / "handrail" / f"{name}.py").is_file()] == []
    assert 30 < len({*walk}) <= WALK_MAX
