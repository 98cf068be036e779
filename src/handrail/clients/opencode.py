"""opencode: the MCP server in opencode.json, and a plugin that runs `handrail hook opencode` before and after each tool.

The plugin sends one JSON object on stdin of `handrail hook opencode` and reads one from stdout:

    {"event": "tool.execute.before", "session": ID, "call": ID, "tool": NAME, "args": {...}, "cwd": FOLDER}
    {"event": "tool.execute.after", ... the same ..., "output": TEXT, "metadata": {...}}
    {"event": "session.created" | "session.idle" | "session.deleted" | "session.error" | "chat.message"
              | "permission.asked", "session": ID, "cwd": FOLDER, "message": TEXT}

    {"effect": "allow" | "deny" | "pass", "reason": TEXT, "input": {...} or null}

It always gets an answer to `tool.execute.before`, and exit status 0. Anything else (another status, no JSON, another
effect) is a refusal: the plugin throws, because opencode runs the tool if the plugin returns. On deny it throws
`new Error(reason)`, which the model reads word for word. With an input it changes `output.args` in place: it deletes
the fields that are gone and assigns the others, because opencode ignores an object that replaces `output.args`.
opencode sets no time limit. `tool.execute.after` does not come for a tool that failed. `cwd` is the plugin's `directory`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from handrail.clients.claude import NO_REASON, print_json
from handrail.clients.client_facts import SERVER, Client, Machine, Setup, member, own_file
from handrail.clients.hook_event import HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import (
    child,
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
    command,
    fetch,
    harmless,
    load_skill,
    mcp_from_name,
    read,
    read_resource,
    replacement,
    search,
    search_web,
    whole_file,
)
from handrail.clients.patch_text import work_from_patch
from handrail.clients.pieces import ConfigPiece

PLUGIN = """\
// Written by `handrail connect opencode`: asks Handrail before each tool runs. `handrail disconnect opencode` removes it.
import { spawn } from "node:child_process"

const COMMAND = %(command)s
const REPORTS = ["session.created", "session.idle", "session.deleted", "session.error", "permission.asked"]

const ask = (payload) => new Promise((resolve, reject) => {
  const hook = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
  let out = ""
  hook.on("error", reject)
  hook.stdin.on("error", () => {})
  hook.stdout.on("data", (chunk) => { out += chunk })
  hook.on("close", (status) => status === 0 ? resolve(out) : reject(new Error(`status ${status}`)))
  hook.stdin.end(JSON.stringify(payload))
})
const report = (payload) => ask(payload).catch(() => {})
// A tool of an MCP server has a list of parts instead of an output.
const textOf = (parts) => Array.isArray(parts) ? parts.map((part) => part.text ?? `[${part.type}]`).join("\\n") : ""
// What a person changed in a call, for the model, until the call has ended.
const feedback = new Map()

export const Handrail = async ({ directory }) => ({
  "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
    const call = { session: sessionID, call: callID, tool, args: output.args, cwd: directory }
    let answer
    try {
      answer = JSON.parse(await ask({ event: "tool.execute.before", ...call }))
    } catch (error) {
      throw new Error(`Handrail did not answer; refused (${error.message})`)
    }
    if (answer.effect !== "allow" && answer.effect !== "pass") throw new Error(answer.reason || "Handrail refused this call.")
    if (answer.effect === "allow" && answer.feedback) feedback.set(callID, answer.feedback)
    if (answer.effect === "pass" || !answer.input) return
    for (const name of Object.keys(output.args)) if (!(name in answer.input)) delete output.args[name]
    Object.assign(output.args, answer.input)
  },
  "tool.execute.after": async ({ tool, sessionID, callID, args }, ended) => {
    const { output, content, metadata } = ended
    const call = { session: sessionID, call: callID, tool, args: args ?? {}, cwd: directory }
    const result = String(output ?? textOf(content))
    const words = feedback.get(callID)
    feedback.delete(callID)
    if (words && typeof output === "string") ended.output = `${words}\\n\\n${output}`
    else if (words && Array.isArray(content)) content.unshift({ type: "text", text: words })
    await report({ event: "tool.execute.after", ...call, output: result, metadata: metadata ?? {} })
  },
  "chat.message": async ({ sessionID }) => {
    await report({ event: "chat.message", session: sessionID, cwd: directory, message: "" })
  },
  event: async ({ event }) => {
    if (!REPORTS.includes(event.type)) return
    const about = event.properties ?? {}
    const session = about.sessionID ?? about.info?.id ?? ""
    await report({ event: event.type, session, cwd: directory, message: String(about.error?.data?.message ?? "") })
  },
})
"""


class OpenCode(Client):
    name = "opencode"
    title = "opencode"
    programs = ("opencode",)
    tried = "1.18.33"
    promises = (
        "refuses the tool call if the hook is missing, fails or is killed, and waits without a limit; does not load the "
        "plugin with --pure"
    )

    def folder(self, machine: Machine) -> Path:
        return machine.folder("OPENCODE_CONFIG_DIR", str(machine.config / "opencode"))

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        server = {
            "type": "local",
            "command": [setup.launcher.path, "mcp"],
            **setup.environment("environment"),
            "enabled": True,
        }
        return [member(self._settings_file(setup), ("mcp", SERVER), server)]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        text = PLUGIN % {"command": json.dumps(setup.launcher.argv(*setup.hook(self.name)))}
        folder = self.settings_folder(setup, ".opencode")
        return [own_file(folder / "plugin" / "handrail.js", text, 0o644)]

    def _settings_file(self, setup: Setup) -> Path:
        """The one that exists; opencode's own command creates opencode.jsonc."""
        folder = self.settings_folder(setup, "")
        names = ("opencode.jsonc", "opencode.json")
        return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


EVENTS: Mapping[str, HookKind] = {
    "tool.execute.before": "before",
    "tool.execute.after": "after",
    "session.created": "session_started",
    "session.deleted": "session_ended",
    "chat.message": "prompted",
    "session.idle": "stopped",
    "session.error": "stopped",
    "permission.asked": "notified",
}


def _apply_patch(input: Json) -> Work:
    return work_from_patch(required_text(input, "patchText", "patch"))


TOOLS: ToolTable = {
    "bash": command("command", cwd=("workdir",)),
    "edit": replacement(("filePath",), ("oldString",), ("newString",), every=("replaceAll",)),
    "write": whole_file(("filePath",), ("content",)),
    "apply_patch": _apply_patch,
    "patch": _apply_patch,
    "read": read("filePath"),
    "glob": read("path"),
    "grep": search("path"),
    "list": read("path"),
    "lsp": read("filePath"),
    "webfetch": fetch("url"),
    "websearch": search_web,
    "codesearch": search_web,
    "skill": load_skill(),
    "read_mcp_resource": read_resource,
    **dict.fromkeys(
        (
            "invalid", "list_mcp_resource_templates", "list_mcp_resources", "plan_enter", "plan_exit", "question",
            "task", "todoread", "todowrite",
        ),
        harmless,
    ),
}  # fmt: skip
"""The built-in tools of opencode 1.18. The calls of a subagent reach the plugin one by one."""


class OpencodeHooks:
    """opencode, through Handrail's plugin."""

    name = "opencode"
    clock_seconds = 86_000.0
    edits = ""
    edit_notice = ""

    def read(self, payload: Json, environment: Mapping[str, str]) -> HookEvent:
        """Parse what the plugin sent. Raises ValueError with a sentence if it is something else."""
        payload = required_object(payload, "The payload")
        kind = EVENTS.get(required_text(payload, "event"), "ignored")
        is_question, is_after = kind == "before", kind == "after"
        tool = required_text(payload, "tool") if is_question else text(payload, "tool")
        if is_question and not tool:
            raise ValueError("The field tool is empty.")
        arguments = tool_input(payload, "args") if is_question or is_after else {}
        exit_code = whole_number(child(payload, "metadata"), "exit") if is_after else None
        return HookEvent(
            kind=kind,
            session=text(payload, "session"),
            cwd=text(payload, "cwd"),
            tool=tool,
            input=arguments,
            call=text(payload, "call"),
            work=_work(tool, arguments) if is_question else None,
            failed=is_after and (exit_code not in (None, 0) or bool(payload.get("error"))),
            output=result_text(payload.get("output") or payload.get("error")) if is_after else "",
            exit_code=exit_code,
            message=text(payload, "message") if kind in ("notified", "stopped") else "",
        )

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer that the plugin reads."""
        if event.kind != "before":
            return HookAnswer()
        reason = verdict.reason or (NO_REASON if verdict.effect == "deny" else "")
        edited = verdict.input if verdict.effect == "allow" else None
        feedback = {"feedback": verdict.feedback} if verdict.feedback and verdict.effect == "allow" else {}
        return print_json({"effect": verdict.effect, "reason": reason, "input": edited, **feedback})


def _work(tool: str, arguments: Json) -> Work:
    """A tool of an MCP server is called `SERVER_TOOL`, and so may be a tool of another plugin."""
    work = build_work(TOOLS, tool, arguments) or mcp_from_name(tool, prefix="", separator="_")
    return work or Work(sort="other")
