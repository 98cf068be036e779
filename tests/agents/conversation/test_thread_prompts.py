"""Prompts: one at a time on each thread, in order, cancelled and awaited; over real pipes."""

from pathlib import Path

import anyio
import pytest
from tests.support.actors import ANN
from tests.support.conversation_host import calls, check_invariants, conversation_host, notes, parts, text
from tests.support.scripted_agent import Obj, script

from handrail.agents.conversation.send_prompt import PromptPart
from handrail.agents.conversation.thread_prompts import PromptReceipt
from handrail.gate.gate import Request
from handrail.store.events import (
    AgentStarted,
    ApprovalOpened,
    ApprovalWithdrawn,
    CallSettled,
    MessageEnded,
    MessageOpened,
    OperationEnded,
    OperationOpened,
    PromptDropped,
)

pytestmark = pytest.mark.anyio

HANG: Obj = {"hang": True}


async def test_a_prompt_is_answered_by_a_message_that_grows_until_the_agent_stops(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(
            thread, {"think": "Hm. "}, {"say": "word {n} ", "times": 3}, {"stop": "max_tokens"}
        )
        assert scene.prompts.running(thread) == scene.prompts.calling(thread) == prompted.operation
        answer = await scene.answer(thread, prompted)
        assert (answer.stop, answer.agent, answer.operation) == ("max_tokens", "scripted", prompted.operation)
        assert [part.kind for part in answer.parts] == ["thought", "text"]
        assert text(answer) == "word 0 word 1 word 2 "
        said, _ = await scene.threads.messages(thread)
        assert (said.id, said.role, said.operation) == (prompted.message, "user", prompted.operation)
        assert (await scene.ended(prompted.operation or "")).stop == "max_tokens"
        assert scene.prompts.running(thread) is scene.prompts.calling(thread) is None
        await check_invariants(scene)


async def test_ten_thousand_updates_are_one_text_in_their_order(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        answer = await scene.ask(scene.thread(), {"say": "{n} ", "times": 10_000})
        assert text(answer).split() == [str(n) for n in range(10_000)]


async def test_a_second_prompt_replaces_the_first_which_has_unwound_before_it_begins(tmp_path: Path) -> None:
    async with conversation_host(tmp_path, grace=20.0) as scene:
        thread = scene.thread()
        slow: Obj = {"on_cancel": [{"sleep": 0.3}, {"say": "last words"}], "stop": "cancelled"}
        first = await scene.say(thread, slow, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        call = await scene.call(thread, "patient")
        await scene.patient.started.wait()
        second = await scene.say(thread, {"say": "instead"})
        assert second.replaced == first.operation
        old = await scene.answer(thread, first)
        assert (text(old), old.stop) == ("begun last words", "cancelled")
        assert text(await scene.answer(thread, second)) == "instead"
        end = await scene.ended(first.operation or "")
        assert (end.cancelled_by, end.stop, end.cancelled_calls) == (str(ANN), "cancelled", (call.id,))
        assert scene.patient.tidied == 1
        facts = await scene.facts(MessageEnded, OperationOpened)
        opened = [each for each in facts if isinstance(each, OperationOpened)][1]
        ended = next(each for each in facts if isinstance(each, MessageEnded) and each.message == old.id)
        assert facts.index(ended) < facts.index(opened), "what was said first had ended before the next began"
        assert [m.role for m in await scene.threads.messages(thread)] == ["user", "assistant"] * 2
        await check_invariants(scene)


async def test_queued_prompts_are_sent_one_after_the_other_when_the_work_before_has_ended(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        first = await scene.say(thread, {"read": {"path": "/nowhere"}}, {"say": "one"})
        queued = [await scene.say(thread, {"say": word}, queue=True) for word in ("two", "three")]
        assert [each.operation for each in queued] == [None, None]
        assert len(scene.threads.queued(thread)) == 2
        call = await scene.asked(thread)
        await scene.decide(call, "allow")
        await scene.answer(thread, first)
        said = await scene.until_said(thread, "three")
        assert [text(m) for m in said if m.role == "assistant"] == ["one", "two", "three"]
        assert [m.role for m in said] == ["user", "assistant"] * 3, "each stands before its answer"
        assert [m.id for m in said[2::2]] == [each.message for each in queued]
        await check_invariants(scene)


async def test_a_queued_prompt_with_nothing_before_it_is_sent_at_once(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        assert text(await scene.ask(scene.thread(), {"say": "at once"}, queue=True)) == "at once"


async def test_a_queued_prompt_can_be_taken_back_or_sent_before_its_turn(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        first = await scene.say(thread, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        away, soon, later = [
            await scene.say(thread, {"say": word}, queue=True) for word in ("away", "soon", "later")
        ]
        scene.prompts.drop(thread, away.message, by=ANN)
        with pytest.raises(LookupError):
            scene.prompts.drop(thread, away.message, by=ANN)
        with pytest.raises(LookupError):
            await scene.prompts.send_now(thread, away.message, by=ANN)
        sent = await scene.prompts.send_now(thread, soon.message, by=ANN)
        assert (sent.message, sent.replaced) == (soon.message, first.operation)
        said = await scene.until_said(thread, "later")
        assert [text(m) for m in said if m.role == "assistant"] == ["begun ", "soon", "later"]
        assert [each.message for each in await scene.facts(PromptDropped)] == [away.message]
        assert later.message in [m.id for m in said]


async def test_after_a_cancel_queued_prompts_wait_for_a_word_of_the_person(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        first = await scene.say(thread, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        queued = [await scene.say(thread, {"say": word}, queue=True) for word in ("one", "two")]
        assert scene.gate.operations[first.operation or ""].cancel(ANN)
        await scene.answer(thread, first)
        assert text(await scene.ask(thread, {"say": "something else"})) == "something else"
        assert [m.id for m in scene.threads.queued(thread)] == [each.message for each in queued]
        await scene.prompts.send_now(thread, queued[0].message, by=ANN)
        await scene.until_said(thread, "two")
        await check_invariants(scene)


async def test_twenty_prompts_in_a_burst_neither_interleave_nor_leave_anything_behind(tmp_path: Path) -> None:
    """Real agents know one prompt at a time; none of these may meet another."""
    async with conversation_host(tmp_path, grace=20.0) as scene:
        thread = scene.thread()
        await scene.ask(thread, {"say": "warm"})
        prompted: dict[int, PromptReceipt] = {}

        async def burst(n: int) -> None:
            ask: Obj = {"ask": {"toolCall": {"toolCallId": str(n), "title": f"Do {n}"}}}
            prompted[n] = await scene.say(thread, {"say": f"{n} begun. "}, ask, HANG)

        async with anyio.create_task_group() as group:
            for n in range(20):
                group.start_soon(burst, n)
        newest = max(prompted.values(), key=lambda each: scene.place(thread, each))
        assert scene.prompts.running(thread) == newest.operation
        await scene.saying(thread, "begun")
        assert scene.gate.operations[newest.operation or ""].cancel(ANN)
        await scene.answer(thread, newest)
        said = (await scene.threads.messages(thread))[2:]
        assert [m.role for m in said] == ["user", "assistant"] * 20
        for question, answer in zip(said[::2], said[1::2], strict=True):
            assert question.operation == answer.operation
            assert text(answer) in ("", f"{_number(question.parts[0].text)} begun. ")
            assert answer.stop == "cancelled"
        assert len(await scene.facts(AgentStarted)) == 1, "one program did it all"
        assert len(await scene.facts(OperationOpened)) == len(await scene.facts(OperationEnded)) == 21
        await check_invariants(scene)
        assert (await scene.ask(thread, {"say": "still here"})).stop == "end_turn"


def _number(words: str) -> int:
    return int(words.split('"say": "')[1].split(maxsplit=1)[0])


async def test_prompts_that_come_one_upon_the_other_end_in_the_order_in_which_they_came(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = [await scene.say(thread, {"say": f"{n}"}, HANG) for n in range(10)]
        last = await scene.say(thread, {"say": "last"})
        assert text(await scene.answer(thread, last)) == "last"
        ends = [each.operation for each in await scene.facts(OperationEnded)]
        assert ends == [each.operation for each in (*prompted, last)]
        await check_invariants(scene)


async def test_threads_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        busy, free = scene.thread(), scene.thread()
        await scene.say(busy, {"say": "begun "}, HANG)
        await scene.saying(busy, "begun")
        assert text(await scene.ask(free, {"say": "free"})) == "free"
        assert scene.prompts.running(busy) is not None
        assert len(await scene.facts(AgentStarted)) == 1


async def test_a_cancel_settles_every_call_and_withdraws_every_question(tmp_path: Path) -> None:
    async with conversation_host(tmp_path, grace=20.0) as scene:
        thread = scene.thread()
        command = {"command": "sleep", "args": ["600"]}
        steps: list[Obj] = [
            {"terminal": command, "as": "t"},
            {"say": "in the terminal. "},
            {"ask": {"toolCall": {"toolCallId": "1", "title": "Do it"}}, "as": "p", "wait": False},
            {"write": {"path": str(scene.stage.cwd / "a"), "content": "x"}, "as": "w", "wait": False},
            {"waits_for_answers": True},
            HANG,
        ]
        prompted = await scene.say(thread, *steps)
        await scene.decide(await scene.asked(thread, "execute_command"), "allow")
        await scene.saying(thread, "terminal")
        running = await scene.call(thread, "patient", patience=0)
        asked = [await scene.asked(thread, tool) for tool in ("agent_work", "write_file")]
        terminal = next(t for t in scene.stage.terminals.known if not t.pipes)
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        answer = await scene.answer(thread, prompted)
        assert answer.stop == "cancelled"
        assert terminal.swept is not None, "what ran in it has ended"
        assert not (scene.stage.cwd / "a").exists()
        end = await scene.ended(prompted.operation or "")
        assert {running.id, *(call.id for call in asked)} <= set(end.cancelled_calls)
        assert len(end.cancelled_calls) == 4
        settled = {each.call: each.ending for each in await scene.facts(CallSettled)}
        assert {settled[call] for call in end.cancelled_calls} == {"cancelled"}
        questions = {each.approval for each in await scene.facts(ApprovalOpened) if each.call != terminal.id}
        withdrawn = {each.approval for each in await scene.facts(ApprovalWithdrawn)}
        assert len(withdrawn) == 2
        assert withdrawn < questions
        await scene.until_calls(thread, lambda data: data["status"] == "cancelled")
        assert text(await scene.ask(thread, {"say": "and on"})) == "and on", "the same program goes on"
        assert len(await scene.facts(AgentStarted)) == 1
        await check_invariants(scene)


async def test_an_agent_that_ignores_a_cancel_is_ended_and_started_again_by_the_next_prompt(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path, grace=0.5) as scene:
        thread = scene.thread(scene.keen())
        await scene.ask(thread, {"say": "before"})
        spawn: Obj = {"spawn": "x", "setsid": True, "ignores_term": True}
        prompted = await scene.say(thread, {"ignore_cancel": True}, spawn, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        pid = (await scene.stage.agent("keen")).pid
        began = anyio.current_time()
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        answer = await scene.answer(thread, prompted)
        assert anyio.current_time() - began < 15.0
        assert answer.stop == "cancelled"
        assert "did not stop within 0.5 s" in notes(answer)[-1]
        assert not await anyio.Path(f"/proc/{pid}").exists()
        after = await scene.ask(thread, {"say": "back"})
        assert (text(after), notes(after)) == ("back", ["keen resumed its own record."])
        assert len(await scene.facts(AgentStarted)) == 2
        await check_invariants(scene)


async def test_a_prompt_can_be_cancelled_while_its_agent_starts_or_opens_the_session(tmp_path: Path) -> None:
    async with conversation_host(tmp_path, grace=20.0) as scene:
        scene.stage.add("dumb", at_start=[HANG])
        scene.stage.add("slow", at_new=[{"sleep": 600}])
        for agent in ("dumb", "slow"):
            thread = scene.thread(agent)
            prompted = await scene.say(thread, {"say": "never"})
            if agent == "slow":
                await scene.stage.agent("slow")
            began = anyio.current_time()
            assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
            assert (await scene.answer(thread, prompted)).stop == "cancelled"
            assert anyio.current_time() - began < 10.0, "nobody waits for an agent that has not begun"
            assert text(await scene.ask(thread, {"say": "here"}, agent="scripted")) == "here"
        await check_invariants(scene)


async def test_what_an_agent_did_for_other_threads_fails_with_the_reason_when_its_program_is_ended(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path, grace=0.5) as scene:
        stubborn, other = scene.thread(), scene.thread()
        hung = await scene.say(other, {"say": "begun "}, HANG)
        prompted = await scene.say(stubborn, {"ignore_cancel": True}, {"say": "begun "}, HANG)
        for thread in (stubborn, other):
            await scene.saying(thread, "begun")
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        await scene.answer(stubborn, prompted)
        answer = await scene.answer(other, hung)
        assert answer.stop == "failed"
        assert "did not stop within" in parts(answer, "error")[0].text
        assert text(await scene.ask(other, {"say": "again"})) == "again"


async def test_a_call_that_was_handed_back_outlives_its_prompt_and_is_shown_where_it_was_made(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"say": "begun "}, {"read": {"path": "/nowhere"}})
        await scene.saying(thread, "begun")
        call = await scene.call(thread, "patient", patience=0)
        await scene.decide(await scene.asked(thread), "deny")
        answer = await scene.answer(thread, prompted)
        assert answer.stop == "end_turn"
        assert call.status == "running"
        [shown] = [data for data in calls(answer) if data["call"] == call.id]
        assert shown["status"] == "in_progress"
        await scene.ask(thread, {"say": "next"})
        scene.patient.go.set()
        await scene.until_calls(thread, lambda data: data["status"] in ("completed", "failed"), place=1)


async def test_a_late_call_for_a_cancelled_prompt_is_not_run(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        late: Obj = {
            "on_cancel": [{"write": {"path": str(scene.stage.cwd / "late"), "content": ""}, "as": "w"}]
        }
        prompted = await scene.say(thread, {**late, "stop": "cancelled"}, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        await scene.answer(thread, prompted)
        assert scene.prompts.calling(thread) == prompted.operation
        reply = await scene.gate.submit(
            Request(tool="echo", input={}, caller=scene.caller(thread), patience=5)
        )
        assert reply.outcome is not None
        assert (reply.outcome.ending, "nothing was run" in reply.outcome.message) == ("cancelled", True)
        assert not (scene.stage.cwd / "late").exists()
        await check_invariants(scene)


async def test_calls_over_mcp_are_shown_with_what_the_agent_says_of_them(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        told: Obj = {"toolCallId": "1", "title": "mcp__handrail__patient", "rawInput": {"word": "x"}}
        prompted = await scene.say(thread, {"tool_call": told}, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        spoken = await scene.call(thread, "patient", {"word": "x"})
        silent = await scene.call(thread, "echo", {"word": "y"})
        await scene.until_calls(thread, lambda data: data["call"] is not None, count=2)
        assert scene.gate.operations[prompted.operation or ""].cancel(ANN)
        await scene.answer(thread, prompted)
        shown = await scene.until_calls(
            thread, lambda data: data["status"] not in ("pending", "in_progress"), count=2
        )
        assert [(each["id"], each["call"], each["status"]) for each in shown] == [
            ("1", spoken.id, "cancelled"),
            ("", silent.id, "completed"),
        ]


async def test_a_thread_without_a_title_is_named_after_its_first_prompt_and_then_by_its_agent(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(title="")
        await scene.answer(thread, await scene.tell(thread, f"\n  {'very ' * 20}long\nand more"))
        assert await scene.title(thread) == ("very " * 11 + "very…")
        await scene.ask(thread, {"info": {"title": "What it is about"}})
        await scene.until_title(thread, "What it is about")
        await scene.ask(thread, {"info": {"title": "Something better"}})
        await scene.until_title(thread, "Something better")
        scene.threads.rename(thread, "Mine", ANN)
        await scene.ask(thread, {"info": {"title": "No, mine"}}, {"say": "said"})
        assert await scene.title(thread) == "Mine", "a person's word holds"


async def test_a_prompt_on_a_thread_that_is_not_there_is_refused(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        with pytest.raises(LookupError, match="no thread h404"):
            await scene.say("h404", {"say": ""})
        assert scene.prompts.running("h404") is None


async def test_a_forgotten_thread_has_nothing_running_and_its_agent_deletes_its_record(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread(scene.keen())
        await scene.ask(thread, {"say": "hello"})
        assert len(scene.kept_by_keen()) == 1
        await scene.say(thread, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        await scene.say(thread, {"say": "queued"}, queue=True)
        await scene.prompts.forget(thread, by=ANN)
        await scene.threads.delete(thread, ANN)
        assert scene.kept_by_keen() == []
        await check_invariants(scene)
        with pytest.raises(LookupError):
            await scene.say(thread, {"say": ""})


async def test_prompts_that_were_queued_when_the_daemon_ended_wait_for_a_word_of_the_person(
    tmp_path: Path,
) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"say": "begun "}, HANG)
        await scene.saying(thread, "begun")
        queued = [await scene.say(thread, {"say": word}, queue=True) for word in ("one", "two", "three")]
    async with conversation_host(tmp_path) as scene:
        broken = (await scene.threads.messages(thread))[1]
        assert (text(broken), broken.stop, broken.operation) == ("begun ", "interrupted", prompted.operation)
        assert (await scene.ended(prompted.operation or "")).stop == "interrupted"
        assert text(await scene.ask(thread, {"say": "something else"})) == "something else"
        scene.prompts.drop(thread, queued[1].message, by=ANN)
        sent = await scene.prompts.send_now(thread, queued[0].message, by=ANN)
        assert text(await scene.answer(thread, sent)) == "one"
        await scene.until_said(thread, "three")
        assert not scene.threads.queued(thread)
        await check_invariants(scene)


async def test_pictures_and_files_go_with_a_prompt_where_the_agent_takes_them(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        scene.stage.add("blind", capabilities={})
        sha = scene.images.put(b"\x89PNG")
        file = {"uri": "file:///w/a.py", "name": "a.py"}
        pieces = [
            PromptPart(kind="image", data={"image": sha, "mime": "image/png"}),
            PromptPart(kind="file", data={**file}),
            PromptPart(kind="image", data={"image": "0" * 64, "mime": "image/png"}),
            PromptPart(kind="text", text=script({"tell_prompt": True})),
        ]
        seen: dict[str, list[str]] = {}
        for agent in ("scripted", "blind"):
            thread = scene.thread(agent)
            prompted = await scene.prompts.prompt(thread, pieces, by=ANN)
            answer = await scene.answer(thread, prompted)
            assert '"type": "resource_link"' in text(answer)
            assert ('"type": "image"' in text(answer)) == (agent == "scripted")
            seen[agent] = notes(answer)
        assert seen["scripted"] == ["A picture above is no longer kept, so it was not sent."]
        assert len(seen["blind"]) == 2
        assert "takes no pictures" in seen["blind"][0]


async def test_a_picture_that_an_agent_shows_is_kept_by_its_hash(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        answer = await scene.ask(scene.thread(), {"image": "iVBORw==", "mime": "image/png"}, {"say": "there"})
        [shown] = parts(answer, "image")

        async def kept() -> bool:
            return [each.sha for each in scene.images.kept()] == [shown.data["image"]]

        await scene.until(kept)


async def test_messages_are_opened_once_for_each_prompt_and_each_answer(tmp_path: Path) -> None:
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        for n in range(3):
            await scene.ask(thread, {"say": str(n)})
        opened = await scene.facts(MessageOpened)
        assert [(each.role, each.n) for each in opened] == [
            (role, n) for n, role in enumerate(("user", "assistant") * 3, 1)
        ]
