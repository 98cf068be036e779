"""A person who takes longer than most: the client waits, or is told to repeat the call and then passes once."""

import anyio
import pytest
from tests.real_clients.client_catalog import CLINE, KIMI
from tests.real_clients.guarded_client import TURN_SECONDS, GuardedClient
from tests.real_clients.observations import note
from tests.support.model_server.script import Turn

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600), pytest.mark.all_clients]

SLOW_SECONDS = 90.0
"""How long the person takes: more than the 60 s after which Qwen Code runs a tool whatever its hook does."""
LIMIT_SECONDS = 30.0
"""The time limit that is written for clients which keep to it: they run the tool when it ends."""


async def test_an_answer_after_90_seconds_counts_and_passes_once(guarded: GuardedClient) -> None:
    line = "echo made >> slowly"
    made = guarded.workspace / "slowly"
    repeats = guarded.client.clock_seconds < SLOW_SECONDS
    again = (_held(guarded.client.runs(line), line), guarded.client.runs(line)) if repeats else ()
    async with guarded.running(
        guarded.client.runs(line), *again, within=TURN_SECONDS + 3 * SLOW_SECONDS
    ) as run:
        asked = await guarded.person.question(line)
        await anyio.sleep(SLOW_SECONDS)  # the time itself is what is tried here
        assert not made.exists()
        (await guarded.person.answer(asked, "allow")).raise_for_status()
        if repeats:
            await _pass_repeated(guarded, asked["call_id"], line)
    assert made.read_text() == "made\n", run.text
    note(guarded.client.name, "answer after 90 s", "told to repeat the call" if repeats else "waits")


async def test_an_answer_after_the_clients_time_limit_lets_the_repeated_call_pass_once(
    guarded: GuardedClient,
) -> None:
    limit = guarded.client.own_limit or LIMIT_SECONDS
    if not guarded.client.own_limit:
        shorter = ("--hook-timeout", f"{limit:.0f}")
        connected = guarded.handrail("connect", guarded.client.name, "--yes", *shorter)
        assert connected.returncode == 0, connected.stdout + connected.stderr
    line = "echo made >> late"
    made = guarded.workspace / "late"
    first, second, third = (guarded.client.runs(line) for _ in range(3))
    async with guarded.running(
        first, _held(second, line), third, within=TURN_SECONDS + 3 * SLOW_SECONDS
    ) as run:
        asked = await guarded.person.question(line)
        await anyio.sleep(limit + 2)  # the time itself is what is tried here
        assert not made.exists(), "the client ran it when its time limit ended"
        (await guarded.person.answer(asked, "allow")).raise_for_status()
        await _pass_repeated(guarded, asked["call_id"], line)
    assert made.read_text() == "made\n", run.text
    note(guarded.client.name, "answer after its limit", "the repeated call passes once")


@pytest.mark.parametrize(
    "client", [pytest.param(each, id=each.name) for each in (CLINE, KIMI)], indirect=True
)
async def test_a_call_that_outlasts_the_clients_60_seconds_is_handed_back_and_runs_on(
    guarded: GuardedClient,
) -> None:
    """These clients give a call up after 60 s, whatever the model asked for."""
    command = {"command": "sleep 65 && echo made > slept.txt", "wait_seconds": 300}
    turn = guarded.client.ours("execute_command", command)
    async with guarded.running(turn, arguments=guarded.client.asks_nobody) as run:
        call = await guarded.person.allow("sleep 65")
    assert guarded.is_told(call), run.text
    record = await guarded.person.stopped(call)
    assert (record["status"], record["exit_code"]) == ("done", 0), record
    assert (guarded.workspace / "slept.txt").read_text() == "made\n"


async def _pass_repeated(guarded: GuardedClient, call: str, line: str) -> None:
    """The model repeats the call, which passes, and then once more, which asks again."""
    assert guarded.is_told(call), "the model is told which call to repeat"
    guarded.model.let_go(line)
    await guarded.person.deny(line, "Once was enough.")


def _held(turn: Turn, name: str) -> Turn:
    """The same, once the person has answered."""
    return Turn(turn.say, turn.tool, turn.input, hold=name)
