"""What real agents do that a host stumbles over, and which tests act it out. A test that is renamed or gone fails here."""

import importlib
from pathlib import Path
from typing import Any

import pytest
from tests.support.conversation_host import check_invariants, conversation_host, parts, text

TRAPS: dict[int, tuple[str, str]] = {
    1: (
        "questions that are open when a prompt is cancelled are answered",
        "acp.test_session.test_an_agent_that_waits_for_its_open_questions_when_cancelled_is_answered",
    ),
    2: (
        "requests are taken back by a notification, number 0 too",
        "acp.test_acp_connection.test_a_request_that_the_agent_cancels_is_given_up_and_answered",
    ),
    3: ("ids are 0, or words", "acp.test_acp_connection.test_a_request_may_have_any_id"),
    4: (
        "what is unknown does no harm",
        "acp.test_acp_connection.test_unknown_notifications_and_fields_do_no_harm",
    ),
    5: (
        "a terminal without a folder is in the session's",
        "requests.test_agent_terminals.test_it_runs_in_the_sessions_folder_unless_another_is_named",
    ),
    6: (
        "a command may be a whole line",
        "requests.test_agent_terminals.test_a_command_without_words_that_is_no_program_is_a_shell_line",
    ),
    7: (
        "terminals are left behind by a cancel",
        "requests.test_agent_terminals.test_a_cancelled_operation_ends_its_terminals_though_the_agent_does_not",
    ),
    8: (
        "the program's pid is not all of it",
        "acp.test_session.test_an_agent_that_ignores_its_cancel_is_ended_with_its_whole_tree_within_the_grace",
    ),
    9: (
        "not everything on its output is a message",
        "acp.test_acp_connection.test_what_is_no_message_is_skipped_and_told_of_when_the_agent_fails",
    ),
    10: (
        "a session may need a login",
        "acp.test_agent.test_an_agent_that_needs_a_login_says_so_with_the_ways_and_works_after_it",
    ),
    11: (
        "agents read outside the workspace",
        "requests.test_handlers.test_a_file_outside_is_read_when_a_person_allows_it",
    ),
    12: (
        "calls are told of twice, late, or by their id alone; options are free",
        "conversation.test_recorder.test_updates_in_any_order_twice_or_mangled_give_a_message_that_makes_sense",
    ),
    13: (
        "a denial may end the prompt, either way, or not",
        "test_pool_traps.test_whatever_an_agent_makes_of_a_denial_its_conversation_goes_on",
    ),
    14: (
        "its environment is what it is given, and its standard error is read",
        "acp.test_agent_process.test_much_on_its_standard_error_does_not_block_it",
    ),
    15: ("updates overtake each other", "acp.test_acp_connection.test_ten_thousand_updates_keep_their_order"),
    16: (
        "what it started outlives it",
        "acp.test_agent_process.test_an_orphan_that_holds_the_output_open_holds_nothing_up_and_goes_too",
    ),
    17: (
        "servers over stdio, or over HTTP",
        "acp.test_agent.test_a_session_gets_its_folder_and_our_server_in_the_way_it_takes_it",
    ),
    18: (
        "a file that is not there",
        "requests.test_handlers.test_a_missing_file_is_empty_for_an_agent_that_needs_it_so",
    ),
}


@pytest.mark.parametrize("number", range(1, 19))
def test_each_trap_is_acted_out(number: int) -> None:
    _, proof = TRAPS[number]
    module, _, name = proof.rpartition(".")
    test = getattr(importlib.import_module(f"tests.agents.{module}"), name)
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    assert not {"skip", "xfail"} & {mark.name for mark in marks}


@pytest.mark.anyio
@pytest.mark.parametrize("then", ["end_turn", "cancelled", "goes on"])
async def test_whatever_an_agent_makes_of_a_denial_its_conversation_goes_on(
    tmp_path: Path, then: str
) -> None:
    after: dict[str, Any] = {"say": "another way"} if then == "goes on" else {"stop": then}
    asks = {"toolCall": {"toolCallId": "1", "title": "Remove the roof"}}
    async with conversation_host(tmp_path) as scene:
        thread = scene.thread()
        prompted = await scene.say(thread, {"say": "may I? "}, {"ask": asks, "as": "p"}, after)
        await scene.decide(await scene.asked(thread, "agent_work"), "deny")
        answer = await scene.answer(thread, prompted)
        assert answer.stop == ("end_turn" if then == "goes on" else then)
        assert text(answer) == ("may I? another way" if then == "goes on" else "may I? ")
        assert [part.data["status"] for part in parts(answer, "call")] == ["failed"]
        assert text(await scene.ask(thread, {"say": "still here"})) == "still here"
        await check_invariants(scene)
