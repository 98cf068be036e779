"""Codex CLI: hooks in hooks.json, and the hash in config.toml that makes Codex trust each of them.

A hook without that hash is skipped without a word. The hash covers command, matcher and time limit; its key names the position
of the hook, so that a hook before ours that goes away takes our trust with it.

Its hooks get Claude's payload, with other rules for the answer:

- `PreToolUse` can refuse or rewrite, not allow: an allow without a changed input counts as a failed hook. So an allow
  prints nothing there, and `PermissionRequest`, to which `handrail connect` registers the same program, grants.
- An answer to `PermissionRequest` that holds a changed input is void, so that a changed input is refused there with the
  words that the model should use instead.
- A denial without a reason runs the tool.
- A shell line that only runs `apply_patch` is done by Codex itself, which calls no `PostToolUse` for it.
- `write_stdin` into a running program calls no hook: everything that is typed into an allowed shell is allowed.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, ClassVar

from handrail.clients.claude import EVENTS, ClaudeShapedHooks, refuse_edit
from handrail.clients.client_facts import (
    SERVER,
    STATUS,
    Client,
    HookLine,
    Setup,
    hook_line,
    item,
    member,
    read_value,
)
from handrail.clients.config_edit import ABSENT, BadFile, get_value, is_list
from handrail.clients.config_file import FileProblem, read_text
from handrail.clients.hook_event import HookAnswer, HookEvent, HookKind, Json, Verdict, Work
from handrail.clients.hook_payload import (
    child,
    required_text,
    required_texts,
    result_text,
    text,
    whole_number,
)
from handrail.clients.hook_work import (
    ToolTable,
    harmless,
    read,
    read_resource,
    search_web,
)
from handrail.clients.patch_text import work_from_patch, work_from_shell_patch
from handrail.clients.pieces import ConfigPiece

HOOKS = (
    HookLine("PreToolUse", is_gate=True, has_matcher=True),
    HookLine("PermissionRequest", is_question=True, has_matcher=True),
    HookLine("PostToolUse", has_matcher=True),
    HookLine("SessionStart"),
    HookLine("SessionEnd", seconds=3),
    HookLine("UserPromptSubmit"),
    HookLine("Stop"),
)


class Codex(Client):
    name = "codex"
    title = "Codex CLI"
    programs = ("codex",)
    home = ("CODEX_HOME", ".codex")
    tried = "0.166.0"
    has_project_scope = False
    promises = (
        "refuses the tool call if the hook is missing, fails or is killed; runs it if the hook does not answer in a day, "
        "and never asks about what is typed into a program that already runs"
    )

    def mcp_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self.folder(setup.machine) / "config.toml"
        return [member(path, ("mcp_servers", SERVER), setup.server(), "toml")]

    def hook_pieces(self, setup: Setup) -> list[ConfigPiece]:
        path = self._hooks_file(setup)
        return [item(path, ("hooks", line.event), _group(setup, line)) for line in HOOKS]

    def derived_pieces(self, setup: Setup, texts: Mapping[Path, str]) -> list[ConfigPiece]:
        """The hashes by which Codex trusts our hooks, at the positions that they will have."""
        path = self._hooks_file(setup)
        if not setup.has_hooks or path not in texts:
            return []
        config = self.folder(setup.machine) / "config.toml"
        return [
            member(config, ("hooks", "state", key), {"trusted_hash": trusted}, "toml")
            for key, trusted in _trust_entries(setup, path, texts[path])
        ]

    def overrides(self, setup: Setup) -> list[str]:
        config = self.folder(setup.machine) / "config.toml"
        path = self._hooks_file(setup)
        found: list[str] = []
        if read_value(config, ("features", "hooks"), "toml") is False:
            found.append(f"{config} has features.hooks = false: no hook runs.")
        try:
            entries = [*_trust_entries(setup, path, read_text(path))]
        except (BadFile, FileProblem) as problem:
            return [*found, f"{path}: {problem}"]
        untrusted = [key for key, trusted in entries if not _is_trusted(config, key, trusted)]
        if untrusted:
            events = ", ".join(key.removeprefix(f"{path}:").partition(":")[0] for key in untrusted)
            found.append(
                f"Codex does not trust the hooks {events}, and skips them. Run `handrail connect codex`."
            )
        return found

    def _hooks_file(self, setup: Setup) -> Path:
        return self.folder(setup.machine) / "hooks.json"


def _group(setup: Setup, line: HookLine) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "command",
        "command": hook_line(setup, "codex", line),
        "timeout": line.limit(setup),
    }
    return line.group({**entry, "statusMessage": STATUS} if line.waits else entry)


def _trust_entries(setup: Setup, path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Key and hash of each of our hooks in this text. Raises BadFile."""
    for line in HOOKS:
        groups = get_value("json", text, ("hooks", line.event))
        group = _group(setup, line)
        if is_list(groups) and group in groups:
            event = re.sub(r"(?<!^)(?=[A-Z])", "_", line.event).lower()
            yield f"{path}:{event}:{groups.index(group)}:0", trust_hash(event, group)


def trust_hash(event: str, group: Mapping[str, Any]) -> str:
    """Codex's hash of a group of hooks: of canonical JSON, with the defaults filled in."""
    hooks = [{"async": False, **hook} for hook in group["hooks"]]
    matcher = {"matcher": group["matcher"]} if "matcher" in group else {}
    identity = {"event_name": event, "hooks": hooks, **matcher}
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _is_trusted(config: Path, key: str, trusted: str) -> bool:
    state = read_value(config, ("hooks", "state", key), "toml")
    return state is not ABSENT and state.get("trusted_hash") == trusted and state.get("enabled", True) is True


_INTERPRETERS = frozenset({
    "bash", "sh", "zsh", "dash", "fish", "ksh", "csh", "tcsh", "pwsh", "python", "ipython", "node", "deno", "bun", "irb",
    "ruby", "perl", "php", "lua", "ghci", "scala", "jshell", "R", "julia", "tclsh", "bc", "dc",
})  # fmt: skip
"""Programs that read commands from their terminal, unless an argument names a script or a command."""
_CONSOLES = frozenset({
    "ssh", "su", "screen", "tmux", "script", "expect", "psql", "mysql", "mariadb", "sqlite", "mongosh", "redis-cli", "gdb",
    "lldb", "ftp", "sftp", "telnet", "nc", "ncat", "socat",
})  # fmt: skip
"""Programs that read commands from their terminal whatever their other arguments are."""
_PREFIXES = frozenset({"sudo", "doas", "env", "exec", "command", "nice", "nohup", "time", "stdbuf", "setsid"})
_RUNS_ARGUMENT = re.compile(r"-{1,2}(c|e|m|r|eval|command|execute|version|help|V)\b|-[a-zA-Z]*c$")
_LINE_MAX = 20_000
"""A warning is not worth the time to read a longer line."""
TYPING_WARNING = (
    "Codex can type into this program while it runs, and asks nobody about what it types: an allow is an allow for "
    "everything that the program can do."
)


def can_be_typed_into(line: str) -> bool:
    """Whether a shell line starts a program that waits for commands on its terminal. A guess, for a warning."""
    return any(_is_interactive(words) for words in _simple_commands(line))


def _simple_commands(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line[:_LINE_MAX], posix=True, punctuation_chars=";&|()\n")
    lexer.whitespace_split = True
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    words: list[str] = []
    try:
        for token in lexer:
            if set(token) <= set(";&|()\n"):
                yield words
                words = []
            else:
                words.append(token)
    except ValueError:  # an open quote
        pass
    yield words


def _is_interactive(words: list[str]) -> bool:
    """Whether a simple command waits for commands. After a prefix such as sudo, the program is one of the next words."""
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    if not words or PurePath(words[0]).name not in _PREFIXES:
        return _reads_terminal(words)
    opens_shell = words[0] in ("sudo", "doas") and bool({"-i", "-s"} & {*words[1:3]})
    return opens_shell or any(_reads_terminal(words[start:]) for start in range(1, min(len(words), 6)))


def _reads_terminal(words: list[str]) -> bool:
    program = re.sub(r"[\d.]+$", "", PurePath(words[0]).name) if words else ""
    options = [word for word in words[1:] if word.startswith("-") and word != "-"]
    if program not in _INTERPRETERS | _CONSOLES or any(map(_RUNS_ARGUMENT.match, options)):
        return False
    scripts = [word for word in words[1:] if not word.startswith(("-", "<", ">"))]
    return program in _CONSOLES or "-i" in options or not scripts


def _run_command(input: Json) -> Work:
    lines = required_texts(input, "command", "cmd")
    patch = work_from_shell_patch(lines[0]) if len(lines) == 1 else None
    if patch is not None:
        return replace(patch, unreported=True)
    warning = TYPING_WARNING if any(can_be_typed_into(line) for line in lines) else ""
    return Work(sort="command", commands=lines, cwd=text(input, "workdir") or None, warning=warning)


def _apply_patch(input: Json) -> Work:
    return work_from_patch(required_text(input, "command", "input", "patch"))


TOOLS: ToolTable = {
    "Bash": _run_command,
    "shell": _run_command,
    "exec_command": _run_command,
    "apply_patch": _apply_patch,
    "view_image": read("path"),
    "web_search": search_web,
    "read_mcp_resource": read_resource,
    **dict.fromkeys(
        (
            "close_agent", "create_goal", "get_goal", "list_agents", "list_mcp_resource_templates", "list_mcp_resources", "request_user_input",
            "resume_agent", "send_input", "send_message", "spawn_agent", "update_goal", "update_plan", "wait", "wait_agent",
        ),
        harmless,
    ),
}  # fmt: skip
"""The built-in tools of Codex 0.166. The calls of a spawned agent reach the hook one by one."""

_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)


class CodexHooks(ClaudeShapedHooks):
    """Codex CLI. `handrail connect` writes a time limit of 86,400 s and has the hook trusted."""

    name = "codex"
    clock_seconds = 86_000.0
    events: ClassVar[Mapping[str, HookKind]] = {**EVENTS, "Interrupt": "stopped"}
    tools: ClassVar[ToolTable] = TOOLS

    def exit_code(self, tool: str, payload: Json) -> int | None:
        """From a field, or from the head of the text that the model gets."""
        response = child(payload, "tool_response")
        code = whole_number(response, "exit_code", "exitCode")
        if code is None and (match := _EXIT_CODE.search(result_text(payload.get("tool_response"))[:2000])):
            code = int(match[1])
        return code

    def failed(self, payload: Json) -> bool:
        """An error, or a command with an exit code that is not zero."""
        return super().failed(payload) or self.exit_code("", payload) not in (None, 0)

    def answer(self, event: HookEvent, verdict: Verdict) -> HookAnswer:
        """The answer in Codex's format."""
        if verdict.effect == "allow" and verdict.input is None and event.kind == "before":
            return HookAnswer()
        if event.kind == "permission":
            verdict = refuse_edit(event, verdict)
        return super().answer(event, verdict)
