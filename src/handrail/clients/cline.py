"""Cline: one executable file for each event, and the MCP server in its settings.

Cline ignores exit statuses, so that the file itself prints the refusal if Handrail does not answer.

A hook that fails, prints something else than JSON or takes longer than 120 s lets the tool run. `{"cancel": true}` ends
the whole run, and the model never reads why. So a command is refused by an input that prints the reason and fails, and an
edit or a read by a path that cannot exist (it begins with a NUL byte) and holds the reason: Cline's error repeats both to
the model. Only other tools are refused by a cancel.
"""

import json
import re
import shlex
from collections.abc import Mapping

from handrail.clients.claude import NO_REASON, print_json
from handrail.clients.client_facts import SERVER, Client, Setup, member, own_file
from handrail.clients.hook_event import (
    RUNS_EDITED,
    Edit,
    HookAnswer,
    HookEvent,
    HookKind,
    Json,
    JsonValue,
    Verdict,
    Work,
)
from handrail.clients.hook_payload import (
    child,
    children,
    flag,
    required_object,
    required_text,
    result_text,
    stated_items,
    stated_texts,
    text,
    texts,
    tool_input,
)
from handrail.clients.hook_work import (
    ToolTable,
    build_work,
    fetch,
    harmless,
    load_skill,
    mcp_from_name,
    read,
    search,
    whole_file,
)
from handrail.clients.launcher_path import NO_ANSWER
from handrail.clients.patch_text import work_from_patch
from handrail.clients.pieces import ConfigPiece

REPORTS = (
    *("PostToolUse", "TaskStart", "TaskResume", "TaskCancel", "TaskComplete", "TaskError"),
    *("UserPromptSubmit", "SessionShutdown"),
)
GATE = """\
#!/bin/sh
# Written by `handrail connect cline`: asks Handrail before each tool runs. `handrail disconnect cline` removes it.
if answer=$(%(command)s); then
    printf '%%s' "$answer"
else
    printf '%%s' '%(refusal)s'
fi
"""
REPORT = """\
#!/bin/sh
# Written by `handrail connect cline`: reports to Handrail. `handrail disconnect cline` removes it.
%(command)s || true
"""


class Cline(Client):
    name = "cline"
    title = "Cline"
    programs = ("cline",)
    home = ("CLINE_DIR", ".cline")
    tried = "3.0.65"
    has_project_scope = False
    promises = (
        "refuses the tool call if Handrail is missing, fails or is killed, but ends the whole run then; runs it if the hook "
        "file itself is killed, or takes longer than 120 s, before which Handrail refuses"
    )

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        data = setup.machine.folder("CLINE_DATA_DIR", str(self.folder(setup.machine) / "data"))
        server = {"transport": {"type": "stdio", **setup.server()}}
        return [member(data / "settings" / "cline_mcp_settings.json", ("mcpServers", SERVER), server)]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        folder = self.folder(setup.machine) / "hooks"
        refusal = json.dumps({"cancel": True, "errorMessage": NO_ANSWER})
        command = setup.launcher.line(*setup.hook(self.name))
        gate = own_file(folder / "PreToolUse", GATE % {"command": command, "refusal": refusal}, 0o700)
        reports = [own_file(folder / event, REPORT % {"command": command}, 0o700) for event in REPORTS]
        return [gate, *reports]


EVENTS: Mapping[str, HookKind] = {
    "tool_call": "before",
    "PreToolUse": "before",
    "tool_result": "after",
    "PostToolUse": "after",
    "agent_start": "session_started",
    "agent_resume": "session_started",
    "session_shutdown": "session_ended",
    "prompt_submit": "prompted",
    "agent_end": "stopped",
    "agent_abort": "stopped",
    "agent_error": "stopped",
}
WHOLE = "value"
"""The field under which an input is kept that is no object: Cline accepts a bare command or a list of them."""
_EXIT_CODE = re.compile(r"Command exited with code (\d{1,3})")
COMMANDS = frozenset({"run_commands", "execute_command"})


def command_line(value: JsonValue) -> str:
    """A shell line, or a program with arguments. Raises ValueError if it is neither."""
    if isinstance(value, str):
        return value
    item = required_object(value, "A command")
    program = required_text(item, "command", "cmd")
    arguments = item.get("args") or []
    return shlex.join([program, *stated_texts(item, "args")]) if arguments else program


def _run_commands(input: Json) -> Work:
    value = next((input[name] for name in ("commands", "command", "cmd", WHOLE) if input.get(name)), None)
    if "args" in input:
        value = input
    items = value if isinstance(value, list) else [value]
    return Work(sort="command", commands=tuple(command_line(item) for item in items))


def _edit_file(input: Json) -> Work:
    path, new = required_text(input, "path"), required_text(input, "new_text")
    old = text(input, "old_text")
    if input.get("insert_line") is not None:
        return Work(
            sort="edit", edits=(Edit(path=path),), warning=f"Cline would insert text into the file: {new}"
        )
    edit = Edit(path=path, replacements=((old, new),)) if old else Edit(path=path, content=new)
    return Work(sort="edit", edits=(edit,))


def _replace_in_file(input: Json) -> Work:
    """Blocks of SEARCH and REPLACE, as older versions have them."""
    pairs: list[tuple[str, str]] = []
    for block in required_text(input, "diff").split("------- SEARCH\n")[1:]:
        old, _, rest = block.partition("=======\n")
        pairs.append((old, rest.partition("+++++++ REPLACE")[0]))
    if not pairs:
        raise ValueError("The field diff has no block to replace.")
    return Work(sort="edit", edits=(Edit(path=required_text(input, "path"), replacements=tuple(pairs)),))


def _apply_patch(input: Json) -> Work:
    return work_from_patch(required_text(input, "input", WHOLE))


def _read_files(input: Json) -> Work:
    items = stated_items(input, "path", "files", "file_paths", "paths", WHOLE)
    return Work(sort="read", paths=tuple(path for item in items for path in _paths_of(item)))


def _paths_of(item: JsonValue) -> tuple[str, ...]:
    if isinstance(item, str):
        return (item,)
    return stated_texts(required_object(item, "A file"), "path", "file_path", "filePath")


def _fetch_pages(input: Json) -> Work:
    return Work(sort="fetch", urls=tuple(required_text(item, "url") for item in children(input, "requests")))


TOOLS: ToolTable = {
    "run_commands": _run_commands,
    "execute_command": _run_commands,
    "editor": _edit_file,
    "apply_patch": _apply_patch,
    "write_to_file": whole_file(("path",), ("content",)),
    "replace_in_file": _replace_in_file,
    "read_files": _read_files,
    "read_file": _read_files,
    "search_codebase": read("path"),
    "search_files": search("path"),
    "list_files": read("path"),
    "list_code_definition_names": read("path"),
    "fetch_web_content": _fetch_pages,
    "web_fetch": fetch("url"),
    "skills": load_skill(),
    **dict.fromkeys(
        (
            "ask_followup_question",
            "ask_question",
            "attempt_completion",
            "plan_mode_respond",
            "submit_and_exit",
        ),
        harmless,
    ),
}
"""The built-in tools of Cline 3.0, and of the extension before it."""


class ClineHooks:
    """Cline."""

    name = "cline"
    clock_seconds = 110.0
    edits = ""
    edit_notice = RUNS_EDITED

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """Parse a payload. Raises ValueError with a sentence if it is not Cline's."""
        payload = required_object(payload, "The payload")
        kind = EVENTS.get(required_text(payload, "hookName"), "ignored")
        is_question, is_after = kind == "before", kind == "after"
        call = child(payload, "tool_result" if is_after else "tool_call")
        older = child(payload, "postToolUse" if is_after else "preToolUse")
        tool = text(call, "name") or text(older, "toolName")
        if is_question and not tool:
            raise ValueError("The payload names no tool.")
        arguments = _arguments(call, older) if is_question or is_after else {}
        return HookEvent(
            kind=kind,
            session=text(payload, "taskId"),
            cwd=next(iter(texts(payload, "workspaceRoots")), ""),
            tool=tool,
            input=arguments,
            call=text(call, "id"),
            subagent=text(payload, "agent_id") if text(payload, "parent_agent_id") else "",
            work=_work(tool, arguments) if is_question else None,
            failed=is_after and (bool(call.get("error")) or _has_failed(call, older)),
            output=_output(call, older) if is_after else "",
            exit_code=_exit_code(call) if is_after and tool in COMMANDS else None,
            message=text(child(payload, "error"), "message") if kind == "stopped" else "",
        )

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """A changed input, a cancel, or nothing."""
        if event.kind != "before":
            return HookAnswer()
        if verdict.effect == "deny":
            return print_json(_refusal(event, verdict.reason or NO_REASON))
        if verdict.effect == "pass" or verdict.input is None:
            return print_json({})
        return print_json({"overrideInput": verdict.input.get(WHOLE, verdict.input)})


def _arguments(call: Json, older: Json) -> Json:
    value = call.get("input")
    if isinstance(value, str | list):
        return {WHOLE: value}
    return tool_input(call, "input") if value is not None else tool_input(older, "parameters")


def _work(tool: str, arguments: Json) -> Work:
    return build_work(TOOLS, tool, arguments) or mcp_from_name(tool, prefix="") or Work(sort="other")


def _results(call: Json) -> tuple[Json, ...]:
    """One result, or a list of them."""
    return children(call, "output") or tuple(filter(None, (child(call, "output"),)))


def _has_failed(call: Json, older: Json) -> bool:
    return older.get("success") is False or any(
        item.get("success") is False or flag(item, "is_error", "isError") for item in _results(call)
    )


def _output(call: Json, older: Json) -> str:
    if results := children(call, "output"):
        return "\n".join(result_text(item.get("result") or item.get("error")) for item in results)
    return result_text(call.get("error") or call.get("output") or older.get("result"))


def _exit_code(call: Json) -> int | None:
    """The first exit code that is not zero: Cline names no other."""
    results = children(call, "output")
    matches = [_EXIT_CODE.fullmatch(text(item, "error")) for item in results]
    codes = [int(match[1]) for match in matches if match]
    return codes[0] if codes else 0 if results and not _has_failed(call, {}) else None


def _refusal(event: HookEvent, reason: str) -> Json:
    """A command and a path that fail with the reason in the message; no other tool can be made to tell it."""
    reason = reason.replace("\0", "")
    if event.tool in COMMANDS:
        line = f"printf '%s\\n' {shlex.quote(reason)} >&2; false"
        return {"overrideInput": {"commands": [line]} if event.tool == "run_commands" else {"command": line}}
    path = "\0" + reason.replace("/", "\N{FRACTION SLASH}")
    match event.tool:
        case "editor":
            return {"overrideInput": {"path": path, "new_text": ""}}
        case "read_files":
            return {"overrideInput": {"files": [{"path": path}]}}
        case _:
            return {"cancel": True, "errorMessage": reason}
