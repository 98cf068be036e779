"""Steering, adopting and forking sessions over HTTP, and reasons of denials that survive kill -9 of the daemon."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.model_server.script import Turn, script
from tests.support.model_server.server import model_server
from tests.support.own_agent_scenario import environment
from tests.support.person_client import Json, Person, person_of
from tests.support.scripted_agent import CAPABILITIES, command
from tests.support.thread_client import Conversation, agents_config, open_thread, parts_of, text_of

pytestmark = pytest.mark.anyio

WAIT: tuple[Json, ...] = ({"say": "at work. "}, {"take_steering": "x"}, {"say": "now: "}, {"tell": "x"})
RUN: Json = {"toolCallId": "1", "kind": "execute", "title": "Test", "rawInput": {"command": "make test"}}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `helm` keeps its sessions."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture(scope="module")
def home(shelf: Path) -> Iterator[Home]:
    mute: Json = {**CAPABILITIES, "sessionCapabilities": {}}
    named = agents_config(
        scripted=command(), helm=command(steers=True, sessions=str(shelf)), mute=command(capabilities=mute)
    )
    with running_daemon(named) as home:
        yield home


@pytest.fixture
def person(home: Home) -> Person:
    return person_of(home)


async def answered(thread: Conversation, words: str) -> list[Json]:
    """All messages, once the last one has ended with these words."""

    async def look() -> list[Json] | None:
        said = (await thread.look())["said"]
        return said if said[-1]["stop"] == "end_turn" and text_of(said[-1]) == words else None

    return await eventually(look)


async def test_a_prompt_steers_the_agent_that_works(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace, agent="helm")
    first = await thread.prompt(*WAIT)
    await thread.heard(first["operation"], "at work. ")
    steered = await thread.say("use tabs", steer=True)
    assert (steered["steered"], steered["operation"]) == (True, first["operation"])
    messages = await answered(thread, 'now: "use tabs"')
    assert [each["stop"] for each in messages] == ["end_turn", "steered", "end_turn", "end_turn"]
    listed = next(row for row in await person.get("threads") if row["id"] == thread.id)
    assert (listed["stop"], listed["queued"], listed["messages"]) == ("end_turn", 0, 4)


async def test_a_queued_prompt_is_given_to_the_agent_now(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace, agent="helm")
    first = await thread.prompt(*WAIT)
    await thread.heard(first["operation"], "at work. ")
    queued = await thread.say("use tabs", queue=True)
    route = f"threads/{thread.id}/queue/{queued['message']}/steer"
    assert (await person.post(route))["steered"] is True
    await answered(thread, 'now: "use tabs"')
    assert (await person.ask("POST", route)).status_code == 404


def keep_session(shelf: Path, id: str, cwd: Path, answer: str) -> None:
    """A session that `helm` had before Handrail knew it."""

    def chunk(kind: str, words: str) -> Json:
        return {"sessionUpdate": kind, "content": {"type": "text", "text": words}}

    said = [chunk("user_message_chunk", "an old prompt"), chunk("agent_message_chunk", answer)]
    (shelf / f"{id}.json").write_text(json.dumps({"opened": {"cwd": str(cwd)}, "said": said}))


async def test_a_session_that_an_agent_lists_becomes_one_thread(
    person: Person, workspace: Path, shelf: Path
) -> None:
    keep_session(shelf, "session-early", workspace, "an old answer")
    (listed,) = await person.get("agents/helm/sessions", workspace=str(workspace))
    assert (listed["id"], listed["folder"], listed["thread"]) == ("session-early", str(workspace), None)
    body = {"session": "session-early", "workspace": str(workspace)}
    view = await person.post("agents/helm/sessions", body)
    assert (view["workspace"], view["agent"], view["title"]) == (
        str(workspace),
        "helm",
        "about session-early",
    )
    assert (await person.post("agents/helm/sessions", body))["id"] == view["id"], "a session is one thread"
    (listed,) = await person.get("agents/helm/sessions", workspace=str(workspace))
    assert listed["thread"] == view["id"]
    thread = Conversation(person, view["id"])
    assert [text_of(each) for each in (await thread.look())["said"]] == ["an old prompt", "an old answer"]
    assert text_of(await thread.act({"say": "and on"})) == "and on"
    (await person.ask("DELETE", f"threads/{thread.id}")).raise_for_status()
    assert (shelf / "session-early.json").exists(), "it was the agent's own before"


async def test_what_cannot_be_adopted_is_refused_with_a_sentence(
    person: Person, workspace: Path, shelf: Path
) -> None:
    keep_session(shelf, "session-lost", workspace / "deleted", "an old answer")
    known = len(await person.get("threads"))
    for agent, session, status, words in (
        ("nobody", "x", 404, "There is no agent nobody"),
        ("helm", "session-none", 404, "helm has no session session-none"),
        ("helm", "session-lost", 422, "is no folder"),
        ("mute", "x", 502, "mute does not list its sessions"),
    ):
        answer = await person.ask("POST", f"agents/{agent}/sessions", {"session": session})
        assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert len(await person.get("threads")) == known


async def test_a_whole_thread_is_forked_with_its_agents_session(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace, agent="helm", title="The original")
    await thread.act({"say": "one"})
    fork = Conversation(person, (await person.post(f"threads/{thread.id}/fork", {}))["id"])
    view = await fork.look()
    assert (view["title"], view["forked_from"], view["state"]["origin"]["how"]) == (
        "The original",
        thread.id,
        "forked",
    )
    told = text_of(await fork.act({"tell_prompt": True}))
    assert "was said in this conversation before" not in told
    empty = await open_thread(person, workspace, agent="helm")
    nothing = await person.post(f"threads/{empty.id}/fork", {})
    assert nothing["messages"] == 0


async def test_after_kill_9_the_agent_is_still_told_why_it_was_denied(workspace: Path) -> None:
    with running_daemon(agents_config(scripted=command())) as home:
        person = person_of(home)
        thread = await open_thread(person, workspace)
        prompted = await thread.prompt({"ask": {"toolCall": RUN}}, {"say": "well"}, {"hang": True})

        async def asked() -> Json | None:
            found = await person.get("approvals", open=True)
            return found[0] if found else None

        (await person.answer(await eventually(asked), "deny", reason="use staging")).raise_for_status()
        await thread.heard(prompted["operation"], "well")
        home.kill()
        home.up()
        answer = await thread.act({"tell_prompt": True})
        assert "was denied by a person" in text_of(answer)
        assert "use staging" in text_of(answer)
        assert any("use staging" in part["text"] for part in parts_of(answer, "note"))
        home.signal(
            home.pid, signal.SIGTERM
        )  # a kill may lose what was recorded a moment before; it is told again then
        home.up()
        later = await Conversation(person_of(home), thread.id).act({"say": "ok"})
        assert not [part for part in parts_of(later, "note") if "was told" in part["text"]]


@pytest.mark.timeout(300)
async def test_our_own_agent_is_steered_listed_adopted_and_forked(workspace: Path) -> None:
    with model_server() as model, running_daemon("") as home:
        person, env = person_of(home), environment(model, "anthropic")
        thread = await open_thread(person, workspace, agent="handrail")
        turns = (Turn("I look. ", "list_files", {"path": "."}, hold="looking"), Turn("With tabs."))
        await thread.say(script(*turns, prompt="Format it."), env=env)
        await model.until(lambda: len(model.asked) == 1, 60)
        assert (await thread.say("use tabs", steer=True))["steered"]
        model.let_go("looking")
        messages = await answered(thread, "I look. With tabs.")
        assert [each["stop"] for each in messages] == ["end_turn", "steered", "end_turn", "end_turn"]
        assert "use tabs" in str(model.asked[1].body["messages"])

        fork = Conversation(person, (await person.post(f"threads/{thread.id}/fork", {}))["id"])
        assert (await fork.look())["state"]["origin"]["how"] == "forked"
        await fork.say(script(Turn("In the fork."), prompt="And now?"), env=env)
        await answered(fork, "In the fork.")
        assert "use tabs" in str(model.asked[-1].body["messages"])

        listed = await person.get("agents/handrail/sessions", workspace=str(workspace))
        assert {one["thread"] for one in listed} == {thread.id, fork.id}
        home.kill()  # a thread whose agent does not run is deleted without its session
        home.up()
        (await person.ask("DELETE", f"threads/{thread.id}")).raise_for_status()
        session = next(one["id"] for one in listed if one["thread"] == thread.id)
        body = {"session": session, "workspace": str(workspace)}
        adopted = Conversation(person, (await person.post("agents/handrail/sessions", body))["id"])
        said = [(each["role"], text_of(each)) for each in (await adopted.look())["said"]]
        assert [role for role, _ in said] == ["user", "assistant", "user", "assistant"]
        assert (said[2][1], said[3][1]) == ("use tabs", "With tabs.")
