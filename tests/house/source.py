"""What the tests of the house read: the modules of the package, and what each of them imports.

Owns the walk alone. Which import is allowed is said in `test_imports.py`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SRC = ROOT / "src"


@dataclass(frozen=True, slots=True)
class Module:
    """One file of the package: its dotted name and where it lies."""

    name: str
    path: Path

    @property
    def room(self) -> str:
        """The first name below the package: a folder, or a module that stands alone. Empty for the package."""
        return self.name.partition(".")[2].partition(".")[0]


def modules(src: Path = SRC) -> list[Module]:
    return [Module(dotted(path.relative_to(src)), path) for path in sorted(src.glob("handrail/**/*.py"))]


def dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a file, from the module down."""
    return list(ast.walk(ast.parse(path.read_text())))


def imports(module: Module, known: frozenset[str]) -> Iterator[str]:
    """The dotted name of every module that this one imports, anywhere in it, those for types included.

    `from a import b` means a.b where a.b is a module of ours (`known`), and a otherwise. A module that uses
    `import_module` imports every module whose name is one of its strings.
    """
    text = module.path.read_text()
    by_name = known if "import_module(" in text else frozenset[str]()
    for node in nodes(module.path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(module, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in known else base
        elif isinstance(node, ast.Constant) and node.value in by_name:
            yield str(node.value)


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    up = node.level - (module.path.name == "__init__.py")
    parts = module.name.split(".")
    base = parts[: len(parts) - up]
    return ".".join([*base, *filter(None, [node.module])])
