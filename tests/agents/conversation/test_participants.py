"""Talks: how agents come to know a conversation, keep it, lose it, and what it shows of them; over real pipes."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import check_invariants, conversation_host, notes, parts, text
from tests.support.scripted_agent import Obj

from handrail.agents.acp.agent_errors import AgentError
from handrail.store.events import AgentEnded, AgentStarted, SessionBound

pytestmark = pytest.mark.anyio

HANG: Obj = {"hang": True}
TELL: Obj = {"tell_prompt": True}
MODES: Obj = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
OPTIONS: list[Obj] = [
    {
        "id": "model",
        "name": "Model",
        "type": "select",
        "currentValue": "small",
        "options": [{"value": "small", "name": "Small"}, {"value": "big", "name": "Big"}],
    }
]


async def test_an_agent_that_has_the_session_open_is_sent_the_prompt_alone(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        await scene.ask(thread, {"say": "first"})
        answer = await scene.ask(thread, TELL)
        assert "first" not in text(answer)
        assert notes(answer) == []
        bound = await scene.facts(SessionBound)
        assert [(each.how, each.upto) for each in bound] == [("new", 0), ("new", 2), ("known", 4)]


async def test_an_agent_whose_program_ended_takes_up_its_own_record(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(scene.keen())
        await scene.ask(thread, {"say": "first"})
        await scene.stage.agents.end("keen", "for the test")
        answer = await scene.ask(thread, TELL)
        assert notes(answer) == ["keen resumed its own record."]
        assert "first" not in text(answer)
        assert len(await scene.facts(AgentStarted)) == 2


async def test_an_agent_that_can_only_load_its_record_is_not_written_down_twice(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(scene.keen(capabilities={"loadSession": True}))
        await scene.ask(thread, {"say": "first"})
        await scene.stage.agents.end("keen", "for the test")
        answer = await scene.ask(thread, {"say": "second"})
        assert (notes(answer), text(answer)) == (["keen loaded its own record."], "second")


async def test_an_agent_that_lost_its_record_is_sent_a_summary_once(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        await scene.ask(thread, {"say": "the first answer"})
        await scene.stage.agents.end("scripted", "for the test")
        answer = await scene.ask(thread, TELL)
        assert notes(answer) == ["scripted was sent a summary of 2 messages."]
        assert "the first answer" in text(answer)
        again = await scene.ask(thread, TELL)
        assert notes(again) == []
        assert "the first answer" not in text(again)


async def test_another_agent_is_told_what_it_has_not_heard_and_so_is_the_first_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        scene.stage.add("other")
        thread = scene.thread()
        await scene.ask(thread, {"say": "said by one"})
        two = await scene.ask(thread, {"say": "said by two"}, agent="other")
        assert (two.agent, notes(two)) == ("other", ["other was sent a summary of 2 messages."])
        back = await scene.ask(thread, TELL)
        assert (back.agent, notes(back)) == ("scripted", ["scripted was sent a summary of 2 messages."])
        assert "said by two" in text(back)
        assert "said by one" not in text(back), "that it knows"
        again = await scene.ask(thread, TELL, agent="other")
        assert notes(again) == ["other was sent a summary of 2 messages."]
        assert len(await scene.facts(AgentStarted)) == 2


async def test_a_conversation_goes_on_after_a_restart_where_the_agent_kept_it(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(scene.keen())
        await scene.ask(thread, {"say": "first"})
        await scene.say(thread, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
    async with conversation_host(tmp_path) as scene:
        scene.keen()
        said = await scene.threads.messages(thread)
        assert [message.stop for message in said] == ["end_turn", "end_turn", "end_turn", "interrupted"]
        assert text(said[3]) == "begun "
        answer = await scene.ask(thread, TELL)
        assert notes(answer) == ["keen resumed its own record."]
        assert "begun" not in text(answer)
        await check_invariants(scene)


async def test_a_crash_in_mid_turn_fails_the_prompt_with_its_last_words_and_the_next_starts_it_again(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(scene.keen())
        told: Obj = {"toolCallId": "1", "title": "Think", "status": "in_progress"}
        crash: Obj = {"crash": 3, "stderr": ["something", "went wrong"]}
        ask: Obj = {"ask": {"toolCall": {"toolCallId": "2"}}, "as": "p", "wait": False}
        prompted = await scene.say(thread, {"say": "so far"}, {"tool_call": told}, ask, {"sleep": 0.2}, crash)
        answer = await scene.answer(thread, prompted)
        assert (answer.stop, text(answer)) == ("failed", "so far")
        [error] = parts(answer, "error")
        assert error.data["said"][-2:] == ["something", "went wrong"]
        assert parts(answer, "call")[0].data["status"] == "failed"
        end = await scene.ended(prompted.operation or "")
        assert (end.stop, end.error, end.cancelled_by) == ("failed", error.text, None)
        await check_invariants(scene)
        after = await scene.ask(thread, {"say": "back"})
        assert (after.stop, text(after), notes(after)) == (
            "end_turn",
            "back",
            ["keen resumed its own record."],
        )
        assert len(await scene.facts(AgentEnded)) == 1


async def test_an_agent_that_wants_a_login_says_how_and_answers_once_that_is_done(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        login: Obj = {"id": "key", "name": "API key", "description": "From the site"}
        scene.stage.add("shy", login_needed=True, logins=[login])
        thread = scene.thread("shy")
        answer = await scene.ask(thread, {"say": "never"})
        assert answer.stop == "failed"
        [error] = parts(answer, "error")
        assert "log in" in error.text
        assert error.data["logins"] == [{**login, "command": ""}]
        await (await scene.stage.agent("shy")).login("key")
        after = await scene.ask(thread, {"say": "hello "}, TELL)
        assert after.stop == "end_turn"
        assert '{\\"say\\": \\"never\\"}' in text(after), "it is told what it did not hear"


async def test_an_agent_that_is_not_there_fails_the_prompt_and_not_the_thread(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread("nobody")
        answer = await scene.ask(thread, {"say": "never"})
        assert [part.text for part in parts(answer, "error")] == ["There is no agent called nobody."]
        assert text(await scene.ask(thread, {"say": "here"}, agent="scripted")) == "here"


async def test_an_agent_that_refuses_a_prompt_is_told_it_again_with_the_next(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        refused: Obj = {"fail": {"code": -32603, "message": "overloaded"}}
        answer = await scene.ask(thread, refused)
        assert (answer.stop, "overloaded" in parts(answer, "error")[0].text) == ("failed", True)
        after = await scene.ask(thread, TELL)
        assert notes(after) == ["scripted was sent a summary of 1 message."]
        assert "overloaded" in text(after)


async def test_what_an_agent_says_of_the_conversation_is_its_state(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        commands: list[Obj] = [{"name": "web", "description": "Search", "input": {"hint": "what"}}]
        scene.stage.add("rich", modes=MODES, options=OPTIONS, commands=commands)
        thread = scene.thread("rich")
        cost = {"amount": 0.5, "currency": "EUR"}
        await scene.ask(
            thread,
            {"mode": "code"},
            {"usage": {"used": 10, "size": 100, "cost": cost}},
            {"plan": ["first", {"content": "second", "status": "completed", "priority": "high"}]},
        )
        state: Any = (await scene.threads.snapshot(thread)).state
        assert state["agent"] == {"name": "rich", "steers": False}
        assert state["modes"]["current"] == "code"
        assert [mode["id"] for mode in state["modes"]["modes"]] == ["ask", "code"]
        assert state["options"]["options"][0]["value"] == "small"
        assert state["commands"] == {"commands": [{"name": "web", "description": "Search", "hint": "what"}]}
        assert state["usage"] == {"used": 10, "size": 100, "cost": cost}
        assert [entry["status"] for entry in state["plan"]["entries"]] == ["pending", "completed"]


async def test_modes_and_options_are_chosen_before_the_first_prompt_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(scene.keen(modes=MODES, options=OPTIONS))
        await scene.prompts.set(thread, "mode", "code")
        await scene.prompts.set(thread, "option", "big", id="model")
        state: Any = (await scene.threads.snapshot(thread)).state
        assert (state["modes"]["current"], state["options"]["options"][0]["value"]) == ("code", "big")
        assert text(await scene.ask(thread, {"say": "hello"})) == "hello"
        assert [each.how for each in await scene.facts(SessionBound)] == ["new", "known"]
    async with conversation_host(tmp_path) as scene:
        scene.keen(modes=MODES, options=OPTIONS)
        await scene.prompts.set(thread, "mode", "code")
        state = (await scene.threads.snapshot(thread)).state
        assert state["modes"]["current"] == "code"
        assert [mode["id"] for mode in state["modes"]["modes"]] == ["ask", "code"]
        with pytest.raises(AgentError):
            await scene.prompts.set(thread, "option", "x", id="model", agent="nobody")
        with pytest.raises(LookupError):
            await scene.prompts.set("h404", "mode", "code")


async def test_a_thread_shows_the_state_of_whoever_spoke_last(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        scene.stage.add("rich", modes=MODES)
        thread = scene.thread("rich")
        await scene.ask(thread, {"usage": {"used": 1, "size": 9}})
        await scene.ask(thread, {"say": "plain"}, agent="scripted")
        state: Any = (await scene.threads.snapshot(thread)).state
        assert (state["agent"], state["modes"], state["usage"]) == (
            {"name": "scripted", "steers": False},
            {},
            {},
        )
        await scene.ask(thread, {"say": "back"})
        state = (await scene.threads.snapshot(thread)).state
        assert (state["modes"]["current"], state["usage"]["used"]) == ("ask", 1)


async def test_what_comes_after_the_end_still_belongs_to_the_message(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        late: Obj = {"on_cancel": [{"say": "late "}], "stop": "cancelled"}
        prompted = await scene.say(thread, late, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        scene.gate.operations[prompted.operation or ""].cancel(ANN)
        assert text(await scene.answer(thread, prompted)) == "begun late "
        [session] = {each.session for each in await scene.facts(SessionBound)}
        agent = await scene.stage.agent()
        told: Obj = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "very late"}}
        agent.sessions.update({"sessionId": session, "update": told})
        said = await scene.threads.messages(thread)
        assert (len(said), text(said[1])) == (2, "begun late very late")
        assert text(await scene.ask(thread, {"say": "next"})) == "next"


async def test_a_question_between_prompts_is_put_to_the_person_all_the_same(tmp_path: Path) -> None:
    """A helper of the agent's may go on after its prompt ended; its question must not vanish."""
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        await scene.ask(thread, {"say": "done"})
        [session] = {each.session for each in await scene.facts(SessionBound)}
        agent = await scene.stage.agent()
        option: Obj = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
        question: Obj = {
            "sessionId": session,
            "toolCall": {"toolCallId": "9", "title": "On?"},
            "options": [option],
        }
        scene.stage.group.start_soon(agent.sessions.serve, "session/request_permission", question)
        call = await scene.asked(thread, "agent_work")
        assert call.caller.operation is None
        await scene.decide(call, "allow")
        await check_invariants(scene)


async def test_a_question_that_is_open_when_the_prompt_ends_is_withdrawn(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        ask: Obj = {"ask": {"toolCall": {"toolCallId": "1", "title": "Go on?"}}, "as": "p", "wait": False}
        prompted = await scene.say(thread, ask, {"read": {"path": "/nowhere"}}, {"say": "done"})
        await scene.asked(thread, "agent_work")
        await scene.decide(await scene.asked(thread, "read_text_file"), "deny")
        assert (await scene.answer(thread, prompted)).stop == "end_turn"
        await check_invariants(scene)


async def test_unknown_updates_are_shown_raw_and_cost_nothing_else(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        strange: Obj = {"sessionUpdate": "of_no_known_kind", "x": [1, {"y": None}]}
        answer = await scene.ask(
            scene.thread(), {"say": "a"}, {"update": strange}, {"garbage": "not json"}, {"say": "b"}
        )
        assert [part.kind for part in answer.parts] == ["text", "raw", "text"]
        assert answer.parts[1].data == {"update": strange}


async def test_what_an_agent_asks_permission_for_is_shown_with_its_own_words(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        told: Obj = {
            "toolCallId": "1",
            "title": "Remove the roof",
            "kind": "execute",
            "rawInput": {"command": "rm roof"},
        }
        steps: list[Obj] = [
            {"tool_call": told},
            {"ask": {"toolCall": {"toolCallId": "1"}}, "as": "p"},
            {"tool_call_update": {"toolCallId": "1", "status": "completed"}},
            {"tell": "p"},
        ]
        prompted = await scene.say(thread, *steps)
        call = await scene.asked(thread, "agent_work")
        assert call.caller.operation == prompted.operation
        assert "rm roof" in str(call.input)
        await scene.decide(call, "allow")
        answer = await scene.answer(thread, prompted)
        [shown] = [part.data for part in parts(answer, "call")]
        assert (shown["call"], shown["title"], shown["status"]) == (call.id, "Remove the roof", "completed")
        assert '"selected"' in text(answer)


async def test_what_an_agent_says_of_a_call_only_when_it_asks_is_shown_and_joins_what_it_then_does(
    tmp_path: Path,
) -> None:
    """So does Qwen Code: it announces a nameless call, asks with all there is to say, and writes through us."""
    async with conversation_host(tmp_path) as scene:
        thread, path = scene.thread(), str(tmp_path / "a.txt")
        diff: Obj = {"type": "diff", "path": path, "oldText": "", "newText": "new\n"}
        told: Obj = {"toolCallId": "1", "title": "Writing to a.txt", "kind": "edit", "content": [diff]}
        prompted = await scene.say(
            thread,
            {"tool_call": {"toolCallId": "1", "title": "WriteFile", "kind": "edit", "rawInput": {}}},
            {"ask": {"toolCall": told}},
            {"write": {"path": path, "content": "new\n"}},
            {"tool_call_update": {"toolCallId": "1", "status": "completed"}},
        )
        await scene.decide(await scene.asked(thread, "agent_work"), "allow")
        written = await scene.asked(thread, "write_file")
        await scene.decide(written, "allow")
        answer = await scene.answer(thread, prompted)
        [shown] = [part.data for part in parts(answer, "call")]
        assert (shown["call"], shown["title"], shown["status"]) == (written.id, "WriteFile", "completed")
        assert shown["content"] == [{"kind": "diff", "path": path, "old": "", "new": "new\n"}]
