"""The editor tools behind the real gate, and the windows that they ask."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from tests.support.tool_runner import ToolRunner

from handrail.gate.gate import Gate
from handrail.gate.rules.rules import Rules
from handrail.server.editor_windows import EditorWindows
from handrail.store.journal import open_journal
from handrail.store.old_contents import open_old_contents
from handrail.store.values import Caller
from handrail.tools.editor.code_questions import FindReferences, GetDiagnostics, GetSymbols
from handrail.tools.editor.rename_symbol import RenameSymbol


@pytest.fixture
def windows() -> EditorWindows:
    return EditorWindows()


@pytest.fixture
async def desk(home: Path, root: Path, caller: Caller, windows: EditorWindows) -> AsyncGenerator[ToolRunner]:
    own = (home,)
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        open_old_contents(home / "blobs", home / "handrail.db", journal.queue) as blobs,
        anyio.create_task_group() as group,
    ):
        tools = (
            GetDiagnostics(own, windows),
            GetSymbols(own, windows),
            FindReferences(own, windows),
            RenameSymbol(own, blobs, windows),
        )
        rules = Rules.with_default(journal, trusted=[str(root)])
        yield ToolRunner(Gate(journal, rules, {tool.name: tool for tool in tools}, group), root, caller)
        group.cancel_scope.cancel()
