"""The tools that agents can call; each module has its tool's name."""

EXPORTS = {
    "agent_form": "AgentForm",
    "agent_work": "AgentWork",
    "client_work": "ClientWork",
    "calls": "GetCall ListCalls WaitForCall",
    "commands.command_output": "as_result read_output",
    "commands.execute_command": "ExecuteCommand",
    "editor.code_questions": "FindReferences GetDiagnostics GetSymbols",
    "editor.rename_symbol": "RenameSymbol",
    "files.edit_tools": "ApplyDiff EditFile WriteFile",
    "files.read_file": "ReadFile ReadTextFile",
    "search.list_files": "ListFiles SearchFiles",
    "search.search_content": "SearchContent",
    "terminals.close_terminal": "CloseTerminal",
    "terminals.create_tracked_terminal": "CreateTrackedTerminal",
    "terminals.get_terminal_buffer": "GetTerminalBuffer",
    "terminals.list_tracked_terminals": "ListTrackedTerminals",
    "terminals.search_terminal_buffer": "SearchTerminalBuffer",
    "terminals.send_to_terminal": "SendToTerminal",
    "terminals.wait_for_terminal": "WaitForTerminal",
    "tool_context": "ToolContext child_environment",
    "undo.undo_call": "Undo",
    "workspace": "Workspace",
}
"""Public names by module: other packages import only these. An empty entry exports the module itself."""
