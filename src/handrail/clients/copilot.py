"""GitHub Copilot CLI: a hook file of our own, and the MCP server in mcp-config.json.

`handrail connect copilot` registers the events in PascalCase (`PreToolUse`): Copilot then sends Claude's payload, with the
name of the event. With `preToolUse` the payload does not name its event, and Claude's denial runs the tool; so an answer
has the fields of both forms. `PermissionRequest` is not needed, because an allow of `PreToolUse` already skips Copilot's
own question, about our own tools, too; its payload names other tools, so that the person would be asked twice. The time limit is
`timeoutSec: 86400` for Copilot and, beside it, `timeout: 86400` for VS Code, which else ends the hook after 30 s.

In Claude's payload Copilot uses Claude's names of tools, but its own names of the inputs.

VS Code loads `~/.copilot/hooks` and `~/.claude/settings.json`, too, so that its tools also arrive under those names.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from handrail.clients.claude import (
    EVENTS,
    NO_REASON,
    ClaudeShapedHooks,
    claude_answer,
    has_same_fields,
    print_json,
    refuse_edit,
)
from handrail.clients.client_facts import (
    SERVER,
    SESSION_LINES,
    Client,
    HookLine,
    Setup,
    hook_line,
    member,
    own_file,
)
from handrail.clients.hook_event import HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import (
    child,
    required_object,
    required_text,
    text,
)
from handrail.clients.hook_work import (
    ToolTable,
    changed_files,
    command,
    fetch,
    harmless,
    load_skill,
    mcp_from_name,
    read,
    replacement,
    save_memory,
    search,
    search_web,
    typed_input,
    whole_file,
)
from handrail.clients.pieces import ConfigPiece
from handrail.clients.vscode_tools import CONTENT, NEW, OLD, PATH, apply_patch, vscode_work

HOOKS = (
    HookLine("PreToolUse", is_gate=True),
    HookLine("PostToolUse"),
    *SESSION_LINES,
    HookLine("Notification"),
)


class Copilot(Client):
    name = "copilot"
    title = "GitHub Copilot CLI"
    programs = ("copilot",)
    home = ("COPILOT_HOME", ".copilot")
    tried = "1.0.102"
    has_project_scope = False
    promises = "refuses the tool call if the hook is missing, fails or is killed; runs it if the hook does not answer in a day"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        server = {"tools": ["*"], "type": "local", **setup.server()}
        return [member(self.folder(setup.machine) / "mcp-config.json", ("mcpServers", SERVER), server)]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        hooks = {line.event: [_hook(setup, line)] for line in HOOKS}
        text = json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"
        return [own_file(self.folder(setup.machine) / "hooks" / "handrail.json", text)]


def _hook(setup: Setup, line: HookLine) -> dict[str, Any]:
    """Copilot reads `timeoutSec`; VS Code, which loads the same file, reads `timeout`."""
    limits = {"timeoutSec": line.limit(setup), "timeout": line.limit(setup)}
    return {"type": "command", "bash": hook_line(setup, "copilot", line), **limits}


def _edit_with_command(input: Json) -> Work:
    """`str_replace_editor`: the command names the action."""
    builders: ToolTable = {
        "view": read(*PATH),
        "create": whole_file(PATH, CONTENT),
        "str_replace": replacement(PATH, OLD, NEW),
    }
    verb = text(input, "command")
    if verb not in builders:
        raise ValueError(f"The command {verb!r} is unknown.")
    return builders[verb](input)


def _write_or_edit(input: Json) -> Work:
    """Claude's name Edit stands for several of Copilot's tools."""
    if text(input, "command"):
        return _edit_with_command(input)
    return replacement(PATH, OLD, NEW)(input)


def _query_database(input: Json) -> Work:
    """SQL on the database of the session, which holds Copilot's to-do list."""
    if re.search(
        r"(?i)\b(attach|vacuum|pragma|load_extension|readfile|writefile|edit)\b",
        required_text(input, "query"),
    ):
        return Work(sort="other", warning="The query may reach files outside of the session's database.")
    return Work(sort="harmless")


def _show_edit(input: Json) -> Work:
    """A request for permission shows an edit as a diff."""
    return changed_files(*PATH)(input) if "diff" in input else _write_or_edit(input)


_TAIL = 200
"""Characters at the end of a result in which the exit code is: bounds the search in a hostile output."""
_EXIT_CODE = re.compile(r"<(?:shellId: \S+|command) [^>\n]*exit code (-?\d{1,3})>\s*\Z")
_HARMLESS = (
    "Agent", "AskUserQuestion", "BashOutput", "ExitPlanMode", "KillShell", "Task", "TodoWrite", "ask_user", "exit_plan_mode",
    "fetch_copilot_cli_documentation", "list_agents", "list_bash", "read_agent", "read_bash", "report_intent", "stop_bash",
    "task", "task_complete", "update_todo", "write_agent",
)  # fmt: skip

TOOLS: ToolTable = {
    **dict.fromkeys(("bash", "Bash"), command("command")),
    "write_bash": typed_input("input"),
    **dict.fromkeys(("create", "Write"), whole_file(PATH, CONTENT)),
    **dict.fromkeys(("edit", "Edit"), _show_edit),
    "str_replace_editor": _edit_with_command,
    "apply_patch": apply_patch,
    **dict.fromkeys(("view", "Read", "show_file", "view_image"), read(*PATH)),
    **dict.fromkeys(("glob", "Glob", "LS", "lsp"), read("path", "paths", "file")),
    **dict.fromkeys(("grep", "Grep", "rg"), search("path", "paths", "file")),
    **dict.fromkeys(("web_fetch", "WebFetch"), fetch("url")),
    **dict.fromkeys(("web_search", "WebSearch"), search_web),
    **dict.fromkeys(("skill", "Skill"), load_skill()),
    "store_memory": save_memory,
    **dict.fromkeys(("sql", "session_store_sql"), _query_database),
    **dict.fromkeys(_HARMLESS, harmless),
}
"""The built-in tools of Copilot CLI 1.0, by its own names and by Claude's."""


class CopilotHooks(ClaudeShapedHooks):
    """GitHub Copilot CLI."""

    name = "copilot"
    clock_seconds = 86_000.0
    tools: ClassVar[ToolTable] = TOOLS
    event_fields: ClassVar[tuple[str, ...]] = ("hook_event_name", "hookEventName")
    events: ClassVar[Mapping[str, HookKind]] = {
        **EVENTS,
        "preToolUse": "before",
        "postToolUse": "after",
        "permissionRequest": "permission",
        "ErrorOccurred": "stopped",
    }

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """The payloads of `preToolUse` and `postToolUse` have other names of fields, and no name of the event.

        A subagent has a separate session, which names that of its parent.
        """
        payload = required_object(payload, "The payload")
        fields = {**_claude_fields(payload), **payload}
        session = text(fields, "parent_agent_id", "session_id")
        return super().read({**fields, "session_id": session}, environment)

    def work(self, tool: str, input: Json, payload: Json) -> Work:
        """Copilot's tools, then those of VS Code, which runs the same hook files."""
        work = super().work(tool, input, payload)
        return vscode_work(tool, input) or work if work == Work(sort="other") else work

    def mcp_work(self, tool: str, payload: Json) -> Work | None:
        """Copilot calls a tool of an MCP server `SERVER-TOOL`, or `SERVER/TOOL` in a request for permission."""
        forms = (("mcp__", "__"), ("", "/"), ("", "-"))
        works = (mcp_from_name(tool, prefix=prefix, separator=separator) for prefix, separator in forms)
        return next((work for work in works if work is not None), None)

    def failed(self, payload: Json) -> bool:
        """Copilot reports the type of a result. A command that fails is a success there."""
        result = child(payload, "tool_result", "tool_response")
        has_failed = text(result, "result_type", "resultType") in ("failure", "denied")
        return has_failed or self.exit_code("", payload) not in (None, 0) or super().failed(payload)

    def exit_code(self, tool: str, payload: Json) -> int | None:
        """From the last line of the text for the model."""
        match = _EXIT_CODE.search(self.output(payload)[-_TAIL:])
        return int(match[1]) if match else None

    def output(self, payload: Json) -> str:
        """The text of the result for the model."""
        result = child(payload, "tool_result")
        return text(result, "text_result_for_llm", "textResultForLlm") or super().output(payload)

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in Claude's format and in Copilot's own.

        Our own tools are allowed, because Copilot would ask its user about them, or refuse them without one.
        VS Code runs the original if a changed input does not fit the tool's schema.
        """
        verdict = verdict if has_same_fields(event, verdict) else refuse_edit(event, verdict)
        if event.kind == "before" and event.work is not None and event.work.ours and verdict.effect == "pass":
            verdict = Verdict(effect="allow")
        answer = claude_answer(event, verdict)
        return HookAnswer() if answer is None else print_json({**_own_answer(event, verdict), **answer})


def _own_answer(event: HookEvent, verdict: Verdict) -> Json:
    reason = verdict.reason or NO_REASON
    if event.kind == "permission":
        return {"behavior": "allow"} if verdict.effect == "allow" else {"behavior": "deny", "message": reason}
    if verdict.effect == "deny":
        return {"permissionDecision": "deny", "permissionDecisionReason": reason}
    edited: Json = {} if verdict.input is None else {"modifiedArgs": verdict.input}
    return {"permissionDecision": "allow", **edited}


def _claude_fields(payload: Json) -> Json:
    names = {
        "sessionId": "session_id",
        "toolName": "tool_name",
        "toolArgs": "tool_input",
        "toolInput": "tool_input",
        "hookName": "hook_event_name",
        "toolResult": "tool_result",
    }
    fields: Json = {claude: payload[name] for name, claude in names.items() if name in payload}
    if "tool_name" in fields and "hook_event_name" not in fields:
        fields["hook_event_name"] = "postToolUse" if "tool_result" in fields else "preToolUse"
    return fields
