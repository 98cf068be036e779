"""Importing the model libraries without the modules that a conversation does not use."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.daemon_home import BOUND

from handrail.own_agent import slow_import
from handrail.own_agent.slow_import import LAZY, LOADING, import_lazily

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from handrail.own_agent.acp_server import SLOW_MODULES
from handrail.own_agent.slow_import import import_lazily
for name in SLOW_MODULES:
    import_lazily(name)
from handrail.own_agent.models.providers import load_provider
load_provider("openai")
import pydantic_ai
version = pydantic_ai.__version__  # a part of every request
not_needed = {"openai.types.fine_tuning", "openai.types.beta", "pydantic_ai._agent_graph", "pydantic_ai.workspaces.local"}
unused = not_needed & sys.modules.keys()
from pydantic_ai import Agent, ModelRequest, __version__
import pydantic_ai.messages
print(unused or "nothing", ModelRequest is pydantic_ai.messages.ModelRequest, Agent.__name__, bool(version) and version == __version__)
"""


def test_the_installed_libraries_are_imported_lazily_and_are_whole_when_asked() -> None:
    argv = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=BOUND)

    assert (done.stdout, done.stderr) == ("nothing True Agent True\n", "")


@pytest.mark.parametrize("package", sorted(LAZY))
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
    monkeypatch.setattr(slow_import, "LAZY", frozenset({"sample_lazy"}))
    for name in [name for name in sys.modules if name.partition(".")[0] == "sample_lazy"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "sample_lazy"


def test_a_package_that_needs_its_init_first_is_imported_as_usual(lazy_package: Path) -> None:
    write_package(
        lazy_package,
        "import sys\nsys.sample_lazy = 7\nfrom .a import A\n",
        a="import sys\nA = sys.sample_lazy\n",
    )

    with LOADING:
        import_lazily("sample_lazy.a")

    assert sys.modules["sample_lazy.a"].A == 7


def test_names_of_a_lazy_package_are_those_of_its_init(lazy_package: Path) -> None:
    init = "from .a import A\nfrom .b import B as C\nfrom .b import D\nfrom .c import c\nD = D + 1\ndef made(): return C\n"
    write_package(lazy_package, init, a="A = 1\n", b="B = 2\nD = 3\n", c="c = 5\n")

    with LOADING:
        import_lazily("sample_lazy.c")
    package = sys.modules["sample_lazy"]
    before = set(sys.modules)
    assert package.c == 5, "the name of a module that has it"

    assert (package.A, package.C) == (1, 2)
    assert {"sample_lazy.a", "sample_lazy.b"} <= set(sys.modules) - before
    assert "made" not in vars(package)
    assert (package.made(), package.D) == (2, 4)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing
