"""Finds addresses of modules and files that stand in strings, where no type checker sees them.

Scans syntax trees, so that nothing here names a module of the package: it works unchanged after modules move.
"""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from tests.house.source import ROOT, SRC, modules, nodes

PACKAGE = SRC / "handrail"
DOTTED = re.compile(r"(?<![\w./@-])handrail(?:\.[A-Za-z_][A-Za-z0-9_]*)+(?![\w(/*-])")
RUN = re.compile(r"-m ((?:handrail|tests|bench)(?:\.[a-z_0-9]+)*)")
IN_TREE = re.compile(r"src/handrail[\w./*-]*")
HINT = re.compile(r"handrail[./]|\"-[mc]\"|-m (handrail|tests|bench)|__file__|resources")
"""Stands in every file that holds an address: the others need not be parsed."""
DEPTH = 4
"""How deep values of a module are searched: a tuple of strings in a dataclass in a dict."""


@dataclass(frozen=True, slots=True)
class Found:
    """An address and the place where it stands."""

    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is passed to Python as text: `python FLAGS -c CODE`."""

    where: str
    flags: tuple[str, ...]
    code: str


@cache
def sources(*folders: str) -> list[Path]:
    """The Python files of these folders in which the package, or a folder of the checkout, could be addressed."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in paths if HINT.search(path.read_text())]


@cache
def strings(path: Path) -> list[Found]:
    """Every string constant of a file, with its line. Of an f-string, the whole names before a placeholder."""
    cut = {
        id(piece)
        for node in nodes(path)
        if isinstance(node, ast.JoinedStr)
        for piece, after in pairwise(node.values)
        if isinstance(after, ast.FormattedValue)
    }
    return [
        Found(_place(path, node), re.sub(r"\.?\w*$", "", node.value) if id(node) in cut else node.value)
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _place(path: Path, node: ast.expr) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


@cache
def loaded() -> list[tuple[Path, ModuleType]]:
    """Every module of the package, imported."""
    return [(module.path, importlib.import_module(module.name)) for module in modules()]


# Modules


def values(module: ModuleType) -> Iterator[Found]:
    """Every string that a module holds at its top level, also in tuples and dataclasses."""
    for name, value in vars(module).items():
        if not name.startswith("__"):
            yield from (Found(f"{module.__name__}.{name}", text) for text in _texts(value, DEPTH))


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, tuple | list | set | frozenset):
        yield from (text for item in cast("list[Any]", value) for text in _texts(item, depth - 1))
    elif depth and isinstance(value, Mapping):
        yield from _texts(list(cast("Mapping[Any, Any]", value).values()), depth - 1)
    elif depth and is_dataclass(value) and not isinstance(value, type):
        yield from _texts([getattr(value, field.name, None) for field in fields(value)], depth - 1)


@cache
def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if is_module(module):
            return not parts[length:] or _has(importlib.import_module(module), parts[length:])
    return False


def _has(value: object, names: list[str]) -> bool:
    for name in names:
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def is_runnable(name: str) -> bool:
    """Whether `python -m NAME` runs something."""
    if not is_module(name):
        return False
    spec = importlib.util.find_spec(name)
    assert spec is not None
    if spec.submodule_search_locations is not None:
        return is_module(f"{name}.__main__")
    return spec.origin is not None and '__name__ == "__main__"' in Path(spec.origin).read_text()


def runs(path: Path) -> Iterator[Found]:
    """Modules that a file runs by `-m`: as two items of an argument list, or within one text."""
    for node in nodes(path):
        if isinstance(node, ast.List | ast.Tuple | ast.Call):
            items = node.args if isinstance(node, ast.Call) else node.elts
            for option, name in pairwise(items):
                if _is_text(option, "-m") and isinstance(name, ast.Constant):
                    yield Found(_place(path, node), str(name.value))
    for found in strings(path):
        yield from (Found(found.where, name) for name in RUN.findall(found.text))


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


# Programs


def programs(path: Path, module: ModuleType) -> Iterator[Program]:
    """Programs given by `-c` whose text is a value of the module."""
    for node in nodes(path):
        if isinstance(node, ast.List | ast.Tuple):
            for place, option in enumerate(node.elts[:-1]):
                code = _value_of(node.elts[place + 1], module)
                if _is_text(option, "-c") and isinstance(code, str):
                    yield Program(_place(path, node), _flags(node.elts[:place]), code)


def _value_of(node: ast.expr, module: ModuleType) -> object:
    return getattr(module, node.id, None) if isinstance(node, ast.Name) else None


def _flags(items: list[ast.expr]) -> tuple[str, ...]:
    return tuple(str(item.value) for item in items if isinstance(item, ast.Constant))


def only_imports(code: str) -> str:
    """The same program, ended where it would begin to work: imports and changes of `sys.path` alone."""
    kept = [
        node
        for node in ast.parse(code).body
        if isinstance(node, ast.Import | ast.ImportFrom) or "sys.path" in ast.unparse(node)
    ]
    return "\n".join(ast.unparse(node) for node in kept)


# Files


@cache
def own_paths() -> list[tuple[Found, Any]]:
    """Every expression of the package that leads to one of its files, with its value.

    From `__file__`, from `importlib.resources.files`, or from a path that the module holds.
    """
    return [pair for path, module in loaded() for pair in _own_paths(path, module)]


def _own_paths(path: Path, module: ModuleType) -> Iterator[tuple[Found, Any]]:
    names = {"Path": Path, "resources": resources, "files": resources.files, **vars(module)}
    names["__file__"] = str(path)
    for node in _outermost(nodes(path)[0], names):
        found = Found(_place(path, node), ast.unparse(node))
        yield found, eval(found.text, dict(names))


def _outermost(tree: ast.AST, names: Mapping[str, Any]) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr) and _is_path(child, names):
            yield child
        else:
            yield from _outermost(child, names)


def _is_path(node: ast.expr, names: Mapping[str, Any]) -> bool:
    """Whether it builds a path from one of the package's own, by the means of pathlib alone."""
    match node:
        case ast.BinOp(op=ast.Div(), left=left, right=ast.Constant()):
            return _is_path(left, names) or _holds_path(left, names)
        case (
            ast.Call(func=ast.Attribute(value=value, attr="joinpath" | "resolve" | "with_name"))
            | ast.Subscript(value=ast.Attribute(value=value, attr="parents"))
            | ast.Attribute(value=value, attr="parent")
        ):
            return _is_path(value, names)
        case ast.Call(func=function, args=[origin]):
            return _is_origin(ast.unparse(function), origin, names)
        case _:
            return False


def _is_origin(function: str, origin: ast.expr, names: Mapping[str, Any]) -> bool:
    """`Path(__file__)`, `Path(module.__file__)`, `files("package")`."""
    match origin:
        case ast.Name(id="__file__"):
            return function == "Path"
        case ast.Attribute(value=ast.Name(id=name), attr="__file__"):
            return function == "Path" and isinstance(names.get(name), ModuleType)
        case ast.Constant() | ast.Name(id="__package__" | "__name__"):
            return function == "resources.files" or (
                function == "files" and names["files"] is resources.files
            )
        case _:
            return False


def _holds_path(node: ast.expr, names: Mapping[str, Any]) -> bool:
    value = names.get(node.id) if isinstance(node, ast.Name) else None
    return isinstance(value, Path) and value.is_relative_to(SRC)
