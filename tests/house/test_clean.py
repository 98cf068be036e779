"""What is committed: no address of a package registry, no path of someone's machine, nothing that was built."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.house.source import ROOT

# In two halves, so that this file does not name them either.
REGISTRIES = [
    "".join(halves)
    for halves in (
        ("pypi", ".org"),
        ("files.python", "hosted.org"),
        ("registry.npm", "js.org"),
        ("registry.yarn", "pkg.com"),
        ("deb.deb", "ian.org"),
    )
]


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: nothing is tracked here")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def holding(paths: list[Path], words: list[str]) -> list[str]:
    """A sentence for each of these files that holds one of these words."""
    return [
        f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path} holds {word}"
        for path in paths
        for word in words
        if word.encode() in path.read_bytes()
    ]


def test_no_tracked_file_names_a_package_registry(tracked: list[Path]) -> None:
    assert holding(tracked, REGISTRIES) == []


def test_no_tracked_file_holds_a_path_of_the_machine_it_was_written_on(tracked: list[Path]) -> None:
    here = re.compile(
        "|".join(rf"(?<![\w.]){re.escape(path)}\b" for path in (str(ROOT), str(Path.home())) if path != "/")
    )
    found = {str(path): here.findall(path.read_text(errors="replace")) for path in tracked}
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_a_file_that_names_a_registry_is_found(tmp_path: Path) -> None:
    bad = tmp_path / "setup.cfg"
    bad.write_text(f"index = https://{REGISTRIES[0]}/simple")
    assert holding([bad], REGISTRIES) == [f"{bad} holds {REGISTRIES[0]}"]


def test_nothing_built_or_installed_is_tracked(tracked: list[Path]) -> None:
    names = [path.relative_to(ROOT).as_posix() for path in tracked]
    built = re.compile(r"(^|/)(node_modules|dist|\.venv|__pycache__)/|^build/|^src/handrail/server/static/")
    assert [name for name in names if built.search(name)] == []


def test_the_pages_lock_file_has_no_addresses() -> None:
    text = (ROOT / "ui" / "package-lock.json").read_text()
    assert "://" not in text
    assert [name for name, package in json.loads(text)["packages"].items() if "resolved" in package] == []


def test_constraints_are_plain_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(pins) > 20
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line)] == []
