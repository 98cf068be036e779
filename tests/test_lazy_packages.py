"""Importing modules of packages whose `__init__.py` imports more than is needed."""

import ast
import importlib.util
import sys
from pathlib import Path

import pytest

from handrail.lazy_packages import LazyPackages
from handrail.own_agent.slow_import import LAZY
from handrail.server.mcp.mcp_endpoints import SDK


@pytest.mark.parametrize("package", sorted(LAZY.names | SDK.names))
def test_no_name_of_a_lazy_package_is_that_of_another_module(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text())
    names = {
        name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level and node.module
        for each in node.names
        if (name := each.asname or each.name) != node.module or each.name != name
    }
    modules = {path.stem for path in Path(spec.origin).parent.iterdir()}

    assert names & modules == set(), "importing that module first would hide the name, which is from another"


def write_package(folder: Path, init: str, **modules: str) -> None:
    folder.mkdir()
    (folder / "__init__.py").write_text(init)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)


@pytest.fixture
def lazy_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "sample_lazy"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "sample_lazy"


def import_sample(name: str) -> None:
    LazyPackages({"sample_lazy"}, importers="tests").import_modules(name)


def test_a_package_that_needs_its_init_first_is_imported_as_usual(lazy_package: Path) -> None:
    write_package(
        lazy_package,
        "import sys\nsys.sample_lazy = 7\nfrom .a import A\n",
        a="import sys\nA = sys.sample_lazy\n",
    )

    import_sample("sample_lazy.a")

    assert sys.modules["sample_lazy.a"].A == 7


def test_names_of_a_lazy_package_are_those_of_its_init(lazy_package: Path) -> None:
    init = "from .a import A\nfrom .b import B as C\nfrom .b import D\nfrom .c import c\nD = D + 1\ndef made(): return C\n"
    write_package(lazy_package, init, a="A = 1\n", b="B = 2\nD = 3\n", c="c = 5\n")

    import_sample("sample_lazy.c")
    package = sys.modules["sample_lazy"]
    before = set(sys.modules)
    assert package.c == 5, "the name of a module that has it"

    assert (package.A, package.C) == (1, 2)
    assert {"sample_lazy.a", "sample_lazy.b"} <= set(sys.modules) - before
    assert "made" not in vars(package)
    assert (package.made(), package.D) == (2, 4)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing
