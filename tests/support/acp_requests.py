"""Requests that an ACP agent makes of its host, served by the real gate, tools, keeper and files.

`RequestingAgent` sends the requests and answers the approvals as a person.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from acp.exceptions import RequestError
from tests.support.actors import ANN
from tests.support.tool_runner import ENVIRONMENT, TerminalToolRunner, terminal_tools

from handrail.agents.requests.handlers import RequestHandlers
from handrail.agents.requests.request_context import RequestContext
from handrail.config import AgentSection
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.gate import Gate
from handrail.gate.tool import Tool
from handrail.store.blobs import Blobs
from handrail.store.events import ApprovalOpened, CallOpened, CallSettled, Entry
from handrail.store.values import Caller, Effect, Json
from handrail.tools.agent_form import AgentForm
from handrail.tools.agent_work import AgentWork
from handrail.tools.files.edit_tools import WriteFile
from handrail.tools.files.read_file import ReadTextFile

BOUND = 20.0
"""Seconds for anything a test waits for."""


@dataclass
class RequestingAgent:
    """An agent's session, and the person who answers its approvals."""

    office: TerminalToolRunner
    hands: RequestHandlers
    root: Path
    caller: Caller
    quirks: AgentSection = field(default_factory=lambda: AgentSection(name="mind", command=("mind",)))
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The agent's id for its own work, and the id of our call that asks about it."""
    told: dict[str, Json] = field(default_factory=dict[str, Json])
    """The agent's earlier updates of its tool calls."""
    seen: set[str] = field(default_factory=set[str])
    has_own_tools: bool = False
    """Whether its session was given our MCP server."""

    @property
    def gate(self) -> Gate:
        return self.office.gate

    @property
    def who(self) -> RequestContext:
        return RequestContext(
            caller=self.caller,
            cwd=str(self.root),
            quirks=self.quirks,
            on_asked=lambda tool_call, call: self.asked.append((tool_call, call)),
            known=lambda tool_call: self.told.get(tool_call, {}),
            has_own_tools=self.has_own_tools,
        )

    async def ask(self, method: str, **params: Any) -> Any:
        """The response to the agent."""
        with anyio.fail_after(BOUND):
            return await self.hands.serve(method, cast("Json", {"sessionId": "s", **params}), self.who)

    async def fails(self, method: str, **params: Any) -> RequestError:
        """The error the agent is answered with."""
        with pytest.raises(RequestError) as caught:
            await self.ask(method, **params)
        return caught.value

    async def terminal(self, command: str, *args: str, **params: Any) -> str:
        """The id of a new terminal."""
        if args:
            params["args"] = [*args]
        return str((await self.ask("terminal/create", command=command, **params))["terminalId"])

    async def opened(self) -> list[CallOpened]:
        """Every call made so far, from the journal."""
        entries = await self.gate.journal.since(0, 1000)
        return [entry.event for entry in entries if isinstance(entry.event, CallOpened)]

    async def settled(self) -> CallSettled:
        """The outcome of the first call, from the journal."""
        found: list[CallSettled] = []

        async def look(entries: Sequence[Entry]) -> None:
            found.extend(entry.event for entry in entries if isinstance(entry.event, CallSettled))
            if found:
                scope.cancel()

        with anyio.fail_after(BOUND), anyio.CancelScope() as scope:
            await self.gate.journal.follow(0, look)
        return found[0]

    async def question(self) -> Approval:
        """The next question in the inbox."""
        found: list[Approval] = []

        async def look(entries: Sequence[Entry]) -> None:
            for entry in entries:
                call = (
                    self.gate.open.get(entry.event.call) if isinstance(entry.event, ApprovalOpened) else None
                )
                if call is not None and call.approval is not None and call.approval.id not in self.seen:
                    found.append(call.approval)
                    scope.cancel()
                    return

        with anyio.fail_after(BOUND), anyio.CancelScope() as scope:
            await self.gate.journal.follow(0, look)
        self.seen.add(found[0].id)
        return found[0]

    async def answers(self, kind: Any = "allow", **how: Any) -> Approval:
        """The person's answer to the next question, as they see it."""
        approval = await self.question()
        digest = approval.digest
        changed = {name: how[name] for name in ("input", "content") if name in how}
        if changed:
            digest = (await person_actions.edit(self.gate, self.gate.open[approval.call], **changed)).digest
        await person_actions.answer(self.gate, approval, Answer(kind=kind, by=ANN, **how), digest)
        return approval

    async def meanwhile(self, act: Callable[[], Awaitable[object]], method: str, **params: Any) -> Any:
        """The response to the agent, or the error, if `act` runs while it waits."""
        answered: list[Any] = []

        async def ask() -> None:
            try:
                answered.append(await self.ask(method, **params))
            except RequestError as error:
                answered.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await act()
        return answered[0]

    async def both(self, method: str, answer: Mapping[str, Any], **params: Any) -> Any:
        """The same, if the person gives this answer."""
        return await self.meanwhile(lambda: self.answers(**answer), method, **params)

    async def given_up(self, method: str, **params: Any) -> Approval:
        """The approval of a request that the agent cancelled while it was open."""
        scope = anyio.CancelScope()

        async def ask() -> None:
            with scope:
                await self.ask(method, **params)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            approval = await self.question()
            scope.cancel()
            return approval
        raise AssertionError("it was not asked")

    def another(self, **who: Any) -> "RequestingAgent":
        """Another agent, or the same on another thread."""
        return replace(self, caller=replace(self.caller, **who))


@asynccontextmanager
async def requesting_agent(
    home: Path, caller: Caller, *, default: Effect = "allow", agrees: bool = True, grace: float = 0.3
) -> AsyncGenerator[RequestingAgent]:
    """All parts running. With `agrees`, a person allows whatever auto-approve does not."""
    caller = replace(caller, door="acp", client="mind", key="h1", thread="h1")
    async with terminal_tools(home, caller, default=default, agrees=agrees, grace=grace) as here:
        tools: list[Tool[Any, Any]] = [
            ReadTextFile((home,)),
            WriteFile((home,), Blobs(home / "blobs")),
            AgentWork((home,), ENVIRONMENT),
            AgentForm(),
        ]
        cast("dict[str, Tool[Any, Any]]", here.gate.toolbox).update({tool.name: tool for tool in tools})
        yield RequestingAgent(
            here, RequestHandlers(here.gate, here.terminals), Path(caller.workspace or "/"), caller
        )


def error_data(error: RequestError) -> Any:
    return error.data
