"""Claude Code: hooks in settings.json, the MCP server through `claude mcp add`, hooks for the machine in managed settings.

Claude rewrites ~/.claude.json while it runs, so that only its own command changes that file. `onFailure: "block"` refuses a
tool call whose hook fails or takes too long; versions before it get a line for the shell that refuses, except in time.

Other clients took over its formats of payloads and answers (`ClaudeShapedHooks`). A payload names its event in
`hook_event_name`. A decision goes to stdout as JSON with exit status 0: a text that is not JSON counts as no opinion, even
where the hook is configured to block on failure.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from handrail.clients.client_facts import (
    SERVER,
    SESSION_LINES,
    STATUS,
    Client,
    HookLine,
    Machine,
    Setup,
    find_json_fault,
    hook_line,
    hooks_off,
    is_older,
    item,
    member,
    read_value,
)
from handrail.clients.hook_event import RUNS_EDITED, HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import (
    child,
    flag,
    required_object,
    required_text,
    result_text,
    text,
    tool_input,
    whole_number,
)
from handrail.clients.hook_work import (
    ToolTable,
    build_work,
    changed_files,
    command,
    fetch,
    harmless,
    load_skill,
    mcp,
    mcp_from_name,
    read,
    read_resource,
    replacement,
    replacements,
    search,
    search_web,
    start_subagent,
    whole_file,
)
from handrail.clients.pieces import ConfigPiece
from handrail.clients.vscode_tools import vscode_work

HOOKS = (
    HookLine("PreToolUse", is_gate=True, has_matcher=True),
    HookLine("PermissionRequest", is_question=True, has_matcher=True),
    HookLine("PostToolUse", has_matcher=True),
    HookLine("PostToolUseFailure", has_matcher=True),
    HookLine("Notification"),
    *SESSION_LINES,
)
ON_FAILURE = "2.1.325"
"""The oldest version that is known to have `onFailure`; 2.1.197 ignores it without a word."""


class Claude(Client):
    name = "claude"
    title = "Claude Code"
    programs = ("claude",)
    home = ("CLAUDE_CONFIG_DIR", ".claude")
    tried = "2.1.325"
    promises = "refuses the tool call if the hook is missing, fails, is killed or takes too long"

    def describe_promise(self, version: str) -> str:
        """An older version has no `onFailure`."""
        if version and not is_older(version, ON_FAILURE):
            return self.promises
        return f"{self.promises}; before {ON_FAILURE} it runs the tool if the hook does not answer in a day"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        environment = setup.launcher.environment
        server = {"type": "stdio", **setup.server(), "env": environment}
        pointer = ("mcpServers", SERVER)
        if setup.scope == "project":
            return [member(setup.project / ".mcp.json", pointer, server)]
        file = self._state_file(setup.machine)
        if setup.program is None:
            return [member(file, pointer, server)]
        variables = [part for name, value in environment.items() for part in ("-e", f"{name}={value}")]
        mcp, scope = (setup.program, "mcp"), ("--scope", "user")
        add = (*mcp, "add", *scope, SERVER, *variables, "--", setup.launcher.path, "mcp")
        return [member(file, pointer, server, add=add, remove=(*mcp, "remove", SERVER, *scope))]

    def removal_command(self, setup: Setup, server: str) -> tuple[str, ...]:
        if setup.program is None or setup.scope == "project" or server.startswith("-"):
            return ()
        return (setup.program, "mcp", "remove", server, "--scope", "user")

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self.settings_file(setup)
        return [item(path, ("hooks", line.event), self._group(setup, line)) for line in HOOKS]

    def settings_file(self, setup: Setup) -> Path:
        if setup.is_locked:
            return managed_file(setup.machine)
        return self.settings_folder(setup, ".claude") / "settings.json"

    def ignored_files(self, setup: Setup) -> list[str]:
        """Claude reads plain JSON, and nothing of a file with comments or trailing commas."""
        paths = dict.fromkeys(piece.path for piece in self.pieces(setup))
        return [
            f"{path} is not plain JSON ({fault}): Claude Code ignores all of it, hooks included. Remove comments and trailing "
            "commas."
            for path in paths
            if (fault := find_json_fault(path))
        ]

    def overrides(self, setup: Setup) -> list[str]:
        folder = setup.project / ".claude"
        own, managed = self.folder(setup.machine) / "settings.json", managed_file(setup.machine)
        if setup.is_locked:
            off = [
                f"{file} has disableAllHooks: no hook runs on this machine." for file in hooks_off(managed)
            ]
            return [*self.ignored_files(setup), *off]
        switched = [*self.ignored_files(setup), *self._switched_off(own, folder)]
        if read_value(managed, ("allowManagedHooksOnly",)) is True:
            switched.append(f"{managed} allows only its own hooks.")
        return switched

    def _switched_off(self, own: Path, folder: Path) -> list[str]:
        return [
            f"{file} has disableAllHooks: the hooks do not run there. Remove it, or use `handrail connect claude --locked`: "
            "no project can switch those hooks off."
            for file in hooks_off(own, folder / "settings.json", folder / "settings.local.json")
        ]

    def _state_file(self, machine: Machine) -> Path:
        named = machine.environ.get("CLAUDE_CONFIG_DIR")
        return (self.folder(machine) if named else machine.home) / ".claude.json"

    def _group(self, setup: Setup, line: HookLine) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "type": "command",
            **self._command(setup, line),
            "timeout": line.limit(setup),
        }
        if line.is_gate and not is_older(setup.version, ON_FAILURE):
            entry |= {"onFailure": "block"}
        if line.waits:
            entry |= {"statusMessage": STATUS}
        return line.group(entry)

    def _command(self, setup: Setup, line: HookLine) -> dict[str, Any]:
        """Program and arguments without a shell, where `onFailure` is known to work; else a shell line that refuses without Handrail."""
        if setup.version and not is_older(setup.version, ON_FAILURE):
            program, *arguments = setup.launcher.argv(*setup.hook("claude", waits=line.waits))
            return {"command": program, "args": arguments}
        return {"command": hook_line(setup, "claude", line)}


def managed_file(machine: Machine) -> Path:
    """Settings of an administrator, which no project and no option switches off."""
    folder = "Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "etc/claude-code"
    return machine.root / folder / "managed-settings.json"


EVENTS: Mapping[str, HookKind] = {
    "PreToolUse": "before",
    "PermissionRequest": "permission",
    "PostToolUse": "after",
    "PostToolUseFailure": "after",
    "SessionStart": "session_started",
    "SessionEnd": "session_ended",
    "UserPromptSubmit": "prompted",
    "Stop": "stopped",
    "StopFailure": "stopped",
    "Notification": "notified",
}
NO_REASON = "Handrail refused this call."
"""A denial without a reason runs the tool in some clients."""

EDITED = "A person changed this call before allowing it. Make exactly this call instead:"


def print_json(answer: Json) -> HookAnswer:
    """An answer on stdout. ASCII only, so that no locale can break it."""
    return HookAnswer(stdout=json.dumps(answer) + "\n")


def claude_answer(event: HookEvent, verdict: Verdict) -> Json | None:
    """Claude's answer to `before` and `permission`, or None for no opinion."""
    if verdict.effect == "pass":
        return None
    if event.kind == "before":
        return _specific("PreToolUse", _permission_decision(verdict))
    if event.kind == "permission":
        return _specific("PermissionRequest", {"decision": _behavior(verdict)})
    return None


def _permission_decision(verdict: Verdict) -> Json:
    reason = verdict.reason or (NO_REASON if verdict.effect == "deny" else "")
    decision: Json = {"permissionDecision": verdict.effect}
    if reason:
        decision["permissionDecisionReason"] = reason
    if verdict.effect == "allow" and verdict.input is not None:
        decision["updatedInput"] = verdict.input
    return decision


def _with_feedback(answer: Json, verdict: Verdict) -> Json:
    """The answer with words for the model, which Claude adds to the result of the call."""
    output = child(answer, "hookSpecificOutput")
    if verdict.effect != "allow" or not verdict.feedback or "permissionDecision" not in output:
        return answer
    return {**answer, "hookSpecificOutput": {**output, "additionalContext": verdict.feedback}}


def _behavior(verdict: Verdict) -> Json:
    if verdict.effect == "deny":
        return {"behavior": "deny", "message": verdict.reason or NO_REASON}
    return (
        {"behavior": "allow"}
        if verdict.input is None
        else {"behavior": "allow", "updatedInput": verdict.input}
    )


def _specific(name: str, output: Json) -> Json:
    return {"hookSpecificOutput": {"hookEventName": name, **output}}


def refuse_edit(event: HookEvent, verdict: Verdict) -> Verdict:
    """For a client that cannot take a changed input: a denial that names the call to make instead."""
    if verdict.effect != "allow" or verdict.input is None:
        return verdict
    if verdict.input == event.input:
        return Verdict(effect="allow", reason=verdict.reason)
    return Verdict(effect="deny", reason=f"{EDITED} {_shown_input(event, verdict.input)}")


def has_same_fields(event: HookEvent, verdict: Verdict) -> bool:
    """Whether a changed input has the fields of the original, with values of the same types."""
    edited = event.input if verdict.input is None else verdict.input
    return {name: type(value) for name, value in edited.items()} == {
        name: type(value) for name, value in event.input.items()
    }


def _shown_input(event: HookEvent, edited: Json) -> str:
    command = edited.get("command")
    if isinstance(command, str) and {**event.input, "command": command} == edited:
        return command
    return json.dumps(edited, ensure_ascii=False)


class ClaudeShapedHooks:
    """Payloads and answers in Claude's format. A client overrides what differs."""

    name = ""
    clock_seconds = 0.0
    edits = ""
    edit_notice = RUNS_EDITED
    events: ClassVar[Mapping[str, HookKind]] = EVENTS
    tools: ClassVar[ToolTable] = {}
    event_fields: ClassVar[tuple[str, ...]] = ("hook_event_name",)
    call_fields: ClassVar[tuple[str, ...]] = ("tool_use_id", "tool_call_id")

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """Parse a payload. Raises ValueError with a sentence if it is not this client's."""
        payload = required_object(payload, "The payload")
        kind = self.events.get(required_text(payload, *self.event_fields), "ignored")
        subagent = text(payload, "agent_id")
        if subagent and kind == "stopped":
            kind = "ignored"  # the session goes on
        is_question = kind in ("before", "permission")
        tool = required_text(payload, "tool_name") if is_question else text(payload, "tool_name")
        if is_question and not tool:
            raise ValueError("The field tool_name is empty.")
        is_after = kind == "after"
        arguments = tool_input(payload, "tool_input") if is_question or is_after else {}
        return HookEvent(
            kind=kind,
            session=text(payload, "session_id"),
            cwd=text(payload, "cwd"),
            transcript=text(payload, "transcript_path"),
            tool=tool,
            input=arguments,
            call=text(payload, *self.call_fields),
            subagent=subagent,
            work=self.work(tool, arguments, payload) if is_question else None,
            failed=is_after and self.failed(payload),
            output=self.output(payload) if is_after else "",
            exit_code=self.exit_code(tool, payload) if is_after else None,
            mode=text(payload, "permission_mode"),
            message=self.message(kind, payload),
        )

    def work(self, tool: str, input: Json, payload: Json) -> Work:
        """What the call would do."""
        return build_work(self.tools, tool, input) or self.mcp_work(tool, payload) or Work(sort="other")

    def mcp_work(self, tool: str, payload: Json) -> Work | None:
        """The work of a call to an MCP server, or None."""
        return mcp_from_name(tool)

    def failed(self, payload: Json) -> bool:
        """Whether the call ended with an error."""
        if text(payload, "hook_event_name") == "PostToolUseFailure" or "error" in payload:
            return True
        response = child(payload, "tool_response")
        return bool(response.get("error")) or flag(response, "is_error", "isError", "interrupted")

    def output(self, payload: Json) -> str:
        """The text of the result."""
        return result_text(payload.get("tool_response")) or result_text(payload.get("error"))

    def exit_code(self, tool: str, payload: Json) -> int | None:
        """The exit code of a command, if the payload has it."""
        return whole_number(child(payload, "tool_response"), "exit_code", "exitCode")

    def message(self, kind: HookKind, payload: Json) -> str:
        """The text of a notification, or the last words of a turn."""
        if kind == "notified":
            return text(payload, "message", "title")
        return text(payload, "last_assistant_message", "error") if kind == "stopped" else ""

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in the client's format."""
        answer = claude_answer(event, verdict)
        return HookAnswer() if answer is None else print_json(answer)


def _run_command(input: Json) -> Work:
    work = command("command")(input)
    if not flag(input, "dangerouslyDisableSandbox"):
        return work
    return Work(
        sort="command", commands=work.commands, warning="Claude Code would run this outside of its sandbox."
    )


def _monitor(input: Json) -> Work:
    """A command or a WebSocket whose output the agent follows."""
    socket = child(input, "ws")
    return fetch("url")(socket) if socket else command("command")(input)


RUNS_COMMANDS = "A skill can contain commands that Claude Code runs without asking its hooks."
TOOLS: ToolTable = {
    "Bash": _run_command,
    "Monitor": _monitor,
    "Edit": replacement(("file_path",), ("old_string",), ("new_string",)),
    "MultiEdit": replacements(("file_path",), "edits", ("old_string",), ("new_string",)),
    "Write": whole_file(("file_path",), ("content",)),
    "NotebookEdit": changed_files("notebook_path"),
    "Read": read("file_path"),
    "NotebookRead": read("notebook_path"),
    "Glob": read("path"),
    "Grep": search("path"),
    "LS": read("path"),
    "LSP": read("filePath", "file_path"),
    "WebFetch": fetch("url"),
    "WebSearch": search_web,
    "ReadMcpResourceTool": read_resource,
    "ReadMcpResourceDirTool": read_resource,
    "Agent": start_subagent,
    "Task": start_subagent,
    "Skill": load_skill(RUNS_COMMANDS),
    "SlashCommand": load_skill(RUNS_COMMANDS),
    **dict.fromkeys(
        (
            "AgentOutput", "AskUserQuestion", "BashOutput", "CronDelete", "CronList", "EnterPlanMode", "ExitPlanMode",
            "KillBash", "KillShell", "ListAgents", "ListMcpResourcesTool", "PushNotification", "ReadNotifications",
            "RefreshMcpTools", "ReportFindings", "ScheduleWakeup", "SendMessage", "SendUserMessage", "Sleep",
            "StructuredOutput", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate",
            "TodoRead", "TodoWrite", "ToolSearch", "WaitForMcpServers",
        ),
        harmless,
    ),
}  # fmt: skip
"""The built-in tools of Claude Code 2.1. Others, such as REPL or RemoteTrigger, ask."""
ASKS_ITS_USER = frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"})
"""Tools that are a question to the user: an allow of ours would answer it in the user's place."""
TRUSTED_SOURCES = frozenset({"user", "local", "managed", "enterprise"})
"""Where the configuration of an MCP server may come from, if it is ours. A project or a plugin can name a server handrail."""


class ClaudeHooks(ClaudeShapedHooks):
    """Claude Code. `handrail connect` writes a time limit of 86,400 s and `onFailure: block`."""

    name = "claude"
    clock_seconds = 86_000.0
    edit_notice = ""
    tools: ClassVar[ToolTable] = TOOLS

    def work(self, tool: str, input: Json, payload: Json) -> Work:
        """Claude's tools, then those of VS Code, which runs Claude's hook files."""
        work = super().work(tool, input, payload)
        return vscode_work(tool, input) or work if work == Work(sort="other") else work

    def mcp_work(self, tool: str, payload: Json) -> Work | None:
        """A server is ours by its name and by the place of its configuration."""
        work = mcp_from_name(tool)
        server = child(payload, "mcp_server")
        if work is None or not server:
            return work
        name = text(server, "name") or work.server
        trusted = text(server, "source") in TRUSTED_SOURCES
        return mcp(name, tool.removeprefix(f"mcp__{name}__") if trusted else work.server_tool, ours=trusted)

    def output(self, payload: Json) -> str:
        """The text of the result. Claude repeats whole files there: what changed is read from the disk."""
        response = child(payload, "tool_response")
        if "structuredPatch" in response:
            return text(response, "filePath")
        return text(child(response, "file"), "content") or super().output(payload)

    def exit_code(self, tool: str, payload: Json) -> int | None:
        """A command that fails is reported as an error that begins with its exit code."""
        if tool != "Bash":
            return None
        match = re.match(r"Exit code (\d{1,3})\b", text(payload, "error"))
        if match:
            return int(match[1])
        response = child(payload, "tool_response")
        ended = (
            bool(response) and not text(response, "backgroundTaskId") and not flag(response, "interrupted")
        )
        return 0 if ended and "error" not in payload else None

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in Claude's format."""
        if event.tool in ASKS_ITS_USER and verdict.effect == "allow":
            return HookAnswer()
        answer = claude_answer(event, verdict)
        return HookAnswer() if answer is None else print_json(_with_feedback(answer, verdict))
