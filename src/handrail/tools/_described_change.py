"""A change of files in the input of an agent's own tool: a unified diff, a list of changes by path, or a new content.

Agents name the fields differently. Whatever stands in them is the agent's word: the paths in the headers of a
diff are claimed like all the others, so that a diff cannot name a file that the rules do not see.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from handrail.lazy_dataclass import dataclass
from handrail.store.values import Json
from handrail.tools.files.diff import unified

_DIFFS = ("diff", "unified_diff", "patch")
_BY_PATH = ("changes", "file_changes", "fileChanges")
_HEADER = re.compile(
    r"^(?:--- |\+\+\+ |Index: |rename (?:from|to) |copy to )(?P<path>[^\t\n]+)", re.MULTILINE
)
_HUNK = re.compile(r"^@@ .* @@|^@@$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedChange:
    """A unified diff, and every path in it."""

    diff: str
    paths: tuple[str, ...]

    @property
    def path(self) -> str:
        return next(iter(self.paths), "")

    @property
    def added(self) -> int:
        return _count(self.diff, "+")

    @property
    def removed(self) -> int:
        return _count(self.diff, "-")


def find_change(input: JsonValue) -> DescribedChange | None:
    """The change in the input; None if it is missing, or if it has another form."""
    if not isinstance(input, dict):
        return None
    for name in _BY_PATH:
        if isinstance(changes := input.get(name), dict):
            return _change_by_path(changes)
    if input.keys() == {"path", "content"}:
        return _change_by_path({str(input["path"]): {"type": "add", "content": input["content"]}})
    diffs = [value for name, value in input.items() if name in _DIFFS and isinstance(value, str)]
    diff = diffs[0] if len(diffs) == 1 else ""
    if not _HUNK.search(diff):
        return None
    return DescribedChange(diff=diff, paths=tuple(dict.fromkeys(_header_paths(diff))))


def _change_by_path(changes: Json) -> DescribedChange | None:
    diffs = [_diff_of_file(path, change) for path, change in changes.items()]
    if not diffs or None in diffs:
        return None
    paths = [*changes, *(path for diff in _texts(changes) for path in _header_paths(diff))]
    return DescribedChange(diff="".join(filter(None, diffs)), paths=tuple(dict.fromkeys(paths)))


def _texts(changes: Json) -> Iterator[str]:
    """The diffs in a list of changes by path, as the agent wrote them."""
    for change in changes.values():
        for entry in (change, *change.values()) if isinstance(change, dict) else ():
            if isinstance(entry, dict) and isinstance(diff := entry.get("unified_diff"), str):
                yield diff


def _diff_of_file(path: str, change: JsonValue) -> str | None:
    """Codex: `{"type": "update", "unified_diff": …}`, or `{"update": {"unified_diff": …}}`."""
    if not isinstance(change, dict):
        return None
    kind, label = change.get("type"), path.removeprefix("/")
    match {kind: change} if isinstance(kind, str) else change:
        case {"update": {"unified_diff": str(diff)}} if _HUNK.search(diff):
            body = diff if diff.endswith("\n") else f"{diff}\n"
            return body if diff.startswith("--- ") else f"--- a/{label}\n+++ b/{label}\n{body}"
        case {"add": {"content": str(content)}}:
            return unified(label, None, content.encode(errors="replace")).text
        case {"delete": {"content": str(content)}}:
            return unified(label, content.encode(errors="replace"), None).text
        case _:
            return None


def _header_paths(diff: str) -> Iterator[str]:
    """The paths in all lines that look like headers, also those within a hunk: its line counts may lie."""
    for header in _HEADER.finditer(diff):
        path = header.group("path").strip().strip('"')
        if path == "/dev/null":
            continue
        plain = re.sub(r"^[ab]/", "", path)
        yield from (plain, path) if ".." in path.split("/") else (plain,)


def _count(diff: str, sign: str) -> int:
    lines = diff.splitlines()
    return sum(
        line.startswith(sign) and not line.startswith((f"{sign * 3} ", sign * 3 + "\t")) for line in lines
    )
