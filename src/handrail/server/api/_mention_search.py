"""Search for files of a workspace by the letters of their path, to mention them in a prompt."""

import os
from pathlib import Path

from handrail.terminal.ripgrep import NoRipgrep, Search, run_search
from handrail.terminal.thread_pool import PEOPLE

LISTED_MAX = 50_000
"""Files looked at. Bounds time and memory in a workspace such as a home folder."""
SECONDS = 3.0
"""Bounds the listing of one workspace; what was found until then is searched."""


async def search_mentions(workspace: str, letters: str, limit: int) -> list[str]:
    """Paths relative to the workspace that contain these letters in this order, the best first. Honours `.gitignore`."""
    search = Search()
    return await run_search(
        PEOPLE, search, lambda: rank_paths(_list_files(search, workspace), letters, limit)
    )


def rank_paths(paths: list[str], letters: str, limit: int) -> list[str]:
    """The paths that match: those whose name begins with the letters first, then shorter ones."""
    wanted = letters.lower()
    ranked = [(rank, len(path), path) for path in paths if (rank := _rank(path.lower(), wanted)) is not None]
    return [path for _, _, path in sorted(ranked)[:limit]]


def _rank(path: str, letters: str) -> int | None:
    name = path.rpartition("/")[2]
    if name.startswith(letters):
        return 0
    if path.startswith(letters):
        return 1
    if letters in name:
        return 2
    if letters in path:
        return 3
    rest = iter(path)
    return 4 if all(letter in rest for letter in letters) else None


def _list_files(search: Search, workspace: str) -> list[str]:
    if not os.path.isdir(workspace):  # noqa: PTH112 - a path of a person, not resolved
        return []
    found = bytearray()

    def take(chunk: bytes) -> bool:
        found.extend(chunk)
        return found.count(b"\0") < LISTED_MAX

    try:
        search.run(("--files", "--null", "--hidden", "--glob=!.git"), take, seconds=SECONDS, cwd=workspace)
    except NoRipgrep:
        return _walk(Path(workspace))
    return [os.fsdecode(name) for name in bytes(found).split(b"\0")[:-1]][:LISTED_MAX]


def _walk(root: Path) -> list[str]:
    """The files without ripgrep; folders with a leading dot are left out."""
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]  # noqa: PTH118
        if len(found) >= LISTED_MAX:
            break
    return found[:LISTED_MAX]
