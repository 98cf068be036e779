"""Gemini CLI and Qwen Code, which was made from it: MCP server and hooks in settings.json.

Gemini's own policy asks after an allow of the hook. `--single-question` writes a policy file that lets every tool pass. Where
the hooks are switched off, nobody is asked then, so that it is never written unasked, and `warnings` and `overrides` say so.

Gemini has different events and answers. It ignores Claude's `permissionDecision`: a denial in that form runs the tool.
An allow does not skip its own policy. A changed input is merged into the original, so that a field cannot be removed.

Qwen kept Gemini's tools and took over Claude's hook format. It runs the tool 60 s after the hook began, whatever time limit
is written, and does not apply the changed input of `PreToolUse`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from handrail.clients.claude import HOOKS as CLAUDE_HOOKS
from handrail.clients.claude import (
    NO_REASON,
    ClaudeShapedHooks,
    has_same_fields,
    print_json,
    refuse_edit,
)
from handrail.clients.client_facts import (
    SERVER,
    Client,
    HookLine,
    Machine,
    Setup,
    hook_line,
    hooks_off,
    item,
    member,
    own_file,
    read_value,
)
from handrail.clients.config_edit import as_list
from handrail.clients.hook_event import HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import child, required_text, stated_texts, text
from handrail.clients.hook_work import (
    ToolTable,
    changed_files,
    command,
    harmless,
    is_our_program,
    load_skill,
    mcp,
    mcp_from_name,
    read,
    read_resource,
    replacement,
    save_memory,
    search,
    search_web,
    start_subagent,
    whole_file,
)
from handrail.clients.pieces import ConfigPiece

GEMINI_HOOKS = (
    HookLine("BeforeTool", is_gate=True, has_matcher=True),
    HookLine("AfterTool", has_matcher=True),
    HookLine("BeforeAgent"),
    HookLine("AfterAgent"),
    HookLine("SessionStart"),
    HookLine("SessionEnd", seconds=10),
    HookLine("Notification"),
)
POLICY = """\
# Written by `handrail connect gemini --single-question`. Handrail's hook decides about every tool call; without this file
# Gemini CLI would ask a second time. Where hooks are switched off, nobody is asked. `handrail connect gemini` removes it.
[[rule]]
toolName = "*"
decision = "allow"
priority = 100
modes = ["default", "autoEdit", "yolo"]
"""
"""Not in plan mode, which must stay read-only."""


class Gemini(Client):
    name = "gemini"
    title = "Gemini CLI"
    programs = ("gemini",)
    tried = "0.61.0"
    has_single_question = True
    promises = (
        "refuses the tool call if the hook is missing or fails; runs it if the hook does not answer in a day, or is killed "
        "together with its shell; asks its own question as well, unless it was connected with --single-question"
    )

    def folder(self, machine: Machine) -> Path:
        return machine.folder("GEMINI_CLI_HOME", "") / ".gemini"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        """`trust`: our tools ask by themselves, so that Gemini must not ask a second time."""
        server = {**setup.server(), "trust": True}
        return [member(self.settings_file(setup), ("mcpServers", SERVER), server)]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self.settings_file(setup)
        groups = [item(path, ("hooks", line.event), _group(setup, self.name, line)) for line in GEMINI_HOOKS]
        policy = [own_file(self._policy_file(setup), POLICY)] if setup.is_single_question else []
        return [*groups, *policy]

    def warnings(self, setup: Setup) -> list[str]:
        sentence = (
            f"{self._policy_file(setup)} lets every tool pass: where Gemini's hooks are switched off, for example by "
            "hooksConfig in a project, nobody is asked at all."
        )
        return [sentence] if setup.is_single_question else []

    def overrides(self, setup: Setup) -> list[str]:
        files = (self.folder(setup.machine) / "settings.json", setup.project / ".gemini" / "settings.json")
        policy = self._policy_file(setup)
        unasked = f" Nobody is asked there, because {policy} lets tools pass." if policy.exists() else ""
        return [
            f"{file} switches the hooks off (hooksConfig).{unasked}"
            for file in dict.fromkeys(files)
            if read_value(file, ("hooksConfig", "enabled")) is False
            or SERVER in as_list(read_value(file, ("hooksConfig", "disabled")))
        ]

    def settings_file(self, setup: Setup) -> Path:
        return self.settings_folder(setup, ".gemini") / "settings.json"

    def _policy_file(self, setup: Setup) -> Path:
        return self.folder(setup.machine) / "policies" / "handrail.toml"


class Qwen(Client):
    name = "qwen"
    title = "Qwen Code"
    programs = ("qwen",)
    home = ("QWEN_HOME", ".qwen")
    tried = "0.24.4"
    promises = (
        "refuses the tool call if the hook is missing or fails; ends every hook after 60 s, before which Handrail refuses "
        "with the words to repeat the call"
    )

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        server = {**setup.server(), "trust": True}
        return [member(self.settings_file(setup), ("mcpServers", SERVER), server)]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self.settings_file(setup)
        return [item(path, ("hooks", line.event), _group(setup, self.name, line)) for line in CLAUDE_HOOKS]

    def overrides(self, setup: Setup) -> list[str]:
        files = (self.folder(setup.machine) / "settings.json", setup.project / ".qwen" / "settings.json")
        return [f"{file} has disableAllHooks: the hooks do not run there." for file in hooks_off(*files)]

    def settings_file(self, setup: Setup) -> Path:
        return self.settings_folder(setup, ".qwen") / "settings.json"


def _group(setup: Setup, client: str, line: HookLine) -> dict[str, Any]:
    """Time limits are in milliseconds."""
    command = hook_line(setup, client, line)
    return line.group(
        {"type": "command", "name": SERVER, "command": command, "timeout": line.limit(setup) * 1000}
    )


_FOLDER = ("dir_path", "path", "directory")
_URL = re.compile(r"https?://[^\s\"'<>()\[\]{}|\\^`]+")
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,3})$", re.MULTILINE)
_NO_EXIT_CODE = re.compile(
    r"^Signal: \d|^Exit Code: \(none\)|(running|moved) (in|to) (the )?background", re.MULTILINE
)


def _fetch_pages(input: Json) -> Work:
    """Gemini's tool finds the addresses in a prompt, Qwen's has a field."""
    urls = stated_texts(input, "url", "urls") or tuple(
        url.rstrip(".,;:!?") for url in _URL.findall(text(input, "prompt"))
    )
    if not urls:
        raise ValueError("The input names no address.")
    return Work(sort="fetch", urls=urls)


READS_MORE = "A skill gives the agent new instructions, and perhaps new folders to read."
_SHARED: ToolTable = {
    "run_shell_command": command("command", cwd=_FOLDER),
    "write_file": whole_file(("file_path",), ("content",)),
    "read_file": read("file_path", "absolute_path", "path"),
    "read_many_files": read("include", "paths"),
    "list_directory": read(*_FOLDER),
    "glob": read(*_FOLDER),
    "grep_search": search(*_FOLDER),
    "search_file_content": search(*_FOLDER),
    "web_fetch": _fetch_pages,
    "google_web_search": search_web,
    "web_search": search_web,
    "save_memory": save_memory,
    "read_mcp_resource": read_resource,
    **dict.fromkeys(("enter_plan_mode", "exit_plan_mode", "list_mcp_resources"), harmless),
}
TOOLS: ToolTable = {
    **_SHARED,
    "replace": replacement(("file_path",), ("old_string",), ("new_string",), every=("allow_multiple",)),
    "activate_skill": load_skill(READS_MORE),
    "get_internal_docs": harmless,
    **dict.fromkeys(
        (
            "ask_user", "complete_task", "invoke_agent", "list_background_processes", "read_background_output",
            "tracker_add_dependency", "tracker_create_task", "tracker_get_task", "tracker_list_tasks",
            "tracker_update_task", "tracker_visualize", "update_topic", "write_todos",
        ),
        harmless,
    ),
}  # fmt: skip
"""The built-in tools of Gemini CLI 0.61. The calls of a subagent reach the hook one by one."""

QWEN_TOOLS: ToolTable = {
    **_SHARED,
    "edit": replacement(("file_path",), ("old_string",), ("new_string",)),
    "notebook_edit": changed_files("notebook_path"),
    "monitor": command("command", cwd=_FOLDER),
    "zoom_image": read("file_path", "path"),
    "lsp": read("filePath", "file_path"),
    "skill": load_skill(READS_MORE),
    **dict.fromkeys(("agent", "task"), start_subagent),
    **dict.fromkeys(
        (
            "ask_user_question", "cron_delete", "cron_list", "get_goal", "list_agents", "loop_wakeup",
            "propose_goal", "report_findings", "request_shutdown", "send_message", "structured_output",
            "task_create", "task_list", "task_stop", "task_update", "team_plan_approval", "todo_write", "tool_search",
            "update_goal",
        ),
        harmless,
    ),
}  # fmt: skip
"""The built-in tools of Qwen Code 0.24. Others, such as exec, tool_call or workflow, ask."""


class _GeminiToolHooks(ClaudeShapedHooks):
    """What Gemini CLI and Qwen Code report about commands."""

    def failed(self, payload: Json) -> bool:
        """An error, or a command with an exit code that is not zero."""
        return super().failed(payload) or self.exit_code(text(payload, "tool_name"), payload) not in (None, 0)

    def output(self, payload: Json) -> str:
        """The text for the model, without the tags that Gemini puts around it."""
        return (
            super()
            .output(payload)
            .removeprefix("<untrusted_context>\n")
            .removesuffix("\n</untrusted_context>")
        )

    def exit_code(self, tool: str, payload: Json) -> int | None:
        """From the text for the model. Gemini names an exit code only if it is not zero."""
        output = self.output(payload)
        if tool != "run_shell_command" or not output:
            return None
        codes = _EXIT_CODE.findall(output)
        return int(codes[-1]) if codes else None if _NO_EXIT_CODE.search(output) else 0


class GeminiHooks(_GeminiToolHooks):
    """Gemini CLI. `handrail connect` writes a time limit of 86,400,000 ms."""

    name = "gemini"
    clock_seconds = 86_000.0
    edit_notice = "A hook changed this input. Gemini CLI says so itself, and not who did it or why."
    tools: ClassVar[ToolTable] = TOOLS
    events: ClassVar[Mapping[str, HookKind]] = {
        "BeforeTool": "before",
        "AfterTool": "after",
        "SessionStart": "session_started",
        "SessionEnd": "session_ended",
        "BeforeAgent": "prompted",
        "AfterAgent": "stopped",
        "Notification": "notified",
    }

    def mcp_work(self, tool: str, payload: Json) -> Work | None:
        """The payload names the server and its program: the name of a tool alone is ambiguous."""
        context = child(payload, "mcp_context")
        if not context:
            work = mcp_from_name(tool, prefix="mcp_", separator="_")
            return work and mcp(work.server, work.server_tool, ours=False)
        # That it may be ours is all that a path tells: a program with our name can lie anywhere.
        ours = None if is_our_program(text(context, "command"), text(payload, "cwd")) else False
        return mcp(required_text(context, "server_name"), text(context, "tool_name") or tool, ours=ours)

    def message(self, kind: HookKind, payload: Json) -> str:
        """The text of a notification, or the last words of a turn."""
        return text(payload, "prompt_response") if kind == "stopped" else super().message(kind, payload)

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in Gemini's format."""
        if not has_same_fields(event, verdict):
            verdict = refuse_edit(event, verdict)
        if event.kind != "before" or verdict.effect == "pass":
            return HookAnswer()
        if verdict.effect == "deny":
            return print_json({"decision": "deny", "reason": verdict.reason or NO_REASON})
        if verdict.input is None:
            return print_json({"decision": "allow"})
        output: Json = {"hookEventName": "BeforeTool", "tool_input": verdict.input}
        return print_json({"decision": "allow", "hookSpecificOutput": output})


class QwenHooks(_GeminiToolHooks):
    """Qwen Code."""

    name = "qwen"
    clock_seconds = 50.0
    edits = "Qwen Code does not take a changed input from a hook. Deny the call with the words that it should use instead."
    tools: ClassVar[ToolTable] = QWEN_TOOLS

    def work(self, tool: str, input: Json, payload: Json) -> Work:
        """`tool_call` calls a tool that Qwen did not list at the start."""
        inner = text(input, "name") if tool == "tool_call" else ""
        if not inner or inner == "tool_call":
            return super().work(tool, input, payload)
        return super().work(inner, child(input, "arguments"), payload)

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in Claude's format."""
        return super().answer(event, refuse_edit(event, verdict))
