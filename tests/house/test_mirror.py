"""The test tree mirrors the package: the tests of a module are where a newcomer looks for them."""

from collections.abc import Iterator
from pathlib import Path

from tests.house.source import ROOT, Module, modules
from tests.house.source import imports as imports_of

TESTS = ROOT / "tests"
BESIDE = {
    "house",
    "contracts",
    "e2e",
    "bench",
    "support",
    "real_agents",
    "real_clients",
    "real_servers",
    "safety",
    "browser",
    "editors",
}
"""Folders of tests that mirror no package."""
THROUGH_THE_DAEMON = ("handrail.server.", "handrail.daemon.")
"""Packages whose modules are tested in a running daemon: tests/e2e."""

HELPERS = (
    "support",
    "contracts",
    "house/source.py",
    "real_agents",
    "real_clients",
    "real_servers",
    "safety/attack",
    "editors",
)
"""Where modules that are not tests may be. `safety/attack` is a program of its own: tests copy it into a workspace."""
SUPPORT_IMPORTS = ("tests.support", "tests.house.source", "tests.safety.attack")
"""The modules of the test tree that a module in tests/support may import."""
HELPER_LINES_MAX = 450


def own_tests(module: Module) -> list[Path]:
    """tests/gate/test_call.py and tests/gate/test_call_ASPECT.py for handrail.gate.call."""
    *folders, name = module.name.removeprefix("handrail").lstrip(".").split(".")
    folder, name = TESTS.joinpath(*folders), name.lstrip("_")
    return [*folder.glob(f"test_{name}.py"), *folder.glob(f"test_{name}_*.py")]


def imported_by_tests() -> frozenset[str]:
    """The modules of the package that any test imports."""
    known = frozenset(module.name for module in modules())
    return frozenset(
        name for path in TESTS.rglob("*.py") for name in imports_of(Module(f"tests.{path.stem}", path), known)
    )


def imported_by_siblings() -> dict[str, set[str]]:
    """For each module, the modules of the same package that import it."""
    known = frozenset(module.name for module in modules())
    importers: dict[str, set[str]] = {}
    for module in modules():
        for name in imports_of(module, known):
            if name.split(".")[1:2] == [module.room]:
                importers.setdefault(name, set()).add(module.name)
    return importers


def untested() -> Iterator[str]:
    by_tests, by_siblings = imported_by_tests(), imported_by_siblings()
    tested = {module.name for module in modules() if own_tests(module)} | by_tests
    for module in modules():
        if module.path.name in ("__init__.py", "__main__.py") or module.name.startswith(THROUGH_THE_DAEMON):
            continue
        if module.name not in tested and not by_siblings.get(module.name, set()) & tested:
            yield module.name


def test_every_module_is_tested_in_its_own_file_or_through_a_module_beside_it() -> None:
    assert [*untested()] == []


def module_names(path: Path) -> Iterator[str]:
    """The modules that a test file may be about: test_a_b.py is about a_b, or about an aspect b of a."""
    folder = ".".join(["handrail", *path.relative_to(TESTS).parent.parts])
    words = path.stem.removeprefix("test_").split("_")
    for count in range(len(words), 0, -1):
        name = "_".join(words[:count])
        yield from (f"{folder}.{name}", f"{folder}._{name}")


def test_every_test_file_is_named_after_a_module() -> None:
    known = {module.name for module in modules()}
    mirrored = [path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] not in BESIDE]
    assert [str(path) for path in mirrored if not known & {*module_names(path)}] == []


def test_every_folder_of_tests_mirrors_a_package() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("test_*.py"))}
    assert folders - BESIDE - {module.room for module in modules()} == set()


def helpers() -> list[Path]:
    """The modules of the test tree that are neither tests nor fixtures."""
    known = ("conftest.py", "__init__.py")
    return [
        path for path in TESTS.rglob("*.py") if not path.name.startswith("test_") and path.name not in known
    ]


def test_a_helper_of_tests_is_in_support_or_in_the_test_file_that_uses_it() -> None:
    found = [path.relative_to(TESTS) for path in helpers()]
    assert [str(path) for path in found if not any(path.is_relative_to(place) for place in HELPERS)] == []


def test_a_helper_of_tests_imports_no_test() -> None:
    imported = {
        (str(path.relative_to(TESTS)), name)
        for path in helpers()
        if path.is_relative_to(TESTS / "support")
        for name in imports_of(Module(f"tests.{path.stem}", path), frozenset())
        if name.startswith("tests.")
    }
    assert {each for each in imported if not each[1].startswith(SUPPORT_IMPORTS)} == set()


def test_no_helper_of_tests_is_too_long() -> None:
    lengths = {str(path.relative_to(TESTS)): len(path.read_text().splitlines()) for path in helpers()}
    assert {name: lines for name, lines in lengths.items() if lines > HELPER_LINES_MAX} == {}
