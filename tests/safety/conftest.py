"""What the tests of safety share: an installation for an ordinary user, and accounts that use it."""

import fcntl
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.house.source import ROOT, SRC
from tests.support.user_account import FIRST_UID, Account

_uids = count(FIRST_UID)


@pytest.fixture(scope="session")
def python() -> Iterator[str]:
    """An interpreter with Handrail that whoever runs the daemon can use."""
    if os.getuid() != 0:
        yield sys.executable
        return
    place = Path(tempfile.mkdtemp(prefix="hr-stage-", dir="/tmp"))
    place.chmod(0o755)
    shared = ROOT / "build" / "safety"
    shared.mkdir(parents=True, exist_ok=True)
    yield build(place / "v", shared if _open_to_all(shared) else place)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def new_account(python: str) -> Iterator[Callable[..., Account]]:
    """Makes accounts, each with a user of its own where the tests may choose one."""
    made: list[Account] = []

    def make(**options: object) -> Account:
        uid = next(_uids) if os.getuid() == 0 else os.getuid()
        made.append(Account(python, uid, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for account in made:
        account.down()


LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
LEFT_OUT = shutil.ignore_patterns(
    "site-packages", "test", "tests", "idlelib", "tkinter", "ensurepip", "config-*"
)


def build(place: Path, shared: Path) -> str:
    """Install into this folder, on top of what every run shares; the path of its interpreter."""
    base = _get_base(shared)
    program = base / "bin" / Path(os.path.realpath(sys.executable)).name
    if not program.exists():  # everyone can run the installed interpreter
        program = Path(os.path.realpath(sys.executable))
    (place / "bin").mkdir(parents=True)
    (place / "bin/python").symlink_to(program)
    (place / "pyvenv.cfg").write_text(f"home = {program.parent}\ninclude-system-site-packages = false\n")
    shutil.copy(
        Path(sys.executable).with_name("rg"), place / "bin/rg"
    )  # a wheel installs it beside the interpreter
    packages = place / LIBRARY / "site-packages"
    shutil.copytree(SRC / "handrail", packages / "handrail")
    (packages / "shared.pth").write_text(f"{base / 'packages'}\n")
    _open_up(place)
    return str(place / "bin/python")


def _get_base(shared: Path) -> Path:
    """The interpreter and the packages that Handrail needs. They are copied once and do not change."""
    needed = list(_needed())
    names = sorted(f"{each.name} {each.version}" for each in needed)
    key = hashlib.sha256("\n".join([sys.version, os.path.realpath(sys.executable), *names]).encode())
    base = shared / key.hexdigest()[:16]
    with (shared / "lock").open("w") as lock:  # the other lane may be copying
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not base.exists():
            fresh = base.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            program = Path(os.path.realpath(sys.executable))
            if not _open_to_all(program):
                _copy_interpreter(Path(sys.base_prefix), program, fresh)
            _copy_packages(needed, fresh / "packages")
            _open_up(fresh)
            fresh.rename(base)
    return base


def _open_to_all(path: Path) -> bool:
    return all(above.stat().st_mode & 0o005 == 0o005 for above in (path, *path.parents))


def _copy_interpreter(base: Path, program: Path, place: Path) -> None:
    (place / "bin").mkdir(parents=True)
    shutil.copytree(base / LIBRARY, place / LIBRARY, ignore=LEFT_OUT, symlinks=True)
    for library in (base / "lib").glob("libpython*.so*"):
        shutil.copy(library, place / "lib" / library.name)
    copied = place / "bin" / program.name
    # It looks for its shared library where it was built; the copy's own is as good, and the name is shorter.
    was, now = os.fsencode(base / "lib") + b"\0", b"$ORIGIN/../lib\0"
    copied.write_bytes(program.read_bytes().replace(was, now.ljust(len(was), b"\0")))
    copied.chmod(0o755)


def _copy_packages(needed: Iterable[importlib.metadata.Distribution], target: Path) -> None:
    for distribution in needed:
        for file in distribution.files or ():
            if ".." in file.parts:  # a script beside the packages
                continue
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            if Path(str(file.locate())).exists():
                shutil.copy2(str(file.locate()), target / file)


def _needed() -> Iterator[importlib.metadata.Distribution]:
    """Every package that Handrail needs to run, each once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting: list[tuple[str, frozenset[str]]] = [(line, frozenset()) for line in project["dependencies"]]
    seen: set[tuple[str, frozenset[str]]] = set()
    copied: set[str] = set()
    while waiting:
        line, extras = waiting.pop()
        wanted = Requirement(line)
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        applies = wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in (*extras, "")
        )
        mine = frozenset(wanted.extras)
        if not applies or (name, mine) in seen:
            continue
        seen.add((name, mine))
        found = importlib.metadata.distribution(name)
        waiting += [(line, mine) for line in found.requires or ()]
        if name not in copied:
            copied.add(name)
            yield found


def _open_up(place: Path) -> None:
    subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True, timeout=60)
