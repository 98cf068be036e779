"""A person who takes longer than most: the client waits, or is told to repeat the call and then passes once."""

import anyio
import pytest
from tests.real_clients.guarded_client import TURN_SECONDS, GuardedClient
from tests.support.model_server.script import Turn

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600), pytest.mark.all_clients]

SLOW_SECONDS = 90.0
"""How long the person takes: more than the 60 s after which Qwen Code runs a tool whatever its hook does."""


async def test_an_answer_after_90_seconds_counts_and_passes_once(guarded: GuardedClient) -> None:
    line = "echo made >> slowly"
    made = guarded.workspace / "slowly"
    repeats = guarded.client.clock_seconds < SLOW_SECONDS
    again = (_held(guarded.client.runs(line)), guarded.client.runs(line)) if repeats else ()
    async with guarded.running(
        guarded.client.runs(line), *again, within=TURN_SECONDS + 3 * SLOW_SECONDS
    ) as run:
        asked = await guarded.person.question(line)
        await anyio.sleep(SLOW_SECONDS)  # the time itself is what is tried here
        assert not made.exists()
        (await guarded.person.answer(asked, "allow")).raise_for_status()
        if repeats:
            assert asked["call_id"] in guarded.last_request, "the model is told which call to repeat"
            guarded.model.let_go("answered")
            await guarded.person.deny(line, "Once was enough.")
    assert made.read_text() == "made\n", run.text


def _held(turn: Turn) -> Turn:
    """The same, once the person has answered."""
    return Turn(turn.say, turn.tool, turn.input, hold="answered")
