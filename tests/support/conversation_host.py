"""Threads with scripted agents, in this process: real pipes, keeper, gate, journal and store.

A test prompts an agent, waits for the answer and checks the final state with `check_invariants`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import anyio
from tests.support.actors import ANN
from tests.support.agent_host import BOUND, ENVIRONMENT, AgentHost, agent_host
from tests.support.sample_tools import Echo, Patient, Write
from tests.support.scripted_agent import Behavior, Obj, script
from tests.support.tool_runner import build_tool_context

from handrail.agents.conversation.send_prompt import PromptPart
from handrail.agents.conversation.thread_prompts import PromptReceipt, Prompts
from handrail.agents.requests.handlers import RequestHandlers
from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Call
from handrail.gate.gate import Gate, Request
from handrail.gate.rules.rules import Rules
from handrail.gate.tool import Tool
from handrail.store.blobs import Blobs
from handrail.store.events import Event, OperationEnded
from handrail.store.records import Records, open_records
from handrail.store.threads.thread_records import MessageRecord
from handrail.store.threads.threads import Threads
from handrail.store.values import AnswerKind, Caller, Json
from handrail.tools.agent_form import AgentForm
from handrail.tools.agent_work import AgentWork
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.files.edit_tools import WriteFile
from handrail.tools.files.read_file import ReadTextFile


@dataclass
class ConversationHost:
    """The parts of a daemon that threads need, and a person who uses them."""

    stage: AgentHost
    gate: Gate
    records: Records
    threads: Threads
    prompts: Prompts
    images: Blobs
    patient: Patient

    def thread(self, agent: str = "scripted", title: str = "A thread") -> str:
        workspace = str(self.stage.cwd)
        return self.threads.open(workspace=workspace, title=title, agent=agent, by=ANN)

    def keen(self, **manners: Unpack[Behavior]) -> str:
        """Add an agent that stores its sessions."""
        shelf = self.stage.cwd.parent / "shelf"
        shelf.mkdir(exist_ok=True)
        return self.stage.add("keen", **{"sessions": str(shelf), **manners})

    def kept_by_keen(self) -> list[Path]:
        return list((self.stage.cwd.parent / "shelf").iterdir())

    async def say(self, thread: str, *steps: Obj, **how: Any) -> PromptReceipt:
        """Prompt the agent with these steps."""
        return await self.tell(thread, script(*steps), **how)

    async def tell(self, thread: str, words: str, **how: Any) -> PromptReceipt:
        with anyio.fail_after(BOUND):
            return await self.prompts.prompt(thread, [PromptPart(kind="text", text=words)], by=ANN, **how)

    async def ask(self, thread: str, *steps: Obj, **how: Any) -> MessageRecord:
        """Prompt it, and wait for the whole answer."""
        return await self.answer(thread, await self.say(thread, *steps, **how))

    async def answer(self, thread: str, prompted: PromptReceipt) -> MessageRecord:
        """The answer to a prompt that was sent, once it has ended."""
        assert prompted.operation is not None
        return await self.answer_to(thread, prompted.operation)

    async def answer_to(self, thread: str, operation: str) -> MessageRecord:
        """The agent's message of this operation, once it has ended and nothing of it runs."""
        found: list[MessageRecord] = []

        async def look() -> bool:
            said = [each for each in await self.threads.messages(thread) if each.operation == operation]
            found[:] = [each for each in said if each.role == "assistant" and each.stop is not None]
            return bool(found) and self.prompts.running(thread) != operation

        await self.until(look)
        return found[0]

    async def ended(self, operation: str) -> OperationEnded:
        """How the operation ended, once it did."""
        found: list[OperationEnded] = []

        async def look() -> bool:
            found[:] = [each for each in await self.facts(OperationEnded) if each.operation == operation]
            return bool(found)

        await self.until(look)
        return found[0]

    async def facts(self, *kinds: type[Any]) -> list[Any]:
        return await self.stage.facts(*kinds)

    async def until(self, condition: Callable[[], Awaitable[object]]) -> None:
        """Poll until the condition holds."""
        with anyio.fail_after(BOUND):
            while not await condition():  # noqa: ASYNC110
                await anyio.sleep(0.005)

    async def saying(self, thread: str, words: str) -> None:
        """Wait until these words are in the last message."""

        async def look() -> bool:
            return words in text(await self.last(thread))

        await self.until(look)

    async def until_said(self, thread: str, words: str) -> list[MessageRecord]:
        """All messages, once an answer with exactly these words has ended and nothing runs."""
        found: list[MessageRecord] = []

        async def look() -> bool:
            found[:] = [each for each in await self.threads.messages(thread) if not each.queued]
            return text(found[-1]) == words and self.prompts.running(thread) is None

        await self.until(look)
        return found

    async def until_calls(
        self, thread: str, condition: Callable[[Any], bool], *, count: int = 1, place: int = -1
    ) -> list[Any]:
        """The calls shown in a message, once all of at least `count` are so."""
        found: list[Any] = []

        async def look() -> bool:
            found[:] = calls((await self.threads.messages(thread))[place])
            return len(found) >= count and all(map(condition, found))

        await self.until(look)
        return found

    async def title(self, thread: str) -> str:
        await self.threads.written()
        record = await self.records.threads.get(thread)
        assert record is not None
        return record.title

    async def until_title(self, thread: str, title: str) -> None:
        async def look() -> bool:
            return await self.title(thread) == title

        await self.until(look)

    def place(self, thread: str, prompted: PromptReceipt) -> int:
        """Where its operation stands among all of them."""
        return (
            list(self.gate.operations).index(prompted.operation)
            if prompted.operation in self.gate.operations
            else -1
        )

    async def asked(self, thread: str, tool: str | None = None) -> Call:
        """A call of the thread's that waits for the person."""
        found: list[Call] = []

        async def look() -> bool:
            found[:] = [
                call
                for call in self.gate.open.values()
                if call.caller.thread == thread and call.status == "waiting" and tool in (None, call.tool)
            ]
            return bool(found)

        await self.until(look)
        return found[0]

    async def decide(self, call: Call, kind: AnswerKind) -> None:
        assert call.approval is not None
        await person_actions.answer(self.gate, call.approval, Answer(kind=kind, by=ANN), call.approval.digest)

    async def last(self, thread: str) -> MessageRecord:
        return (await self.threads.messages(thread))[-1]

    def caller(self, thread: str, agent: str = "scripted") -> Caller:
        """The agent, as our MCP server knows it."""
        workspace, operation = str(self.stage.cwd), self.prompts.calling(thread)
        return Caller(
            door="http", client=agent, key=thread, workspace=workspace, thread=thread, operation=operation
        )

    async def call(self, thread: str, tool: str, input: Json | None = None, patience: float = 60.0) -> Call:
        """The agent calls a tool of ours over MCP, and waits for it."""
        opened: list[Call] = []
        known = anyio.Event()

        def on_open(call: Call) -> None:
            opened.append(call)
            known.set()

        request = Request(tool=tool, input=input or {}, caller=self.caller(thread), patience=patience)
        self.stage.group.start_soon(self.gate.submit, request, on_open)
        with anyio.fail_after(BOUND):
            await known.wait()
        return opened[0]


def text(message: MessageRecord) -> str:
    """The text of a message."""
    return "".join(part.text for part in message.parts if part.kind == "text")


def notes(message: MessageRecord) -> list[str]:
    return [part.text for part in message.parts if part.kind == "note"]


def parts(message: MessageRecord, kind: str) -> list[Any]:
    return [part for part in message.parts if part.kind == kind]


def calls(message: MessageRecord) -> list[Any]:
    return [part.data for part in message.parts if part.kind == "call"]


@asynccontextmanager
async def conversation_host(home: Path, *, grace: float = 0.5) -> AsyncGenerator[ConversationHost]:
    """A host at `home` with an agent `scripted`. It restores the threads that an earlier host left there."""
    async with agent_host(home, grace=grace) as stage, open_records(home / "handrail.db") as records:
        stage.group.start_soon(stage.terminals.run)
        patient = Patient()
        toolbox = {tool.name: tool for tool in _tools(stage, records, home, patient)}
        rules = Rules.with_default(stage.journal, trusted=[str(stage.cwd)])
        gate = Gate(stage.journal, rules, toolbox, stage.group)
        threads, images = Threads(stage.journal, records), Blobs(home / "images")
        await threads.restore()
        hands = RequestHandlers(gate, stage.terminals)
        prompts = Prompts(
            *(gate, threads, stage.agents, hands, records),
            specs=stage.specs.get,
            door=_no_door,
            images=images,
        )
        async with anyio.create_task_group() as talking:
            await talking.start(prompts.run)
            yield ConversationHost(stage, gate, records, threads, prompts, images, patient)
            gate.leave()  # as a daemon ends: open messages are interrupted before their agent ends
            talking.cancel_scope.cancel()


def _no_door(_thread: str, _workspace: str | None, _agent: str) -> None:
    """No MCP server is open here; tests call tools directly."""


def _tools(stage: AgentHost, records: Records, home: Path, patient: Patient) -> list[Tool[Any, Any]]:
    """Sample tools for MCP calls, and the real tools behind an agent's requests."""
    own, blobs = (home / "handrail.db",), Blobs(home / "blobs")
    return [
        *(Echo(), Write(), patient),
        *(AgentWork(own, ENVIRONMENT), AgentForm(), ReadTextFile(own), WriteFile(own, blobs)),
        ExecuteCommand(build_tool_context(stage.terminals, records, home)),
    ]


async def check_invariants(host: ConversationHost) -> None:
    """At the end no call, operation or approval is open, and every message has ended."""

    async def quiet() -> bool:
        return not host.gate.operations and not host.gate.open

    await host.until(quiet)
    await host.threads.written()
    assert await host.records.operations.still_open() == []
    assert [each for each in await host.records.threads.open_messages() if not each.queued] == []
    assert await host.records.approvals.find(open_only=True) == []
    events: list[Event] = await host.facts(object)
    for event in events:
        if isinstance(event, OperationEnded):
            assert event.stop is not None
