"""Coding agents and editors that people already run: their configuration, their hooks and the undo of what we wrote."""

EXPORTS = {
    "hook_event": "CANARY_ANSWER CANARY_FIELD Edit HookAnswer HookDialect HookEvent RUNS_EDITED Verdict Work",
    "canary": "SLOW_SECONDS send_canary",
    "client_facts": "Client HostedAgent Machine Setup",
    "client_program": "find_version",
    "config_edit": "BadFile append_item get_value is_list is_object remove_item remove_value set_value",
    "config_file": "FileProblem read_text write_bytes",
    "connection_plan": "ConfigChange ConnectRefused ConnectionPlan connect disconnect needs_root plan_connect plan_disconnect stage",
    "connection_state": "ClientState examine_client examine_clients find_other_entries",
    "connections": "Connection Connections MovedServer",
    "known_clients": "NAMES find_client",
    "mcp_entries": "McpEntry find_mcp_entries",
    "mcp_secrets": "SplitSection find_credentials find_file_credentials split_secrets",
    "server_move": "KnownServers MovePlan ServerMove digest_entry plan_moves",
    "launcher_path": "find_launcher find_problem",
    "hooks": "DIALECTS",
    "open_work": "ClientProcess OpenWork OpenWorks WorkEnd",
    "proof": "Proof run_proof",
    "proof_recipes": "RECIPES",
    "transcripts.transcript": "ClientName Transcript TranscriptCall TranscriptMessage TranscriptPart TranscriptSummary",
    "transcripts.transcripts": "Transcripts UnknownTranscript",
    "vscode_extension": "NotInstalled VSIX find_editors run_editor",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
