"""Sessions of agents: those that an agent lists are adopted as threads, and those of forked threads are copied."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import ConversationHost, calls, conversation_host, parts, text
from tests.support.scripted_agent import CAPABILITIES, Obj

from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.session_list import ListedSession
from handrail.store.events import CallOpened, SessionBound

pytestmark = pytest.mark.anyio

CALL: Obj = {"toolCallId": "1", "title": "ls", "kind": "execute", "status": "completed"}


def lacking(*verbs: str) -> Any:
    """The capabilities without these."""
    known: Obj = CAPABILITIES["sessionCapabilities"]
    left: Obj = {verb: known[verb] for verb in known if verb not in verbs}
    return {**CAPABILITIES, "sessionCapabilities": left}


async def earlier(scene: ConversationHost, **manners: Any) -> ListedSession:
    """A session that the agent had before: its thread is deleted, and its program has ended."""
    name = scene.keen(**{"capabilities": lacking("delete"), **manners})
    thread = scene.thread(agent=name)
    await scene.ask(thread, {"think": "hm"}, {"tool_call": CALL}, {"say": "one"})
    await scene.tell(thread, "and now?")
    await scene.until_said(thread, "You said: and now?")
    await scene.prompts.forget(thread, by=ANN)
    await scene.threads.delete(thread, ANN)
    await scene.stage.agents.end(name, "Over.")
    (listed,) = await scene.prompts.sessions.listed(name, str(scene.stage.cwd), None)
    return listed


async def test_a_listed_session_becomes_a_thread_with_its_history(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        listed = await earlier(scene)
        assert (listed.cwd, listed.title) == (str(scene.stage.cwd), f"about {listed.id}")
        opened = len(await scene.facts(CallOpened))
        thread = scene.thread(agent="keen")
        await scene.prompts.adopt(thread, listed)
        messages = await scene.threads.messages(thread)
        assert [(each.role, each.stop) for each in messages] == [
            ("user", "end_turn"),
            ("assistant", "end_turn"),
        ] * 2
        assert [text(each) for each in messages[1:]] == ["one", "and now?", "You said: and now?"]
        assert ([each["title"] for each in calls(messages[1])], len(parts(messages[1], "thought"))) == (
            ["ls"],
            1,
        )
        assert len(await scene.facts(CallOpened)) == opened, "work that was done before is no unasked work"
        state = (await scene.threads.snapshot(thread, 1)).state
        assert state["origin"] == {
            "agent": "keen",
            "how": "loaded",
            "sentence": "Continued from a session of keen, which sent its messages.",
        }


async def test_the_agent_knows_an_adopted_session_and_gets_no_summary(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        listed = await earlier(scene)
        thread = scene.thread(agent="keen")
        await scene.prompts.adopt(thread, listed)
        answer = await scene.ask(thread, {"tell_prompt": True})
        assert "was said in this conversation before" not in text(answer)
        (stored,) = (await scene.threads.sessions(thread)).values()
        assert (stored.session, stored.upto) == (listed.id, answer.n)


async def test_deleting_the_thread_leaves_an_adopted_session_to_the_agent(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        listed = await earlier(scene)
        scene.keen()  # now it can delete
        await scene.stage.agents.end("keen", "Over.")
        thread = scene.thread(agent="keen")
        await scene.prompts.adopt(thread, listed)
        await scene.prompts.forget(thread, by=ANN)
        assert [path.stem for path in scene.kept_by_keen()] == [listed.id]


async def test_an_agent_that_does_not_load_resumes_it_without_history(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        listed = await earlier(scene, capabilities={**lacking("delete"), "loadSession": False})
        thread = scene.thread(agent="keen")
        await scene.prompts.adopt(thread, listed)
        state = (await scene.threads.snapshot(thread, 1)).state
        assert (await scene.threads.messages(thread), state["origin"]["how"]) == ([], "resumed")
        assert "does not send them" in str(state["origin"]["sentence"])


async def test_an_agent_that_has_no_such_session_says_so(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(agent=scene.keen())
        gone = ListedSession(id="session-0", cwd=str(scene.stage.cwd), title="", updated_at=None)
        with pytest.raises(AgentError, match="keen can neither load nor resume that session"):
            await scene.prompts.adopt(thread, gone)


async def test_an_agent_that_lists_nothing_says_so(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        name = scene.stage.add("mute", capabilities=lacking("list"))
        with pytest.raises(AgentError, match="mute does not list its sessions"):
            await scene.prompts.sessions.listed(name, str(scene.stage.cwd), None)


async def fork(scene: ConversationHost, thread: str, last: int = -1) -> str:
    said = await scene.threads.transcript(thread)
    fork = await scene.threads.fork(thread, said[last].id, before=False, title="", by=ANN)
    await scene.prompts.fork_session(fork, thread, len(await scene.threads.transcript(fork)))
    return fork


async def test_a_forked_thread_gets_a_copy_of_the_agents_session(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(agent=scene.keen())
        await scene.ask(thread, {"say": "one"})
        copy = await fork(scene, thread)
        before, after = await scene.threads.sessions(thread), await scene.threads.sessions(copy)
        assert before["keen"].session != after["keen"].session
        answer = await scene.ask(copy, {"tell_prompt": True})
        assert "was said in this conversation before" not in text(answer)
        assert text(await scene.ask(thread, {"say": "still here"})) == "still here"
        hows = [each.how for each in await scene.facts(SessionBound) if each.thread == copy]
        assert hows[0] == "forked"
        state = (await scene.threads.snapshot(copy, 1)).state
        assert state["origin"]["sentence"] == "keen copied its session, so it knows this conversation."


@pytest.mark.parametrize(
    ("manners", "last", "why"),
    [
        ({"capabilities": lacking("fork")}, -1, "keen cannot copy its session."),
        ({}, 1, "The session of keen goes on after that message."),
    ],
)
async def test_where_no_session_can_be_copied_the_agent_gets_a_summary(
    tmp_path: Path, manners: Any, last: int, why: str
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(agent=scene.keen(**manners))
        await scene.ask(thread, {"say": "one"})
        await scene.ask(thread, {"say": "two"})
        copy = await fork(scene, thread, last)
        state = (await scene.threads.snapshot(copy, 1)).state
        assert (state["origin"]["how"], state["origin"]["sentence"]) == (
            "transcript",
            f"{why} keen gets a summary of it with your next message.",
        )
        assert "was said in this conversation before" in text(await scene.ask(copy, {"tell_prompt": True}))


async def test_a_thread_that_is_forked_while_its_agent_works_gets_a_summary(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(agent=scene.keen())
        await scene.say(thread, {"say": "at work"}, {"hang": True})
        await scene.saying(thread, "at work")
        state = (await scene.threads.snapshot(await fork(scene, thread), 1)).state
        assert str(state["origin"]["sentence"]).startswith("keen was working when this was forked.")
