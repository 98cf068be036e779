"""Cursor and Windsurf: the MCP server and hooks, each in a separate file. From their documentation; not tried.

Cursor: `handrail connect` registers `preToolUse` for everything but MCP (matcher `^(?!MCP:)`) and `beforeMCPExecution`,
which alone tells the program of the server, so that our own tools are known; not `beforeShellExecution`, because the person
would be asked twice. Each entry has `failClosed: true` and a long `timeout`. `postToolUse`, `postToolUseFailure`,
`afterMCPExecution`, `sessionStart`, `sessionEnd`, `beforeSubmitPrompt` and `stop` report.

Windsurf: `pre_run_command`, `pre_write_code`, `pre_read_code` and `pre_mcp_tool_use` ask, and only exit status 2 blocks, with
the reason on stderr. It documents no time limit that can be written and no way to fail closed, so that we answer soon.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from handrail.clients.claude import NO_REASON, ClaudeShapedHooks, print_json, refuse_edit
from handrail.clients.client_facts import (
    SERVER,
    Editor,
    HookLine,
    Setup,
    hook_line,
    item,
    member,
)
from handrail.clients.hook_event import RUNS_EDITED, HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import (
    child,
    required_object,
    required_text,
    result_text,
    text,
    texts,
    tool_input,
    whole_number,
)
from handrail.clients.hook_work import (
    OUR_SERVER,
    ToolTable,
    build_work,
    command,
    deletion,
    fetch,
    harmless,
    is_our_program,
    mcp,
    read,
    replacement,
    replacements,
    search,
    search_web,
    whole_file,
)
from handrail.clients.pieces import ConfigPiece

CURSOR_HOOKS = (
    HookLine("preToolUse", is_gate=True, extra={"matcher": "^(?!MCP:)"}),
    HookLine("beforeMCPExecution", is_gate=True),
    HookLine("postToolUse"),
    HookLine("postToolUseFailure"),
    HookLine("afterMCPExecution"),
    HookLine("beforeSubmitPrompt"),
    HookLine("sessionStart"),
    HookLine("sessionEnd"),
    HookLine("stop"),
)
WINDSURF_HOOKS = (
    *(HookLine(event, is_gate=True) for event in ("pre_run_command", "pre_write_code", "pre_read_code")),
    HookLine("pre_mcp_tool_use", is_gate=True),
    *(HookLine(event) for event in ("post_run_command", "post_write_code", "post_mcp_tool_use")),
    *(HookLine(event) for event in ("pre_user_prompt", "post_cascade_response")),
)


class Cursor(Editor):
    name = "cursor"
    title = "Cursor"
    programs = ("cursor", "cursor-agent")
    home = ("", ".cursor")
    promises = "is told to refuse the tool call if the hook fails (failClosed); not tried"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        return [member(self._base(setup) / "mcp.json", ("mcpServers", SERVER), setup.server())]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self._base(setup) / "hooks.json"
        version = member(path, ("version",), 1)
        return [
            version,
            *(item(path, ("hooks", line.event), _cursor_hook(setup, line)) for line in CURSOR_HOOKS),
        ]

    def _base(self, setup: Setup) -> Path:
        return self.settings_folder(setup, ".cursor")


def _cursor_hook(setup: Setup, line: HookLine) -> dict[str, Any]:
    entry = {"command": hook_line(setup, "cursor", line), "timeout": line.limit(setup), **line.extra}
    return {**entry, "failClosed": True} if line.is_gate else entry


class Windsurf(Editor):
    name = "windsurf"
    title = "Windsurf"
    programs = ("windsurf",)
    home = ("", ".codeium/windsurf")
    has_project_scope = False
    promises = (
        "refuses the tool call if the hook is missing or fails; its time limit is not documented; not tried"
    )

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        return [
            member(self.folder(setup.machine) / "mcp_config.json", ("mcpServers", SERVER), setup.server())
        ]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self.folder(setup.machine) / "hooks.json"
        return [
            item(
                path,
                ("hooks", line.event),
                {"command": hook_line(setup, "windsurf", line), "show_output": False},
            )
            for line in WINDSURF_HOOKS
        ]


_PATH = ("file_path", "path", "target_file", "filePath")
_OLD, _NEW = ("old_string", "oldString"), ("new_string", "newString")
_CONTENT = ("content", "contents", "file_text", "code_edit")


def _write_or_replace(input: Json) -> Work:
    """Cursor's Write stands for a whole file, for one replacement or for a list of them."""
    forms = [any(map(input.get, names)) for names in (("edits",), (*_NEW, *_OLD), _CONTENT)]
    if forms.count(True) > 1:
        raise ValueError("It has a new text in two forms, and only Cursor knows which one it obeys.")
    if isinstance(input.get("edits"), list):
        return replacements(_PATH, "edits", _OLD, _NEW)(input)
    if text(input, *_NEW) or text(input, *_OLD):
        return replacement(_PATH, _OLD, _NEW)(input)
    return whole_file(_PATH, _CONTENT)(input)


CURSOR_TOOLS: ToolTable = {
    **dict.fromkeys(("Shell", "Bash"), command("command", cwd=("working_directory", "cwd"))),
    **dict.fromkeys(("Write", "Edit", "StrReplace", "MultiEdit", "TabWrite"), _write_or_replace),
    "Delete": deletion(*_PATH),
    **dict.fromkeys(("Read", "Glob", "LS", "TabRead"), read(*_PATH)),
    "Grep": search(*_PATH),
    "SemanticSearch": read("target_directories"),
    "WebFetch": fetch("url"),
    "WebSearch": search_web,
    **dict.fromkeys(("AskQuestion", "Task", "TodoRead", "TodoWrite", "ReadLints"), harmless),
}


class CursorHooks(ClaudeShapedHooks):
    """Cursor."""

    name = "cursor"
    clock_seconds = 50.0
    tools: ClassVar[ToolTable] = CURSOR_TOOLS
    events: ClassVar[Mapping[str, HookKind]] = {
        "preToolUse": "before",
        "beforeShellExecution": "before",
        "beforeMCPExecution": "before",
        "beforeReadFile": "before",
        "postToolUse": "after",
        "postToolUseFailure": "after",
        "afterShellExecution": "after",
        "afterMCPExecution": "after",
        "sessionStart": "session_started",
        "sessionEnd": "session_ended",
        "beforeSubmitPrompt": "prompted",
        "stop": "stopped",
    }

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """Parse a payload: the events about a shell or a file name no tool."""
        payload = required_object(payload, "The payload")
        folder = next(iter(texts(payload, "workspace_roots")), "")
        session = text(payload, "conversation_id", "session_id")
        fields: Json = {
            **payload,
            "session_id": session,
            "cwd": text(payload, "cwd") or folder,
            **_tool_fields(payload),
        }
        return super().read(fields, environment)

    def mcp_work(self, tool: str, payload: Json) -> Work | None:
        """The program of a server is known in `beforeMCPExecution` only."""
        is_mcp_event = text(payload, "hook_event_name") == "beforeMCPExecution"
        if not (is_mcp_event or tool.startswith("MCP:")):
            return None
        server, _, name = tool.removeprefix("MCP:").rpartition(":")
        if is_mcp_event and _starts_our_server(text(payload, "command"), text(payload, "cwd")):
            return mcp(OUR_SERVER, name)
        return mcp(server or text(payload, "url", "command"), name, ours=False)

    def work(self, tool: str, input: Json, payload: Json) -> Work:
        """A server can call its tool Shell."""
        return self.mcp_work(tool, payload) or super().work(tool, input, payload)

    def output(self, payload: Json) -> str:
        """The text of the result. Cursor sends it as JSON text."""
        return text(payload, "tool_output", "output", "result_json", "error_message") or super().output(
            payload
        )

    def failed(self, payload: Json) -> bool:
        """Cursor has a separate event for failures."""
        return text(payload, "hook_event_name") == "postToolUseFailure" or super().failed(payload)

    def message(self, kind: HookKind, payload: Json) -> str:
        """How the turn ended."""
        return (
            text(payload, "error_message", "status") if kind == "stopped" else super().message(kind, payload)
        )

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """A permission, with the reason for the person and for the model."""
        if event.kind != "before" or verdict.effect == "pass":
            return HookAnswer()
        if verdict.effect == "deny":
            reason = verdict.reason or NO_REASON
            return print_json({"permission": "deny", "user_message": reason, "agent_message": reason})
        edited: Json = {} if verdict.input is None else {"updated_input": verdict.input}
        return print_json({"permission": "allow", **edited})


def _tool_fields(payload: Json) -> Json:
    """The fields of a tool call for the events that have others."""
    match text(payload, "hook_event_name"):
        case "beforeShellExecution" | "afterShellExecution":
            return {"tool_name": "Shell", "tool_input": {"command": payload.get("command")}}
        case "beforeReadFile":
            return {"tool_name": "Read", "tool_input": {"file_path": payload.get("file_path")}}
        case _:
            return {}


def _starts_our_server(line: str, cwd: str) -> bool:
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    return words[1:2] == ["mcp"] and is_our_program(words[0], cwd)


WINDSURF_EVENTS: Mapping[str, HookKind] = {
    "pre_run_command": "before",
    "pre_write_code": "before",
    "pre_read_code": "before",
    "pre_mcp_tool_use": "before",
    "post_run_command": "after",
    "post_write_code": "after",
    "post_mcp_tool_use": "after",
    "pre_user_prompt": "prompted",
    "post_cascade_response": "stopped",
}
WINDSURF_TOOLS: ToolTable = {
    "run_command": command("command_line", "command"),
    "write_code": _write_or_replace,
    "read_code": read("file_path"),
}


class WindsurfHooks:
    """Windsurf's Cascade."""

    name = "windsurf"
    clock_seconds = 25.0
    edits = "Windsurf does not take a changed input from a hook. Deny the call with the words that it should use instead."
    edit_notice = RUNS_EDITED

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """Parse a payload. Raises ValueError with a sentence if it is not Windsurf's."""
        payload = required_object(payload, "The payload")
        action = required_text(payload, "agent_action_name")
        kind = WINDSURF_EVENTS.get(action, "ignored")
        info = tool_input(payload, "tool_info") if kind == "before" else child(payload, "tool_info")
        tool = action.partition("_")[2] if kind in ("before", "after") else ""
        exit_code = whole_number(info, "exit_code")
        return HookEvent(
            kind=kind,
            session=text(payload, "trajectory_id", "execution_id"),
            cwd=text(info, "cwd") or text(payload, "cwd"),
            tool=tool,
            input=info if kind in ("before", "after") else {},
            call=text(payload, "execution_id"),
            work=_windsurf_work(tool, info) if kind == "before" else None,
            failed=kind == "after" and exit_code not in (None, 0),
            output=result_text(info.get("mcp_result") or info.get("output")) if kind == "after" else "",
            exit_code=exit_code if kind == "after" else None,
            message=text(info, "response") if kind == "stopped" else "",
        )

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """Exit status 2 with the reason on stderr, or nothing."""
        verdict = refuse_edit(event, verdict)
        if event.kind != "before" or verdict.effect != "deny":
            return HookAnswer()
        return HookAnswer(stderr=f"{verdict.reason or NO_REASON}\n", status=2)


def _windsurf_work(tool: str, info: Json) -> Work:
    if tool == "mcp_tool_use":
        return mcp(text(info, "mcp_server_name"), text(info, "mcp_tool_name"))
    return build_work(WINDSURF_TOOLS, tool, info) or Work(sort="other")
