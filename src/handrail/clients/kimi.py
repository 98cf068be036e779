"""Kimi Code and goose: hooks close to Claude's format, with less to answer.

Kimi reads `[[hooks]]` strictly: an unknown key, or a time limit above 600 s, switches all hooks off. It takes a denial and
nothing else, and reports `PermissionRequest` without waiting for an answer, so that it is a notification here.

goose reads hooks of plugin folders, and its MCP servers ("extensions") from YAML. It names the event in `event`. It takes
`{"decision": "block"}`, and only an empty output or `{"decision": "allow"}` counts as an allow. `handrail connect` writes a
time limit of a day and `"on_failure": "block"`, and no matcher: the matcher is a regular expression, and `*` is none, so
that goose would skip the rule.
"""

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from handrail.clients.claude import EVENTS, NO_REASON, ClaudeShapedHooks, print_json, refuse_edit
from handrail.clients.client_facts import (
    SERVER,
    SESSION_LINES,
    Client,
    HookLine,
    Machine,
    Setup,
    hook_line,
    item,
    member,
    own_file,
    read_value,
)
from handrail.clients.config_edit import as_list, is_object
from handrail.clients.hook_event import Edit, HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import child, required_object, required_text, result_text, text
from handrail.clients.hook_work import (
    ToolTable,
    command,
    fetch,
    harmless,
    load_skill,
    mcp_from_name,
    read,
    replacement,
    search,
    search_web,
    whole_file,
)
from handrail.clients.pieces import ConfigPiece

REPORTS = ("PostToolUse", "PostToolUseFailure")
"""Events whose hooks Kimi does not wait for. Right after the model's last words it sends SIGTERM to the process group of one
that still runs, and SIGKILL a tenth of a second later."""
KEEP_ON = "trap '' TERM; "
"""Before the command of a report: the shell ignores SIGTERM, and the hook inherits that."""
SETSID = shutil.which("setsid", path=os.defpath) or ""
"""Takes a report out of the process group, and so away from the SIGKILL. Empty where the system has none, as on macOS."""
LIMIT_SECONDS = 590
"""Below the 600 s above which Kimi ignores all hooks."""
KIMI_HOOKS = (
    HookLine("PreToolUse", is_gate=True, has_matcher=True),
    HookLine("PostToolUse", has_matcher=True),
    HookLine("PostToolUseFailure", has_matcher=True),
    HookLine("Notification"),
    *SESSION_LINES,
)
GOOSE_HOOKS = (
    HookLine("PreToolUse", is_gate=True),
    HookLine("PostToolUse"),
    HookLine("PostToolUseFailure"),
    *SESSION_LINES,
)


class Kimi(Client):
    name = "kimi"
    title = "Kimi Code"
    programs = ("kimi",)
    home = ("KIMI_CODE_HOME", ".kimi-code")
    tried = "2.1.0"
    has_project_scope = False
    promises = (
        "refuses the tool call if the hook is missing, fails or is killed; ends every hook after 590 s, before which "
        "Handrail refuses with the words to repeat the call; asks its own question as well"
    )

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        return [member(self.folder(setup.machine) / "mcp.json", ("mcpServers", SERVER), setup.server())]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self.folder(setup.machine) / "config.toml"
        return [item(path, ("hooks",), _kimi_hook(setup, line), "toml") for line in KIMI_HOOKS]

    def overrides(self, setup: Setup) -> list[str]:
        path = self.folder(setup.machine) / "config.toml"
        hooks = read_value(path, ("hooks",), "toml")
        bad = [hook for hook in as_list(hooks) if not _is_valid(hook)]
        return [
            f"Kimi ignores all hooks in {path}, because of this one: {json.dumps(each)}" for each in bad[:1]
        ]


def _kimi_hook(setup: Setup, line: HookLine) -> dict[str, Any]:
    command = _report_line(setup) if line.event in REPORTS else hook_line(setup, "kimi", line)
    matcher = {"matcher": ""} if line.has_matcher else {}
    return {"event": line.event, **matcher, "command": command, "timeout": line.limit(setup, LIMIT_SECONDS)}


def _report_line(setup: Setup) -> str:
    program = [*filter(None, (SETSID,)), *setup.launcher.argv(*setup.hook("kimi", waits=False))]
    return f"{KEEP_ON}{shlex.join(program)} || true"


def _is_valid(hook: Any) -> bool:
    if not is_object(hook) or not {*hook} <= {"event", "matcher", "command", "timeout"}:
        return False
    limit = hook.get("timeout", 1)
    return isinstance(limit, int) and 1 <= limit <= 600


class Goose(Client):
    name = "goose"
    title = "goose"
    programs = ("goose",)
    needs = "1.38"
    has_project_scope = False
    promises = "is told to refuse the tool call if the hook fails; not tried with the program itself"

    def folder(self, machine: Machine) -> Path:
        return machine.config / "goose"

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        extension = {
            "enabled": True,
            "type": "stdio",
            "name": SERVER,
            "cmd": setup.launcher.path,
            "args": ["mcp"],
            "timeout": 300,
        }
        if setup.launcher.environment:  # a member of scalars only: the home goes through env
            program, *arguments = setup.launcher.argv("mcp")
            extension |= {"cmd": program, "args": arguments}
        return [member(self.folder(setup.machine) / "config.yaml", ("extensions", SERVER), extension, "yaml")]

    def overrides(self, setup: Setup) -> list[str]:
        """Read from goose's source: the first plugin of a name counts, and that of a project comes first."""
        own, user = _goose_plugin(setup.machine.home), self.folder(setup.machine)
        project = setup.project / ".config" / "goose"
        files = (user / "settings.json", project / "settings.json", project / "settings.local.json")
        off = [
            f"{file} has {SERVER} in disabledPlugins: the hooks do not run there."
            for file in dict.fromkeys(files)
            if SERVER in as_list(read_value(file, ("disabledPlugins",)))
        ]
        if "enabled: false" in as_list(read_value(user / "config.yaml", ("plugins", str(own)), "yaml")):
            off.append(f"{user / 'config.yaml'} switches the plugin {own} off.")
        shadow = _goose_plugin(setup.project)
        if shadow != own and shadow.is_dir():
            off.append(
                f"{shadow} has the name of Handrail's plugin and takes its place: the hooks do not run there."
            )
        return off

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        folder = _goose_plugin(setup.machine.home)
        hooks = {line.event: [{"hooks": [_goose_hook(setup, line)]}] for line in GOOSE_HOOKS}
        text = json.dumps({"hooks": hooks}, indent=2) + "\n"
        return [own_file(folder / "hooks" / "hooks.json", text)]


def _goose_plugin(base: Path) -> Path:
    """The folder of our plugin, below the user's home or a project."""
    return base / ".agents" / "plugins" / SERVER


def _goose_hook(setup: Setup, line: HookLine) -> dict[str, Any]:
    """No matcher: it is a regular expression in goose."""
    entry = {"type": "command", "command": hook_line(setup, "goose", line), "timeout": line.limit(setup)}
    return {**entry, "on_failure": "block"} if line.is_gate else entry


def _write_file(input: Json) -> Work:
    path, content = required_text(input, "path", "file_path"), required_text(input, "content")
    edit = Edit(path=path, content=content, appended=text(input, "mode") == "append")
    return Work(sort="edit", edits=(edit,))


KIMI_TOOLS: ToolTable = {
    "Bash": command("command"),
    "Write": _write_file,
    "Edit": replacement(("path", "file_path"), ("old_string",), ("new_string",)),
    "Read": read("path", "file_path"),
    "ReadMediaFile": read("path", "file_path"),
    "Glob": read("path", "directory"),
    "Grep": search("path"),
    "FetchURL": fetch("url"),
    "WebSearch": search_web,
    "Skill": load_skill(),
    **dict.fromkeys(
        (
            "Agent", "AgentSwarm", "AskUserQuestion", "CreateGoal", "CronDelete", "CronList", "EnterPlanMode",
            "ExitPlanMode", "GetGoal", "SetGoalBudget", "SetTodoList", "TaskList", "TaskOutput", "TaskStop", "Think",
            "TodoList", "TodoWrite", "UpdateGoal", "WaitFor",
        ),
        harmless,
    ),
}  # fmt: skip
"""The built-in tools of Kimi Code 2.1. Others, such as those whose name begins with Tower, ask."""


class KimiHooks(ClaudeShapedHooks):
    """Kimi Code. `handrail connect` writes a time limit of 590 s."""

    name = "kimi"
    clock_seconds = 570.0
    edits = "Kimi Code does not take a changed input from a hook. Deny the call with the words that it should use instead."
    events: ClassVar[Mapping[str, HookKind]] = {
        **EVENTS,
        "PermissionRequest": "notified",
        "Interrupt": "stopped",
    }
    tools: ClassVar[ToolTable] = KIMI_TOOLS

    def output(self, payload: Json) -> str:
        """The text of the result, or of the error."""
        return (
            text(payload, "tool_output")
            or text(child(payload, "error"), "message")
            or super().output(payload)
        )

    def exit_code(self, tool: str, payload: Json) -> int | None:
        """From the end of the error of a command."""
        match = re.search(r"Command failed with exit code: (\d{1,3})\.\s*\Z", self.output(payload))
        if tool != "Bash" or match is None:
            return None
        return int(match[1])

    def message(self, kind: HookKind, payload: Json) -> str:
        """The text of a notification. A request for permission names the tool."""
        words = super().message(kind, payload) or text(payload, "error_message")
        tool = text(payload, "tool_name")
        return words or (f"Kimi Code asks about {tool}." if kind == "notified" and tool else "")

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """A denial in Claude's format, or nothing."""
        verdict = refuse_edit(event, verdict)
        return super().answer(event, verdict) if verdict.effect == "deny" else HookAnswer()


def _edit_text(input: Json) -> Work:
    """The editor of older versions of goose: the command names the action."""
    verb = text(input, "command")
    path = ("path",)
    builders: ToolTable = {
        "view": read("path"),
        "write": whole_file(path, ("file_text", "content")),
        "create": whole_file(path, ("file_text", "content")),
        "str_replace": replacement(path, ("old_str", "old_string"), ("new_str", "new_string")),
    }
    if verb not in builders:
        raise ValueError(f"The command {verb!r} is unknown.")
    return builders[verb](input)


_GOOSE_DEVELOPER: ToolTable = {
    "shell": command("command"),
    "write": whole_file(("path",), ("content",)),
    "edit": replacement(("path",), ("before", "old_str", "old_string"), ("after", "new_str", "new_string")),
    "tree": read("path"),
    "read_image": read("source", "path"),
    "text_editor": _edit_text,
}
GOOSE_TOOLS: ToolTable = {
    **_GOOSE_DEVELOPER,
    **{f"developer__{name}": builder for name, builder in _GOOSE_DEVELOPER.items()},
    **dict.fromkeys(("todo__todo_read", "todo__todo_write", "todo__write", "todo__read"), harmless),
}


class GooseHooks(ClaudeShapedHooks):
    """goose 1.38 or newer."""

    name = "goose"
    clock_seconds = 570.0
    edits = "goose does not take a changed input from a hook. Deny the call with the words that it should use instead."
    tools: ClassVar[ToolTable] = GOOSE_TOOLS
    event_fields: ClassVar[tuple[str, ...]] = ("event", "hook_event_name")

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """goose calls the folder `working_dir`."""
        payload = required_object(payload, "The payload")
        return super().read({"cwd": payload.get("working_dir"), **payload}, environment)

    def mcp_work(self, tool: str, payload: Json) -> Work | None:
        """goose calls MCP servers extensions: `EXTENSION__TOOL`."""
        return mcp_from_name(tool, prefix="")

    def failed(self, payload: Json) -> bool:
        """goose has a separate event for failures."""
        return text(payload, "event") == "PostToolUseFailure" or super().failed(payload)

    def output(self, payload: Json) -> str:
        """The text of the result, where goose sends one."""
        return super().output(payload) or result_text(payload.get("tool_output"))

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """A block, or nothing."""
        verdict = refuse_edit(event, verdict)
        if event.kind != "before" or verdict.effect != "deny":
            return HookAnswer()
        return print_json({"decision": "block", "reason": verdict.reason or NO_REASON})
