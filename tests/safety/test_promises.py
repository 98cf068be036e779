"""What Handrail promises, and which tests prove each promise. A test that is renamed or gone fails here by itself."""

import importlib
import re
from typing import Any

import pytest
from tests.house.source import ROOT

PROMISES: dict[str, tuple[str, tuple[str, ...]]] = {
    "N1": (
        "No effect without a named allow rule or a durable, single-use approval whose digest equals what is executed.",
        (
            "gate.test_gate.test_a_read_in_the_workspace_is_allowed_by_a_rule_that_is_named",
            "gate.rules.test_policy.test_without_rules_reads_here_and_ends_of_own_terminals_are_allowed_and_all_else_asks",
            "gate.test_approval.test_an_approval_serves_one_call_only",
            "tools.commands.test_reading_line.test_the_lines_that_pass_change_nothing_and_start_no_other_program",
            "tools.commands.test_reading_line.test_a_line_that_may_do_more_does_not_pass",
            "gate.test_draft.test_the_digest_follows_input_content_plan_and_strict_rules",
            "safety.test_races.test_what_somebody_else_writes_meanwhile_is_never_lost",
            "safety.test_races.test_no_link_that_is_put_there_meanwhile_leads_out",
            "safety.test_command_races.test_a_command_starts_in_the_directory_that_was_allowed_or_not_at_all",
            "safety.test_command_races.test_a_program_that_was_swapped_up_to_the_last_check_does_not_run",
            "safety.test_command_races.test_a_wrapper_that_appears_on_the_path_after_the_question_does_not_run",
            "safety.test_command_races.test_a_script_that_was_swapped_before_the_keeper_starts_it_does_not_run",
            "safety.test_command_races.test_a_program_that_is_switched_in_a_loop_runs_as_it_was_checked_or_not_at_all",
            "tools.commands.test_programs.test_a_wrapper_that_appears_earlier_on_the_path_is_another_fact",
            "tools.test_protected_paths.test_no_order_of_writes_plants_a_repository_unasked",
            "tools.test_protected_paths.test_a_rule_that_allows_every_write_asks_before_a_file_that_other_programs_obey",
            "tools.test_protected_paths.test_each_part_of_a_protected_path_is_compared_in_any_letter_case",
            "tools.commands.test_touched_paths.test_a_command_in_a_bare_repository_or_that_completes_one_asks",
            "tools.commands.test_touched_paths.test_a_command_that_reads_a_folder_with_secrets_asks",
            "tools.commands.test_touched_paths.test_an_ignore_file_that_excepts_a_hidden_secret_lets_ripgrep_read_it",
            "tools.commands.test_touched_paths.test_a_question_mark_may_stand_for_one_byte_of_a_character",
            "tools.commands.test_reading_line.test_a_folder_that_git_does_not_take_for_a_repository_asks",
            "tools.commands.test_reading_line.test_a_relative_folder_on_the_path_is_searched_in_each_folder_of_the_line",
            "tools.commands.test_execute_command.test_git_runs_nothing_of_a_repository_that_it_merely_comes_across",
            "safety.test_deceits.test_a_rule_that_is_removed_while_the_start_is_written_down_runs_nothing",
            "gate.test_approval.test_what_changed_since_it_was_asked_is_not_done_although_it_was_allowed",
            "gate.test_gate_durability.test_an_answer_is_on_record_before_what_it_allows_starts",
            "gate.test_gate_durability.test_an_effect_is_on_record_before_it_starts_and_its_outcome_before_it_is_told",
            "gate.test_draft_digest.test_any_change_of_tool_input_binding_or_policy_changes_it",
            "gate.test_restore.test_a_crash_after_the_answer_uses_up_the_approval_and_runs_nothing",
            "safety.test_shown.test_an_altered_call_never_runs_under_the_old_approval",
            "safety.test_shown.test_an_answer_that_stands_only_in_the_record_runs_nothing",
            "safety.test_terminals.test_into_a_persons_own_terminal_nothing_is_typed_unasked_wherever_it_is",
            "safety.test_terminals.test_of_a_persons_shell_elsewhere_an_agent_gets_nothing_unasked_even_where_all_is_allowed",
            "tools.terminals.test_send_to_terminal.test_an_answer_meant_for_one_program_never_reaches_another",
            "tools.terminals.test_send_to_terminal.test_an_answer_holds_for_the_folder_that_was_shown",
            "tools.terminals.test_send_to_terminal.test_an_answer_holds_for_the_very_bytes_that_were_shown",
            "gate.rules.test_rules.test_an_allow_rule_that_cannot_be_recorded_is_never_in_force",
            "gate.rules.test_rules.test_trust_that_cannot_be_recorded_is_not_given",
            "safety.test_policy.test_a_rule_and_trust_that_cannot_be_recorded_are_refused_and_not_in_force",
            "safety.test_policy.test_a_compaction_that_the_daemon_did_not_do_is_reported_after_a_restart",
            "safety.test_policy.test_a_row_in_the_tables_is_no_rule_and_is_reported",
            "safety.test_policy.test_a_forged_event_with_a_recomputed_chain_is_no_rule_until_a_person_accepts_it",
            "safety.test_policy.test_a_changed_config_is_not_taken_up_by_a_daemon_that_no_person_restarted",
            "safety.test_policy.test_with_the_keeper_killed_too_nothing_is_taken_up",
            "safety.test_policy.test_a_config_that_changes_after_the_person_restarted_is_not_taken_up",
        ),
    ),
    "N2": (
        "Nothing that daemon or keeper starts gets the approve credential by our sockets, files, /proc or CLI.",
        (
            "safety.test_inside.test_a_command_passes_no_limit_and_no_priority_on_to_the_next_one",
            "safety.test_sign_in.test_a_command_that_reads_the_arguments_of_a_browser_signs_no_server_in",
            "server.test_settings_file.test_a_line_that_another_program_writes_in_the_same_moment_is_never_accepted",
            "safety.test_self_approval.test_a_command_is_refused_every_verb_of_a_person_and_sent_to_the_page",
            "safety.test_self_approval.test_no_bearer_that_a_command_can_have_answers_an_approval",
            "safety.test_sign_in_key.test_a_stolen_key_is_of_no_use_to_an_approved_command_or_an_agent",
            "safety.test_sign_in.test_a_link_that_a_command_reads_signs_in_the_browser_that_was_opened_and_nobody_else",
            "safety.test_environment.test_no_code_is_loaded_from_a_keyring_that_a_command_has_configured",
            "launcher.test_child_guard.test_every_way_to_start_a_process_is_refused_but_the_launchers",
            "safety.test_self_approval.test_a_daemon_that_a_command_starts_prints_no_link",
            "safety.test_self_approval.test_every_posture_is_what_it_says",
            "safety.test_self_approval.test_from_outside_the_same_user_may_decide",
            "safety.test_inside.test_the_keeper_takes_no_order_from_a_command",
            "safety.test_inside.test_nothing_of_daemon_keeper_and_warden_can_be_read_or_traced",
            "safety.test_inside.test_no_file_of_the_home_holds_a_bearer_or_a_code",
            "safety.test_inside.test_no_file_makes_a_person_of_who_writes_to_it",
            "safety.test_inside.test_a_command_finds_no_credential_and_no_secret_in_its_environment",
            "safety.test_inside.test_the_call_bearer_opens_no_route_of_people",
            "safety.test_port.test_a_command_that_kills_the_daemon_cannot_take_its_port_and_wait_for_the_page",
            "safety.test_door.test_what_an_agent_with_a_door_starts_is_refused_a_persons_verbs",
            "safety.test_hosted.test_a_hosted_agent_is_refused_a_persons_verbs_and_hears_nothing_of_other_conversations",
            "safety.test_sealed.test_no_link_is_given_to_the_command_line_or_to_a_page",
            "safety.test_sign_in.test_a_code_used_twice_ends_the_sign_in_it_made_and_says_so",
            "safety.test_terminals.test_what_runs_in_a_terminal_is_refused_every_verb_of_a_person",
            "safety.test_terminals.test_what_runs_in_a_terminal_cannot_attach_to_the_keeper",
            "safety.test_terminals.test_from_outside_the_same_user_may_attach",
            "keeper.test_lineage.test_an_ordinary_user_cannot_take_the_mark_off",
            "safety.test_children.test_every_process_that_the_daemon_started_is_marked",
            "safety.test_children.test_no_program_of_a_folder_that_the_user_can_write_ran_unmarked",
            "safety.test_children.test_after_the_launcher_was_killed_a_search_is_marked_again",
            "safety.test_environment.test_a_daemon_that_the_keeper_starts_loads_no_module_that_a_variable_names",
            "test_paths.test_a_module_of_ours_is_run_isolated_unless_a_variable_names_our_code",
            "launcher.test_trusted_programs.test_a_program_that_a_user_can_replace_is_not_found",
            "house.test_processes.test_only_the_launcher_keeper_doors_and_a_persons_commands_start_processes",
            "safety.test_policy.test_a_changed_config_is_not_taken_up_by_a_daemon_that_no_person_restarted",
            "keeper.test_lineage.test_no_process_moves_the_reference_by_the_limit_of_a_first_process_that_is_its_users",
            "keeper.test_lineage.test_the_limit_that_root_states_is_taken_only_from_a_file_that_root_alone_can_write",
            "keeper.test_server.test_a_keeper_whose_limit_was_lowered_before_it_looked_takes_no_order_from_a_marked_process",
            "safety.test_container.test_where_the_first_process_is_the_users_nobody_is_a_person_until_root_says_so",
            "safety.test_container.test_a_command_that_lowers_the_limit_of_the_first_process_is_still_no_person",
            "safety.test_container.test_where_processes_are_hidden_a_command_is_no_person",
            "safety.test_container.test_a_shell_that_another_program_has_marked_is_told_so",
            "safety.test_listener.test_a_person_gives_nothing_to_a_command_that_listens_in_the_daemons_place",
            "safety.test_listener.test_a_process_that_the_keeper_does_not_know_as_its_daemon_is_given_nothing",
            "safety.test_port.test_a_page_opened_by_another_name_is_sent_to_the_address_and_signed_in_by_no_other",
            "safety.test_door.test_a_door_whose_client_is_gone_locks_nobody_out",
            "safety.test_sign_in.test_the_sockets_of_a_sign_in_close_within_a_second_of_its_end",
            "terminal.test_person_check.test_every_process_between_a_door_and_the_leader_of_its_session_is_a_launcher",
        ),
    ),
    "N3": (
        "What is shown is rendered from the bytes that will run.",
        (
            "safety.test_shown.test_an_altered_record_changes_nothing_that_is_shown_of_an_open_question",
            "safety.test_shown.test_an_altered_question_is_shown_as_what_would_run_after_a_restart_too",
            "safety.test_page.test_an_agents_text_is_text_wherever_it_is_shown",
            "gate.test_approval.test_an_answer_to_what_is_no_longer_asked_is_refused_and_the_question_stays_open",
            "gate.test_person_actions.test_complete_accepts_nothing_but_the_diff_that_was_shown",
            "tools.files.test_diff.test_a_rendered_diff_applied_to_the_old_text_gives_the_new",
            "tools.terminals.test_send_to_terminal.test_an_approval_shows_exactly_what_is_typed_and_to_which_program",
            "cli.render.test_approval_card.test_what_would_be_typed_stands_with_its_terminal_owner_program_and_place",
        ),
    ),
    "N4": (
        "What cannot be fully parsed asks.",
        (
            "safety.test_unasked.test_every_command_asks_whatever_it_looks_like",
            "gate.shell.test_shell_parser_lines.test_a_line_that_cannot_be_parsed_always_asks",
            "gate.shell.test_shell_parser_lines.test_each_line_gets_its_decision",
            "gate.shell.test_shell_parser_lines.test_any_text_is_read_without_a_fault_and_allowed_only_when_it_is_plain",
            "gate.shell.test_shell_parser_bash.test_bash_runs_any_plain_line_as_it_is_read",
            "tools.commands.test_command_claims_time.test_a_reader_of_a_line_takes_linear_time",
            "safety.test_deceits.test_what_runs_something_else_than_it_shows_is_not_understood",
            "gate.rules.test_policy.test_the_strictest_part_decides_for_all",
            "gate.rules.test_policy.test_nothing_allows_what_is_protected_opaque_or_homeless",
            "gate.rules.test_policy.test_claiming_more_never_lowers_a_decision",
        ),
    ),
    "N5": (
        "Project files never widen policy, start a process or set environment before the folder is trusted.",
        (
            "safety.test_unasked.test_a_project_cannot_allow_itself_anything",
            "safety.test_deceits.test_a_project_that_refuses_by_default_gains_nothing_by_it",
            "gate.rules.test_matching_force.test_what_allows_needs_trust_unless_a_person_made_it_for_that_very_folder",
            "gate.rules.test_trust_project.test_a_link_is_not_followed",
            "safety.test_unasked.test_looking_at_a_project_runs_nothing_of_it",
            "safety.test_unasked.test_a_daemon_that_a_door_starts_from_inside_a_project_runs_nothing_of_it",
        ),
    ),
    "N6": (
        "No request with a foreign Host, Origin or Sec-Fetch-Site reaches a handler.",
        (
            "safety.test_header_matrix.test_every_route_has_an_entry_and_every_entry_a_route",
            "safety.test_header_matrix.test_no_request_for_a_foreign_host_reaches_a_handler",
            "safety.test_header_matrix.test_no_request_from_a_foreign_origin_reaches_a_handler",
            "safety.test_header_matrix.test_no_request_from_another_site_reaches_a_handler",
            "safety.test_header_matrix.test_what_the_page_and_programs_send_comes_through",
            "safety.test_wire.test_a_foreign_request_is_not_answered",
            "safety.test_wire.test_a_socket_opens_to_no_other_origin",
        ),
    ),
    "N7": (
        "After a call has stopped, no process it started is alive.",
        (
            "keeper.test_warden.test_a_stop_leaves_nothing_of_the_tree",
            "keeper.test_warden.test_mixed_trees_one_after_another_leave_nothing_and_take_no_time",
            "keeper.test_warden.test_what_a_leader_leaves_behind_is_swept_and_reported",
            "keeper.test_warden.test_when_a_warden_is_killed_its_orphans_end_and_the_terminal_is_reported",
            "browser.test_calls_page.test_cancel_returns_at_once_with_the_output_and_ends_the_whole_tree",
            "safety.test_terminals.test_a_program_that_stops_its_warden_is_seen_to_end_and_nothing_of_it_lives_on",
            "e2e.test_kill.test_a_call_whose_command_outlived_the_daemon_can_be_ended",
            "e2e.test_kill.test_a_line_typed_into_a_shell_goes_on_after_a_kill_and_can_be_cancelled",
            "e2e.test_thread_live.test_a_command_in_an_agents_terminal_goes_on_after_a_kill_and_can_be_cancelled",
            "e2e.test_keeper_killed.test_what_outlives_the_keeper_and_its_warden_is_found_and_ended",
        ),
    ),
    "N8": (
        "An acknowledged record survives kill -9.",
        (
            "store.test_journal_kill.test_no_acknowledged_record_is_missing_after_twenty_kills",
            "e2e.test_load.test_fifty_random_kills_lose_no_acknowledged_fact_and_run_nothing_twice",
        ),
    ),
    "N9": (
        "At most once: an unknown outcome is said, never retried.",
        (
            "gate.test_restore.test_a_crash_leaves_running_calls_to_be_interrupted_and_waiting_ones_to_be_answered",
            "gate.test_gate_durability.test_an_effect_whose_outcome_cannot_be_recorded_is_told_as_unknown_not_as_undone",
            "e2e.test_full_disk.test_a_command_that_ended_on_a_full_disk_is_settled_when_there_is_space",
            "e2e.test_keeper_killed.test_a_command_whose_keeper_was_killed_is_interrupted_and_not_done",
            "e2e.test_kill.test_a_call_that_was_handed_back_before_the_kill_goes_on_and_is_not_run_twice",
            "daemon.test_state_files_lock.test_removing_the_lock_file_lets_no_second_holder_in",
            "door.test_proxy.test_what_was_sent_is_never_sent_again_and_what_was_not_is_sent_once",
            "door.test_proxy.test_under_random_deaths_every_request_is_answered_once_and_heard_at_most_once",
        ),
    ),
    "N10": (
        "Memory is bounded whatever a child, client or server sends.",
        (
            "server.mcp.test_response_streams.test_a_server_that_reports_much_leaves_little_in_memory_and_its_answer_is_kept",
            "safety.test_bounds.test_a_line_without_end_on_a_door_is_skipped_and_said_to_be_too_long",
            "safety.test_bounds.test_a_line_without_end_on_the_keepers_socket_is_refused",
            "keeper.test_server.test_a_peer_that_sends_no_hello_is_dropped",
            "safety.test_bounds.test_a_body_without_end_is_refused",
            "e2e.test_floods.test_a_client_that_never_reads_is_not_read_either_and_leaves_no_memory_behind",
            "e2e.test_floods.test_sessions_that_are_never_closed_are_bounded_for_each_credential",
            "e2e.test_floods.test_with_few_descriptors_silent_connections_keep_no_one_out_and_are_dropped",
            "server.test_connection_limit.test_a_request_whose_head_does_not_arrive_is_dropped",
            "door.test_proxy.test_a_daemon_that_reads_nothing_does_not_make_the_door_grow",
            "e2e.test_live.test_a_follower_that_stops_reading_costs_nothing_and_hinders_nobody",
            "keeper.test_server.test_a_daemon_that_does_not_read_holds_up_nothing_and_is_told_the_latest_size",
            "tools.commands.test_command_output.test_a_huge_output_is_read_from_its_ends_alone",
            "safety.test_terminals.test_hostile_output_costs_neither_memory_nor_the_daemons_time",
            "terminal.output.test_plain_text.test_a_few_bytes_do_not_become_megabytes_of_blanks",
            "terminal.test_safe_regex.test_a_pattern_beyond_the_bounds_is_refused",
            "terminal.wait.test_pattern_match.test_only_so_many_patterns_are_watched_for_at_once",
        ),
    ),
    "N11": (
        "Secrets in the daemon's environment reach no child by default.",
        (
            "safety.test_environment.test_secrets_of_the_daemons_environment_reach_no_command",
            "safety.test_environment.test_a_variable_that_a_person_names_is_passed_on_and_no_other",
            "terminal.test_start_keeper.test_a_clean_environment_holds_no_secret_and_leads_to_the_same_places",
            "door.test_start_daemon.test_only_what_says_where_we_are_is_inherited",
            "safety.test_children.test_no_process_that_the_daemon_started_has_a_key",
            "launcher.test_child.test_a_program_gets_the_environment_that_is_named_and_no_more",
        ),
    ),
    "N12": (
        "An altered or removed journal row is detected, and so is a cut tail.",
        (
            "store.test_integrity.test_an_altered_row_is_found_where_it_is",
            "store.test_integrity.test_a_payload_altered_together_with_its_hash_is_found_by_the_chain",
            "store.test_integrity.test_a_cut_tail_is_found_by_the_head_file",
            "store.test_integrity.test_an_erased_payload_is_no_fault",
            "safety.test_policy.test_a_recomputed_chain_is_reported_by_doctor_and_held_back_after_a_restart",
            "store.test_anchor.test_a_recomputed_chain_is_detected",
            "store.test_rule_replay.test_an_event_that_was_altered_or_added_is_not_used",
        ),
    ),
    "N13": (
        "What is typed where a terminal hides it is recorded nowhere, and no agent types there.",
        (
            "terminal.input.test_typing_history.test_a_password_is_recorded_nowhere",
            "terminal.input.test_typing_history.test_what_a_prompt_masks_is_recorded_without_its_text",
            "terminal.input.test_typing_history.test_an_agent_cannot_answer_a_secret_prompt",
            "tools.terminals.test_send_to_terminal.test_a_secret_is_never_typed_by_an_agent",
            "e2e.test_attach.test_a_secret_that_a_person_types_is_found_nowhere",
            "e2e.test_terminal_routes.test_who_only_watches_gets_the_list_and_nothing_that_a_terminal_shows",
            "safety.test_terminals.test_a_secret_given_by_the_command_line_is_found_nowhere",
        ),
    ),
    "N14": (
        "A pause holds every agent, over restarts.",
        (
            "gate.rules.test_pause.test_a_call_that_is_about_to_begin_does_not_pass_the_pause",
            "gate.rules.test_pause.test_a_pause_lasts_over_a_restart",
            "cli.commands.test_pause.test_a_paused_call_waits_until_it_is_resumed",
        ),
    ),
    "N15": (
        "Only paired devices reach Handrail from outside this machine, and none decides what is left to the desk.",
        (
            "safety.test_devices.test_without_a_devices_bearer_only_files_and_the_sign_in_are_reached",
            "safety.test_devices.test_a_device_reaches_what_people_use_but_not_agents_and_not_who_may_decide",
            "safety.test_devices.test_a_devices_bearer_is_good_nowhere_on_loopback",
            "safety.test_devices.test_a_code_that_is_used_twice_or_guessed_at_is_of_no_use",
            "safety.test_devices.test_behind_a_proxy_only_its_name_is_answered_and_no_desk_bearer_is_good",
            "safety.test_devices.test_high_risk_is_left_to_the_desk_and_a_command_signs_in_with_no_devices_key",
        ),
    ),
    "N16": (
        "Of editors only a paired one decides, over TCP none does, and no setting of theirs approves.",
        (
            "safety.test_agent_host.test_what_handrail_started_sees_nothing_with_the_token",
            "safety.test_agent_host.test_a_program_that_hides_from_the_daemon_sees_nothing_with_the_token",
            "server.test_editor_pairings.test_an_editor_watches_until_a_person_pairs_it",
            "server.test_editor_pairings.test_what_runs_in_a_paired_editor_but_is_no_extension_host_does_not_decide",
            "server.ahp.test_client_actions.test_settings_of_the_editor_never_approve",
            "server.ahp.test_client_actions.test_what_clients_publish_in_a_session_is_bounded",
        ),
    ),
    "N17": (
        "An MCP server behind Handrail allows itself nothing, and costs only its own calls.",
        (
            "e2e.test_mcp_servers.test_a_client_that_accepts_every_elicitation_approves_nothing",
            "e2e.test_mcp_servers.test_a_path_that_only_the_server_can_see_asks_although_a_rule_allows_the_server",
            "e2e.test_mcp_servers.test_list_changed_adds_a_tool_that_asks_although_a_rule_allows_the_server",
            "e2e.test_mcp_servers.test_a_secret_reaches_its_server_and_nothing_else",
            "e2e.test_mcp_servers.test_a_server_that_floods_is_ended_while_others_are_served",
            "e2e.test_http_servers.test_a_server_that_sends_nonsense_costs_only_its_own_calls",
            "e2e.test_server_sign_in.test_a_person_signs_in_and_the_agent_never_sees_a_token",
            "e2e.test_result_review.test_a_command_line_that_only_watches_does_not_see_what_is_reviewed",
            "upstream.test_tool_pins.test_fifty_ways_to_change_a_definition_between_two_daemons_all_ask_again",
        ),
    ),
}
PROOFS = [(name, proof) for name, (_, proofs) in PROMISES.items() for proof in proofs]


ATTACKS = [
    f"{level}{n}"
    for level, count in {"C": 6, "H": 5, "M": 10, "L": 7, "S": 21}.items()
    for n in range(1, count + 1)
]
"""The breaks that an independent review found, and those found since (S): docs/safety.md names a test for each."""


def read_attacks() -> dict[str, list[str]]:
    """The table of known attacks in docs/safety.md: each number with the names of its tests."""
    rows = re.findall(r"^\| ([CHMLS]\d+) \|.*\| ([^|]+) \|$", (ROOT / "docs" / "safety.md").read_text(), re.M)
    return {number: re.findall("`([^`]+)`", tests) for number, tests in rows}


def find(proof: str) -> Any:
    """The test that a dotted name below `tests` stands for."""
    module, _, name = proof.rpartition(".")
    return getattr(importlib.import_module(f"tests.{module}"), name)


def test_every_promise_stands_here() -> None:
    assert list(PROMISES) == [f"N{number}" for number in range(1, 18)]


@pytest.mark.parametrize(("promise", "proof"), PROOFS, ids=str)
def test_each_proof_of_a_promise_is_a_test_that_runs(promise: str, proof: str) -> None:
    test = find(proof)
    assert callable(test), promise
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    assert not {"skip", "xfail"} & {mark.name for mark in marks}, promise


def test_every_known_attack_has_tests() -> None:
    assert list(read_attacks()) == ATTACKS
    assert [number for number, tests in read_attacks().items() if not tests] == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_test_of_an_attack_is_a_test_that_runs(attack: str) -> None:
    for proof in read_attacks()[attack]:
        test_each_proof_of_a_promise_is_a_test_that_runs(attack, proof)


def test_a_proof_that_is_missing_is_noticed() -> None:
    with pytest.raises(AttributeError):
        find("safety.test_promises.test_that_nobody_wrote")


def test_the_documents_promise_nothing_that_is_not_here() -> None:
    told = [path.read_text() for path in (ROOT / "docs").glob("*.md")]
    assert {name for text in told for name in re.findall(r"\bN\d{1,2}\b", text)} <= PROMISES.keys()
