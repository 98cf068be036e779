"""An operation of our own agent, cancelled or answered at every moment that matters.

Over real HTTP, real MCP and real processes, with the page open beside it. After each, the scene sees to it that no
process is left, that the daemon holds no more descriptors, that the next prompt succeeds and that nothing turns.
"""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import anyio
import pytest
from playwright.async_api import Browser
from tests.support.daemon_home import eventually
from tests.support.model_server.script import Call, Turn, script
from tests.support.own_agent_scenario import AgentDaemon, Scenario, agent_daemon, scenario
from tests.support.person_client import Json
from tests.support.thread_client import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


@pytest.fixture(scope="module")
def stage() -> Iterator[AgentDaemon]:
    """With one agent for all threads, as its start takes longer than a scenario. test_stubborn.py has one per thread."""
    with agent_daemon(one_per_thread=False) as stage:
        yield stage


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: each folder has its own agent."""
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture
async def here(stage: AgentDaemon, browser: Browser, workspace: Path) -> AsyncGenerator[Scenario]:
    async with scenario(stage, workspace, browser) as here:
        yield here


def command(line: str, **more: object) -> Call:
    return Call("execute_command", {"command": line, **more})


def in_words(detail: Json) -> str:
    return " ".join(detail["cancelled_activities"])


async def test_a_cancel_during_the_first_model_request_closes_it_and_keeps_what_was_said(
    here: Scenario, stage: AgentDaemon
) -> None:
    operation = await here.say(Turn("I have begun to", hang=True))
    await stage.model.until(stage.model.silent.is_set)
    asked = stage.model.asked[-1]
    await here.thread.heard(operation, "I have begun to")
    await here.turning.is_turning()

    message = await here.cancel(operation)

    assert text_of(message) == "I have begun to"
    await stage.model.until(lambda: asked.ended == "left")
    assert "asking the model" in in_words(await here.doing(operation))
    await here.at_rest()
    kept = [each.text for each in here.told]
    place = next(n for n, text in enumerate(kept) if text == "I have begun to")
    assert "incomplete" in kept[place + 1]


async def test_a_cancel_before_the_first_byte_of_the_model_leaves_no_request_behind(
    here: Scenario, stage: AgentDaemon
) -> None:
    operation = await here.say(Turn("Never said.", hold="never"))
    await here.busy(operation, lambda busy: len(busy.of("model")) == 1)
    await here.turning.is_turning()

    assert text_of(await here.cancel(operation)) == ""

    await stage.model.until(lambda: stage.model.asked[-1].ended == "left")
    await here.at_rest()


async def test_a_cancel_with_three_tools_running_and_one_finished_keeps_its_result_and_ends_the_others(
    here: Scenario,
) -> None:
    three = (command("echo is-finished"), command("sleep 1001"), command("sleep 1002 | sleep 1003"))
    operation = await here.say(Turn("Three at once.", calls=three))
    await here.busy(operation, lambda busy: len(busy.of("call", "done")) == 1 and len(busy.of("call")) == 2)
    for each in ("sleep 1001", "sleep 1002", "sleep 1003"):
        await eventually(_running(here, each))
    await here.turning.is_turning()

    await here.cancel(operation)

    detail = await here.doing(operation)
    assert len(detail["cancelled_calls"]) == 2
    assert [each["how"] for each in detail["activities"] if each["sort"] == "call"] == [
        "done",
        "cancelled",
        "cancelled",
    ]
    await here.at_rest()
    finished, *others = [each for each in here.told if each.kind == "result"]
    assert "is-finished" in finished.text
    assert not finished.failed
    assert ["ancelled" in each.text for each in others] == [True, True]


async def test_a_cancel_with_one_tool_awaiting_approval_withdraws_the_question(
    here: Scenario, stage: AgentDaemon, workspace: Path
) -> None:
    operation = await here.say(Turn("May I?", calls=(command("touch never"), command("echo is-finished"))))
    question = await stage.person.question("touch never")
    await here.busy(operation, lambda busy: len(busy.of("call", "done")) == 1)
    assert here.running("touch") == []

    await here.cancel(operation)

    assert (await stage.person.get(f"approvals/{question['id']}"))["status"] == "withdrawn"
    assert await stage.person.get("approvals", open=True) == []
    assert (await here.doing(operation))["cancelled_calls"] == [question["call_id"]]
    await here.at_rest()
    assert not (workspace / "never").exists()
    assert len([each for each in here.told if each.kind == "result"]) == 2


async def test_one_tool_approved_and_one_denied_are_both_results_and_the_model_goes_on(
    here: Scenario, stage: AgentDaemon, workspace: Path
) -> None:
    both = (command("touch allowed"), command("touch denied"))
    operation = await here.say(Turn("Two questions.", calls=both), Turn("As you wish."))
    await stage.person.question("touch allowed")
    asked = len(stage.model.asked)
    await stage.person.deny("touch denied", "Not that one.")
    await here.busy(operation, lambda busy: len(busy.of("call", "failed")) == 1)
    assert len(stage.model.asked) == asked, "the model is asked again once all have settled, and not before"
    await stage.person.allow("touch allowed")

    assert text_of(await here.ended(operation)) == "Two questions.As you wish."

    assert ((workspace / "allowed").exists(), (workspace / "denied").exists()) == (True, False)
    allowed, denied = [each for each in here.told if each.kind == "result"]
    assert not allowed.failed
    assert "Not that one." in denied.text
    await here.at_rest()


async def test_two_prompts_in_rapid_succession_never_mix_and_the_second_is_answered(
    here: Scenario, stage: AgentDaemon
) -> None:
    first = await here.say(Turn("First.", calls=(command("sleep 1004"),), pace=0.005), Turn("Never."))
    second = await here.say(Turn("Second.", "execute_command", {"command": "echo second"}), Turn("Done."))

    answer = await here.ended(second)

    assert text_of(answer) == "Second.Done."
    assert (await here.thread.ended(first))["stop"] == "cancelled"
    assert (await here.doing(first))["cancelled_by"] is not None
    await here.at_rest()


async def test_of_many_prompts_at_the_same_time_the_last_is_answered_and_all_others_are_cancelled(
    here: Scenario,
) -> None:
    operations: list[str] = []

    async def prompt(number: int) -> None:
        operations.append(
            await here.say(Turn(f"Number {number}.", calls=(command("sleep 1005"),), hang=True))
        )

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(prompt, number)
    last = await here.say(Turn("The last."))

    assert text_of(await here.ended(last)) == "The last."
    stops = [(await here.thread.ended(operation))["stop"] for operation in operations]
    assert stops == ["cancelled"] * 5
    await here.at_rest()


async def test_a_run_of_several_steps_comes_to_its_end_with_everything_it_did_told(
    here: Scenario, workspace: Path
) -> None:
    plan = {"entries": [{"content": "Write it", "status": "in_progress", "priority": "high"}]}
    operation = await here.say(
        Turn("I look.", think="What is here?", calls=(command("echo a-look"), Call("list_files", {}))),
        Turn("I plan.", "update_plan", plan),
        Turn("I write.", "write_file", {"path": "notes.txt", "content": "one\n"}),
        Turn("I check.", "execute_command", {"command": "cat notes.txt"}),
        Turn("All is done."),
    )

    answer = await here.ended(operation)

    assert text_of(answer) == "I look.I plan.I write.I check.All is done."
    assert (workspace / "notes.txt").read_text() == "one\n"
    detail = await here.doing(operation)
    assert {each["how"] for each in detail["activities"]} == {"done"}
    sorts = [each["sort"] for each in detail["activities"]]
    assert [sorts.count(sort) for sort in ("operation", "step", "model", "thinking", "call")] == [
        1, 5, 5, 1, 5,
    ]  # fmt: skip
    assert detail["cancelled_activities"] == []
    await here.at_rest()


async def test_a_sub_agent_three_levels_deep_is_cancelled_with_all_above_and_below_it(here: Scenario) -> None:
    operation = await here.say(_deep("sleep 1006"))
    busy = await here.busy(operation, lambda busy: len(busy.of("agent")) == 3)
    assert [each["title"] for each in busy.of("agent")] == ["Level 1", "Level 2", "Level 3"]
    await eventually(_running(here, "sleep 1006"))
    await here.turning.is_turning()

    await here.cancel(operation)

    detail = await here.doing(operation)
    assert all(each["how"] in ("cancelled", "done") for each in detail["activities"])
    assert [each["how"] for each in detail["activities"] if each["sort"] == "agent"] == ["cancelled"] * 3
    await here.at_rest()


async def test_the_deepest_sub_agent_is_cancelled_alone_and_those_above_it_go_on(
    here: Scenario, stage: AgentDaemon
) -> None:
    operation = await here.say(_deep("sleep 1007"), Turn("Up here, all is well."))
    busy = await here.busy(operation, lambda busy: len(busy.of("agent")) == 3)
    await eventually(_running(here, "sleep 1007"))
    deepest = busy.of("agent")[-1]

    assert (await stage.person.post(f"operations/{operation}/activities/{deepest['id']}/cancel"))["won"]

    assert text_of(await here.ended(operation)).endswith("Up here, all is well.")
    detail = await here.doing(operation)
    ends = [each["how"] for each in detail["activities"] if each["sort"] == "agent"]
    assert ends == ["done", "done", "cancelled"]
    await here.at_rest()


def _deep(line: str, level: int = 1) -> Turn:
    """A turn that dispatches down to the third level, where a command runs."""
    down = Turn(calls=(command(line),)) if level == 3 else _deep(line, level + 1)
    task = script(down, Turn(f"Level {level} reports."))
    return Turn(f"To level {level}.", "dispatch", {"title": f"Level {level}", "task": task})


def _running(here: Scenario, words: str):
    async def look() -> bool:
        return bool(here.running(words))

    return look
