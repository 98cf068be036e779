"""Public interfaces: packages use only the names of each other that `EXPORTS` in their `__init__` lists."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

import pytest
from tests.house.source import SRC, Module, absolute, modules, nodes

Interface = set[tuple[str, str]]
"""Pairs of a module, named below its package, and a name in it. An empty name stands for the module itself."""


@cache
def declared(src: Path) -> dict[str, Interface]:
    """The interface that each package declares."""
    interfaces: dict[str, Interface] = {}
    for path in sorted(src.glob("handrail/*/__init__.py")):
        interfaces[path.parent.name] = {
            (module, name) for module, names in _table(path).items() for name in names.split() or [""]
        }
    return interfaces


def _table(path: Path) -> dict[str, str]:
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="EXPORTS")]):
                return cast("dict[str, str]", ast.literal_eval(node.value))
            case _:
                pass
    return {}


@cache
def used(src: Path) -> dict[str, Interface]:
    """The names of each package that modules of other packages import."""
    interfaces: dict[str, Interface] = defaultdict(set)
    every = modules(src)
    known = {module.name for module in every}
    for module in every:
        for base, name in _imports(module):
            is_module = f"{base}.{name}" in known
            path = f"{base}.{name}" if is_module else base
            _, package, inner = (*path.split(".", 2), "", "")[:3]
            if path.startswith("handrail.") and package != module.room and inner:
                interfaces[package].add((inner, "" if is_module else name))
    return interfaces


def _imports(module: Module) -> Iterator[tuple[str, str]]:
    for node in nodes(module.path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((absolute(module, node), alias.name) for alias in node.names)


@pytest.mark.parametrize("package", sorted(declared(SRC)))
def test_a_package_exports_what_others_use_and_nothing_else(package: str) -> None:
    exported, imported = declared(SRC)[package], used(SRC).get(package, set())
    imported = {(module, "" if (module, "") in exported else name) for module, name in imported}

    assert sorted(imported - exported) == [], (
        f"imported by other packages, but not in handrail/{package}/__init__.py"
    )
    assert sorted(exported - imported) == [], (
        f"exported by handrail/{package}/__init__.py, but no package uses it"
    )


def test_a_name_that_is_not_exported_is_found_however_it_is_imported(tmp_path: Path) -> None:
    gate, store = tmp_path / "handrail" / "gate", tmp_path / "handrail" / "store"
    for package in (gate, store):
        package.mkdir(parents=True)
    (gate / "__init__.py").touch()
    (store / "__init__.py").write_text('EXPORTS = {"calls": "CallRecord", "rules": ""}')
    for name in ("calls", "rules", "journal"):
        (store / f"{name}.py").touch()
    (gate / "a.py").write_text(
        "from handrail.store.calls import CallRecord, hidden\nfrom handrail.store import rules"
    )
    (gate / "b.py").write_text("def f():\n    import handrail.store.journal\n    from ..store import calls")

    assert used(tmp_path)["store"] - declared(tmp_path)["store"] == {
        ("calls", "hidden"),
        ("calls", ""),
        ("journal", ""),
    }
