"""Fixtures of the file tools' tests: a workspace, and a desk with the real gate."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.tool_runner import ToolRunner

from handrail.gate.gate import Gate
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Tool
from handrail.store.journal import open_journal
from handrail.store.old_contents import open_old_contents
from handrail.store.values import Caller
from handrail.tools.files.edit_tools import ApplyDiff, EditFile, WriteFile
from handrail.tools.files.read_file import ReadFile, ReadTextFile
from handrail.tools.search.list_files import ListFiles, SearchFiles
from handrail.tools.search.search_content import SearchContent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def caller(root: Path) -> Caller:
    return Caller(door="stdio", client="test", key="test", workspace=str(root))


@pytest.fixture
async def desk(home: Path, root: Path, caller: Caller) -> AsyncGenerator[ToolRunner]:
    own = (home,)
    reading = (ReadFile, ReadTextFile, ListFiles, SearchFiles, SearchContent)
    changing = (WriteFile, EditFile, ApplyDiff)
    async with (
        open_journal(home / "handrail.db", home / "handrail.head") as journal,
        open_old_contents(home / "blobs", home / "handrail.db", journal.queue) as blobs,
        anyio.create_task_group() as group,
    ):
        tools: list[Tool[Any, Any]] = [
            *(kind(own) for kind in reading),
            *(kind(own, blobs) for kind in changing),
        ]
        rules = Rules.with_default(journal, trusted=[str(root)])
        yield ToolRunner(Gate(journal, rules, {tool.name: tool for tool in tools}, group), root, caller)
        group.cancel_scope.cancel()
