"""Terminals in an agent's hands, complete to the specification: created, read, waited for, killed and given back."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.acp_requests import BOUND, RequestingAgent, error_data, requesting_agent

from handrail.agents.requests import agent_terminals
from handrail.agents.requests.agent_terminals import KILLED
from handrail.agents.requests.request_context import CANCELLED, DENIED, FAILED, NOT_FOUND
from handrail.gate import person_actions
from handrail.gate.call import Call
from handrail.store.actor import PERSON
from handrail.store.values import Caller

pytestmark = pytest.mark.anyio

FOREVER = "echo begun; sleep 1000 & echo $!; sleep 1000"


@pytest.fixture
async def here(home: Path, caller: Caller) -> AsyncGenerator[RequestingAgent]:
    """A person is there who allows everything."""
    async with requesting_agent(home, caller) as found:
        yield found


@pytest.fixture
async def asking(home: Path, caller: Caller) -> AsyncGenerator[RequestingAgent]:
    """A person is there whom the test plays."""
    async with requesting_agent(home, caller, default="ask", agrees=False) as found:
        yield found


async def ended(here: RequestingAgent, terminal: str) -> Any:
    return await here.ask("terminal/wait_for_exit", terminalId=terminal)


async def output(here: RequestingAgent, terminal: str) -> Any:
    return await here.ask("terminal/output", terminalId=terminal)


async def printed(here: RequestingAgent, terminal: str, lines: int) -> list[str]:
    """The first lines of its output, as soon as they are there."""
    tail = here.office.terminals.tail(terminal)
    enough = anyio.CancelScope()

    async def look(_data: bytes, _offset: int) -> None:
        if tail.read(0)[0].count(b"\n") >= lines:
            enough.cancel()

    with anyio.fail_after(BOUND), enough:
        await tail.follow(0, look)
    return str((await output(here, terminal))["output"]).splitlines()[:lines]


def is_alive(pid: str) -> bool:
    return Path("/proc", pid).exists()


def call_of(here: RequestingAgent) -> Call:
    """The call that was opened last, while it is open."""
    return [*here.gate.open.values()][-1]


async def run(here: RequestingAgent, command: str, *args: str, **params: Any) -> str:
    """All that a command prints."""
    terminal = await here.terminal(command, *args, **params)
    await ended(here, terminal)
    return str((await output(here, terminal))["output"])


async def test_a_command_runs_in_exactly_its_words(here: RequestingAgent) -> None:
    assert await run(here, "printf", "%s|", "a b", "$HOME", "'", "; ls") == "a b|$HOME|'|; ls|"
    assert ([call.tool for call in await here.opened()], here.asked) == (["execute_command"], [])


async def test_a_command_without_words_that_is_no_program_is_a_shell_line(here: RequestingAgent) -> None:
    assert await run(here, "echo one && echo two | tr a-z A-Z") == "one\nTWO\n"


async def test_it_runs_in_the_sessions_folder_unless_another_is_named(here: RequestingAgent) -> None:
    (here.root / "sub").mkdir()
    assert await run(here, "pwd") == f"{here.root}\n"
    assert await run(here, "pwd", cwd=None) == f"{here.root}\n"
    assert await run(here, "pwd", cwd=str(here.root / "sub")) == f"{here.root}/sub\n"


async def test_its_variables_are_set(here: RequestingAgent) -> None:
    env = [{"name": "COLOUR", "value": "blue green"}, {"name": "EMPTY", "value": ""}]
    assert await run(here, 'echo "$COLOUR,$EMPTY,${OTHER-unset}"', env=env) == "blue green,,unset\n"


async def test_the_exit_code_is_told(here: RequestingAgent) -> None:
    terminal = await here.terminal("exit 3")
    assert await ended(here, terminal) == {"exitCode": 3, "signal": None}
    assert (await output(here, terminal))["exitStatus"] == {"exitCode": 3, "signal": None}


async def test_a_signal_is_told(here: RequestingAgent) -> None:
    terminal = await here.terminal("kill -SEGV $$")
    assert await ended(here, terminal) == {"exitCode": None, "signal": "SIGSEGV"}


async def test_while_it_runs_there_is_output_and_no_exit(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    assert (await printed(here, terminal, 1)) == ["begun"]
    told = await output(here, terminal)
    assert "exitStatus" not in told
    assert told["truncated"] is False


async def test_output_is_plain_text_without_escapes(here: RequestingAgent) -> None:
    told = await run(here, r"printf '\033[31mred\033[0m\r\n\033]0;title\007done\n50%%\r100%%\n'")
    assert told == "red\ndone\n100%\n"


async def test_output_can_be_read_long_after_the_exit(here: RequestingAgent) -> None:
    terminal = await here.terminal("echo kept")
    await ended(here, terminal)
    await here.settled()
    for _ in range(2):
        assert await output(here, terminal) == {
            "output": "kept\n",
            "truncated": False,
            "exitStatus": {"exitCode": 0, "signal": None},
        }
        assert await ended(here, terminal) == {"exitCode": 0, "signal": None}


@pytest.mark.parametrize(
    ("limit", "kept", "truncated"),
    [
        (0, "", True),
        (1, "\n", True),
        (3, "\n", True),
        (4, "€\n", True),
        (5, "€\n", True),
        (7, "€€\n", True),
        (10, "€€€\n", False),
        (1000, "€€€\n", False),
    ],
)
async def test_output_is_cut_at_its_start_on_a_character(
    here: RequestingAgent, limit: int, kept: str, truncated: bool
) -> None:
    terminal = await here.terminal("echo €€€", outputByteLimit=limit)
    await ended(here, terminal)
    told = await output(here, terminal)
    assert (told["output"], told["truncated"]) == (kept, truncated)


async def test_without_a_limit_there_is_one_all_the_same(here: RequestingAgent) -> None:
    terminal = await here.terminal("seq 400000")
    await ended(here, terminal)
    told = await output(here, terminal)
    assert told["truncated"] is True
    assert len(told["output"].encode()) <= agent_terminals.MAX_OUTPUT
    assert told["output"].endswith("\n399999\n400000\n")


async def test_a_killed_terminal_is_still_the_agents(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    _, child = await printed(here, terminal, 2)
    assert is_alive(child)
    assert await here.ask("terminal/kill", terminalId=terminal) == {}
    assert not is_alive(child)
    told = await output(here, terminal)
    assert told["output"].startswith("begun\n")
    assert told["exitStatus"]["signal"] in ("SIGTERM", "SIGHUP")
    assert await ended(here, terminal) == told["exitStatus"]
    assert await here.ask("terminal/kill", terminalId=terminal) == {}
    assert (await here.settled()).message == KILLED.message == "Ended by the agent"


async def test_who_waits_for_the_exit_learns_of_a_kill(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    await printed(here, terminal, 1)
    told = await here.meanwhile(
        lambda: here.ask("terminal/kill", terminalId=terminal), "terminal/wait_for_exit", terminalId=terminal
    )
    assert told["signal"] in ("SIGTERM", "SIGHUP")


async def test_a_program_that_ignores_being_asked_is_killed_all_the_same(here: RequestingAgent) -> None:
    terminal = await here.terminal("trap '' TERM HUP; echo ready; while true; do sleep 0.1; done")
    await printed(here, terminal, 1)
    await here.ask("terminal/kill", terminalId=terminal)
    assert await ended(here, terminal) == {"exitCode": None, "signal": "SIGKILL"}


async def test_a_released_terminal_is_ended_and_its_id_means_nothing_any_more(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    _, child = await printed(here, terminal, 2)
    assert await here.ask("terminal/release", terminalId=terminal) == {}
    assert not is_alive(child)
    for method in ("output", "wait_for_exit", "kill", "release"):
        error = await here.fails(f"terminal/{method}", terminalId=terminal)
        assert error.code == NOT_FOUND
        assert str(error) == f"There is no terminal '{terminal}': it was released, or never created."
    assert here.office.terminals.tail(terminal).read(0)[0].startswith(b"begun"), "people can still read it"


async def test_a_terminal_that_has_ended_is_released_as_well(here: RequestingAgent) -> None:
    terminal = await here.terminal("true")
    await ended(here, terminal)
    assert await here.ask("terminal/release", terminalId=terminal) == {}
    assert (await here.fails("terminal/output", terminalId=terminal)).code == NOT_FOUND


async def test_a_command_that_ended_by_itself_is_never_recorded_as_cancelled(here: RequestingAgent) -> None:
    """The release comes after the exit, and before the call has its result."""
    terminal = await here.terminal("read line; echo $line; exit 0")
    call, process = call_of(here), here.office.terminals.get(terminal)
    assert process is not None
    ended: list[bool] = []

    async def release_at_exit() -> None:
        await process.wait()
        assert call.outcome is None, "the call was settled before the release"
        ended.append(here.gate.end(call, KILLED))

    async with anyio.create_task_group() as group:
        group.start_soon(release_at_exit)
        await process.write(b"ready\n")
    assert ended == [False]
    assert call.outcome is not None
    assert (call.outcome.ending, str(call.outcome.by)) == ("done", "execute_command")
    assert call.outcome.result is not None
    assert call.outcome.result.data["exit_code"] == 0
    assert str(call.outcome.result.data["output"]).endswith("ready\n")


@pytest.mark.parametrize("method", ["output", "wait_for_exit", "kill", "release"])
@pytest.mark.parametrize(
    "odd", [{}, {"terminalId": "t0000000000"}, {"terminalId": 7}, {"terminalId": "../x"}]
)
async def test_an_unknown_id_is_a_clear_error(
    here: RequestingAgent, method: str, odd: dict[str, Any]
) -> None:
    error = await here.fails(f"terminal/{method}", **odd)
    assert error.code == NOT_FOUND
    assert "There is no terminal" in str(error)


async def test_another_agent_and_another_thread_cannot_name_it(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    for other in (here.another(client="stranger"), here.another(key="h2", thread="h2")):
        assert (await other.fails("terminal/output", terminalId=terminal)).code == NOT_FOUND
        assert (await other.fails("terminal/kill", terminalId=terminal)).code == NOT_FOUND
    assert "exitStatus" not in await output(here.another(operation=None), terminal)


async def test_the_same_command_twice_is_two_terminals(here: RequestingAgent) -> None:
    first, second = await here.terminal("sleep 1000"), await here.terminal("sleep 1000")
    assert first != second
    await here.ask("terminal/kill", terminalId=first)
    assert "exitStatus" not in await output(here, second)


async def test_many_short_commands_at_once_all_end_with_their_own_code(here: RequestingAgent) -> None:
    codes: dict[int, Any] = {}

    async def one(code: int) -> None:
        terminal = await here.terminal(f"exit {code}")
        codes[code] = (await ended(here, terminal))["exitCode"]

    async with anyio.create_task_group() as group:
        for code in range(12):
            group.start_soon(one, code)
    assert codes == {code: code for code in range(12)}


async def test_a_command_that_a_person_denies_is_an_error_with_their_reason(asking: RequestingAgent) -> None:
    denial = {"kind": "deny", "reason": "use make"}
    error = await asking.both("terminal/create", denial, command="npm", args=["test"])
    assert (error.code, str(error)) == (DENIED, "Denied by ann. Reason: use make. Nothing was done.")


async def test_a_terminal_is_there_when_a_person_has_allowed_it(asking: RequestingAgent) -> None:
    told = await asking.both("terminal/create", {"kind": "allow"}, command="nice", args=["echo", "hi"])
    assert await ended(asking, told["terminalId"]) == {"exitCode": 0, "signal": None}
    assert (await output(asking, told["terminalId"]))["output"] == "hi\n"


async def test_an_agent_reads_what_a_person_changed_and_said(asking: RequestingAgent) -> None:
    command = {"command": "nice echo theirs", "cwd": str(asking.root), "background": True}
    edited = {"input": {**command, "command": "nice echo mine"}, "reason": "be brief"}
    told = await asking.both("terminal/create", edited, command="nice echo theirs", outputByteLimit=1000)
    await ended(asking, told["terminalId"])
    assert (await output(asking, told["terminalId"]))["output"] == (
        '[A person changed this call before allowing it: `command` is "nice echo mine" instead of "nice echo theirs".]\n'
        "[The person who allowed it says: be brief]\n"
        "mine\n"
    )


async def test_words_of_ours_never_make_more_bytes_than_were_asked_for(asking: RequestingAgent) -> None:
    command = {"command": "nice seq 100", "cwd": str(asking.root), "background": True}
    edited = {"input": {**command, "command": "nice seq 200"}}
    told = await asking.both("terminal/create", edited, command="nice seq 100", outputByteLimit=20)
    await ended(asking, told["terminalId"])
    told = await output(asking, told["terminalId"])
    assert (told["output"], told["truncated"]) == ("196\n197\n198\n199\n200\n", True)


async def test_a_person_who_cancels_ends_it_and_the_agent_reads_so(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    await printed(here, terminal, 2)

    async def cancels() -> None:
        assert person_actions.cancel(here.gate, call_of(here), PERSON)

    told = await here.meanwhile(cancels, "terminal/wait_for_exit", terminalId=terminal)
    assert told["signal"] in ("SIGTERM", "SIGHUP")
    assert (await output(here, terminal))["output"].endswith("\n[Cancelled by user]")


async def test_a_person_who_completes_it_ends_the_waiting_and_not_the_work(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    _, child = await printed(here, terminal, 2)

    async def completes() -> None:
        assert person_actions.complete(here.gate, call_of(here), PERSON)

    told = await here.meanwhile(completes, "terminal/wait_for_exit", terminalId=terminal)
    assert told == {"exitCode": None, "signal": None}
    assert is_alive(child)
    assert (await output(here, terminal))["output"].endswith(
        "[Command force-completed by user. May still be running in terminal.]"
    )
    await here.ask("terminal/kill", terminalId=terminal)
    assert not is_alive(child)


async def test_a_person_may_complete_it_with_words_of_their_own(here: RequestingAgent) -> None:
    terminal = await here.terminal(FOREVER)
    assert person_actions.complete(here.gate, call_of(here), PERSON, text="all tests pass", stop=True)
    await ended(here, terminal)
    assert (await output(here, terminal))["output"].endswith(
        "[Completed by user with the text below; it is the person's, not the tool's.]\nall tests pass"
    )


async def test_a_cancelled_operation_ends_its_terminals_though_the_agent_does_not(
    here: RequestingAgent,
) -> None:
    terminal = child = ""
    async with here.gate.operation(here.caller) as operation:
        during = here.another(operation=operation.id)
        with anyio.CancelScope(shield=True):
            terminal = await during.terminal(FOREVER)
            _, child = await printed(during, terminal, 2)
            operation.cancel(PERSON)
    assert not is_alive(child)
    assert (await ended(here, terminal))["signal"] in ("SIGTERM", "SIGHUP")


async def test_nothing_is_started_for_an_operation_that_has_ended(here: RequestingAgent) -> None:
    async with here.gate.operation(here.caller) as operation:
        operation.cancel(PERSON)
    error = await here.another(operation=operation.id).fails("terminal/create", command="touch", args=["x"])
    assert error.code == CANCELLED
    assert not (here.root / "x").exists()


async def test_a_background_command_outlives_the_prompt_it_was_started_for(here: RequestingAgent) -> None:
    async with here.gate.operation(here.caller) as operation:
        terminal = await here.another(operation=operation.id).terminal(FOREVER)
        _, child = await printed(here, terminal, 2)
    assert is_alive(child)
    await here.ask("terminal/release", terminalId=terminal)
    assert not is_alive(child)


async def test_an_agent_that_takes_its_request_back_starts_nothing(asking: RequestingAgent) -> None:
    approval = await asking.given_up("terminal/create", command="touch", args=["x"])
    assert not approval.open
    assert approval.call not in asking.gate.open
    assert not (asking.root / "x").exists()


async def test_what_cannot_be_started_is_said(here: RequestingAgent) -> None:
    assert "There is no " in str(
        await here.fails("terminal/create", command="ls", cwd=str(here.root / "none"))
    )
    error = await here.fails("terminal/create", command="")
    assert (error.code, error_data(error)["status"]) == (FAILED, "failed")
    assert "The command is empty" in str(error)
    bad = await here.fails("terminal/create", command="ls", env=[{"name": "A=B", "value": "x"}])
    assert "a name holds `=`" in str(bad)


async def test_a_program_that_is_not_there_is_for_its_shell_to_say(here: RequestingAgent) -> None:
    terminal = await here.terminal("no-such-program-here", "--help")
    assert await ended(here, terminal) == {"exitCode": 127, "signal": None}
    assert "command not found" in (await output(here, terminal))["output"]


async def test_an_agent_that_is_forgotten_holds_nothing(here: RequestingAgent) -> None:
    terminal = await here.terminal("true")
    await ended(here, terminal)
    here.hands.forget(here.caller)
    assert (await here.fails("terminal/output", terminalId=terminal)).code == NOT_FOUND


async def test_terminals_that_are_never_given_back_do_not_add_up(
    here: RequestingAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_terminals, "MAX_TERMINALS", 2)
    running = await here.terminal("sleep 1000")
    done = await here.terminal("true")
    await ended(here, done)
    last = await here.terminal("true")
    assert (await here.fails("terminal/output", terminalId=done)).code == NOT_FOUND
    assert "exitStatus" not in await output(here, running)
    await ended(here, last)
