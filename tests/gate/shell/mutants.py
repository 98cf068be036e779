"""Copies of the shell parser with one check switched off.

A check is an entry of a table of sentences (`Checks`) or of shapes (`Shapes`) in the parser's source: without its
sentence it tells nothing, without its shape a wrapper is not looked into. The checks are found in the source itself, so
that a new one cannot be missed. The product has no switch for any of this.
"""

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from handrail.gate.shell import shell_parser

GATE = Path(shell_parser.__file__).parent
ORDER = ("characters", "bash_reader", "_tree_sitter_reader", "wrappers", "shell_parser")
"""The parser's modules, each after those it imports."""
TABLES = ("Checks", "Shapes")
READERS = {"bash_reader": "read", "_tree_sitter_reader": "structure"}
"""The two that read a line each by itself."""
NOTHING = "nothing"
"""A trouble without a sentence."""


@dataclass(frozen=True)
class Check:
    """One entry of a table."""

    module: str
    table: str
    place: int
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.table}[{self.name}]"


def checks() -> list[Check]:
    return [
        Check(module, table, place, ast.unparse(key) if key is not None else "**")
        for module in ORDER
        for table, _, entries in _tables(_tree(module))
        for place, key in enumerate(entries.keys)
    ]


@dataclass(frozen=True)
class Site:
    """One place in a reader where a trouble is named."""

    module: str
    place: int
    name: str
    line: int

    def __str__(self) -> str:
        return f"{self.module}:{self.line}[{self.name}]"


def sites(module: str) -> list[Site]:
    return [
        Site(module, place, str(node.value), node.lineno) for place, node in enumerate(_named(_tree(module)))
    ]


def parser(without: Check | Site | None = None, deaf_to: str = "") -> Callable[[str], Any]:
    """`parse` of a copy of the parser: whole, without one check or site, or deaf to what one of its readers tells."""
    modules: dict[str, ModuleType] = {}
    for name in ORDER:
        code = _code(name) if without is None or without.module != name else _mutated(without)
        module = modules[f"handrail.gate.shell.{name}"] = ModuleType(f"mutant.{name}")
        vars(module)["__builtins__"] = vars(builtins) | {"__import__": _importer(modules)}
        exec(code, vars(module))
    whole = modules["handrail.gate.shell.shell_parser"]
    whole.TROUBLES[NOTHING] = ""
    if deaf_to:
        reader = READERS[deaf_to]
        vars(whole)[reader] = _deaf(vars(whole)[reader])
    return whole.parse


def _deaf(reader: Callable[..., Any]) -> Callable[..., Any]:
    def read(text: str) -> Any:
        return replace(reader(text), troubles=())

    return read


def _importer(modules: Mapping[str, ModuleType]) -> Callable[..., ModuleType]:
    def load(name: str, *rest: Any) -> ModuleType:
        return modules[name] if name in modules else builtins.__import__(name, *rest)

    return load


def _tree(module: str) -> ast.Module:
    return ast.parse((GATE / f"{module}.py").read_text())


@cache
def _code(module: str) -> CodeType:
    return compile(_tree(module), f"<{module}>", "exec")


def _mutated(check: Check | Site) -> CodeType:
    tree = _tree(check.module)
    if isinstance(check, Site):
        _named(tree)[check.place].value = NOTHING
        return compile(tree, f"<{check}>", "exec")
    kind, entries = next((kind, found) for table, kind, found in _tables(tree) if table == check.table)
    if kind == "Checks":
        entries.values[check.place] = ast.Constant("")
    else:
        del entries.keys[check.place], entries.values[check.place]
    return compile(ast.fix_missing_locations(tree), f"<{check}>", "exec")


def _named(tree: ast.Module) -> list[ast.Constant]:
    """Where a trouble is named; kinds of the grammar may be called the same."""
    kinds = [key for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys]
    kinds += [each for node in ast.walk(tree) if isinstance(node, ast.Tuple) for each in node.elts[1:]]
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in shell_parser.TROUBLES and node not in kinds
    ]


def _tables(tree: ast.Module) -> Iterator[tuple[str, str, ast.Dict]]:
    for node in tree.body:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=table), annotation=ast.Name(id=kind), value=ast.Dict() as entries
            ):
                if kind in TABLES:
                    yield table, kind, entries
            case _:
                pass
