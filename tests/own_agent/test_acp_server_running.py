"""The program from its start to its end, spoken to in bare lines."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from tests.own_agent.conftest import KEY
from tests.support.acp_client import PATIENCE, hosted_agent, sample_mcp_server
from tests.support.daemon_home import until
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import ModelServer

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


@pytest.mark.parametrize("there", ["nothing", "file"])
def test_where_nobody_can_be_at_the_other_end_it_says_whom_it_speaks_to(there: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("{}\n")
    with open(os.devnull if there == "nothing" else tmp_path / "in", "rb") as given:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "handrail", "agent"],
            stdin=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "HANDRAIL_HOME": str(tmp_path)},
            check=False,
        )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr == "This speaks to programs. To talk with it yourself: handrail chat --agent handrail\n"
    )


class Lines:
    """A program, and the lines from and to it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process, self._to = process, process.stdin
        self._from = BufferedByteReceiveStream(process.stdout)
        self.heard: list[Json] = []

    async def say(self, line: bytes | Json) -> None:
        await self._to.send((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")

    async def ask(self, id: int | str | None, method: str, params: Json | None = None) -> Json:
        await self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        return await self.answer(id)

    async def answer(self, id: object) -> Json:
        """What comes before it is kept. Every line has to be a message."""
        with anyio.fail_after(PATIENCE):
            while True:
                message = json.loads(await self._from.receive_until(b"\n", 1 << 20))
                self.heard.append(message)
                if "method" not in message and message["id"] == id:
                    return message

    async def leave(self) -> int:
        await self._to.aclose()
        with anyio.fail_after(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def lines(home: Path, env: dict[str, str] | None = None) -> AsyncGenerator[Lines]:
    around = {"HANDRAIL_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"], **(env or {})}
    command = [sys.executable, "-P", "-m", "handrail.own_agent"]
    process = await anyio.open_process(command, env=around, stderr=subprocess.PIPE)
    try:
        made = Lines(process)
        assert "result" in await made.ask(0, "initialize", {"protocolVersion": 1})
        yield made
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await process.aclose()


async def opened(made: Lines, root: Path, log: Path) -> str:
    server = sample_mcp_server(log, "handrail").model_dump(by_alias=True, exclude_none=True)
    answer = await made.ask("new", "session/new", {"cwd": str(root), "mcpServers": [server]})
    return answer["result"]["sessionId"]


def prompt(session: str, text: str) -> Json:
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def pid_in(log: Path) -> int:
    """The server's, as it wrote it down."""
    return int(log.read_text().split()[1])


def lives(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


async def test_nonsense_is_passed_over_and_the_program_goes_on(home: Path) -> None:
    async with lines(home) as made:
        for nonsense in (
            b"",
            b"hello",
            b"[1, 2]",
            b"42",
            b"null",
            b"{}",
            b'{"id": [1], "result": 3}',
            b"\xff\xfe",
        ):
            await made.say(nonsense)
        await made.say({"jsonrpc": "2.0", "method": "nobody/knows", "params": {}})
        await made.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 77}})
        await made.say({"jsonrpc": "2.0", "id": 99, "result": "of nothing"})
        unknown = await made.ask("a", "session/dance")
        wrong = await made.ask(0, "session/new", {"cwd": 3})
        listed = await made.ask("b", "session/list")
        assert await made.leave() == 0

    assert unknown["error"]["code"] == -32601
    assert wrong["error"]["code"] == -32602
    assert listed["result"] == {"sessions": []}


@pytest.mark.parametrize("end", ["input", "signal"])
async def test_with_its_host_everything_ends_that_it_runs(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path, end: str
) -> None:
    log = tmp_path / "log"
    async with lines(home, way) as made:
        session = await opened(made, root, log)
        said = script(Turn("I wait. ", tool="waits", input={"name": "w"}))
        await made.say(
            {"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": prompt(session, said)}
        )
        await until(lambda: log.exists() and "w began" in log.read_text())
        if end == "signal":
            made.process.send_signal(signal.SIGTERM)
        assert await made.leave() == 0

    await until(lambda: not lives(pid_in(log)))
    await until(lambda: model.open == [])


async def test_a_prompt_whose_request_is_cancelled_is_answered_as_such(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with lines(home, way) as made:
        session = await opened(made, root, tmp_path / "log")
        said = script(Turn("I begin and", hang=True))
        await made.say(
            {"jsonrpc": "2.0", "id": 5, "method": "session/prompt", "params": prompt(session, said)}
        )
        await model.until(model.silent.is_set, PATIENCE)
        await made.say({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 5}})
        cancelled = await made.answer(5)
        again = await made.ask(6, "session/prompt", prompt(session, script(Turn("Here."))))
        await made.leave()

    assert cancelled["error"]["code"] == -32800
    assert again["result"] == {"stopReason": "end_turn"}
    assert model.refused == []


async def test_a_host_is_told_of_a_session_only_once_it_knows_it(
    home: Path, root: Path, way: dict[str, str], tmp_path: Path
) -> None:
    async with lines(home, way) as made:
        session = await opened(made, root, tmp_path / "log")
        assert [each.get("id") for each in made.heard] == [0, "new"]
        await made.ask(6, "session/prompt", prompt(session, "/help"))
        await made.leave()

    kinds = [each["params"]["update"]["sessionUpdate"] for each in made.heard if "method" in each]
    assert kinds[0] == "available_commands_update"


async def test_no_key_reaches_a_tool_the_disk_or_another_process(
    home: Path, root: Path, model: ModelServer, way: dict[str, str], tmp_path: Path
) -> None:
    async with hosted_agent(home, root, way, forked=False) as host:
        host.servers = [sample_mcp_server(tmp_path / "log", "handrail")]
        session = await host.new()
        await host.prompt(session, script(Turn(tool="environment"), Turn("Done.")))
        told = host.client.of("tool_call_update")[-1]["content"][0]["content"]["text"]

    assert KEY in str(model.asked[0].headers)
    assert "ANTHROPIC" not in told
    assert KEY not in told
    kept = files(home)
    assert any(session in path.name for path in kept)
    assert all(KEY.encode() not in path.read_bytes() for path in kept)


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


LOOK = """
import ctypes, sys
class Look:
    def find_spec(self, name, *_):
        if name in ("anyio", "acp", "handrail.own_agent.acp_server"):
            print(name, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
            raise SystemExit
sys.meta_path.insert(0, Look())
from handrail.own_agent.__main__ import main
main([])
"""


async def test_its_memory_is_hidden_before_anything_else_is_loaded() -> None:
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process([sys.executable, "-P", "-c", LOOK])

    assert done.stdout == b"handrail.own_agent.acp_server 0\n"


async def test_what_stands_wrong_in_the_configuration_is_said_and_nothing_begins(home: Path) -> None:
    (home / "config.toml").write_text("[agent]\nmax_steps = 0\n")
    command = [sys.executable, "-P", "-m", "handrail.own_agent"]
    around = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"]}
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(command, env=around, check=False)

    assert (done.returncode, done.stdout) == (1, b"")
    assert b"max_steps" in done.stderr


@pytest.mark.parametrize(("argument", "status"), [("--help", 0), ("--fast", 2)])
async def test_it_takes_no_arguments_but_says_what_it_is(home: Path, argument: str, status: int) -> None:
    command = [sys.executable, "-P", "-m", "handrail.own_agent", argument]
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(command, check=False)

    assert done.returncode == status
    assert b"handrail agent" in (done.stderr if status else done.stdout)
