"""Tools of the agent in VS Code, which runs the hook files of Copilot CLI and of Claude Code beside its own."""

from handrail.clients.hook_event import Edit, Json, Work
from handrail.clients.hook_payload import child, required_text, stated_children, stated_texts
from handrail.clients.hook_work import (
    ToolTable,
    build_work,
    changed_files,
    command,
    fetch,
    harmless,
    mcp_from_name,
    read,
    replacement,
    typed_input,
    whole_file,
)
from handrail.clients.patch_text import work_from_patch

PATH = ("path", "filePath", "file_path")
OLD, NEW = ("old_str", "oldString", "old_string"), ("new_str", "newString", "new_string")
CONTENT = ("file_text", "content")


def apply_patch(input: Json) -> Work:
    """A patch in Codex's format."""
    return work_from_patch(required_text(input, "input", "patch", "command", "value"))


def _edit_files(input: Json) -> Work:
    """VS Code reports only which files are changed."""
    return changed_files("files", *PATH)(input)


def _replace_strings(input: Json) -> Work:
    items = stated_children(input, "replacements", "edits")
    if not items:
        raise ValueError("The field replacements is missing or empty.")
    pairs = [replacement(PATH, OLD, NEW)({**input, **item}).edits[0] for item in items]
    return Work(sort="edit", edits=tuple(pairs))


def _run_task(input: Json) -> Work:
    task = child(input, "task")
    line = " ".join([required_text(task, "command"), *stated_texts(task, "args")])
    return Work(sort="command", commands=(line,))


def _create_folder(input: Json) -> Work:
    return Work(sort="edit", edits=(Edit(path=required_text(input, "dirPath", "path")),))


TOOLS: ToolTable = {
    **dict.fromkeys(("runTerminalCommand", "run_in_terminal", "runInTerminal"), command("command")),
    "send_to_terminal": typed_input("command", "input"),
    "create_and_run_task": _run_task,
    **dict.fromkeys(("createFile", "create_file"), whole_file(PATH, CONTENT)),
    **dict.fromkeys(("createDirectory", "create_directory"), _create_folder),
    **dict.fromkeys(("replaceStringInFile", "replace_string_in_file"), replacement(PATH, OLD, NEW)),
    "multi_replace_string_in_file": _replace_strings,
    **dict.fromkeys(("editFiles", "insert_edit_into_file", "edit_notebook_file"), _edit_files),
    **dict.fromkeys(("applyPatch", "apply_patch"), apply_patch),
    **dict.fromkeys(
        (
            "codebase", "fileSearch", "file_search", "get_errors", "grep_search", "listDirectory", "list_code_usages",
            "list_dir", "problems", "readFile", "read_file", "search", "semantic_search", "textSearch", "usages",
            "view_image",
        ),
        read(*PATH, "filePaths"),
    ),
    **dict.fromkeys(("fetch", "fetchWebpage", "fetch_webpage"), fetch("urls", "url")),
    **dict.fromkeys(
        (
            "agent", "askQuestions", "get_changed_files", "get_terminal_output", "kill_terminal", "manage_todo_list",
            "runSubagent", "terminalLastCommand", "terminal_last_command", "terminal_selection", "think", "todo", "todos",
            "vscode_askQuestions",
        ),
        harmless,
    ),
}  # fmt: skip
"""Tools of the agent in VS Code, by the names of its documentation and of its source. Not tried with the program."""


def vscode_work(tool: str, input: Json) -> Work | None:
    """The work of a tool of VS Code, or None if it has no such tool.

    A tool of an MCP server is `mcp_SERVER_TOOL`, where the name of the server may hold the separator.
    """
    return build_work(TOOLS, tool, input) or mcp_from_name(tool, prefix="mcp_", separator="_")
