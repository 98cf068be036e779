"""The demo's agent, over real pipes: what it does at each of its words, and how it stops."""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from handrail.demo import acp_agent
from handrail.demo.acp_agent import ACTS, NOTES

Json = dict[str, Any]
BOUND = 30.0
REFUSED = {"code": -32000, "message": "Denied by Ann: not today"}

pytestmark = pytest.mark.anyio


class Host:
    """The other end of the demo's agent: a client that answers as a test says."""

    def __init__(self, process: Process, cwd: Path) -> None:
        assert process.stdout is not None
        self.process, self.cwd = process, cwd
        self._lines = BufferedByteReceiveStream(process.stdout)
        self.updates: list[Json] = []
        self.served: list[tuple[str, Json]] = []
        self.answers: dict[str, Json] = {}
        """By method: a result, or an error under that name."""
        self.on_update: Callable[[Json], Any] = lambda _: None
        self._asked = 0

    async def open(self) -> str:
        await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = await self.ask("session/new", {"cwd": str(self.cwd), "mcpServers": []})
        return opened["sessionId"]

    async def prompt(self, session: str, text: str) -> Json:
        return await self.ask(
            "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        )

    async def say(self, text: str) -> str:
        """Have it answer, fast; how it stopped."""
        session = await self.open()
        await self.ask("session/set_mode", {"sessionId": session, "modeId": "brisk"})
        return (await self.prompt(session, text))["stopReason"]

    async def ask(self, method: str, params: Json) -> Json:
        self._asked += 1
        await self.send({"id": self._asked, "method": method, "params": params})
        while True:
            message = json.loads(await self._lines.receive_until(b"\n", 1_000_000))
            if "method" not in message:
                assert message["id"] == self._asked
                return message["result"]
            await self._hear(message)

    async def send(self, message: Json) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def _hear(self, message: Json) -> None:
        params = cast("Json", message["params"])
        if "id" not in message:
            self.updates.append(params["update"])
            made = self.on_update(params["update"])
            await (made if made is not None else anyio.lowlevel.checkpoint())
            return
        self.served.append((message["method"], params))
        answer = self.answers.get(message["method"], {})
        told = {"error": answer["error"]} if "error" in answer else {"result": answer}
        await self.send({"id": message["id"], **told})

    def of(self, kind: str) -> list[Json]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    @property
    def said(self) -> str:
        return "".join(update["content"]["text"] for update in self.of("agent_message_chunk"))


@asynccontextmanager
async def talking(cwd: Path) -> AsyncGenerator[Host]:
    command = [sys.executable, "-m", "handrail.demo.acp_agent"]
    with anyio.fail_after(BOUND):
        process = await anyio.open_process(command, cwd=cwd)
        try:
            yield Host(process, cwd)
        finally:
            if process.returncode is None:
                process.kill()
            await process.aclose()


async def test_it_greets_with_all_its_words_and_offers_them_as_commands(tmp_path: Path) -> None:
    async with talking(tmp_path) as host:
        assert await host.say("good morning") == "end_turn"
    assert host.said.strip() == acp_agent.HELLO.strip()
    assert all(f"`{word}`" in acp_agent.HELLO for word in ACTS)
    offered = host.of("available_commands_update")[0]["availableCommands"]
    assert [command["name"] for command in offered] == list(ACTS)
    assert all(command["description"] for command in offered)
    thoughts = "".join(update["content"]["text"] for update in host.of("agent_thought_chunk"))
    assert thoughts == acp_agent.THOUGHT
    assert 0 < host.of("usage_update")[-1]["used"] <= host.of("usage_update")[-1]["size"]


async def test_it_edits_through_its_client_what_is_there_kept(tmp_path: Path) -> None:
    async with talking(tmp_path) as host:
        host.answers["fs/read_text_file"] = {"content": "before\n"}
        assert await host.say("/edit, please") == "end_turn"
    read, written = host.served
    assert (read[0], read[1]["path"]) == ("fs/read_text_file", str(tmp_path / NOTES))
    assert (written[0], written[1]["path"]) == ("fs/write_text_file", str(tmp_path / NOTES))
    assert written[1]["content"].startswith("before\n")
    assert [update["status"] for update in host.of("tool_call_update")] == ["completed"]
    assert host.said.endswith(acp_agent.EDITED)


async def test_a_denied_edit_is_told_with_the_reason_of_the_person(tmp_path: Path) -> None:
    async with talking(tmp_path) as host:
        host.answers["fs/read_text_file"] = {"error": {"code": -32002, "message": "There is no such file"}}
        host.answers["fs/write_text_file"] = {"error": REFUSED}
        assert await host.say("edit") == "end_turn"
    assert [update["status"] for update in host.of("tool_call_update")] == ["failed"]
    assert "not today" in host.said


async def test_it_runs_a_command_in_a_terminal_of_its_client_and_gives_it_back(tmp_path: Path) -> None:
    async with talking(tmp_path) as host:
        host.answers |= {
            "terminal/create": {"terminalId": "t1"},
            "terminal/wait_for_exit": {"exitCode": 0},
            "terminal/output": {"output": "1\n2\n", "truncated": False},
        }
        assert await host.say("run") == "end_turn"
    methods = [method.partition("/")[2] for method, _ in host.served]
    assert methods == ["create", "wait_for_exit", "output", "release"]
    shown = [update["content"] for update in host.of("tool_call_update") if update.get("content")]
    assert shown == [[{"type": "terminal", "terminalId": "t1"}]]
    assert "ended with 0:\n\n```\n1\n2\n```" in host.said


@pytest.mark.parametrize(
    ("option", "told"), [("yes", acp_agent.MAY), ("no", acp_agent.MAY_NOT)], ids=("yes", "no")
)
async def test_it_keeps_to_the_answer_when_it_asks(tmp_path: Path, option: str, told: str) -> None:
    async with talking(tmp_path) as host:
        host.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": option}}
        assert await host.say("ask") == "end_turn"
    assert host.said.endswith(told)


async def test_its_plan_is_done_step_by_step(tmp_path: Path) -> None:
    async with talking(tmp_path) as host:
        assert await host.say("plan") == "end_turn"
    done = [sum(entry["status"] == "completed" for entry in update["entries"]) for update in host.of("plan")]
    assert done == list(range(len(acp_agent.PLAN) + 1))


@pytest.mark.parametrize("word", ["hang", "long"])
async def test_it_stops_when_it_is_told_to_and_answers_the_next_prompt(tmp_path: Path, word: str) -> None:
    async with talking(tmp_path) as host:
        session = await host.open()
        begun = iter([True])

        def cancel_once(update: Json) -> Any:
            if update["sessionUpdate"] == "agent_message_chunk" and next(begun, False):
                return host.send({"method": "session/cancel", "params": {"sessionId": session}})
            return None

        host.on_update = cancel_once
        assert (await host.prompt(session, word))["stopReason"] == "cancelled"
        assert (await host.prompt(session, "hello"))["stopReason"] == "end_turn"
    assert host.said.endswith(acp_agent.HELLO)


async def test_it_breaks_in_the_middle_of_a_word_with_last_words(tmp_path: Path) -> None:
    async with talking(tmp_path) as host:
        with pytest.raises(anyio.IncompleteRead):
            await host.say("break")
        assert host.process.stderr is not None
        assert (await host.process.stderr.receive()).decode() == acp_agent.LAST_WORDS
        assert await host.process.wait() == 3
    assert host.said == acp_agent.BREAK
