"""Third-party agents from the package registries, hosted by a real daemon, against a model that is scripted.

Each goes through the same scenarios. Where agents differ, `agent_catalog.py` says how, and the tests assert that. None
of them reaches a network.
"""

import json
import os
import signal
import time
from collections.abc import Iterator

import anyio
import pytest
from tests.real_agents.agent_catalog import ALWAYS, EXAMPLE, MORE
from tests.real_agents.hosting import SLOW, Hosted, answering, ended, hosting
from tests.real_agents.real_agent import Real
from tests.real_agents.run_record import forget, record
from tests.support.daemon_home import eventually, find_processes, until
from tests.support.model_server.script import Turn, script
from tests.support.person_client import Json
from tests.support.thread_client import Conversation, parts_of, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


PARAMETERS = [
    *(pytest.param(real, id=real.name) for real in ALWAYS),
    *(pytest.param(real, id=real.name, marks=pytest.mark.all_clients) for real in MORE),
]


@pytest.fixture(scope="module", params=PARAMETERS)
def real(request: pytest.FixtureRequest) -> Real:
    return request.param


@pytest.fixture(scope="module")
def hosted(real: Real) -> Iterator[Hosted]:
    """A daemon for each agent. Its tests share it, since starting an agent is what takes long."""
    forget(real)
    with hosting(real) as hosted:
        yield hosted
        assert hosted.model.strange == [], "an agent that is tried here has nothing to do elsewhere"
        refused = bool(hosted.model.refused)
        assert refused == real.is_broken_by_cancel, "what real agents send is what real providers take"


async def test_a_command_is_asked_about_as_it_is_and_runs_once_it_was_allowed(
    real: Real, hosted: Hosted
) -> None:
    thread, made = await hosted.begin(), hosted.workspace / "made-here"
    line = "touch made-here && ls"
    async with answering(hosted.person, "allow") as asked:
        prompted = await thread.say(script(real.runs(line), Turn("It ran.")))
        message = await ended(thread, prompted["operation"])
    assert message["stop"] == "end_turn"
    assert made.exists()
    assert [approval["tool"] for approval in asked] == list(real.run_asks)
    for approval in asked:
        assert (approval["preview"]["kind"], approval["risk"]) == ("command", "medium")
        assert line in approval["preview"]["command"]
        assert line in approval["title"]
    words = text_of(message)
    assert words.startswith("I run it.")
    assert words.endswith("It ran.")
    assert real.tells_its_host or words == "I run it.It ran."
    [call] = calls_of(message)
    assert call["status"] == "completed"
    assert call["call"] in {approval["call_id"] for approval in asked}
    record(real, "command", "asks; " + ("a terminal of Handrail" if len(asked) > 1 else "runs it itself"))


def calls_of(message: Json) -> list[Json]:
    """The cards of a message, without files that the agent has read: some look for one that does not exist."""
    calls = [part["data"] for part in parts_of(message, "call")]
    return [call for call in calls if call["tool"] != "read_text_file"]


async def test_a_file_is_shown_as_a_diff_and_written_once_that_was_allowed(
    real: Real, hosted: Hosted
) -> None:
    thread, path = await hosted.begin(), hosted.workspace / "written.txt"
    async with answering(hosted.person, "allow") as asked:
        prompted = await thread.say(script(real.writes(path, "by an agent\n"), Turn("It is written.")))
        message = await ended(thread, prompted["operation"])
    assert (message["stop"], message["agent"]) == ("end_turn", real.name)
    assert text_of(message).endswith("It is written.")
    assert path.read_text() == "by an agent\n"
    # Each asks about its own work. Who then writes through us, which is our deed and no longer its word, is asked again.
    assert [approval["tool"] for approval in asked] == list(real.write_asks)
    for approval in asked:
        assert approval["preview"]["kind"] == "diff"
        assert approval["preview"]["path"] == str(path)
        assert "+by an agent" in approval["preview"]["diff"]
    assert {approval["caller"]["thread"] for approval in asked} <= {thread.id}
    calls = calls_of(message)
    assert {call["status"] for call in calls} == {"completed"}
    if real.write_asks:
        assert {call["call"] for call in calls} <= {approval["call_id"] for approval in asked}
        record(real, "file", "through Handrail" if "write_file" in real.write_asks else "itself, diff shown")
    else:
        await shows_unasked(hosted, calls[0]["call"], "+by an agent")
        record(real, "file", "itself, unasked; recorded with its diff")


async def shows_unasked(hosted: Hosted, call: str, words: str) -> None:
    """The call of work that nobody was asked about, with its diff."""
    unasked = await hosted.person.call(call)
    assert unasked["allowed_by"] == "nobody"
    assert words in unasked["result"]["data"]["preview"]["diff"]


async def test_what_was_denied_is_not_done_and_the_agent_reads_why(real: Real, hosted: Hosted) -> None:
    thread, made = await hosted.begin(), hosted.workspace / "denied-here"
    async with answering(hosted.person, "deny", "Not in this folder, please.") as asked:
        prompted = await thread.say(script(real.runs("touch denied-here && ls"), Turn("I leave it.")))
        message = await ended(thread, prompted["operation"])
        assert [approval["tool"] for approval in asked] == [real.run_asks[0]]
        assert not made.exists()
        # Some stop there, others tell the model; both can be talked to afterwards.
        assert ("I leave it." in text_of(message)) != real.denial_ends_turn
        again = await thread.say(script(Turn("Still here.")))
        assert text_of(await ended(thread, again["operation"])) == "Still here."
    assert "Not in this folder, please." in json.dumps(hosted.model.asked[-1].body)
    record(real, "denial", "ends its turn" if real.denial_ends_turn else "goes on")


async def test_it_uses_our_own_tools_and_a_person_is_asked_once(real: Real, hosted: Hosted) -> None:
    thread, path = await hosted.begin(), hosted.workspace / "ours.txt"
    if real.ours is None:
        await takes_no_tools(real, hosted, thread)
        return
    turn = real.ours("write_file", {"path": str(path), "content": "by you\n"})
    async with answering(hosted.person, "allow") as asked:
        late = anyio.current_time() + (SLOW if real.finds_us_late else 0)
        while True:
            prompted = await thread.say(script(turn, Turn("Done.")))
            message = await ended(thread, prompted["operation"])
            if asked or anyio.current_time() > late:
                break
    assert path.read_text() == "by you\n"
    [ours] = asked  # its own question about our tool was answered, since the call asks itself
    assert (ours["tool"], (await hosted.person.call(ours["call_id"]))["assurance"]) == (
        "write_file",
        "bound",
    )
    assert ours["caller"]["thread"] == thread.id
    assert ours["caller"]["operation"] == prompted["operation"]
    assert [part["data"]["call"] for part in parts_of(message, "call")] == [ours["call_id"]]
    record(real, "own_tools", "asked once")


async def takes_no_tools(real: Real, hosted: Hosted, thread: Conversation) -> None:
    """Its model is offered none of ours, though its session was given our server."""
    await ended(thread, (await thread.say(script(Turn("No tools."))))["operation"])
    assert "get_terminal_buffer" not in json.dumps(hosted.model.asked[-1].body)
    record(real, "own_tools", "takes none")


async def cancel(hosted: Hosted, thread: Conversation, operation: str) -> Json:
    with anyio.fail_after(SLOW):
        (await hosted.person.ask("POST", f"operations/{operation}/cancel")).raise_for_status()
        return await ended(thread, operation)


async def goes_on(thread: Conversation, *, in_new_session: bool = False) -> None:
    message = await ended(thread, (await thread.say(script(Turn("Here I am."))))["operation"])
    assert text_of(message) == "Here I am."
    notes = [part["text"] for part in parts_of(message, "note")]
    assert any("so it was given a new session" in note for note in notes) == in_new_session


async def test_cancelled_while_its_command_runs_it_leaves_no_process(real: Real, hosted: Hosted) -> None:
    thread, watched = await hosted.begin(), hosted.workspace / "watched.txt"
    watched.write_text("")
    turn = (real.leaves or real.runs)(f"tail -f {watched}")
    async with answering(hosted.person, "allow") as asked:
        prompted = await thread.say(script(turn, Turn("It goes on.", hang=True)))
        await until(lambda: bool(find_processes(str(watched))), SLOW)
        if real.leaves:  # its model speaks while the command runs
            await thread.heard(prompted["operation"], "It goes on.")
        message = await cancel(hosted, thread, prompted["operation"])
    said = "I run it." + ("It goes on." if real.leaves else "")
    assert (message["stop"], text_of(message)) == ("cancelled", said)
    await until(lambda: not find_processes(str(watched)))
    statuses = {part["data"]["status"] for part in parts_of(message, "call")}
    assert statuses <= {"failed", "completed", "cancelled"}
    assert await hosted.person.get("approvals", open=True) == []
    if real.leaves:
        await lists_leftovers(hosted, asked[0]["call_id"])
    await goes_on(thread, in_new_session=real.is_broken_by_cancel)
    record(real, "cancel_command", "stopped by Handrail" if real.leaves else "yes")


async def lists_leftovers(hosted: Hosted, call: str) -> None:
    """The receipt of a call that was allowed names what Handrail stopped of it."""

    async def stopped() -> list[str]:
        return [each["name"] for each in (await hosted.person.call(call))["receipt"]["processes_stopped"]]

    assert "tail" in await eventually(stopped)


async def test_cancelled_while_it_asks_its_question_is_withdrawn(real: Real, hosted: Hosted) -> None:
    thread, made = await hosted.begin(), hosted.workspace / "never-made"
    prompted = await thread.say(script(real.runs("touch never-made && ls"), Turn("Never said.")))
    question = await hosted.person.question("touch never-made")
    message = await cancel(hosted, thread, prompted["operation"])
    assert (message["stop"], text_of(message)) == ("cancelled", "I run it.")
    assert (await hosted.person.settled(question["call_id"]))["status"] == "cancelled"
    assert await hosted.person.get("approvals", open=True) == []
    assert not made.exists()
    await goes_on(thread, in_new_session=real.is_broken_by_cancel)
    record(real, "cancel_question", "yes")


async def test_its_answer_is_streamed_and_cancelled_while_the_model_speaks_it_stops(
    real: Real, hosted: Hosted
) -> None:
    thread = await hosted.begin()
    prompted = await thread.say(script(Turn("I am thinking about", hang=True)))
    await until(hosted.model.silent.is_set, SLOW)
    await thread.heard(prompted["operation"], "I am thinking about")
    record(real, "stream", "yes")
    message = await cancel(hosted, thread, prompted["operation"])
    assert (message["stop"], text_of(message)) == ("cancelled", "I am thinking about")
    await goes_on(thread)
    record(real, "cancel_model", "yes")


async def test_killed_in_mid_turn_it_is_started_again_and_goes_on(real: Real, hosted: Hosted) -> None:
    thread, others = await hosted.begin(), hosted.programs
    await ended(thread, (await thread.say(script(Turn("Remember the pelican."))))["operation"])
    prompted = await thread.say(script(Turn("I am thinking about", hang=True)))
    await until(hosted.model.silent.is_set, SLOW)
    await thread.heard(prompted["operation"], "I am thinking about")
    [program] = {*hosted.programs} - {*others} or others  # one for this conversation, or one for all
    before = hosted.tree(program)
    os.kill(program, signal.SIGKILL)
    message = await ended(thread, prompted["operation"])
    assert message["stop"] == "failed"
    assert f"{real.name} was ended by SIGKILL." in text_of(message, "error")
    await until(lambda: not set(before) & set(hosted.left))
    await remembers(real, hosted, thread, "pelican")
    record(real, "agent_killed", "yes")


async def test_after_a_crash_of_the_daemon_it_goes_on_from_its_own_record(real: Real, hosted: Hosted) -> None:
    thread = await hosted.begin()
    await ended(thread, (await thread.say(script(Turn("Remember the albatross."))))["operation"])
    before = hosted.left
    hosted.home.kill()
    hosted.home.up()
    await until(lambda: not set(before) & set(hosted.left))
    await remembers(real, hosted, thread, "albatross")
    record(real, "daemon_killed", f"{real.takes_up} its own record" if real.takes_up else "gets a summary")


SUMMARY = "This is what was said in this conversation before"


async def remembers(real: Real, hosted: Hosted, thread: Conversation, words: str) -> None:
    """The model is sent what was said before: by the agent from its own record, else by us."""
    if real.names_record_by_minute:
        minute = time.gmtime().tm_min
        await until(lambda: time.gmtime().tm_min != minute, SLOW)
    hosted.model.requests.clear()
    message = await ended(thread, (await thread.say(script(Turn("I do remember."))))["operation"])
    [note] = [part["text"] for part in parts_of(message, "note")]
    assert note.startswith(f"{real.name} {real.takes_up or 'was sent a summary of'}")
    assert text_of(message) == "I do remember."
    sent = json.dumps(hosted.model.asked[0].body)
    assert words in sent
    assert (SUMMARY in sent) == (real.takes_up is None)


# The protocol's own example has no model, writes no file and keeps no record of a conversation.


@pytest.fixture(scope="module")
def example() -> Iterator[Hosted]:
    forget(EXAMPLE)
    with hosting(EXAMPLE) as hosted:
        yield hosted


async def test_the_example_agent_streams_and_asks_but_writes_no_file(example: Hosted) -> None:
    thread = await example.begin()
    async with answering(example.person, "allow") as asked:
        message = await ended(thread, (await thread.say("hello"))["operation"])
    assert message["stop"] == "end_turn"
    assert [part["kind"] for part in message["parts"]] == ["text", "call", "text", "call", "text"]
    assert [part["data"]["status"] for part in parts_of(message, "call")] == ["completed", "completed"]
    assert [approval["title"] for approval in asked] == ["Modifying critical configuration file"]
    assert text_of(message).endswith("The changes have been applied.")
    record(EXAMPLE, "stream", "yes")
    record(EXAMPLE, "command", "asks; runs nothing")
    assert [*example.workspace.iterdir()] == []
    record(EXAMPLE, "file", "writes nothing")
    assert example.model.requests == []
    for scenario in ("own_tools", "cancel_command", "cancel_model"):
        record(EXAMPLE, scenario, "has no model")


async def test_the_example_agent_goes_on_after_a_denial_and_is_told_why(example: Hosted) -> None:
    thread = await example.begin()
    async with answering(example.person, "deny", "Not on a Friday."):
        denied = await ended(thread, (await thread.say("hello"))["operation"])
        again = await ended(thread, (await thread.say("hello"))["operation"])
    assert text_of(denied).endswith("I'll skip the configuration update.")
    [note] = [part["text"] for part in parts_of(again, "note")]
    assert note.startswith("example was told: ")
    assert note.endswith("Not on a Friday.")
    record(EXAMPLE, "denial", "goes on")


async def test_the_example_agent_stops_when_it_is_cancelled_while_it_waits_for_an_answer(
    example: Hosted,
) -> None:
    thread = await example.begin()
    prompted = await thread.say("hello")
    question = await example.person.question("Modifying")
    message = await cancel(example, thread, prompted["operation"])
    assert message["stop"] == "cancelled"
    assert (await example.person.settled(question["call_id"]))["status"] == "cancelled"
    assert await example.person.get("approvals", open=True) == []
    record(EXAMPLE, "cancel_question", "yes")


async def test_the_example_agent_cannot_resume_and_is_told_what_was_said(example: Hosted) -> None:
    thread = await example.begin()
    async with answering(example.person, "deny"):
        await ended(thread, (await thread.say("hello"))["operation"])
        example.home.kill()
        example.home.up()
        message = await ended(thread, (await thread.say("and again"))["operation"])
    assert [part["text"] for part in parts_of(message, "note")] == [
        "example was sent a summary of 2 messages."
    ]
    assert text_of(message).endswith("I'll skip the configuration update.")
    record(EXAMPLE, "daemon_killed", "gets a summary")


async def test_the_example_agent_that_is_killed_is_started_again(example: Hosted) -> None:
    thread = await example.begin()
    prompted = await thread.say("hello")
    question = await example.person.question("Modifying")
    [program] = example.programs
    os.kill(program, signal.SIGKILL)
    message = await ended(thread, prompted["operation"])
    assert (message["stop"], "SIGKILL" in text_of(message, "error")) == ("failed", True)
    assert (await example.person.settled(question["call_id"]))["status"] == "cancelled"
    async with answering(example.person, "deny"):
        again = await ended(thread, (await thread.say("and again"))["operation"])
    assert text_of(again).endswith("I'll skip the configuration update.")
    record(EXAMPLE, "agent_killed", "yes")
