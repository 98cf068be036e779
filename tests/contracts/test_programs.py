"""Addresses in strings lead somewhere: modules run by name, programs passed as text, files found by path.

No type checker and no import sees them, so that a moved module breaks them unnoticed.
"""

import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

from tests.contracts.addresses import (
    DOTTED,
    IN_TREE,
    PACKAGE,
    RUN,
    Found,
    Program,
    is_runnable,
    loaded,
    only_imports,
    own_paths,
    programs,
    resolves,
    runs,
    sources,
    strings,
    values,
)
from tests.house.source import ROOT, SRC

EVERYWHERE = ("src", "tests", "bench", "scripts")
NOT_MODULES = {
    *("handrail.db", "handrail.head", "handrail.diff", "handrail.py"),  # files
    *("handrail.js", "handrail.json", "handrail.toml"),  # files for clients
    *("handrail.client", "handrail.person", "handrail.gone", "handrail.device"),  # keys of an ASGI scope
    "handrail.test",  # a host
    *(
        "handrail.vsix",
        "handrail.handrail",
        "handrail.handrail.handrail.status",
        "handrail.allowProposal",
        "handrail.command",
        "handrail.notifications",
    ),  # the extension, and a command, an item and settings of it
}
INVENTED = {"tests/house/test_imports.py"}
"""Files that name modules which do not exist, to show that a rule finds them."""
BUILD_FILES = ("Makefile", "pyproject.toml", "hatch_build.py", ".gitignore")
STATIC = "static"
"""The folder of the built page, which a fresh checkout does not have."""
EXTENSION = "handrail.vsix"
"""The built extension for VS Code, likewise."""
BOUND = 30.0


def test_every_module_named_in_a_string_exists() -> None:
    found = [text for path in sources(*EVERYWHERE) if not invents(path) for text in strings(path)]
    held = [text for _, module in loaded() for text in values(module)]
    named = [Found(each.where, name) for each in (*found, *held) for name in DOTTED.findall(each.text)]
    wrong = [str(each) for each in named if each.text not in NOT_MODULES and not resolves(each.text)]
    assert len(named) > 20
    assert not wrong, "\n".join(wrong)


def invents(path: Path) -> bool:
    return str(path.relative_to(ROOT)) in INVENTED


def test_every_module_that_is_run_by_name_can_be_run() -> None:
    texts = [ROOT / "Makefile", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    written = [Found(path.name, name) for path in texts for name in RUN.findall(path.read_text())]
    started = [one for path in sources(*EVERYWHERE) for one in runs(path) if RUN.fullmatch(f"-m {one.text}")]
    wrong = [str(each) for each in (*written, *started) if not is_runnable(each.text)]
    assert len(started) > 5
    assert not wrong, "\n".join(wrong)


def test_the_entry_points_of_the_package_exist() -> None:
    scripts: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert [name for name, entry in scripts.items() if not resolves(entry.replace(":", "."))] == []


def test_every_program_passed_as_text_finds_what_it_imports_and_nothing_of_ours() -> None:
    """The launcher starts a function of ours by the name of its module."""
    found = [program for path, module in loaded() for program in programs(path, module)]
    assert [program.where for program in found if "handrail" in program.code] == []
    wrong = [f"{program.where}: {said}" for program in found if (said := complaint(program))]
    assert not wrong, "\n".join(wrong)


def complaint(program: Program) -> str:
    """What it says, run isolated with its own flags and the package's folder as its first argument."""
    compile(program.code, program.where, "exec")
    command = [sys.executable, *program.flags, "-c", only_imports(program.code), str(SRC)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=BOUND, check=False)
    return ended.stderr


def test_every_path_from_a_module_to_a_file_of_the_package_leads_there() -> None:
    found = own_paths()
    wrong = [f"{expression} is {value}" for expression, value in found if not leads(expression, value)]
    assert len(found) > 5
    assert not wrong, "\n".join(wrong)


def leads(expression: Found, value: Path) -> bool:
    """It exists. Several folders up is a folder to import from: the one that holds the package, and no other."""
    if "parents[" in expression.text:
        return value == SRC
    return value.is_relative_to(SRC) and (value.exists() or is_built(value))


def is_built(path: Path) -> bool:
    return path.name in (STATIC, EXTENSION) and path.parent.is_dir()


def test_every_path_in_the_build_files_exists() -> None:
    named = [Found(name, text) for name in BUILD_FILES for text in IN_TREE.findall((ROOT / name).read_text())]
    inside = [each for path in sources("tests", "bench", "scripts") for each in strings(path)]
    named += [Found(each.where, text) for each in inside for text in IN_TREE.findall(each.text)]
    wrong = [str(each) for each in named if not (path := in_tree(each.text)).exists() and not is_built(path)]
    assert len(named) > 5
    assert not wrong, "\n".join(wrong)


def in_tree(text: str) -> Path:
    return ROOT / text.partition("*")[0].rstrip("/.")


def test_the_page_is_built_where_it_is_served_from() -> None:
    served = {value for _, value in own_paths() if is_static(value)}
    built = {in_tree(text) for name in BUILD_FILES for text in IN_TREE.findall((ROOT / name).read_text())}
    assert {path for path in built if is_static(path)} == served
    assert len(served) == 1


def is_static(path: Path) -> bool:
    return path.name == STATIC


def test_every_file_beside_the_code_is_read_by_some_module() -> None:
    """A data file whose folder no path leads to was left behind by a move."""
    data = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    led = {value for _, value in own_paths() if value != SRC}
    kept = [path for path in data if STATIC not in path.parts]
    assert [str(path) for path in kept if not led & set(chain([path], path.parents))] == []
