"""Third-party agents from the package registries, hosted by a real daemon, against a model that is scripted.

Each does the same things: what it cannot do is a test of its own, which says so. None of them reaches a network.
"""

import json
from collections.abc import Iterator

import anyio
import pytest
from tests.real_agents.agent_catalog import ALWAYS, EXAMPLE, MORE, Real
from tests.real_agents.hosting import SLOW, Hosted, answering, ended, hosting
from tests.support.daemon_home import eventually, find_processes, until
from tests.support.model_server.script import Turn, script
from tests.support.thread_client import parts_of, text_of

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
    with hosting(real) as hosted:
        yield hosted
        assert hosted.model.strange == [], "an agent that is tried here has nothing to do elsewhere"
        assert hosted.model.refused == [], "what real agents send is what real providers take"


async def test_a_prompt_is_streamed_and_its_file_written_once_it_was_allowed(
    real: Real, hosted: Hosted
) -> None:
    thread, path = await hosted.begin(), hosted.workspace / "written.txt"
    async with answering(hosted.person, "allow") as asked:
        prompted = await thread.say(script(real.writes(path, "by an agent\n"), Turn("It is written.")))
        message = await ended(thread, prompted["operation"])
    assert (message["stop"], message["agent"]) == ("end_turn", real.name)
    assert [part["kind"] for part in message["parts"] if part["kind"] != "call"] == ["text", "text"]
    words = text_of(message)
    assert words.startswith("I write it.")
    assert words.endswith("It is written.")
    assert real.tells_its_host or words == "I write it.It is written."
    assert path.read_text() == "by an agent\n"
    # Each asks about its own work. Who then writes through us, which is our deed and no longer its word, is asked again.
    assert [approval["tool"] for approval in asked] == ["agent_work", *(["write_file"] * real.writes_by_us)]
    assert (await hosted.person.call(asked[0]["call_id"]))["assurance"] == "advisory"
    assert {approval["caller"]["thread"] for approval in asked} == {thread.id}
    calls = [part["data"] for part in parts_of(message, "call")]
    assert {call["status"] for call in calls} == {"completed"}
    assert {call["call"] for call in calls} <= {approval["call_id"] for approval in asked}


async def test_what_was_denied_is_not_done_and_the_conversation_goes_on(real: Real, hosted: Hosted) -> None:
    thread, path = await hosted.begin(), hosted.workspace / "denied.txt"
    async with answering(hosted.person, "deny") as asked:
        prompted = await thread.say(script(real.writes(path, "never\n"), Turn("I leave it.")))
        message = await ended(thread, prompted["operation"])
        assert [approval["tool"] for approval in asked] == ["agent_work"]
        assert not path.exists()
        # Some stop there, others tell the model; both can be talked to afterwards.
        assert message["stop"] in ("end_turn", "cancelled")
        again = await thread.say(script(Turn("Still here.")))
        assert text_of(await ended(thread, again["operation"])) == "Still here."


async def test_it_uses_our_own_tools_with_a_credential_of_its_thread(real: Real, hosted: Hosted) -> None:
    thread, path = await hosted.begin(), hosted.workspace / "ours.txt"
    turn = real.uses("write_file", {"path": str(path), "content": "by you\n"})
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


async def test_cancelled_in_mid_turn_it_stops_and_leaves_no_process(real: Real, hosted: Hosted) -> None:
    thread, watched = await hosted.begin(), hosted.workspace / "watched.txt"
    watched.write_text("")
    line = f"tail -f {watched}"
    async with answering(hosted.person, "allow"):
        prompted = await thread.say(script(real.runs(line), Turn("Never said.")))
        await until(lambda: bool(find_processes(str(watched))), SLOW)
        (await hosted.person.ask("POST", f"operations/{prompted['operation']}/cancel")).raise_for_status()
        message = await ended(thread, prompted["operation"])
    assert message["stop"] == "cancelled"
    assert text_of(message) == "I run it."
    await until(lambda: not find_processes(str(watched)))
    assert {part["data"]["status"] for part in parts_of(message, "call")} <= {
        "failed",
        "completed",
        "cancelled",
    }
    assert await hosted.person.get("approvals", open=True) == []


async def test_cancelled_while_the_model_speaks_it_stops_at_once(real: Real, hosted: Hosted) -> None:
    thread = await hosted.begin()
    prompted = await thread.say(script(Turn("I am thinking about", hang=True)))
    await until(hosted.model.silent.is_set, SLOW)
    await thread.heard(prompted["operation"], "I am thinking about")
    with anyio.fail_after(SLOW):
        (await hosted.person.ask("POST", f"operations/{prompted['operation']}/cancel")).raise_for_status()
        message = await ended(thread, prompted["operation"])
    assert (message["stop"], text_of(message)) == ("cancelled", "I am thinking about")
    again = await thread.say(script(Turn("Here I am.")))
    assert text_of(await ended(thread, again["operation"])) == "Here I am."


async def test_after_a_crash_of_the_daemon_it_goes_on_from_its_own_record(real: Real, hosted: Hosted) -> None:
    thread = await hosted.begin()
    first = await thread.say(script(Turn("Remember the albatross.")))
    await ended(thread, first["operation"])
    before = hosted.left
    hosted.home.kill()
    hosted.home.up()
    await until(lambda: not set(before) & set(hosted.left))
    hosted.model.requests.clear()
    second = await thread.say(script(Turn("I do remember.")))
    message = await ended(thread, second["operation"])
    assert [part["text"] for part in parts_of(message, "note")] == [
        f"{real.name} {real.takes_up} its own record."
    ]
    assert text_of(message) == "I do remember."
    # The model was sent what was said before, by the agent and not by us.
    sent = [json.dumps(each) for each in hosted.model.asked[0].body["messages"]]
    assert [each for each in sent if "albatross" in each]
    assert not [each for each in sent if "This is what was said in this conversation before" in each]


# The protocol's own example has no model, writes no file and keeps no record of a conversation.


@pytest.fixture(scope="module")
def example() -> Iterator[Hosted]:
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


async def test_the_example_agent_stops_when_it_is_cancelled_while_it_waits_for_an_answer(
    example: Hosted,
) -> None:
    thread = await example.begin()
    prompted = await thread.say("hello")
    question = await example.person.question("Modifying")
    (await example.person.ask("POST", f"operations/{prompted['operation']}/cancel")).raise_for_status()
    message = await ended(thread, prompted["operation"])
    assert message["stop"] == "cancelled"

    async def withdrawn() -> bool:
        return (await example.person.call(question["call_id"]))["status"] == "cancelled"

    await eventually(withdrawn)
    assert await example.person.get("approvals", open=True) == []


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
