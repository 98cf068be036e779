"""`handrail hook CLIENT [EVENT] [--timeout SECONDS]`: the program that a client's hooks run.

Sends the payload on stdin to the daemon and prints its answer. It never starts a daemon. If there is no answer, a hook
that can stop a tool call refuses it in that client's format; every other hook prints nothing, so that it blocks nothing.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

from handrail.door.connect import DaemonNotRunning, HelloRefused, connect, say_hello
from handrail.framing import HOOK_MAX
from handrail.keeper import lineage
from handrail.paths import Places

TYPE_CHECKING = False

if TYPE_CHECKING:
    import socket
    from typing import Any


USAGE = """\
handrail hook CLIENT [EVENT]      judge the hook payload on stdin, and answer in CLIENT's format

  --timeout SECONDS   the client ends this hook then: answer before

A client's hooks launch this. `handrail connect CLIENT` configures them.
"""

HOSTED = "HANDRAIL_HOSTED"
"""Set for agents that Handrail hosts: a secret, which tells the daemon that their work is judged over ACP."""
_VARIABLES = (
    *("CLAUDECODE", "CLAUDE_PROJECT_DIR", "CLAUDE_PID", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT"),
    *("GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID", "GEMINI_CWD", "COPILOT_PROJECT_DIR", "COPILOT_CLI"),
    *("QWEN_PROJECT_DIR", "QWEN_SESSION_ID", "CURSOR_PROJECT_DIR", "CURSOR_VERSION", "CLINE_TASK_ID"),
)
"""Variables that are sent to the daemon. By name, because a client's keys and tokens begin like these."""

_SHELLS = frozenset(("bash", "dash", "ksh", "mksh", "sh", "zsh"))
"""Programs that clients put between themselves and a hook."""

STDIN_SECONDS = 10.0
"""Time to read the payload. A client that never closes its pipe must not hold the hook forever."""
DRAIN_MAX = 256 << 20
"""Bytes of a payload that is too long which are read and dropped: a client may fail if nobody reads them."""
HELLO_SECONDS = 5.0
"""Time for the daemon's hello; bounds the wait for a hung daemon."""
CANARY_MAX = 100
ANSWER_MAX = 2 * HOOK_MAX
LIMITS = {"qwen": 55.0, "cursor": 55.0, "windsurf": 28.0, "cline": 115.0, "kimi": 585.0, "goose": 585.0}
"""Seconds after which the hook answers by itself, because the client runs the tool soon after. The daemon answers
earlier; this is for a daemon that hangs."""
LIMIT = 86_300.0

_OPEN_EVENTS = frozenset(
    (
        *(
            "posttooluse",
            "posttoolusefailure",
            "posttoolbatch",
            "aftertool",
            "toolresult",
            "toolexecuteafter",
        ),
        *("postreadcode", "postwritecode", "postruncommand", "postmcptooluse", "postcascaderesponse"),
        *(
            "afterfileedit",
            "aftershellexecution",
            "aftermcpexecution",
            "afteragentresponse",
            "afteragentthought",
        ),
        *("sessionstart", "sessionend", "sessionstarted", "sessionended", "sessionidle", "sessioncreated"),
        *(
            "sessionerror",
            "sessiondeleted",
            "taskstart",
            "taskresume",
            "taskcancel",
            "taskcomplete",
            "agentstart",
        ),
        *("agentresume", "agentend", "agentabort", "agenterror", "agentstop", "beforeagent", "afteragent"),
        *("userpromptsubmit", "userpromptsubmitted", "userpromptexpansion", "preuserprompt", "promptsubmit"),
        *("beforesubmitprompt", "chatmessage", "stop", "stopfailure", "subagentstart", "subagentstop"),
        *("notification", "erroroccurred", "precompact", "postcompact", "precompress", "interrupt"),
        *("permissiondenied", "permissionreplied", "setup", "teammateidle", "taskcreated", "taskcompleted"),
        *("configchange", "worktreecreate", "worktreeremove", "instructionsloaded", "cwdchanged"),
        *("filechanged", "directoryadded", "messagedisplay", "premodelswitch", "postmodelswitch"),
        *("elicitation", "elicitationresult", "agentturncomplete", "sessionshutdown", "permissionasked"),
    )
)
"""Events that must never block, in lower case and without separators. Any other event is refused without an answer."""
_EVENT_FIELDS = ("hook_event_name", "hookEventName", "hookName", "agent_action_name", "event", "type")


class NoAnswer(Exception):
    """The daemon gave no answer; the message is a sentence for the model and its user."""


class Abandoned(Exception):
    """The client has gone, so no one reads an answer."""


def main(arguments: list[str]) -> int:
    """Judge one payload; return the exit status that the client expects."""
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write(USAGE)
        return 0
    try:
        names, timeout = _parse(arguments)
    except ValueError:
        sys.stderr.write(f"handrail hook: name the client.\n{USAGE}")
        return 2
    client, event = names[0], names[1] if len(names) > 1 else ""
    limit = LIMITS.get(client, LIMIT)
    deadline = time.monotonic() + (min(limit, timeout - max(4.0, timeout / 20)) if timeout else limit)
    waiting = _Parents()
    payload = b""
    try:
        payload = read_payload()
        answer = ask(client, event, payload, waiting, deadline, timeout)
    except Abandoned:
        return 2
    except NoAnswer as problem:
        answer = refuse(client, event, payload, str(problem))
    except Exception as error:
        answer = refuse(client, event, payload, f"its hook program failed ({type(error).__name__}).")
    return _print(answer)


def _parse(arguments: list[str]) -> tuple[list[str], float]:
    """The client, perhaps the event, and the time limit; 0 if none is given. Raises ValueError."""
    names, timeout = arguments, 0.0
    if "--timeout" in arguments:
        at = arguments.index("--timeout")
        names, timeout = [*arguments[:at], *arguments[at + 2 :]], float(*arguments[at + 1 : at + 2])
    if not 1 <= len(names) <= 2 or names[0].startswith("-") or not 0 <= timeout <= LIMIT * 2:
        raise ValueError(arguments)
    return names, timeout


def read_payload(descriptor: int = 0) -> bytes:
    """All of stdin. Raises NoAnswer if it is too long, or if its end does not come.

    A report of a client that has ended meanwhile still counts, so that no one watches the client here.
    """
    chunks: list[bytes] = []
    size, deadline = 0, time.monotonic() + STDIN_SECONDS
    while size <= DRAIN_MAX:
        left = max(0.0, deadline - time.monotonic())
        if not select.select([descriptor], [], [], left)[0]:
            raise NoAnswer("the client did not end its payload in time.")
        chunk = os.read(descriptor, 1 << 20)
        if not chunk:
            break
        size += len(chunk)
        if size > HOOK_MAX:
            chunks.clear()
        else:
            chunks.append(chunk)
    if size > HOOK_MAX:
        raise NoAnswer(
            f"its input is longer than {HOOK_MAX:,} bytes, which nobody could judge. Do less at once."
        )
    return b"".join(chunks)


def ask(
    client: str, event: str, payload: bytes, parents: _Parents, deadline: float, timeout: float = 0
) -> dict[str, Any]:
    """The daemon's answer: what to print, and the exit status. Raises NoAnswer."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        raise NoAnswer("its input is not valid UTF-8.") from None
    try:
        sock = connect(Places.find(os.environ), start=False)
        want = "canary" if _is_canary(payload) else "hook"
        say_hello(sock, want, credential=os.environ.get(HOSTED, "")[:200], within=HELLO_SECONDS)
    except DaemonNotRunning as problem:
        raise NoAnswer(str(problem)) from None
    except HelloRefused as problem:
        raise NoAnswer(str(problem)) from None
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    frame = {
        "client": client,
        "event": event[:80],
        "payload": text,
        "environment": variables,
        "timeout": timeout,
    }
    with sock:
        try:
            sock.sendall(json.dumps(frame).encode() + b"\n")
            line = _read_answer(sock, parents, deadline)
        except OSError as error:
            raise NoAnswer(f"the daemon hung up ({error.strerror or error}).") from None
    return _checked(line)


def _is_canary(payload: bytes) -> bool:
    """Whether it comes from `handrail doctor`, which must not count as an agent. The daemon answers nothing else to it."""
    return len(payload) < CANARY_MAX and _parse_object(payload) == {"handrail_canary": True}


def _read_answer(sock: socket.socket, parents: _Parents, deadline: float) -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        parents.wait(sock.fileno(), deadline, "nobody answered before the client's time limit.")
        chunk = sock.recv(1 << 16)
        if not chunk:
            raise NoAnswer("the daemon ended before it answered. Repeat the call when it is back.")
        line += chunk
        if len(line) > ANSWER_MAX:
            raise NoAnswer("the daemon's answer is too long.")
    return bytes(line)


def _checked(line: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(line)
        if "refused" in answer:
            raise NoAnswer(str(answer["refused"]))
        return {
            "stdout": str(answer["stdout"]),
            "stderr": str(answer["stderr"]),
            "status": int(answer["status"]),
        }
    except (ValueError, TypeError, KeyError, RecursionError):
        raise NoAnswer("what listens on the daemon's socket gave an answer that is not Handrail's.") from None


class _Parents:
    """The processes that wait for this hook: its parent and, if that is a shell, the parent of the shell."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._descriptors: set[int] = set()
        self._parent = os.getppid()
        for pid in _find_waiting(self._parent):
            try:
                descriptor = os.pidfd_open(pid)
            except (OSError, AttributeError):  # gone, or not Linux
                continue
            self._descriptors.add(descriptor)
            self._poll.register(descriptor, select.POLLIN)

    def wait(self, descriptor: int, deadline: float, late: str) -> None:
        """Wait until the descriptor is readable. Raises Abandoned if a parent ends, and NoAnswer at the deadline."""
        self._poll.register(descriptor, select.POLLIN)
        try:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NoAnswer(late)
                ready = {number for number, _ in self._poll.poll(min(left, 5.0) * 1000)}
                if ready & self._descriptors or os.getppid() != self._parent:
                    raise Abandoned
                if descriptor in ready:
                    return
        finally:
            self._poll.unregister(descriptor)


def _find_waiting(parent: int) -> list[int]:
    """The parent, and the parent of a shell. A process that has been adopted by pid 1 has no parent that waits."""
    stat = lineage.read_stat(parent) if parent > 1 else None
    if stat is None:
        return []
    above = stat.parent if stat.name in _SHELLS else 0
    return [parent, above] if above > 1 else [parent]


def refuse(client: str, event: str, payload: bytes, why: str) -> dict[str, Any]:
    """The answer without the daemon: a refusal in the client's format, or nothing for an event that must not block."""
    fields = _parse_object(payload)
    if _is_open_event(event or _event_of(fields)):
        return {"stdout": "", "stderr": "", "status": 0}
    reason = f"Handrail refused this call, because it could not judge it: {why}"
    match client:
        case "copilot":
            return {"stdout": json.dumps(_copilot_refusal(reason)) + "\n", "stderr": "", "status": 0}
        case "cline":
            return {"stdout": json.dumps(_cline_refusal(fields, reason)) + "\n", "stderr": "", "status": 0}
        case "gemini":  # it reads the reason from stdout too, and blocks by either
            return {"stdout": _deny(decision="deny", reason=reason), "stderr": f"{reason}\n", "status": 2}
        case "cursor":
            texts = {"user_message": reason, "agent_message": reason}
            return {"stdout": _deny(permission="deny", **texts), "stderr": f"{reason}\n", "status": 2}
        case _:
            return {"stdout": "", "stderr": f"{reason}\n", "status": 2}


def _deny(**fields: str) -> str:
    return json.dumps(fields) + "\n"


def _copilot_refusal(reason: str) -> dict[str, Any]:
    """Copilot hides stderr. The fields of both of its dialects and of both events; it ignores those it does not know."""
    specific = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    }
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {**decision, "behavior": "deny", "message": reason, "hookSpecificOutput": specific}


def _cline_refusal(fields: dict[str, Any], reason: str) -> dict[str, Any]:
    """Cline ignores exit codes. A command is replaced by a command that fails with the reason; other tools end the run."""
    call: Any = fields.get("tool_call")
    if not isinstance(call, dict) or "run_commands" not in call.values():
        return {"cancel": True, "errorMessage": reason}
    quoted = reason.replace("'", "'\\''")
    return {"overrideInput": {"commands": [f"printf '%s\\n' '{quoted}' >&2; false"]}}


def _parse_object(payload: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(payload))
    except (ValueError, TypeError, RecursionError):
        return {}


def _event_of(fields: dict[str, Any]) -> str:
    values = (fields.get(name) for name in _EVENT_FIELDS)
    return next((value for value in values if isinstance(value, str)), "")


def _is_open_event(event: str) -> bool:
    return "".join(char for char in event.lower() if char.isalnum()) in _OPEN_EVENTS


def _print(answer: dict[str, Any]) -> int:
    try:
        sys.stderr.write(answer["stderr"])
        sys.stderr.flush()
        sys.stdout.write(answer["stdout"])
        sys.stdout.flush()
    except OSError:  # nobody reads it
        return 2
    return int(answer["status"])
