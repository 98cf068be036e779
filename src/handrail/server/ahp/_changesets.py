"""Changesets: the files that a thread's calls changed, each from its first content to its last."""

from collections.abc import Iterable
from dataclasses import replace
from difflib import SequenceMatcher
from functools import lru_cache

import anyio.to_thread

from handrail.server.ahp.ahp_wire import Obj, file_uri, without_none
from handrail.server.ahp.contents import Contents, FileEdits
from handrail.store.file_changes import ChangeRecord
from handrail.store.records import Records
from handrail.store.values import FileChange

SCHEME = "ahp-changeset:/"
MOST_COUNTED = 1000
"""Changes whose numbers of lines are kept in memory: a changeset is read again after each call of its thread."""
MOST_COMPARED = 4000
"""Lines of one side that are compared; bounds time. Of more, all count as changed."""


def thread_of_changeset(uri: str) -> str | None:
    """The thread of a changeset's URI; None if it is no such URI."""
    thread, _, kind = uri.removeprefix(SCHEME).partition("/")
    return thread if uri.startswith(SCHEME) and kind == "session" else None


class Changesets:
    """Reads what threads changed."""

    def __init__(self, records: Records, contents: Contents, edits: FileEdits) -> None:
        self._records = records
        self._contents = contents
        self._edits = edits
        self._count_lines = lru_cache(MOST_COUNTED)(self._compare)

    async def files(self, thread: str) -> list[Obj]:
        """The changed files of a thread."""
        calls = await self._records.calls.of_thread(thread)
        done = [call.id for call in calls if call.ending in ("done", "completed")]
        changes = combine_changes(await self._records.changes.of_calls(done))
        counts = await anyio.to_thread.run_sync(lambda: [self._count(change) for change in changes])
        return [
            {"id": file_uri(change.path), "edit": without_none(**self._edits.of_change(change), diff=diff)}
            for change, diff in zip(changes, counts, strict=True)
        ]

    def _count(self, change: FileChange) -> Obj | None:
        """The lines that were added and removed; None if a content is no longer kept."""
        try:
            return self._count_lines(change.path, change.before, change.after)
        except LookupError:
            return None

    def _compare(self, path: str, before: str | None, after: str | None) -> Obj:
        old, new = (b"" if sha is None else self._contents.load(sha, path) for sha in (before, after))
        added, removed = count_changed_lines(old.splitlines(), new.splitlines())
        return {"added": added, "removed": removed}


def combine_changes(records: Iterable[ChangeRecord]) -> list[FileChange]:
    """One change for each file: from its first content to its last. Files that are as before are left out."""
    combined: dict[str, FileChange] = {}
    for record in records:
        change = record.change
        first = combined.get(change.path)
        combined[change.path] = change if first is None else replace(change, before=first.before)
    return [change for change in combined.values() if change.before != change.after]


def count_changed_lines(old: list[bytes], new: list[bytes]) -> tuple[int, int]:
    """How many lines were added and removed."""
    same = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    old, new = old[same:], new[same:]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    if max(len(old), len(new)) > MOST_COMPARED:
        return len(new), len(old)
    kept = sum(block.size for block in SequenceMatcher(None, old, new).get_matching_blocks())
    return len(new) - kept, len(old) - kept


def changeset_actions(before: list[Obj], after: list[Obj]) -> list[Obj]:
    """The actions from one list of files to another."""
    known = {file["id"]: file for file in before}
    wanted = {file["id"]: file for file in after}
    removed: list[Obj] = [
        {"type": "changeset/fileRemoved", "fileId": file} for file in known if file not in wanted
    ]
    changed: list[Obj] = [
        {"type": "changeset/fileSet", "file": file}
        for name, file in wanted.items()
        if known.get(name) != file
    ]
    return [*removed, *changed]
