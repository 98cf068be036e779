"""Which programs run: shared, started once, restarted, ended when idle; and none harms another."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.support.agent_host import BOUND, AgentHost, RecordingHandler, agent_host, prompt
from tests.support.keeper_terminals import ENV, running_keeper, until
from tests.support.processes import descriptors, is_alive
from tests.support.scripted_agent import command

from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.acp.capabilities import Folder
from handrail.agents.acp.sessions import EARLY_BYTES, SessionRouter
from handrail.config import AgentSection
from handrail.store.events import AgentEnded, AgentStarted


async def test_one_program_serves_all_threads_and_is_started_once_for_all_who_want_it(home: Path) -> None:
    async with agent_host(home) as stage:
        got: list[Agent] = []

        async def want(thread: str) -> None:
            got.append(await stage.agent("scripted", thread))

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as group:
                for n in range(10):
                    group.start_soon(want, f"h{n}")

        assert len({id(agent) for agent in got}) == 1
        assert await stage.agent() is got[0]
        [started] = await stage.facts(AgentStarted)
        assert (started.agent, started.version, started.pid) == ("scripted", "1.2.3", got[0].pid)


async def test_whoever_wants_it_first_may_give_up_while_others_wait(home: Path) -> None:
    async with agent_host(home) as stage:
        got: list[Agent] = []

        async def want() -> None:
            got.append(await stage.agents.get("scripted"))

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as others, anyio.create_task_group() as first:
                first.start_soon(want)
                await anyio.lowlevel.checkpoint()
                others.start_soon(want)
                await anyio.lowlevel.checkpoint()
                first.cancel_scope.cancel()

        assert len(got) == 1
        assert len(await stage.facts(AgentStarted)) == 1


async def test_a_start_that_fails_fails_for_all_who_wait_and_is_tried_again_by_the_next(home: Path) -> None:
    async with agent_host(home) as stage:
        flag = home / "flag"
        line = f'test -e {flag} && exec "$@"; echo not yet >&2; exit 4'
        stage.specs["shy"] = AgentSection(name="shy", command=("sh", "-c", line, "sh", *command()))
        failures: list[AgentError] = []

        async def want() -> None:
            with pytest.raises(AgentError, match="exit code 4") as failed:
                await stage.agents.get("shy")
            failures.append(failed.value)

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(want)
        assert [failure.said for failure in failures] == [("not yet",)] * 3
        flag.touch()

        assert (await stage.agent("shy")).name == "shy"


async def test_an_agent_that_cannot_be_shared_gets_a_program_per_thread(home: Path) -> None:
    async with agent_host(home) as stage:
        add_unshared(stage)
        one, two = await stage.agent("alone", "h1"), await stage.agent("alone", "h2")

        assert one.pid != two.pid
        assert await stage.agent("alone", "h1") is one
        await stage.agents.end("alone", "its thread was deleted", "h1")
        assert (is_alive(one.pid), is_alive(two.pid)) == (False, True)


async def test_the_next_thread_gets_a_spare_program_that_has_already_started(home: Path) -> None:
    async with agent_host(home, spare_of="alone") as stage:
        add_unshared(stage)
        first = await stage.agent("alone", "h1")
        spare = await find_program(stage, first.pid)
        assert [fact.pid for fact in await stage.facts(AgentStarted)] == [first.pid]  # nobody's yet

        second = await stage.agent("alone", "h2")
        assert second.pid == spare
        assert await stage.agent("alone", "h2") is second
        assert stage.agents.running["alone"] is second
        another = await find_program(stage, first.pid, second.pid)
        await stage.agents.end("alone", "its thread was deleted", "h2")
        assert (is_alive(second.pid), is_alive(another)) == (False, True)


async def test_a_program_that_is_prepared_serves_the_first_thread(home: Path) -> None:
    async with agent_host(home, spare_of="alone") as stage:
        add_unshared(stage)
        for name in ("alone", "alone", "scripted", "unknown"):
            stage.agents.prepare(name)
        prepared = await find_program(stage)

        assert (await stage.agent("alone", "h1")).pid == prepared


async def test_a_spare_program_that_lacks_variables_or_has_read_old_settings_is_not_used(home: Path) -> None:
    settings = [1]
    async with agent_host(home, spare_of="alone", settings=lambda: settings[0]) as stage:
        add_unshared(stage)
        first = await stage.agent("alone", "h1")
        spare = await find_program(stage, first.pid)
        with anyio.fail_after(BOUND):
            given = await stage.agents.get("alone", "h2", {"VARIABLE": "one"})
        assert given.pid != spare
        settings[0] = 2

        third = await stage.agent("alone", "h3")
        assert third.pid != spare
        await until(lambda: not is_alive(spare))  # another takes its place
        assert await find_program(stage, first.pid, given.pid, third.pid)


async def test_a_spare_program_that_has_ended_is_not_used(home: Path) -> None:
    async with agent_host(home, spare_of="alone") as stage:
        add_unshared(stage)
        first = await stage.agent("alone", "h1")
        spare = await find_program(stage, first.pid)
        os.kill(spare, signal.SIGKILL)
        await until(lambda: len(stage.terminals.live) == 1)

        assert (await stage.agent("alone", "h2")).pid not in (first.pid, spare)


@pytest.mark.parametrize("idle_seconds", [1.0, 600.0])
async def test_a_spare_program_ends_when_nobody_uses_the_agent_or_with_all_others(
    home: Path, idle_seconds: float
) -> None:
    async with agent_host(home, spare_of="alone", idle_seconds=idle_seconds) as stage:
        add_unshared(stage)
        first = await stage.agent("alone", "h1")
        spare = await find_program(stage, first.pid)
        if idle_seconds > 1.0:
            await stage.agents.close()
        await until(lambda: not is_alive(spare))
        await until(lambda: not stage.terminals.live)


def add_unshared(stage: AgentHost) -> None:
    stage.specs["alone"] = stage.specs["scripted"].model_copy(
        update={"name": "alone", "one_per_thread": True}
    )


async def find_program(stage: AgentHost, *known: int) -> int:
    """The process of a running program that is none of these."""

    def find() -> set[int]:
        return {terminal.pid for terminal in stage.terminals.live.values()} - set(known)

    await until(lambda: bool(find()))
    [pid] = find()
    return pid


async def test_a_program_is_started_in_the_folder_of_its_threads_and_shared_by_them(home: Path) -> None:
    """An agent that runs commands where it was started ran them in the home folder, not where the card said."""
    async with agent_host(home) as stage:
        one, two = stage.cwd / "one", stage.cwd / "two"
        for folder in (one, two):
            folder.mkdir()
        with anyio.fail_after(BOUND):
            first = await stage.agents.get("scripted", "h1", folder=str(one))
            other = await stage.agents.get("scripted", "h2", folder=str(two))
            again = await stage.agents.get("scripted", "h3", folder=str(one))
        assert [folder_of(agent) for agent in (first, other)] == [one, two]
        assert again is first
        assert stage.agents.running["scripted"] is first  # used last
        await stage.agents.end("scripted", "for the test")
        assert not is_alive(first.pid)
        assert not is_alive(other.pid)


def folder_of(agent: Agent) -> Path:
    return Path(f"/proc/{agent.pid}/cwd").readlink()


async def test_a_file_of_the_folder_does_not_take_the_place_of_the_agent(home: Path) -> None:
    async with agent_host(home) as stage:
        for name in ("planted", "tools/planted"):
            planted = stage.cwd / name
            planted.parent.mkdir(exist_ok=True)
            planted.write_text(f"#!/bin/sh\ntouch {home}/ran\n")
            planted.chmod(0o755)
        for number, (program, path) in enumerate(
            (("planted", f".:{ENV['PATH']}:"), ("tools/planted", ENV["PATH"]))
        ):
            stage.specs[f"p{number}"] = AgentSection(
                name=f"p{number}", command=(program,), env={"PATH": path}
            )
            with pytest.raises(AgentError), anyio.fail_after(BOUND):
                await stage.agents.get(f"p{number}", folder=str(stage.cwd))
        assert not (home / "ran").exists()


async def test_what_a_thread_is_given_has_a_program_of_its_own_and_something_else_starts_it_anew(
    home: Path,
) -> None:
    async with agent_host(home) as stage:
        shared = await stage.agents.get("scripted", "h1")
        given = await stage.agents.get("scripted", "h1", {"KEY": "one"})
        assert given.pid != shared.pid
        assert await stage.agents.get("scripted", "h1", {"KEY": "one"}) is given
        assert await stage.agents.get("scripted", "h2") is shared
        anew = await stage.agents.get("scripted", "h1", {"KEY": "two"})
        assert (is_alive(given.pid), is_alive(shared.pid), is_alive(anew.pid)) == (False, True, True)
        assert "restarts with other keys" in (await stage.facts(AgentEnded))[0].why


async def test_who_wants_it_with_something_else_waits_for_its_start_before_ending_it(home: Path) -> None:
    async with agent_host(home) as stage:
        got: list[Agent] = []

        async def want(key: str) -> None:
            got.append(await stage.agents.get("scripted", "h1", {"KEY": key}))

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as group:
                for key in ("one", "two"):
                    group.start_soon(want, key)
        assert [is_alive(agent.pid) for agent in got] == [False, True]


async def test_an_agent_that_hangs_at_the_beginning_is_given_up_and_ended(home: Path) -> None:
    async with agent_host(home, start_seconds=1.0) as stage:
        line = "echo thinking >&2; sleep 1000"
        stage.specs["stuck"] = AgentSection(name="stuck", command=("sh", "-c", line))
        with pytest.raises(AgentError, match="stuck did not answer `initialize` within 1 s") as failed:
            await stage.agent("stuck")
        assert failed.value.said == ("thinking",)
        await until(lambda: not stage.terminals.live)


async def test_an_agent_nobody_uses_is_ended_and_started_anew(home: Path) -> None:
    async with agent_host(home, idle_seconds=0.6) as stage:
        agent, desk = await stage.agent(), RecordingHandler()
        session = await agent.open(Folder(cwd="/"), desk)
        await prompt(session, {"sleep": 1.0}, {"say": "long work is no idleness"})
        assert desk.lost_for == []
        await desk.until(lambda it: it.lost_for != [])
        with anyio.fail_after(BOUND):
            await agent.gone.wait()

        assert desk.lost_for == ["Nobody had used scripted for 0.01 minutes."]
        assert not is_alive(agent.pid)
        assert (await stage.agent()).pid != agent.pid


async def test_an_agent_that_is_ending_is_not_given_to_anybody(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("slow", ignores_eof=True)
        agent = await stage.agent("slow")
        stage.group.start_soon(agent.end, "enough")
        await until(lambda: agent.is_over)
        assert is_alive(agent.pid)
        other = await stage.agent("slow")

        assert other.pid != agent.pid
        assert not is_alive(agent.pid)


async def test_a_program_finds_only_what_it_is_given(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_DAEMON", "x")
    async with agent_host(home) as stage:
        plain = stage.specs["scripted"]
        stage.specs["keyed"] = plain.model_copy(update={"env": {"OWN": "1"}, "env_pass": ("SECRET",)})
        for name, expected in (("scripted", [None, None]), ("keyed", ["1", "kept"])):
            desk = RecordingHandler()
            session = await (await stage.agent(name)).open(Folder(cwd="/"), desk)
            await prompt(session, {"tell_env": ["OWN", "SECRET", "OF_THE_DAEMON", "HANDRAIL_HOME", "HOME"]})

            assert list(desk.told.values()) == [*expected, None, None, "/tmp"]


async def test_an_unknown_agent_is_refused_by_name(home: Path) -> None:
    async with agent_host(home) as stage:
        with pytest.raises(AgentError, match="There is no agent called nobody"):
            await stage.agents.get("nobody")


async def test_agents_go_on_while_others_crash_flood_hang_and_make_no_sense(home: Path) -> None:
    wild: dict[str, list[dict[str, Any]]] = {
        "crashing": [{"say": "x"}, {"crash": 9}],
        "flooding": [{"flood": 1_000_000_000}],
        "babbling": [
            {"garbage": "no sense {n}", "times": 20_000},
            {"fail": {"code": 1, "message": "enough"}},
        ],
        "killed": [{"signal": 9}],
    }
    async with agent_host(home) as stage:
        desk, failures, slowest = RecordingHandler(), dict[str, str](), 0.0
        session = await (await stage.agent()).open(Folder(cwd="/"), desk)
        for name in wild:
            stage.add(name)

        async def act_up(name: str) -> None:
            rowdy = await (await stage.agent(name)).open(Folder(cwd="/"), RecordingHandler())
            with pytest.raises(AgentError) as failed:
                await prompt(rowdy, *wild[name])
            failures[name] = str(failed.value)

        async def feel_the_pulse() -> None:
            nonlocal slowest
            while True:
                began = time.monotonic()
                await anyio.sleep(0.005)
                slowest = max(slowest, time.monotonic() - began)

        async with anyio.create_task_group() as watch:
            watch.start_soon(feel_the_pulse)
            async with anyio.create_task_group() as group:
                group.start_soon(prompt, session, {"say": "{n}", "times": 2000, "every": 0.001})
                for name in wild:
                    group.start_soon(act_up, name)
            watch.cancel_scope.cancel()

        assert desk.texts == [str(n) for n in range(2000)]
        assert failures.keys() == wild.keys()
        assert slowest < BOUND
        assert (await prompt(session, {"say": "and on"})).stop == "end_turn"


async def test_an_agent_that_has_ended_leaves_no_descriptor_and_no_terminal_behind(home: Path) -> None:
    async with agent_host(home) as stage:
        await (await stage.agent()).end("once, so that what is loaded later is loaded")
        await until(lambda: not stage.agents.running)
        before = descriptors(os.getpid())
        await (await stage.agent()).end("again")
        stage.specs["none"] = AgentSection(name="none", command=("no-such-program",))
        with pytest.raises(AgentError):
            await stage.agent("none")

        await until(lambda: not stage.agents.running)
        assert descriptors(os.getpid()) == before
        await until(lambda: stage.terminals.known == ())


async def test_closing_ends_every_tree(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("other")
        pids = [(await stage.agent(name)).pid for name in ("scripted", "other")]
        with anyio.fail_after(BOUND):
            await stage.agents.close()

        assert [pid for pid in pids if is_alive(pid)] == []
        assert len(await stage.facts(AgentEnded)) == 2


async def test_programs_that_a_dead_daemon_left_behind_are_ended_at_the_start(home: Path) -> None:
    async with running_keeper(home, end=False) as scene:
        stubborn = ["sh", "-c", "trap '' HUP TERM; echo ready; while :; do sleep 1; done"]
        left, pipes = await scene.terminals.open_pipes(stubborn, "/", ENV, grace=3600)
        assert await anyio.to_thread.run_sync(os.read, pipes[1], 100) == b"ready\n"
    for fd in pipes:
        os.close(fd)
    async with agent_host(home) as stage:
        await until(lambda: not is_alive(left.pid))
        assert stage.terminals.live == {}


async def test_none_can_be_had_before_the_start_or_after_the_end(home: Path) -> None:
    async with agent_host(home) as stage:
        agents = stage.agents
        await stage.agent()
    with pytest.raises(AgentError, match="No agent can be started"):
        await agents.get("scripted")


def test_what_is_said_early_is_kept_for_its_session_alone_and_within_bounds() -> None:
    desks, desk, other = SessionRouter(), RecordingHandler(), RecordingHandler()
    desks.update({"sessionId": "a", "update": {"n": "while nothing is being opened"}})
    desks.opening += 1
    for n in range(100):
        desks.update({"sessionId": "a" if n % 2 else "b", "update": {"n": n}}, EARLY_BYTES // 50)
    desks.add("a", desk)
    desks.add("b", other, muted=True)
    desks.update({"sessionId": "b", "update": {"n": "muted"}})
    desks.add("b", other)
    desks.update({"sessionId": "b", "update": {"n": "heard"}})

    assert [update["n"] for update in desk.updates] == list(range(1, 50, 2))
    assert other.updates == [{"n": "heard"}]


def test_an_error_is_its_sentence() -> None:
    error = AgentError("It failed.", ("last",), (Login("web", "Web"),))
    assert (str(error), error.said, error.logins[0].id, error.code) == ("It failed.", ("last",), "web", None)
