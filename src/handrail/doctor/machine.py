"""What Handrail needs of the machine: its settings, private files, space, its page, and ripgrep.

Looks at files alone. Does not know whether a daemon runs.
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from handrail.config import BadConfig, load
from handrail.doctor.finding import Finding
from handrail.places import Places

LOW_BYTES = 1 << 30
"""Free space below which a few large outputs may fill the disk."""
NO_BYTES = 100 << 20
"""Free space below which the journal may soon be unwritable, and every call refused."""


def check_rules(path: Path) -> None:
    """Whether the rules in this file can be, and their examples hold. Raises BadConfig."""
    config = load(path)
    if config.rules:
        from handrail.gate.rules.rules import Standing  # noqa: PLC0415 - brings the shell's grammar

        Standing.of(config, path, os.path.realpath(Path.home()))


def configuration(places: Places) -> Finding:
    try:
        check_rules(places.config)
    except BadConfig as problem:
        return Finding(name="config", level="bad", says=str(problem), fix="Mend that line.")
    says = f"{places.config} is in order." if places.config.exists() else "Everything is at its default."
    return Finding(name="config", level="ok", says=says)


def private(places: Places) -> list[Finding]:
    """Whether other users could read or alter what is ours."""
    found = [*_open_directories(places), *_open_files(places)]
    if found:
        return found
    return [Finding(name="permissions", level="ok", says=f"{places.data} is private to this user.")]


def disk(places: Places) -> Finding:
    folder = next(each for each in (places.data, *places.data.parents) if each.exists())
    free = shutil.disk_usage(folder).free
    level = "bad" if free < NO_BYTES else "warn" if free < LOW_BYTES else "ok"
    fix = None if level == "ok" else f"Free some space where {folder} lies."
    return Finding(
        name="disk", level=level, says=f"{free / (1 << 30):.1f} GiB are free in {folder}.", fix=fix
    )


def page(package: Path) -> Finding:
    if (package / "server" / "static" / "index.html").exists():
        return Finding(name="page", level="ok", says="The page is built.")
    fix = "make ui   (in a checkout; else install Handrail again)"
    return Finding(
        name="page", level="bad", says="The page is not built, so a browser shows nothing.", fix=fix
    )


def ripgrep() -> Finding:
    beside = Path(sys.executable).parent / "rg"
    found = shutil.which("rg") or (str(beside) if beside.exists() else None)
    if found:
        return Finding(name="ripgrep", level="ok", says=f"Search uses {found}.")
    says = "There is no rg, so files and terminals cannot be searched."
    return Finding(name="ripgrep", level="bad", says=says, fix="Install ripgrep with your system's packages.")


def _open_directories(places: Places) -> Iterator[Finding]:
    for folder in dict.fromkeys((places.config_dir, places.data, places.state, places.logs)):
        if not folder.exists():
            continue
        known = folder.stat()
        if known.st_uid != os.getuid():
            says, fix = f"{folder} belongs to another user.", f"sudo chown -R $(id -u) {quote(str(folder))}"
            yield Finding(name="permissions", level="bad", says=says, fix=fix)
        elif known.st_mode & 0o077:
            says = f"{folder} is open to others ({stat.filemode(known.st_mode)})."
            yield Finding(name="permissions", level="bad", says=says, fix=f"chmod 700 {quote(str(folder))}")


def _open_files(places: Places) -> Iterator[Finding]:
    """Files that others could read if their folder were open; in a private one, a second lock that is missing."""
    sockets = (places.daemon_socket, places.keeper_socket)
    database = (places.database.with_name(places.database.name + end) for end in ("", "-wal", "-shm"))
    for file in (*database, places.head, places.daemon_json, *sockets):
        if file.exists() and (mode := file.stat().st_mode) & 0o077:
            says, fix = f"{file} is open to others ({stat.filemode(mode)}).", f"chmod 600 {quote(str(file))}"
            yield Finding(name="permissions", level="bad", says=says, fix=fix)
    if places.config.exists() and places.config.stat().st_mode & 0o022:
        says, fix = f"Others may write {places.config}.", f"chmod 600 {quote(str(places.config))}"
        yield Finding(name="permissions", level="bad", says=says, fix=fix)
