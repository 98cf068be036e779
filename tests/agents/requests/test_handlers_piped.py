"""Each thing an agent may ask its host for, asked by a real program over real pipes, and answered by the gate."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.acp_requests import RequestingAgent, requesting_agent
from tests.support.actors import ANN
from tests.support.agent_host import BOUND, ENVIRONMENT, RecordingHandler, prompt
from tests.support.scripted_agent import Obj, command

from handrail.agents.acp.capabilities import Folder
from handrail.agents.acp.session import Session
from handrail.agents.pool import Agents
from handrail.agents.requests.request_context import CANCELLED, DENIED, NOT_FOUND
from handrail.config import AgentSection
from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.store.values import Caller, Json

pytestmark = pytest.mark.anyio


@dataclass
class Desk(RecordingHandler):
    """Takes down what the agent says, and has what it asks for done."""

    grip: RequestingAgent | None = None

    async def serve(self, method: str, params: Json) -> Json | None:
        assert self.grip is not None
        return await self.grip.hands.serve(method, params, self.grip.who)


@dataclass
class Piped:
    """An agent with a session."""

    grip: RequestingAgent
    session: Session
    desk: Desk

    @property
    def root(self) -> Path:
        return self.grip.root

    async def told(self, *steps: Obj) -> Any:
        """What the agent tells last, having done these things."""
        await prompt(self.session, *steps)
        return self.desk.told

    async def told_while(self, answer: dict[str, Any], *steps: Obj) -> Any:
        """The same, while a person gives this answer to its question."""
        async with anyio.create_task_group() as group:
            group.start_soon(prompt, self.session, *steps)
            await self.grip.answers(**answer)
        return self.desk.told


@asynccontextmanager
async def piped(home: Path, caller: Caller, **how: Any) -> AsyncGenerator[Piped]:
    spec = AgentSection(name="scripted", command=command(strict=True))
    async with requesting_agent(home, caller, **how) as here, anyio.create_task_group() as group:
        agents = Agents(
            here.office.terminals,
            {"scripted": spec}.get,
            lambda _passed: ENVIRONMENT,
            here.gate.journal,
            0.5,
        )
        with anyio.fail_after(BOUND):
            await group.start(agents.run)
            agent, desk = await agents.get("scripted"), Desk(grip=here)
            session = await agent.open(Folder(cwd=str(here.root)), desk)
        yield Piped(here, session, desk)
        with anyio.fail_after(BOUND):
            await agents.close()
        group.cancel_scope.cancel()


@pytest.fixture
async def willing(home: Path, caller: Caller) -> AsyncGenerator[Piped]:
    """A person is there who allows everything."""
    async with piped(home, caller) as found:
        yield found


@pytest.fixture
async def asking(home: Path, caller: Caller) -> AsyncGenerator[Piped]:
    """A person is there whom the test plays."""
    async with piped(home, caller, default="ask", agrees=False) as found:
        yield found


async def test_it_reads_a_file(willing: Piped) -> None:
    (willing.root / "a").write_text("1\n2\n3\n")
    read = {"path": str(willing.root / "a"), "line": 2, "limit": 1}
    assert await willing.told({"read": read, "as": "x"}, {"tell": "x"}) == {"content": "2\n"}


async def test_it_learns_that_a_file_is_missing(willing: Piped) -> None:
    path = str(willing.root / "none")
    told = await willing.told({"read": {"path": path}, "as": "x", "id": 0}, {"tell": "x"})
    assert told["error"] == {
        "code": NOT_FOUND,
        "message": f"Resource not found: {path} does not exist.",
        "data": {"uri": path},
    }


async def test_it_writes_a_file(willing: Piped) -> None:
    write = {"path": str(willing.root / "new"), "content": "hällo"}
    await willing.told({"write": write, "as": "x"}, {"tell": "x"})
    assert (willing.root / "new").read_text() == "hällo"


async def test_it_learns_of_a_denial_with_its_reason(asking: Piped) -> None:
    write = {"path": str(asking.root / "new"), "content": "x"}
    told = await asking.told_while(
        {"kind": "deny", "reason": "not there"}, {"write": write, "as": "x"}, {"tell": "x"}
    )
    assert told["error"]["code"] == DENIED
    assert "not there" in told["error"]["message"]


async def test_it_runs_a_command_waits_for_it_and_reads_its_output(willing: Piped) -> None:
    told = await willing.told(
        {"terminal": {"command": "echo", "args": ["a  b", "漢字"], "outputByteLimit": 5}, "as": "t"},
        {"wait_for_exit": "$t.terminalId", "as": "e"},
        {"tell": "e"},
        {"output": "$t.terminalId", "as": "o"},
        {"tell": "o"},
    )
    assert told == {"output": "字\n", "truncated": True, "exitStatus": {"exitCode": 0, "signal": None}}
    assert {"exitCode": 0, "signal": None} in [json.loads(text) for text in willing.desk.texts]


async def test_it_kills_what_it_started_and_can_still_read_it(willing: Piped) -> None:
    told = await willing.told(
        {"terminal": {"command": "echo begun; sleep 1000"}, "as": "t"},
        {"kill": "$t.terminalId"},
        {"output": "$t.terminalId", "as": "o"},
        {"tell": "o"},
    )
    assert told["exitStatus"]["exitCode"] is None
    assert told["exitStatus"]["signal"] is not None


async def test_it_gives_a_terminal_back_and_can_name_it_no_more(willing: Piped) -> None:
    told = await willing.told(
        {"terminal": {"command": "sleep", "args": ["1000"]}, "as": "t"},
        {"release": "$t.terminalId"},
        {"output": "$t.terminalId", "as": "o"},
        {"tell": "o"},
    )
    assert told["error"]["code"] == NOT_FOUND
    assert [terminal for terminal in willing.grip.office.terminals.live.values() if not terminal.pipes] == []


async def test_it_asks_for_permission_and_gets_one_of_its_options(asking: Piped) -> None:
    call = {"toolCallId": "1", "kind": "execute", "rawInput": {"command": "make"}}
    steps: list[Obj] = [{"ask": {"toolCall": call}, "as": "p"}, {"tell": "p"}]
    told = await asking.told_while({"kind": "allow"}, *steps)
    assert told == {"outcome": {"outcome": "selected", "optionId": "yes"}}
    told = await asking.told_while({"kind": "deny"}, *steps)
    assert told["outcome"] == {"outcome": "selected", "optionId": "no"}


async def test_it_takes_its_question_back_and_is_told_so(asking: Piped) -> None:
    """It waits for a form in between, so that the question is in the inbox by then."""
    call = {"toolCallId": "1", "kind": "execute", "rawInput": {"command": "make"}}
    steps: list[Obj] = [
        {"ask": {"toolCall": call}, "as": "p", "wait": False},
        {"elicit": {"message": "Now?", "requestedSchema": {"type": "object"}}},
        {"cancel_request": "p"},
        {"join": "p"},
        {"tell": "p"},
    ]
    asked: list[Approval] = []
    async with anyio.create_task_group() as group:
        group.start_soon(prompt, asking.session, *steps)
        asked += [await asking.grip.question(), await asking.grip.question()]
        form = next(each for each in asked if each.call == asking.grip.asked[1][1])
        await person_actions.answer(asking.grip.gate, form, Answer(kind="allow", by=ANN), form.digest)
    assert asking.desk.told["error"]["code"] == CANCELLED
    assert [each.open for each in asked] == [False, False]
    assert sorted(each.answered is None for each in asked) == [False, True]


async def test_it_has_a_form_filled_in(asking: Piped) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    values = {"message": "Who?", "form": schema, "values": {"name": "Ann"}}
    told = await asking.told_while(
        {"input": values},
        {"elicit": {"message": "Who?", "requestedSchema": schema}, "as": "f"},
        {"tell": "f"},
    )
    assert told == {"action": "accept", "content": {"name": "Ann"}}
