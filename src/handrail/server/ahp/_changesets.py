"""Changesets: the files that a thread's calls changed, each from its first content to its last."""

from collections.abc import Iterable
from dataclasses import replace

from handrail.server.ahp.ahp_wire import Obj, file_uri
from handrail.server.ahp.contents import FileEdits
from handrail.store.file_changes import ChangeRecord
from handrail.store.records import Records
from handrail.store.values import FileChange

SCHEME = "ahp-changeset:/"


def thread_of_changeset(uri: str) -> str | None:
    """The thread of a changeset's URI; None if it is no such URI."""
    thread, _, kind = uri.removeprefix(SCHEME).partition("/")
    return thread if uri.startswith(SCHEME) and kind == "session" else None


class Changesets:
    """Reads what threads changed."""

    def __init__(self, records: Records, edits: FileEdits) -> None:
        self._records = records
        self._edits = edits

    async def files(self, thread: str) -> list[Obj]:
        """The changed files of a thread."""
        calls = await self._records.calls.of_thread(thread)
        done = [call.id for call in calls if call.ending in ("done", "completed")]
        changes = combine_changes(await self._records.changes.of_calls(done))
        return [{"id": file_uri(change.path), "edit": self._edits.of_change(change)} for change in changes]


def combine_changes(records: Iterable[ChangeRecord]) -> list[FileChange]:
    """One change for each file: from its first content to its last. Files that are as before are left out."""
    combined: dict[str, FileChange] = {}
    for record in records:
        change = record.change
        first = combined.get(change.path)
        combined[change.path] = change if first is None else replace(change, before=first.before)
    return [change for change in combined.values() if change.before != change.after]


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
