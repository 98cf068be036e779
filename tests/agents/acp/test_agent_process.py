"""An agent's program, at its worst: within bounds, never waited for beyond them, and gone with all it started."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.agent_host import BOUND, AgentHost, RecordingHandler, agent_host, prompt
from tests.support.keeper_terminals import until
from tests.support.processes import is_alive, rss

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import Folder
from handrail.agents.acp.session import Session
from handrail.config import AgentSection
from handrail.store.events import AgentEnded
from handrail.terminal.jsonrpc_messages import MESSAGE_MAX
from handrail.terminal.pipe_process import SAID_CHARS, SAID_LINES, UNREAD_MAX, StderrTail

MIB = 1 << 20


async def opened(stage: AgentHost, desk: RecordingHandler, name: str = "scripted") -> Session:
    return await (await stage.agent(name)).open(Folder(cwd="/"), desk)


async def test_a_flood_of_a_gigabyte_without_a_newline_ends_the_agent_within_bounded_memory(
    home: Path,
) -> None:
    async with agent_host(home) as stage:
        desk, most = RecordingHandler(), 0
        session, before = await opened(stage, desk), rss()
        began = time.monotonic()
        async with anyio.create_task_group() as group:

            async def measure() -> None:
                nonlocal most
                while True:
                    most = max(most, rss())
                    await anyio.sleep(0.002)

            group.start_soon(measure)
            with pytest.raises(AgentError, match="printed more than 32 MiB without the end of a line"):
                await prompt(session, {"flood": 1_000_000_000})
            group.cancel_scope.cancel()
        took = time.monotonic() - began

        assert most - before < 3 * MESSAGE_MAX, f"{(most - before) / MIB:.0f} MiB"
        assert took < BOUND
        await until(lambda: not stage.terminals.live)
        assert desk.lost_for == [
            "scripted printed more than 32 MiB without the end of a line, so it was ended."
        ]


async def test_a_flood_at_the_start_fails_the_start(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("flood", at_start=[{"flood": 1_000_000_000}])
        with pytest.raises(AgentError, match="32 MiB"):
            await stage.agent("flood")


async def test_the_largest_message_comes_and_a_larger_one_ends_the_agent(home: Path) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        session = await opened(stage, desk)
        await prompt(session, {"huge": MESSAGE_MAX - 1000})
        assert len(desk.texts[0]) == MESSAGE_MAX - 1000
        with pytest.raises(AgentError, match="32 MiB"):
            await prompt(session, {"huge": MESSAGE_MAX})


async def test_a_crash_fails_what_is_under_way_with_its_last_words_and_the_next_start_works(
    home: Path,
) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        session = await opened(stage, desk)
        with pytest.raises(AgentError, match="scripted ended by itself with exit code 3") as failed:
            await prompt(
                session, {"say": "half"}, {"crash": 3, "stderr": ["Traceback:", "\x1b[31mno memory\x1b[0m"]}
            )

        assert failed.value.said[-2:] == ("Traceback:", "no memory")
        assert (desk.texts, desk.lost_for) == (["half"], ["scripted ended by itself with exit code 3."])
        [ended] = await _ended(stage)
        assert (ended.why, ended.said[-1]) == (desk.lost_for[0], "no memory")
        again = RecordingHandler()
        assert (await prompt(await opened(stage, again), {"say": "whole"})).stop == "end_turn"
        assert again.texts == ["whole"]


async def test_what_is_asked_of_an_agent_that_is_gone_fails_with_the_reason(home: Path) -> None:
    async with agent_host(home) as stage:
        session = await opened(stage, RecordingHandler())
        with pytest.raises(AgentError, match="was ended by SIGKILL"):
            await prompt(session, {"signal": 9})
        for _ in ("while its tree is ending", "and afterwards"):
            for late in (session.set_mode("x"), session.prompt([])):
                with pytest.raises(AgentError, match="was ended by SIGKILL"):
                    await late
            await until(lambda: not stage.agents.running)


async def test_a_program_that_cannot_run_says_why(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.specs["none"] = AgentSection(name="none", command=("no-such-program",))
        with pytest.raises(
            AgentError, match=r"none could not be started\. There is no program no-such-program"
        ):
            await stage.agent("none")


async def test_a_crash_at_the_start_says_why_with_its_last_words(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("broken", at_start=[{"garbage": "usage: …"}, {"crash": 2, "stderr": ["no key"]}])
        with pytest.raises(AgentError, match="broken ended by itself with exit code 2") as failed:
            await stage.agent("broken")
        assert failed.value.said == ("no key",)
        assert "It printed a line that made no sense, the last: usage: …" in str(failed.value)


async def test_an_orphan_that_holds_the_output_open_holds_nothing_up_and_goes_too(home: Path) -> None:
    child: dict[str, Any] = {"setsid": True, "forks": True, "holds_stdout": True, "ignores_term": True}
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        session = await opened(stage, desk)
        with pytest.raises(AgentError, match="exit code 1"):
            await prompt(session, {"spawn": "x", **child}, {"tell": "x"}, {"crash": 1})
        pid = int(desk.texts[0].partition(":")[2].strip(" }"))

        assert is_alive(pid)  # and holds the pipe, so that its end has not come
        await until(lambda: not is_alive(pid))


async def test_an_agent_that_closes_its_output_and_stays_is_ended(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("stays", ignores_eof=True)
        session = await opened(stage, RecordingHandler(), "stays")
        with pytest.raises(AgentError, match="stays closed its output"):
            await prompt(session, {"say": "bye"}, {"close_stdout": True}, {"hang": True})
        await until(lambda: not is_alive(session.agent.pid))


async def test_much_on_its_standard_error_does_not_block_it(home: Path) -> None:
    async with agent_host(home) as stage:
        session = await opened(stage, RecordingHandler())
        long = "x" * 10_000
        with pytest.raises(AgentError) as failed:
            await prompt(session, {"stderr": f"{{n}} {long}", "times": 1000}, {"crash": 1})

        assert len(failed.value.said) == SAID_LINES
        assert failed.value.said[-1] == f"999 {long}"[:SAID_CHARS] + "…"


async def test_an_agent_that_does_not_read_is_given_up_before_much_waits_for_it(home: Path) -> None:
    async with agent_host(home) as stage:
        desk, before = RecordingHandler(), rss()
        session = await opened(stage, desk)
        half: list[Any] = [{"type": "text", "text": "x" * (UNREAD_MAX // 2)}]
        async with anyio.create_task_group() as group:
            group.start_soon(_fails, prompt, session, {"stop_reading": True}, {"say": "go"}, {"hang": True})
            await desk.until(lambda it: it.texts == ["go"])
            for _ in range(4):
                group.start_soon(_fails, session.prompt, half)

        assert session.agent.is_over
        assert desk.lost_for == ["scripted does not read what it is sent."]
        assert rss() - before < 8 * UNREAD_MAX


def test_the_last_lines_are_kept_each_cut_and_readable() -> None:
    said = StderrTail()
    for n in range(100):
        said.feed(f"line {n}\r\n".encode())
    assert said.lines == tuple(f"line {n}" for n in range(50, 100))
    said.feed(b"\x1b]0;title\x07\x1b[1;31mred\x1b[0m\n\n   \npart")
    assert said.lines[-2:] == ("red", "part")
    said.feed(b"y" * 10_000_000)
    assert len(said.lines[-1]) == SAID_CHARS + 1


async def _fails(act: Any, *arguments: Any) -> None:
    with pytest.raises(AgentError, match="does not read"):
        await act(*arguments)


async def _ended(stage: AgentHost) -> list[Any]:
    await until(lambda: not stage.terminals.live and not stage.agents.running)
    return await stage.facts(AgentEnded)
