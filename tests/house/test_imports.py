"""Who may import whom. The table is the architecture; a new room has to be given a line in it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tests.house.source import SRC, modules, nodes
from tests.house.source import imports as imports_of

EVERYONE = {
    "",
    "errors",
    "framing",
    "hardening",
    "hidden_text",
    "lazy_dataclass",
    "lazy_packages",
    "paths",
    "process_state",
    "regular_file",
    "toml_lines",
}
ALMOST = {*EVERYONE, "config", "flat_settings"}
BARE = {*EVERYONE, "keeper", "door", "launcher"}  # packages that use the standard library only

MAY_IMPORT = {
    "": set[str](),
    "errors": set[str](),
    "framing": set[str](),
    "hardening": set[str](),
    "hidden_text": set[str](),
    "lazy_dataclass": set[str](),
    "lazy_packages": set[str](),
    "paths": {""},
    "process_state": set[str](),
    "regular_file": set[str](),
    "toml_lines": set[str](),
    "config": EVERYONE,
    "flat_settings": {*EVERYONE, "config"},
    "provider_keys": EVERYONE,
    "keeper": EVERYONE,
    "door": {*EVERYONE, "keeper.lineage", "keeper.protocol"},
    "launcher": {*EVERYONE, "keeper.lineage"},
    "store": ALMOST,
    "gate": {*ALMOST, "store"},
    "terminal": {*ALMOST, "keeper.protocol", "keeper.message_framing", "keeper.lineage", "launcher", "store"},
    "tools": {
        *ALMOST,
        *(
            "clients.hook_event",
            "clients.open_work",
            "gate",
            "launcher.trusted_programs",
            "store",
            "terminal",
        ),
    },
    "upstream": {*ALMOST, "gate", "provider_keys", "store", "terminal"},
    "agents": {*ALMOST, "gate", "store", "terminal"},
    "clients": ALMOST,
    "own_agent": {*ALMOST, "provider_keys"},  # another program: nothing but __main__ imports it
    "server": {*ALMOST, "agents", "clients", "gate", "provider_keys", "store", "terminal", "upstream"},
    "cli": {
        *ALMOST,
        "clients",
        "daemon",
        "demo",
        "doctor",
        "door",
        "provider_keys",
    },  # daemon, doctor: to run them
    "demo": {*EVERYONE, "door"},
    "doctor": {
        *ALMOST,
        *("clients", "door", "gate.rules.rules", "keeper.protocol", "launcher", "provider_keys", "store"),
    },
    "__main__": {*EVERYONE, "own_agent.__main__", "cli", "daemon.start", "door"},
}
MAY_IMPORT["daemon"] = {*MAY_IMPORT} - {"__main__", "cli", "demo", "doctor", "own_agent", "provider_keys"}


def broken_rules(src: Path) -> list[str]:
    """A sentence for each import that the table does not allow."""
    known = frozenset(module.name for module in modules(src))
    return [
        f"{module.name} may not import {name}"
        for module in modules(src)
        for name in sorted(set(imports_of(module, known)))
        if not allowed(module.room, name)
    ]


def allowed(room: str, name: str) -> bool:
    package, _, inner = name.partition(".")
    if package != "handrail":
        return room not in BARE or package in sys.stdlib_module_names
    target = inner.partition(".")[0]
    return target == room or inner in MAY_IMPORT[room] or target in MAY_IMPORT[room]


def test_every_room_stands_in_the_table() -> None:
    assert {module.room for module in modules()} - MAY_IMPORT.keys() == set()


def test_no_module_imports_what_its_room_may_not_know() -> None:
    assert broken_rules(SRC) == []


@pytest.mark.parametrize(
    ("path", "line", "sentence"),
    [
        ("store/a.py", "import handrail.gate.gate", "handrail.store.a may not import handrail.gate.gate"),
        ("gate/a.py", "from handrail import tools", "handrail.gate.a may not import handrail.tools"),
        ("gate/a.py", "from ..tools import files", "handrail.gate.a may not import handrail.tools.files"),
        (
            "server/a.py",
            "from handrail.tools import files",
            "handrail.server.a may not import handrail.tools.files",
        ),
        (
            "terminal/a.py",
            "import handrail.keeper.spool",
            "handrail.terminal.a may not import handrail.keeper.spool",
        ),
        ("keeper/a.py", "import anyio", "handrail.keeper.a may not import anyio"),
        (
            "door/a.py",
            "def f():\n    from pydantic import BaseModel",
            "handrail.door.a may not import pydantic",
        ),
    ],
)
def test_a_forbidden_import_is_found_however_it_is_written(
    tmp_path: Path, path: str, line: str, sentence: str
) -> None:
    for room in ("store", "gate", "server", "terminal", "keeper", "door", "tools"):
        (tmp_path / "handrail" / room).mkdir(parents=True)
        (tmp_path / "handrail" / room / "__init__.py").touch()
    for name in ("tools/files.py", "gate/gate.py", "keeper/spool.py"):
        (tmp_path / "handrail" / name).touch()
    (tmp_path / "handrail" / path).write_text(line)

    assert broken_rules(tmp_path) == [sentence]


def test_dataclasses_are_made_with_our_decorator() -> None:
    """The standard one takes 0.6 ms for each class while its module is imported. Ours has no `order`."""
    known = frozenset[str]()
    users = [m.name for m in modules() if "dataclasses" in imports_of(m, known) and _decorates(m.path)]
    assert users == ["handrail.terminal.output.output_search"]


def _decorates(path: Path) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and any(alias.name == "dataclass" for alias in node.names)
        for node in nodes(path)
    )


@pytest.mark.parametrize("room", sorted(BARE - {""}))
def test_a_bare_room_loads_where_no_package_is_installed(room: str) -> None:
    names = [m.name for m in modules() if m.room == room and not m.name.endswith("__main__")]
    program = f"import sys; sys.path.insert(0, {str(SRC)!r}); import {', '.join(names)}"
    command = [sys.executable, "-I", "-S", "-c", program]

    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)

    assert (done.returncode, done.stderr) == (0, "")
