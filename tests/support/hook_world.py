"""Hooks on a real gate, in this process: reports of a client, and a person who answers."""

import json
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from pydantic import JsonValue
from tests.support.daemon_home import until
from tests.support.gate_world import GateWorld, gate_world, make_answer
from tests.support.hook_process import Json, payload

from handrail.clients.claude import ClaudeHooks
from handrail.clients.codex import CodexHooks
from handrail.clients.hook_event import HookDialect
from handrail.clients.open_work import ClientProcess, OpenWorks
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.restore import restore
from handrail.keeper import lineage
from handrail.server.client_hooks import HookReport, Hooks, KnownClients
from handrail.server.mcp.local_socket import find_workspace
from handrail.store.blobs import Blobs
from handrail.store.records import open_records
from handrail.store.values import AnswerKind
from handrail.tools.client_work import ClientWork

MARK = "the mark of hosted agents"
HOSTED_SESSION = "the session of a thread"


class ShortClock(ClaudeHooks):
    """Claude's format, for a client that waits a moment only."""

    name = "short"
    clock_seconds = 0.3


class NoEdits(ClaudeHooks):
    """Claude's format, for a client that takes no edited input."""

    name = "fixed"
    edits = "This client takes no edited input."


DIALECTS: dict[str, HookDialect] = {
    each.name: each for each in (ClaudeHooks(), CodexHooks(), ShortClock(), NoEdits())
}


def build_hooks(gate: Gate, works: OpenWorks | None = None, servers: Sequence[ClientProcess] = ()) -> Hooks:
    """`servers` are the clients that have started our MCP server."""
    known = KnownClients(mark=MARK, has_server=servers.__contains__, has_session=HOSTED_SESSION.__eq__)
    return Hooks(gate, {} if works is None else works, DIALECTS, find_workspace, known)


@dataclass
class HookWorld:
    """The hooks of clients in one workspace."""

    hooks: Hooks
    world: GateWorld
    workspace: Path
    group: TaskGroup
    process: ClientProcess | None = None
    """The client's process, from now on."""

    async def report(self, sent: Json, client: str = "claude", mark: str = "") -> Json:
        """The answer to one hook, parsed; empty if there is no opinion."""
        report = HookReport(client=client, payload=json.dumps(sent), mark=mark, process=self.process)
        answer = await self.hooks.answer(report)
        assert (answer.stderr, answer.status) == ("", 0)
        return json.loads(answer.stdout)["hookSpecificOutput"] if answer.stdout else {}

    async def before(
        self, command: str, call: str = "toolu_1", client: str = "claude", mark: str = ""
    ) -> Json:
        return await self.report(self.about("PreToolUse", command, call), client, mark)

    async def after(self, command: str, call: str = "toolu_1", client: str = "claude") -> None:
        sent = self.about("PostToolUse", command, call, tool_response={"stdout": "out", "stderr": ""})
        assert await self.report(sent, client) == {}

    def about(self, event: str, command: str, call: str = "toolu_1", **more: Any) -> Json:
        return payload(self.workspace, "Bash", {"command": command}, event, call, **more)

    def start(self, ask: Callable[[], Any]) -> "Waiting":
        """A hook that waits in the background."""
        waiting = Waiting()
        self.group.start_soon(waiting.run, ask)
        return waiting

    async def question(self, number: int = 0) -> tuple[Call, Approval]:
        """The open question of this number, once it is on record."""
        await until(lambda: len(self.open_questions()) > number)
        call = self.open_questions()[number]
        assert call.approval is not None
        await self.world.journal.committed(call.approval.asked_seq)
        return call, call.approval

    def open_questions(self) -> list[Call]:
        return [call for call in self.world.gate.open.values() if call.status == "waiting"]

    async def answer(self, kind: AnswerKind, reason: str = "", input: Json | None = None) -> Call:
        """Answer the first open question; the input is the client's, as the person edits it."""
        call, approval = await self.question()
        digest, answer = approval.digest, make_answer(kind, reason=reason)
        if input is not None:
            edited: dict[str, JsonValue] = {**call.input, "input": input}
            digest = (await person_actions.edit(self.world.gate, call, edited)).digest
            answer = Answer(kind=kind, by=answer.by, input=edited)
        await person_actions.answer(self.world.gate, approval, answer, digest)
        return call

    async def settled(self, call: Call) -> str:
        await call.settled()
        assert call.outcome is not None
        return call.outcome.ending


@dataclass
class Waiting:
    """A hook that runs in the background."""

    answers: list[Json] = field(default_factory=list[Json])
    ended: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def run(self, ask: Callable[[], Any]) -> None:
        try:
            with self.scope:
                self.answers.append(await ask())
        finally:
            self.ended.set()

    async def answer(self) -> Json:
        await self.ended.wait()
        return self.answers[0]


@contextmanager
def client_process() -> Generator[ClientProcess]:
    """A program in the place of a client, which ends with the block."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        identity = lineage.identity(program.pid)
        assert identity is not None
        yield ClientProcess(*identity, name="cat")


@asynccontextmanager
async def hook_world(path: Path, *servers: ClientProcess) -> AsyncGenerator[HookWorld]:
    """A gate that takes over what an earlier one left in this folder, and its hooks."""
    workspace = path / "workspace"
    workspace.mkdir(exist_ok=True)
    works: OpenWorks = {}
    tool = ClientWork(works, (path / "own",), {"PATH": "/usr/bin:/bin"}, Blobs(path / "blobs"))
    async with gate_world(path, tool) as world, anyio.create_task_group() as group:
        async with open_records(path / "handrail.db") as records:
            await restore(world.gate, records, lambda _terminal: None)
        hooks = build_hooks(world.gate, works, servers)
        hooks.report_seconds = 0.05
        group.start_soon(hooks.run)
        await anyio.lowlevel.checkpoint()
        yield HookWorld(hooks, world, workspace, group)
        group.cancel_scope.cancel()
