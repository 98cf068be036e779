"""Every check of the shell parser is needed: without any single one of them some line of the corpus is decided otherwise."""

import ast
import builtins
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
from tests.support.shell_corpus import MADE, WRITTEN, decided

from handrail.gate.shell import shell_parser
from handrail.store.values import Effect

GATE = Path(shell_parser.__file__).parent
ORDER = ("bash_reader", "_tree_sitter_reader", "wrappers", "shell_parser")
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


CHECKS = checks()


LIKELY = [*reversed(WRITTEN), *MADE]
"""The lines that are not plain first."""


def is_noticed(without: Check | Site, deaf_to: str = "") -> bool:
    parse, whole = parser(without, deaf_to), _decisions(deaf_to)
    return any(decided(line, parse) != whole[line] for line, _ in LIKELY)


@cache
def _decisions(deaf_to: str) -> dict[str, Effect]:
    """What the corpus says; of a parser that is deaf to one of its readers, what it decides by the other alone."""
    if not deaf_to:
        return dict(LIKELY)
    parse = parser(deaf_to=deaf_to)
    return {line: decided(line, parse) for line, _ in LIKELY}


def test_the_whole_copy_decides_as_the_corpus_says() -> None:
    parse = parser()
    assert [line for line, effect in WRITTEN if decided(line, parse) != effect] == []


def test_the_checks_are_found_in_the_source() -> None:
    tables = {(check.module, check.table) for check in CHECKS}
    assert tables == {
        ("shell_parser", "CHARACTERS"),
        ("wrappers", "TRANSPARENT"),
        ("wrappers", "LINES"),
        ("wrappers", "CLOSED"),
        ("wrappers", "INNER"),
        ("wrappers", "WRAPPED"),
        ("wrappers", "FLAGS"),
        ("wrappers", "SECOND_FILE"),
        ("wrappers", "EXPRESSIONS"),
        ("wrappers", "STATE"),
        ("shell_parser", "TROUBLES"),
    }
    assert len(CHECKS) > 100


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_without_this_check_some_line_is_decided_otherwise(check: Check) -> None:
    assert is_noticed(check)


def test_plain_reading_alone_stops_all_that_both_readers_stop() -> None:
    assert _decisions("_tree_sitter_reader") == _decisions("")


def test_the_grammar_alone_lets_only_pass_what_it_does_not_know() -> None:
    passed = [
        line
        for line, effect in _decisions("bash_reader").items()
        if effect == "allow" != _decisions("")[line]
    ]
    assert 0 < len(passed) < 40


@pytest.mark.parametrize("site", sites("bash_reader"), ids=str)
def test_each_place_where_plain_reading_stops_is_needed_when_the_grammar_is_not_heard(site: Site) -> None:
    assert is_noticed(site, deaf_to="_tree_sitter_reader")


@pytest.mark.parametrize("site", sites("_tree_sitter_reader"), ids=str)
def test_each_place_where_the_grammar_stops_is_needed_when_plain_reading_is_not_heard(site: Site) -> None:
    assert is_noticed(site, deaf_to="bash_reader")
