"""Sessions of third-party agents: listed, continued as threads, copied by a fork, and steered where the agent can.

Each agent is hosted by a real daemon, against a model that is scripted. None of them reaches a network.
"""

from collections.abc import Iterator

import pytest
from tests.real_agents.agent_catalog import CLAUDE, OPENCODE, QWEN
from tests.real_agents.hosting import SLOW, Hosted, answering, ended, hosting
from tests.real_agents.real_agent import Real
from tests.support.daemon_home import eventually, find_processes, until
from tests.support.model_server.script import Turn, script
from tests.support.person_client import Json
from tests.support.thread_client import Conversation, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

FORKS = ("claude", "opencode")
"""Those that announce `session/fork`."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(CLAUDE, id=CLAUDE.name),  # the one that lists, forks and is steered
        *(pytest.param(real, id=real.name, marks=pytest.mark.all_clients) for real in (OPENCODE, QWEN)),
    ],
)
def real(request: pytest.FixtureRequest) -> Real:
    return request.param


@pytest.fixture(scope="module")
def hosted(real: Real) -> Iterator[Hosted]:
    with hosting(real) as hosted:
        yield hosted
        assert (hosted.model.strange, hosted.model.refused) == ([], [])


async def said(thread: Conversation, words: str, *turns: Turn) -> Json:
    prompted = await thread.say(script(*turns, prompt=words))
    return await ended(thread, prompted["operation"])


async def test_a_fork_copies_the_session_where_the_agent_can(real: Real, hosted: Hosted) -> None:
    thread = await hosted.begin()
    await said(thread, "The word is heron.", Turn("I keep it."))
    forked = await hosted.person.ask("POST", f"threads/{thread.id}/fork", {})
    copy = Conversation(hosted.person, forked.json()["id"])
    origin = (await copy.look())["state"]["origin"]
    asked = len(hosted.model.asked)
    assert text_of(await said(copy, "And now?", Turn("Heron."))) == "Heron."
    request = str(hosted.model.asked[-1].body)
    assert ("The word is heron." in request, len(hosted.model.asked) > asked) == (True, True)
    is_summary = "This is what was said in this conversation before." in request
    assert (origin["how"], is_summary) == (("forked", False) if real.name in FORKS else ("transcript", True))
    assert text_of(await said(thread, "Still there?", Turn("Yes."))) == "Yes."


async def test_a_session_that_the_agent_lists_is_continued_with_its_messages(
    real: Real, hosted: Hosted
) -> None:
    thread = await hosted.begin()
    await said(thread, "The word is egret.", Turn("I keep that too."))
    session = next(
        one["id"]
        for one in await hosted.person.get(f"agents/{real.name}/sessions", workspace=str(hosted.workspace))
        if one["thread"] == thread.id
    )
    hosted.home.kill()  # so that deleting the thread leaves the session to the agent
    hosted.home.up()
    (await hosted.person.ask("DELETE", f"threads/{thread.id}")).raise_for_status()
    body = {"session": session, "workspace": str(hosted.workspace)}
    adopted = await hosted.person.ask("POST", f"agents/{real.name}/sessions", body)
    assert adopted.status_code == 201, adopted.text
    again = Conversation(hosted.person, adopted.json()["id"])
    view = await again.look()
    messages = [(each["role"], text_of(each)) for each in view["said"]]
    assert [role for role, _ in messages] == ["user", "assistant"]
    assert ("The word is egret." in messages[0][1], messages[1][1]) == (True, "I keep that too.")
    assert view["state"]["origin"]["how"] == "loaded"
    assert text_of(await said(again, "And now?", Turn("Egret."))) == "Egret."
    request = str(hosted.model.asked[-1].body)
    assert "The word is egret." in request
    assert "This is what was said in this conversation before." not in request


async def test_a_message_in_mid_turn_reaches_the_agent_that_takes_it(real: Real, hosted: Hosted) -> None:
    thread, watched = await hosted.begin(), hosted.workspace / "watched.txt"
    watched.write_text("")
    async with answering(hosted.person, "allow"):
        prompted = await thread.say(
            script(real.runs(f"tail -f {watched}"), Turn("With tabs."), Turn("Done."))
        )
        await until(lambda: bool(find_processes(str(watched))), SLOW)
        state = (await thread.look())["state"]["agent"]
        steered = await thread.say("use tabs", steer=True)
        assert (state["steers"], steered["steered"]) == ((True,) * 2 if real is CLAUDE else (False,) * 2)
        if real is CLAUDE:
            assert steered["operation"] == prompted["operation"]

            async def look() -> list[Json] | None:
                said = (await thread.look())["said"]
                return said if said[-1]["stop"] == "end_turn" and len(said) > 3 else None

            messages = await eventually(look, SLOW)
            assert [each["stop"] for each in messages] == ["end_turn", "steered", "end_turn", "end_turn"]
            assert (text_of(messages[2]), "With tabs." in text_of(messages[3])) == ("use tabs", True)
            assert any("use tabs" in str(each.body) for each in hosted.model.asked)
        else:
            assert (await thread.look())["queued"] == 1
            cancelled = await hosted.person.ask("POST", f"operations/{prompted['operation']}/cancel")
            cancelled.raise_for_status()
            await thread.idle()
