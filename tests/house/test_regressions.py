"""Defects that a new user found on the page and the command line, and the tests that keep them away.

The numbers are those of that review: B blocks a user, M is major. Each test fails on the behaviour that is described.
"""

import re

import pytest
from tests.house.source import ROOT

REGRESSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "B1": (
        "Escape, or a decision elsewhere, changes what the next key acts on",
        (
            "tests/browser/test_selection_page.py::test_escape_closes_what_is_open_on_top_and_never_changes_the_card",
            "tests/browser/test_selection_page.py::test_a_card_that_is_decided_elsewhere_stays_with_its_outcome_and_offers_the_next",
            "tests/browser/test_selection_page.py::test_no_key_ever_acts_on_a_call_other_than_the_one_in_the_pane",
        ),
    ),
    "B2": (
        "a reload signs out, a link opened twice kills both tabs, a revoked tab goes on listening",
        (
            "tests/browser/test_sign_in_page.py::test_a_reload_of_the_only_tab_stays_signed_in",
            "tests/browser/test_sign_in_page.py::test_a_link_opened_again_in_the_same_browser_leaves_both_tabs_signed_in",
            "tests/browser/test_sign_in_page.py::test_a_restored_profile_is_signed_in_and_holds_no_bearer",
            "tests/safety/test_sign_in.py::test_the_sockets_of_a_sign_in_close_within_a_second_of_its_end",
            "tests/safety/test_devices.py::test_a_device_is_paired_by_a_code_once_and_revoked_at_once",
        ),
    ),
    "B3": (
        "a failed command is shown as done, and waiting counts as running",
        (
            "tests/browser/test_rows_page.py::test_a_command_that_failed_says_so_everywhere_with_its_times_and_who_allowed_it",
            "ui/src/state/model.test.ts::waiting for an answer and running are counted apart",
            "ui/src/state/model.test.ts::a command that exits with non-zero is not shown as done",
        ),
    ),
    "M1": (
        "in the list of calls the rule has more room than the title",
        (
            "tests/browser/test_rows_page.py::test_in_the_list_of_calls_the_title_has_the_room_and_a_rule_is_no_link",
        ),
    ),
    "M2": (
        "no time of day, no days, no counts",
        (
            "tests/browser/test_rows_page.py::test_a_command_that_failed_says_so_everywhere_with_its_times_and_who_allowed_it",
            "tests/browser/test_call_table_page.py::test_every_call_is_reached_by_scrolling_with_days_counts_and_folded_repeats",
        ),
    ),
    "M3": (
        "on a phone the filter's words are cut",
        ("tests/browser/test_rows_page.py::test_on_a_phone_the_words_of_the_filter_are_whole",),
    ),
    "M4": (
        "one search box, three languages; unknown keys say nothing; no filter in the URL",
        (
            "tests/browser/test_call_table_page.py::test_a_search_has_one_language_stays_over_a_reload_and_says_what_it_does_not_know",
            "tests/browser/test_call_table_page.py::test_the_same_field_searches_every_view_where_it_is",
            "tests/browser/test_call_table_page.py::test_the_palette_finds_actions_and_calls_by_keyboard",
            "tests/server/api/test_terminal_search.py::test_terminals_are_searched_like_calls",
            "tests/store/test_call_table.py::test_a_query_finds_calls_by_fields_words_phrases_and_their_negation",
            "tests/store/test_search_query.py::test_what_nothing_can_match_is_said_with_what_can",
        ),
    ),
    "M5": (
        "a new rule opens with an error and without the focus in its field",
        (
            "tests/browser/test_approvals_page.py::test_a_new_rule_opens_without_an_error_and_with_the_focus_in_its_field",
        ),
    ),
    "M6": (
        "folders that are gone are offered",
        (
            "tests/browser/test_approvals_page.py::test_the_rules_are_tested_made_and_revoked_in_their_view",
            "tests/browser/test_threads_page.py::test_what_happens_is_shown_within_200_ms_of_a_message",
        ),
    ),
    "M7": (
        "a loop of echo is high risk, and a downloaded script run as root is not called that",
        (
            "tests/tools/commands/test_command_claims.py::test_a_loop_that_prints_is_no_high_risk_and_a_downloaded_script_is_said_in_plain_words",
        ),
    ),
    "M8": (
        "in a trusted folder every command that only reads asks",
        (
            "tests/tools/commands/test_reading_line.py::test_the_policy_allows_exactly_the_lines_that_pass_and_only_in_a_trusted_folder",
            "tests/tools/commands/test_reading_line.py::test_a_line_that_may_do_more_does_not_pass",
        ),
    ),
    "M9": (
        "a proposal that can no longer be written can still be allowed",
        (
            "tests/browser/test_approvals_page.py::test_a_proposal_that_can_no_longer_be_written_cannot_be_allowed",
        ),
    ),
    "M10": (
        "an edit of one field tells the agent of others",
        ("tests/gate/test_feedback.py::test_only_what_differs_is_told",),
    ),
    "M11": (
        "Enter while the agent works cancels its work",
        (
            "tests/browser/test_steering_page.py::test_enter_while_the_agent_works_steers_it",
            "tests/browser/test_steering_page.py::test_an_agent_that_cannot_be_steered_gets_the_message_afterwards_and_the_page_says_so",
        ),
    ),
    "M12": (
        "client gone is said of clients that are connected",
        (
            "tests/gate/test_restore.py::test_a_call_is_marked_gone_only_while_its_client_is_away",
            "tests/e2e/test_approvals.py::test_questions_that_were_open_at_a_kill_are_all_there_and_can_be_answered",
        ),
    ),
    "M13": (
        "a decision answers nothing back, and its rule cannot be taken back",
        (
            "tests/browser/test_approvals_page.py::test_a_decision_answers_back_and_the_rule_it_made_can_be_taken_back",
        ),
    ),
    "M14": (
        "each decision advances in another way",
        (
            "tests/browser/test_selection_page.py::test_every_decision_leads_to_the_next_card_or_with_the_setting_off_to_none",
        ),
    ),
    "M15": (
        "changes a few lines apart are one hunk that cannot be split",
        (
            "tests/browser/test_review_page.py::test_a_hunk_is_split_and_single_lines_of_it_are_rejected",
            "tests/browser/test_review_page.py::test_the_panes_are_dragged_and_a_review_takes_the_whole_width",
        ),
    ),
    "M16": (
        "output has no colour, no search, no download, and its beginning is out of reach",
        (
            "tests/browser/test_output_page.py::test_output_has_its_colours_and_all_of_it_can_be_found_read_and_saved",
        ),
    ),
    "M17": (
        "a password prompt has no field",
        (
            "tests/browser/test_output_page.py::test_a_password_prompt_is_a_card_with_a_masked_field_that_has_the_focus",
            "tests/browser/test_terminals_page.py::test_a_call_that_waits_for_input_needs_the_person_and_takes_their_answer",
        ),
    ),
    "M18": (
        "a command that ended with 0 is recorded as cancelled",
        (
            "tests/agents/requests/test_agent_terminals.py::test_a_command_that_ended_by_itself_is_never_recorded_as_cancelled",
        ),
    ),
    "M19": (
        "an interrupted call seems to wait for input",
        ("ui/src/state/model.test.ts::a call that has ended never says that it waits for input",),
    ),
    "M20": (
        "rows change their height when the agent stops waiting",
        ("tests/browser/test_rows_page.py::test_a_card_keeps_its_height_when_the_agent_stops_waiting",),
    ),
    "M21": (
        "on a phone an open card hides that the daemon is away",
        (
            "tests/browser/test_calls_page.py::test_the_page_says_that_the_daemon_went_away_or_hangs_and_what_it_found_when_it_came_back",
        ),
    ),
    "M22": (
        "without a key our agent answers with a paragraph instead of a field",
        ("tests/browser/test_start_page.py::test_a_pasted_key_goes_to_the_keyring_and_nowhere_else",),
    ),
    "M23": (
        "handrail config prints secrets",
        ("tests/cli/commands/test_status.py::test_config_never_prints_a_secret",),
    ),
    "M24": (
        "the table of calls does not fit 80 columns",
        ("tests/cli/commands/test_calls.py::test_the_table_fits_80_columns_and_says_when",),
    ),
    "M25": (
        "no palette, no waterfall, no settings, no pause, no push, no pairing",
        (
            "tests/browser/test_call_table_page.py::test_the_palette_finds_actions_and_calls_by_keyboard",
            "tests/browser/test_call_table_page.py::test_the_waterfall_shows_when_calls_waited_and_is_zoomed_by_keyboard",
            "tests/browser/test_settings_page.py::test_settings_are_shown_and_everything_is_stopped_with_a_receipt",
            "tests/browser/test_settings_page.py::test_settings_are_changed_undone_and_asked_about_where_fewer_calls_would_ask",
            "tests/browser/test_start_page.py::test_a_new_user_tries_the_demo_and_connects_an_agent",
            "tests/browser/test_start_page.py::test_all_agents_are_paused_and_resumed",
            "tests/browser/test_phone_page.py::test_a_phone_gets_a_push_message_answers_and_is_signed_out",
            "tests/browser/test_phone_page.py::test_a_real_push_message_wakes_a_phone_whose_page_is_closed",
        ),
    ),
}


@pytest.mark.parametrize("number", REGRESSIONS)
def test_each_defect_has_a_test(number: str) -> None:
    _, tests = REGRESSIONS[number]
    missing = [test for test in tests if not has_test(*test.split("::"))]
    assert missing == []


def has_test(path: str, name: str) -> bool:
    text = (ROOT / path).read_text()
    return re.search(rf"def {re.escape(name)}\(|test\(\"{re.escape(name)}\"", text) is not None
