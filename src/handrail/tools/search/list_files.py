"""list_files and search_files: list a folder, and find files by name."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.gate.tool import CallReport, Refusal, Tool
from handrail.store.values import Caller, Json, Result
from handrail.terminal.ripgrep import SearchEnd
from handrail.tools.results import Format, Input, answer, count_text, printable_line
from handrail.tools.search.gitignore import Ignore, is_in_git
from handrail.tools.search.search_content import SECONDS, Query, run_query
from handrail.tools.search.search_root import Tree, TreePlan, open_tree, plan_tree

LISTED, FOUND = 1000, 200
"""Files in one answer: more would fill a model's context with names."""
_KNOWN_MAX = 200_000
"""Paths held in memory for one answer."""

Folder = Annotated[str, Field(description="The directory, relative to the workspace or absolute.")]
_SHAPE = Field(
    min_length=1,
    description="A glob such as `*.py` for names, or `src/**/*.py` for paths below the directory.",
)


class ListFilesInput(Input):
    path: Folder = "."
    recursive: Annotated[bool, Field(description="List every file below, instead of one level.")] = False
    pattern: Annotated[str | None, _SHAPE] = None
    response_format: Format = "text"


class SearchFilesInput(Input):
    pattern: Annotated[str, _SHAPE]
    path: Folder = "."
    response_format: Format = "text"


class FilesOutput(BaseModel, defer_build=True):
    path: str | None = Field(None, description="The directory.")
    files: list[str] | None = Field(None, description="What was found; a directory ends with a slash.")
    total: int | None = Field(None, description="How many there are, when more than are given.")
    truncated: bool | None = Field(None, description="There are more than are given.")


class ListFiles(Tool[ListFilesInput, TreePlan[ListFilesInput]]):
    """List the files in a folder."""

    name = "list_files"
    title = "List files"
    description = (
        "List a directory, or with recursive every file below it. What .gitignore hides is left out, and so is "
        f"what lies in protected places. At most {LISTED} are given. Directories end with a slash; symbolic links "
        "are not followed."
    )
    input = ListFilesInput
    output = FilesOutput
    reads_only = True

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    def display(self, input: ListFilesInput) -> str:
        return f"List {printable_line(input.path)}" + (
            f" for {printable_line(input.pattern, 60)}" if input.pattern else ""
        )

    async def plan(self, input: ListFilesInput, caller: Caller) -> TreePlan[ListFilesInput]:
        return plan_tree(input.path, input, caller, self._own)

    async def run(self, plan: TreePlan[ListFilesInput], call: CallReport) -> Result:
        params = plan.input
        with open_tree(plan, params.pattern) as tree:
            if params.recursive:
                files, ended = await _list_recursive(tree)
            else:
                files, ended = await anyio.to_thread.run_sync(_list_folder, tree), SearchEnd()
        none = f"{plan.place.shown} holds no file" + (
            f" that matches {params.pattern}" if params.pattern else ""
        )
        return _result(tree, files, LISTED, ended, none, params.response_format)


class SearchFiles(Tool[SearchFilesInput, TreePlan[SearchFilesInput]]):
    """Find files by name."""

    name = "search_files"
    title = "Search files"
    description = (
        "Find files whose name or path matches a glob, the most recently changed first. What .gitignore hides is left "
        f"out, and so is what lies in protected places. At most {FOUND} are given. To search inside files use "
        "search_content."
    )
    input = SearchFilesInput
    output = FilesOutput
    reads_only = True

    def __init__(self, own: Sequence[Path] = ()) -> None:
        self._own = tuple(own)

    def display(self, input: SearchFilesInput) -> str:
        return f"Search for files {printable_line(input.pattern, 60)}"

    async def plan(self, input: SearchFilesInput, caller: Caller) -> TreePlan[SearchFilesInput]:
        return plan_tree(input.path, input, caller, self._own)

    async def run(self, plan: TreePlan[SearchFilesInput], call: CallReport) -> Result:
        params = plan.input
        with open_tree(plan, params.pattern) as tree:
            files, ended = await _list_recursive(tree)
            files = await anyio.to_thread.run_sync(_newest_first, tree, files)
        none = f"No file in {plan.place.shown} matches {params.pattern}"
        return _result(tree, files, FOUND, ended, none, params.response_format)


async def _list_recursive(tree: Tree) -> tuple[list[str], SearchEnd]:
    """Every file below a folder, at any depth."""
    records: list[bytes] = []

    def take(record: bytes) -> bool:
        records.append(record)
        return len(records) < _KNOWN_MAX

    query = Query(mode="list", git=is_in_git(tree.place.path))
    ended = await run_query(query, tree.folder, take)
    if ended.complaint:
        raise Refusal(f"{tree.place.shown} cannot be listed: {ended.complaint}")
    return await anyio.to_thread.run_sync(_visible_paths, tree, records), ended


def _visible_paths(tree: Tree, records: list[bytes]) -> list[str]:
    paths = (tree.path(record) for record in records)
    return [path for path in paths if path is not None]


def _list_folder(tree: Tree) -> list[str]:
    """The entries of one folder."""
    ignore = Ignore.at(tree.place.path)
    names: list[str] = []
    with os.scandir(tree.folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_match = tree.glob is None or tree.glob.matches(entry.name)
            if is_match and not ignore.hides(entry.name, folder=is_folder):
                names.append(entry.name + "/" * is_folder)
    return sorted(names)


def _newest_first(tree: Tree, files: list[str]) -> list[str]:
    def age(path: str) -> tuple[int, str]:
        try:
            return -os.stat(path, dir_fd=tree.folder, follow_symlinks=False).st_mtime_ns, path
        except OSError:
            return 0, path

    return sorted(files, key=age)


def _result(tree: Tree, files: list[str], limit: int, ended: SearchEnd, none: str, form: "Format") -> Result:
    shown = [tree.shown(path) for path in files[:limit]]
    cut = len(files) > limit or ended.stopped or ended.out_of_time
    data: Json = {"path": tree.place.shown, "files": list(shown), "total": len(files), "truncated": cut}
    notes: list[str] = []
    if not files:
        notes.append(f"{none}. What .gitignore hides is left out.")
    if len(files) > limit or ended.stopped:
        total = f"more than {len(files):,}" if ended.stopped else f"{len(files):,}"
        notes.append(f"[{limit:,} of {total}. Narrow it with path or pattern.]")
    if ended.out_of_time:
        notes.append(
            f"[Stopped after {SECONDS:g} seconds, with {count_text(len(files), 'file')} found. Narrow it with path.]"
        )
    return answer("\n".join([*shown, *notes]), data, form)
