"""Hooks: one question for one tool call, answers that wait for a client that could not, and calls that end truthfully."""

from pathlib import Path

import pytest
from tests.support.daemon_home import BOUND, until
from tests.support.hook_process import payload
from tests.support.hook_world import HOSTED_SESSION, MARK, HookWorld, client_process, hook_world

from handrail.gate import person_actions
from handrail.gate.tool import Refusal
from handrail.server.client_hooks import CLIENT_OVER
from handrail.store.values import Caller, Json
from handrail.tools import client_work
from handrail.tools.client_work import SEEN

pytestmark = pytest.mark.anyio


async def test_a_hook_that_cannot_wait_is_told_to_repeat_and_the_repeated_call_passes_once(
    tmp_path: Path,
) -> None:
    async with hook_world(tmp_path) as at:
        told = await at.before("touch a", "c1", "short")
        call, _ = await at.question()
        assert told["permissionDecision"] == "deny"
        assert call.id in told["permissionDecisionReason"]
        assert "repeat exactly this call" in told["permissionDecisionReason"]
        assert (await at.before("touch a", "c2", "short"))["permissionDecision"] == "deny"
        assert at.open_questions() == [call], "the repeated call waits for the same answer"

        await at.answer("allow")
        assert await at.before("touch a", "c3", "short") == allowed()
        assert await at.before("touch a", "c3", "short") == allowed(), "a second hook for the same call"
        again = await at.before("touch a", "c4", "short")
        assert again["permissionDecision"] == "deny", "an allow is used once"
        other, _ = await at.question()
        assert other is not call
        await at.after("touch a", "c3", "short")
        assert await at.settled(call) == "done"


async def test_a_denial_that_came_late_is_told_to_the_repeated_call(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        await at.before("touch a", "c1", "short")
        call = await at.answer("deny", "not today")
        assert await at.settled(call) == "denied"
        told = await at.before("touch a", "c2", "short")
        assert "not today" in told["permissionDecisionReason"]
        assert at.open_questions() == []


async def test_an_answer_is_kept_for_exactly_this_call(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        await at.before("touch a", "c1", "short")
        await at.answer("allow")
        for sent in (
            at.about("PreToolUse", "touch b"),
            {**at.about("PreToolUse", "touch a"), "session_id": "another"},
            {**at.about("PreToolUse", "touch a"), "cwd": str(tmp_path)},
        ):
            assert (await at.report(sent, "short"))["permissionDecision"] == "deny"
        await at.question(2)


async def test_an_edit_that_came_late_reaches_the_repeated_call(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        await at.before("touch a", "c1", "short")
        call = await at.answer("allow", input={"command": "touch b"})
        told = await at.before("touch a", "c2", "short")
        assert told["updatedInput"] == {"command": "touch b"}
        await at.after("touch b", "c2", "short")
        assert await at.settled(call) == "done"


async def test_a_kept_allow_does_not_hold_for_a_file_that_changed_since(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        file = at.workspace / "a.txt"
        file.write_text("old\n")
        sent = at.about("PreToolUse", "")
        sent |= {"tool_name": "Write", "tool_input": {"file_path": str(file), "content": "new\n"}}
        await at.report(sent, "short")
        call = await at.answer("allow")
        file.write_text("another\n")
        told = await at.report({**sent, "tool_use_id": "c2"}, "short")
        assert told["permissionDecision"] == "deny"
        assert await at.settled(call) == "failed"
        other, _ = await at.question()
        assert other is not call


async def test_a_permission_request_about_an_allowed_call_is_granted_without_a_question(
    tmp_path: Path,
) -> None:
    async with hook_world(tmp_path) as at:
        hook = at.start(lambda: at.before("touch a"))
        await at.answer("allow")
        assert await hook.answer() == allowed()
        asked = at.about("PermissionRequest", "touch a", "")
        asked["tool_input"]["description"] = "why"
        assert (await at.report(asked))["decision"] == {"behavior": "allow"}
        second = at.start(lambda: at.report(at.about("PermissionRequest", "touch a", "")))
        await at.answer("deny", "once is enough")
        assert (await second.answer())["decision"]["behavior"] == "deny"


async def test_two_hooks_for_one_call_ask_one_question(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hooks = [at.start(lambda: at.before("touch a")) for _ in range(2)]
        await at.answer("allow")
        assert [await hook.answer() for hook in hooks] == [allowed(), allowed()]
        assert at.open_questions() == []


async def test_equal_calls_at_the_same_time_are_asked_about_separately(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hooks = [at.start(lambda call=call: at.before("touch a", call)) for call in ("c1", "c2")]
        await at.question(1)
        await at.answer("allow")
        await at.answer("deny")
        decisions = [(await hook.answer())["permissionDecision"] for hook in hooks]
        assert sorted(decisions) == ["allow", "deny"]


async def test_an_equal_call_right_after_an_allow_is_asked_about_separately(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hook = at.start(lambda: at.before("touch a", "c1"))
        call = await at.answer("allow")
        other = at.start(lambda: at.before("touch a", "c2"))
        assert await hook.answer() == allowed()
        assert await at.answer("deny") is not call
        assert (await other.answer())["permissionDecision"] == "deny"


async def test_a_question_that_nobody_waits_for_is_withdrawn(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hook = at.start(lambda: at.before("touch a"))
        call, approval = await at.question()
        hook.scope.cancel()
        assert await at.settled(call) == "cancelled"
        assert approval.withdrawn is not None


async def test_a_turn_that_ends_without_a_report_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hook = at.start(lambda: at.before("touch a"))
        call = await at.answer("allow")
        await hook.answer()
        await at.report(at.about("Stop", ""))
        assert await at.settled(call) == "interrupted"
        assert call.outcome is not None
        assert "outcome is unknown" in call.outcome.message


async def test_a_report_that_comes_after_the_end_of_its_turn_counts(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        at.hooks.report_seconds = BOUND
        hook = at.start(lambda: at.before("touch a"))
        call = await at.answer("allow")
        await hook.answer()
        await at.report(at.about("Stop", ""))
        await at.after("touch a")
        assert await at.settled(call) == "done"


async def test_a_harmless_call_without_a_report_is_done_when_the_turn_ends(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        assert await at.report(payload(at.workspace, "TodoWrite", {"todos": []})) == allowed()
        (call,) = at.world.gate.open.values()
        await at.report(at.about("Stop", ""))
        assert await at.settled(call) == "done"


async def test_a_report_without_an_id_is_found_by_its_input(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hook = at.start(lambda: at.before("touch a", ""))
        call = await at.answer("allow")
        await hook.answer()
        await at.after("touch b", "")
        assert call.status == "running"
        await at.after("touch a", "")
        assert await at.settled(call) == "done"


async def test_a_hosted_agents_work_is_recorded_and_not_judged(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        assert await at.before("touch a", "c1", mark=MARK) == {}
        (call,) = at.world.gate.open.values()
        assert call.status == "running"
        await at.after("touch a", "c1")
        assert await at.settled(call) == "done"
        waiting = at.start(lambda: at.before("touch a", "c2", mark="guessed"))
        await at.answer("deny")
        assert (await waiting.answer())["permissionDecision"] == "deny"


async def test_work_in_the_session_of_a_thread_is_left_to_that_thread(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        sent = {**at.about("PreToolUse", "touch a"), "session_id": HOSTED_SESSION}
        assert await at.report(sent, mark=MARK) == {}
        assert not at.world.gate.open, "its thread has a call for it, or will have"
        guessed = at.start(lambda: at.report(sent, mark="guessed"))
        await at.answer("deny")
        assert (await guessed.answer())["permissionDecision"] == "deny"


async def test_a_client_that_takes_no_edits_says_so(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        at.start(lambda: at.before("touch a", client="fixed"))
        call, _ = await at.question()
        tool = at.world.gate.toolbox[call.tool]
        assert tool.refuse_edit(call.input) == "This client takes no edited input."
        edited: Json = {**call.input, "input": {"command": "touch b"}}
        with pytest.raises(Refusal, match="takes no edited input"):
            await person_actions.edit(at.world.gate, call, edited)
        at.group.cancel_scope.cancel()


async def test_the_permission_prompt_tool_joins_the_hooks_call_by_its_id(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        caller = Caller(door="stdio", client="claude-code", key="door", workspace=str(at.workspace))
        hook = at.start(lambda: at.before("touch a"))
        await at.question()
        verdicts: list[str] = []

        async def prompt() -> dict[str, str]:
            verdict = await at.hooks.approve(caller, "Bash", {"command": "touch a"}, "toolu_1")
            verdicts.append(verdict.effect)
            return {}

        prompted = at.start(prompt)
        await at.answer("allow")
        await hook.answer()
        await prompted.answer()
        assert verdicts == ["allow"]
        assert at.open_questions() == []


async def test_a_running_call_outlives_a_planned_restart_and_its_report_settles_it(tmp_path: Path) -> None:
    with client_process() as process:
        async with hook_world(tmp_path) as at:
            at.process = process
            file, sent = write_of(at, "a.txt", "new\n")
            file.write_text("old\n")
            hook = at.start(lambda: at.report(sent))
            left = await at.answer("allow")
            await hook.answer()
            at.world.gate.leave()
            assert left.status == "running"
        async with hook_world(tmp_path) as at:
            call = at.world.gate.open[left.id]
            assert (call.status, call.client_gone) == ("running", False)
            file.write_text("new\n")
            ended = {"hook_event_name": "PostToolUse", "tool_response": "Wrote it."}
            await at.report({**sent, "session_id": "another", "tool_use_id": "another", **ended})
            assert call.status == "running"
            await at.report({**sent, **ended})
            assert await at.settled(call) == "done"
            assert call.outcome is not None
            assert call.outcome.result is not None
            assert call.outcome.result.data["output"] == "Wrote it."
            assert str(call.outcome.result.data["applied"]).endswith("-old\n+new\n")
            assert call.receipt.files_changed == (str(file),)


async def test_a_running_call_whose_process_is_not_known_is_interrupted_by_a_restart(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        hook = at.start(lambda: at.before("touch a"))
        call = await at.answer("allow")
        await hook.answer()
        at.world.gate.leave()
        assert await at.settled(call) == "interrupted"
    async with hook_world(tmp_path) as at:
        assert not at.world.gate.open
        await at.after("touch a")  # which nobody awaits


async def test_a_call_of_an_earlier_daemon_allows_nothing_more(tmp_path: Path) -> None:
    with client_process() as process:
        async with hook_world(tmp_path) as at:
            at.process = process
            hook = at.start(lambda: at.before("touch a"))
            left = await at.answer("allow")
            await hook.answer()
            at.world.gate.leave()
        async with hook_world(tmp_path) as at:
            at.process = process
            again = at.start(lambda: at.report(at.about("PermissionRequest", "touch a", "")))
            other = await at.answer("deny")
            assert (await again.answer())["decision"]["behavior"] == "deny"
            assert other.id != left.id


@pytest.mark.parametrize(("written", "ending"), [("new\n", "done"), ("other\n", "interrupted")])
async def test_a_client_that_ended_while_no_daemon_ran_leaves_what_the_files_tell(
    tmp_path: Path, written: str, ending: str
) -> None:
    with client_process() as process:
        async with hook_world(tmp_path) as at:
            at.process = process
            file, sent = write_of(at, "a.txt", "new\n")
            hook = at.start(lambda: at.report(sent))
            left = await at.answer("allow")
            await hook.answer()
            at.world.gate.leave()
    file.write_text(written)
    async with hook_world(tmp_path) as at:
        call = at.world.gate.open[left.id]
        assert await at.settled(call) == ending
        assert call.outcome is not None
        assert call.outcome.message == ("" if ending == "done" else CLIENT_OVER)


async def test_an_allow_that_was_not_used_is_kept_over_a_restart_and_used_once(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        await at.before("touch a", "c1", "short")
        left = await at.answer("allow", input={"command": "touch b"})
        at.world.gate.leave()
        assert left.outcome is None
    async with hook_world(tmp_path) as at:
        call = at.world.gate.open[left.id]
        told = await at.before("touch a", "c2", "short")
        assert (told["permissionDecision"], told["updatedInput"]) == ("allow", {"command": "touch b"})
        assert (await at.before("touch a", "c3", "short"))["permissionDecision"] == "deny", "it is used once"
        await at.after("touch b", "c2", "short")
        assert await at.settled(call) == "done"


async def test_a_used_allow_is_not_kept_over_a_restart(tmp_path: Path) -> None:
    with client_process() as process:
        async with hook_world(tmp_path) as at:
            at.process = process
            await at.before("touch a", "c1", "short")
            left = await at.answer("allow")
            assert await at.before("touch a", "c2", "short") == allowed()
            at.world.gate.leave()
        async with hook_world(tmp_path) as at:
            at.process = process
            assert (await at.before("touch a", "c3", "short"))["permissionDecision"] == "deny"
            assert at.world.gate.open[left.id].status == "running"
            await at.after("touch a", "c2", "short")
            assert await at.settled(at.world.gate.open[left.id]) == "done"


async def test_an_allow_that_was_kept_over_a_restart_does_not_hold_for_a_changed_file(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        file, sent = write_of(at, "a.txt", "new\n")
        file.write_text("old\n")
        await at.report(sent, "short")
        left = await at.answer("allow")
        at.world.gate.leave()
    file.write_text("another\n")
    async with hook_world(tmp_path) as at:
        call = at.world.gate.open[left.id]
        told = await at.report({**sent, "tool_use_id": "c2"}, "short")
        assert told["permissionDecision"] == "deny"
        assert await at.settled(call) == "failed"
        other, _ = await at.question()
        assert other.id != left.id


async def test_an_allow_that_nobody_comes_back_for_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_work, "KEPT_SECONDS", 0.1)
    async with hook_world(tmp_path) as at:
        await at.before("touch a", "c1", "short")
        call = await at.answer("allow")
        assert await at.settled(call) == "interrupted"
        assert call.outcome is not None
        assert call.outcome.message == client_work.NOT_REPEATED
        assert (await at.before("touch a", "c2", "short"))["permissionDecision"] == "deny"
        await at.question()


async def test_a_question_that_was_open_at_a_restart_is_withdrawn_and_the_repeated_call_asks_again(
    tmp_path: Path,
) -> None:
    with client_process() as process:
        async with hook_world(tmp_path) as at:
            at.process = process
            await at.before("touch a", "c1", "short")
            left, approval = await at.question()
            at.world.gate.leave()
            assert await at.settled(left) == "interrupted"
            assert approval.withdrawn is not None
        async with hook_world(tmp_path) as at:
            at.process = process
            assert "repeat exactly" in str(await at.before("touch a", "c2", "short"))
            await at.answer("allow")
            assert await at.before("touch a", "c3", "short") == allowed()


async def test_a_question_that_was_handed_back_says_that_its_client_is_gone(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        with client_process() as at.process:
            await at.before("touch a", "c1", "short")
            call, _ = await at.question()
            assert not call.client_gone
        await until(lambda: call.client_gone)
        assert call.status == "waiting", "a resumed session may repeat it"


@pytest.mark.parametrize(("written", "ending"), [("new\n", "done"), ("old\n", "interrupted")])
async def test_an_edit_without_a_report_ends_with_the_turn_as_the_files_tell(
    tmp_path: Path, written: str, ending: str
) -> None:
    async with hook_world(tmp_path) as at:
        file, sent = write_of(at, "a.txt", "new\n")
        file.write_text("old\n")
        hook = at.start(lambda: at.report(sent))
        call = await at.answer("allow")
        await hook.answer()
        file.write_text(written)
        await at.report(at.about("Stop", ""))
        assert await at.settled(call) == ending


async def test_an_edit_that_could_not_be_shown_is_not_settled_from_the_files(tmp_path: Path) -> None:
    async with hook_world(tmp_path) as at:
        file = at.workspace / "a.txt"
        file.write_text("new\n")
        missing = {"file_path": str(file), "old_string": "old", "new_string": "new"}
        hook = at.start(lambda: at.report(payload(at.workspace, "Edit", missing)))
        call = await at.answer("allow")
        await hook.answer()
        await at.report(at.about("Stop", ""))
        assert await at.settled(call) == "interrupted"


async def test_a_patch_that_codex_does_not_report_is_done_at_its_next_call_if_the_files_hold_it(
    tmp_path: Path,
) -> None:
    async with hook_world(tmp_path) as at:
        patch = "*** Begin Patch\n*** Add File: a.txt\n+new\n*** End Patch"
        line = f"apply_patch <<'EOF'\n{patch}\nEOF"
        hook = at.start(lambda: at.before(line, "c1", "codex"))
        call = await at.answer("allow")
        await hook.answer()
        reads = at.start(lambda: at.before("ls", "c2", "codex"))
        await at.question()
        assert call.status == "running", "the file is not there yet"
        (at.workspace / "a.txt").write_text("new\n")
        at.start(lambda: at.before("pwd", "c3", "codex"))
        assert await at.settled(call) == "done"
        assert call.outcome is not None
        assert call.outcome.result is not None
        assert call.outcome.result.data["output"] == SEEN
        reads.scope.cancel()


def write_of(at: HookWorld, name: str, content: str) -> tuple[Path, Json]:
    """A file, and what Claude Code sends before it writes it."""
    file = at.workspace / name
    return file, payload(at.workspace, "Write", {"file_path": str(file), "content": content})


def allowed() -> dict[str, str]:
    return {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
