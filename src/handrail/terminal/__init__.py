"""Watched processes: the keeper client, terminals, their output and input, and waits on them."""

EXPORTS = {
    "descendants": "EndedProcesses Identity end_descendants list_descendants",
    "editor_process": "EditorProcess Relation find_editor_process is_running",
    "input.keys": "UnknownKey encode",
    "input.typing_history": "RELEASED_BY",
    "jsonrpc_messages": "MESSAGE_MAX encode_message excerpt_line parse_message",
    "keeper_client": "Keeper KeeperError KeeperHangs",
    "loopback_peer": "IS_SUPPORTED find_refusal",
    "open_shell": "COLS OWN_ID OpenRefused ROWS TerminalSettings default_shell open_shell resolve_program",
    "output.output_search": "Match SearchResult search_tail",
    "output.paging": "OutputPage find_line_near_end is_alternate_screen read_page",
    "output.plain_text": "plain_text",
    "output.screen": "RenderedScreen render_screen",
    "output.tail": "KeptRange Tail",
    "person_check": (
        "DoorLaunchers Identity NO_PERSON OTHER_USER explain_no_person find_ancestors find_tty find_waiting_process "
        "is_other_user read_arguments runs_inside_handrail wait_for_exit"
    ),
    "pipe_process": "PipeProcess",
    "retention": "Retention",
    "ripgrep": "NoRipgrep PATTERN_MAX Search SearchEnd pattern_error run_search",
    "safe_regex": "BadPattern DIALECT REGEX_THREADS Regex check_characters compile_pattern",
    "shell_marks": "Command Marks MarksCache MarksReader",
    "survivors": "Survivors",
    "terminal": (
        "Exit InputRequest InputSender NotReading PersonControl Report Seen Terminal TerminalNote "
        "TypingRefused"
    ),
    "terminals": "CheckedProgram Terminals",
    "thread_pool": "AGENTS FILES PEOPLE",
    "wait.input_detection": "InputDetector",
    "wait.pattern_match": "open_matcher",
    "wait.ports": "can_list_ports",
    "wait.wait": (
        "AtPrompt Condition FileWritten Idle LIKELY_SECONDS PatternMatches PortListens ProcessExits Until "
        "WaitReason WaitResult is_at_rest quiet_seconds wait watch_changes"
    ),
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
