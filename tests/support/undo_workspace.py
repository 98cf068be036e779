"""A workspace for undo: file tools that change files without the gate, and a person who undoes the changes."""

import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.actors import ANN

from handrail.gate.call import Call, Outcome
from handrail.gate.tool import Refusal, UndoAction, Undoer, UndoPlan
from handrail.store.actor import rule_actor, tool_actor
from handrail.store.blobs import Blobs
from handrail.store.events import FilesRestored
from handrail.store.journal import Journal, open_journal
from handrail.store.old_contents import open_old_contents
from handrail.store.records import Records, open_records
from handrail.store.values import Caller, Ending
from handrail.tools.files.edit_tools import ApplyDiff, ApplyDiffInput, WriteFile, WriteFileInput
from handrail.tools.files.file_change import ChangePlan
from handrail.tools.undo.undo_call import Undo


@dataclass
class UndoWorkspace:
    """Calls that change files below `root`, and their undoing."""

    root: Path
    journal: Journal
    records: Records
    blobs: Blobs
    undo: Undoer

    async def write(
        self, path: str, content: str, operation: str = "o1", thread: str = "t1", ending: Ending = "done"
    ) -> str:
        """The id of a call that wrote a file."""
        tool = WriteFile((), self.blobs)
        caller = self.caller(operation, thread)
        plan = await tool.plan(WriteFileInput(path=path, content=content), caller)
        return await self._run(tool, plan, caller, f"Write {path}", ending)

    async def patch(self, path: str, diff: str, operation: str = "o1") -> str:
        tool = ApplyDiff((), self.blobs)
        caller = self.caller(operation, "t1")
        plan = await tool.plan(ApplyDiffInput(path=path, diff=diff), caller)
        return await self._run(tool, plan, caller, f"Patch {path}", "done")

    async def delete(self, path: str) -> str:
        lines = (self.root / path).read_text().splitlines()
        removed = "\n".join(f"-{line}" for line in lines)
        diff = f"--- a/{path}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n{removed}\n"
        return await self.patch(path, diff)

    async def command(self, title: str, operation: str = "o1", starts: bool = True) -> str:
        """The id of a call without recorded effects."""
        call = Call.open(self.journal, "execute_command", title, {}, self.caller(operation, "t1"))
        tool = WriteFile((), self.blobs)
        plan = await tool.plan(WriteFileInput(path="unused", content=""), call.caller)
        if starts:
            call.start(replace(plan, files=()), rule_actor("r1"))
        call.settle(Outcome(ending="done", by=tool_actor("execute_command")), stopped=True)
        return call.id

    async def take_back(self, id: str) -> UndoPlan:
        """Undo what the preview shows."""
        plan = await self.undo.preview(id)
        return await self.undo.undo(id, plan.digest, ANN)

    async def restored(self) -> list[FilesRestored]:
        """The recorded undos, oldest first."""
        entries = await self.journal.since(0, limit=10_000)
        return [entry.event for entry in entries if isinstance(entry.event, FilesRestored)]

    def caller(self, operation: str, thread: str) -> Caller:
        return Caller(
            door="stdio",
            client="test",
            key="test",
            workspace=str(self.root),
            thread=thread,
            operation=operation,
        )

    async def _run(
        self, tool: WriteFile | ApplyDiff, plan: ChangePlan, caller: Caller, title: str, ending: Ending
    ) -> str:
        call = Call.open(self.journal, tool.name, title, {}, caller)
        await self.journal.committed(call.start(plan, rule_actor("r1")))
        try:
            await tool.run(plan, call)
        except Refusal as refusal:
            call.settle(
                Outcome(ending="failed", by=tool_actor(tool.name), message=refusal.sentence), stopped=True
            )
        else:
            call.settle(Outcome(ending=ending, by=tool_actor(tool.name)), stopped=True)
        return call.id


@asynccontextmanager
async def undo_workspace(home: Path, root: Path) -> AsyncGenerator[UndoWorkspace]:
    database = home / "handrail.db"
    async with (
        open_journal(database, home / "handrail.head") as journal,
        open_records(database) as records,
        open_old_contents(home / "blobs", database, journal.queue) as blobs,
    ):
        yield UndoWorkspace(root, journal, records, blobs, Undo(records, journal, blobs, (home,)))


def undo_actions(plan: UndoPlan) -> dict[str, UndoAction]:
    return {Path(file.path).name: file.does for file in plan.files}


def undo_message(plan: UndoPlan, name: str) -> str:
    return next(file.says for file in plan.files if Path(file.path).name == name)


def sha(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
