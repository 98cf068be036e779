"""A scripted ACP agent: a program that speaks the protocol's JSON lines and executes the steps in its prompts.

`wire.py` has its transport and sessions, `steps.py` the steps, `agent.py` the protocol's methods, `program.py` the start.
Tests start it with `command(**manners)` (see `Behavior`) and prompt it with `script(*steps)`: the last text block of a
prompt that holds a JSON list is the script, and its steps run in order; any other prompt is answered `You said: …`.
The prompt ends with `end_turn` unless a step ends it. A step is an object; its first key is the verb:

Output (each is one `session/update`, or `times` of them, `every` so many seconds; `{n}` is the running number)
  {"say": "word {n} ", "times": 100, "every": 0.01}      {"think": "…"}      {"user": "…"}
  {"image": "<base64>", "mime": "image/png"}
  {"tool_call": {"toolCallId": "1", "title": "…", …}}     {"tool_call_update": {"toolCallId": "1", "status": …}}
  {"plan": ["first", {"content": "second", "status": "completed", "priority": "high"}]}
  {"commands": [{"name": "web", "description": "…"}]}     {"mode": "code"}     {"options": [{…}]}
  {"info": {"title": "…"}}     {"usage": {"used": 10, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}}}
  {"update": {"sessionUpdate": "of_no_known_kind", …}}    as it is; add "session": "…" for another session's id
  {"notify": "some/method", "params": {…}}                any notification
  {"note": "…"}                                           a note, as our own agent sends
Activities (`_handrail/activity`), with the capabilities ACTIVITY_CAPABILITIES; `times` of one with `{n}`
  {"begin": "a1", "in": "a0", "sort": "model", "title": "…", "call": "<toolCallId>"}   {"finish": "a1", "how": "done", "detail": "…"}
  {"busy": "a1", "then": [steps]}: until it is asked to cancel that one, which then ends as cancelled; then the steps

Steering (`_session/steering`), with `steers`
  {"take_steering": "x"}: waits for a message that comes while it works, and keeps its text as x

Requests to the client. `"as": "x"` stores the answer: later `"$x.some.field"` stands for it, `{"tell": "x"}` sends it
as JSON. An error is kept as {"error": {"code", "message", "data"}}. `"id"` sets the request's id (0, "uuid", anything).
`"wait": false` goes on without waiting for the answer; {"join": "x"} waits for it later.
  {"ask": {"toolCall": {…}, "options": [{…}]}}            session/request_permission; without options: OPTIONS below
  {"read": {"path": …, "line": …, "limit": …}}            {"write": {"path": …, "content": …}}
  {"terminal": {"command": …, "args": …, "cwd": …, "env": …, "outputByteLimit": …}, "as": "t"}
  {"output": "$t.terminalId"}   {"wait_for_exit": …}   {"kill": …}   {"release": …}
  {"elicit": {"message": …, "requestedSchema": {…}}}      elicitation/create in form mode
  {"request": "some/method", "params": {…}}               any request; sessionId is added unless params has it
  {"cancel_request": "x"}                                 `$/cancel_request` of the request kept as x
  {"mcp": "tool_name", "arguments": {…}, "as": "m"}       a call to the first MCP server it was offered, http or stdio;
                                                          {"mcp_list": true, "as": "m"} the names of its tools

Reports about itself, as JSON in an agent message
  {"tell": "x"}   {"tell_session": true} (what session/new, load or resume got)   {"tell_client": true} (what initialize got)
  {"tell_prompt": true} (the blocks)   {"tell_env": ["PATH", …] or true}   {"hash_env": ["KEY", …]}   {"tell_pid": true}   {"tell_heard": true}
  (names of notifications heard so far, and of requests)

Misbehaviour
  {"sleep": 0.1}   {"hang": true} (until cancelled)
  {"ignore_cancel": true} (from here on)   {"on_cancel": [steps], "stop": "cancelled"} (the steps after a cancel, and
  how the prompt then ends; default: none, cancelled)
  {"waits_for_answers": true}: when cancelled, it first waits for the answers to all its open requests
  {"crash": 3, "stderr": ["last", "words"]}   {"signal": 9} (kills itself)   {"stderr": "line"} (and "times")
  {"garbage": "not json"} (and "times")   {"bytes": "<base64>"}: raw on stdout
  {"flood": 1000000000} (bytes without a newline)   {"huge": 40000000} (one well-formed message of that size)
  {"spawn": "x", "setsid": true, "holds_stdout": true, "ignores_term": true, "forks": true}: a child that sleeps for ever;
  its pid is kept as x.pid; `forks` makes it an orphan immediately; `spoken_to` gives it a pipe as stdin     {"close_stdout": true}   {"stop_reading": true}
  {"log": "path", "say": …}: any output step; each piece is noted in that file with its time, before it is sent

How the prompt ends
  {"stop": "max_tokens", "usage": {…}, …any other field of the answer}     {"fail": {"code": -32603, "message": …, "data": …}} (with
  "after_cancel": true only in a session in which a prompt was cancelled)
  {"if": "$x.outcome.outcome", "is": "selected", "then": [steps], "else": [steps]}
"""

import json
import sys
from pathlib import Path
from typing import Any, NotRequired, TypedDict, Unpack

Obj = dict[str, Any]

OPTIONS: list[Obj] = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
]
CAPABILITIES: Obj = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True},
    "sessionCapabilities": {
        verb: {} for verb in ("list", "resume", "close", "delete", "fork", "additionalDirectories")
    },
}
ACTIVITY_CAPABILITIES: Obj = {**CAPABILITIES, "_meta": {"handrail": {"activities": True}}}


class Behavior(TypedDict):
    """How the program behaves from its start on."""

    capabilities: NotRequired[Obj]
    """Instead of CAPABILITIES."""
    calls_itself: NotRequired[str]
    version: NotRequired[str]
    protocol: NotRequired[Any]
    """The protocolVersion in its answer."""
    logins: NotRequired[list[Obj]]
    """Its authMethods."""
    login_needed: NotRequired[bool]
    """session/new fails with -32000 until `authenticate`."""
    login_says: NotRequired[str]
    """With these words."""
    login_fails: NotRequired[bool]
    modes: NotRequired[Obj]
    """Answered by session/new, load and resume; set_mode changes it and sends an update."""
    options: NotRequired[list[Obj]]
    """Its configOptions, in the same way."""
    models: NotRequired[Obj]
    """As agents without options for it list them: {"currentModelId": …, "availableModels": [{"modelId", "name"}]}."""
    commands: NotRequired[list[Obj]]
    """Sent in an update after each session/new."""
    sessions: NotRequired[str]
    """A directory that keeps its sessions over a restart."""
    at_start: NotRequired[list[Obj]]
    """Steps executed before it reads anything: crash, stderr, garbage, flood, hang (never answers), spawn …"""
    at_new: NotRequired[list[Obj]]
    """Steps executed within session/new, before its answer; `fail` fails it."""
    at_load: NotRequired[list[Obj]]
    answers: NotRequired[dict[str, str]]
    """Raw lines sent in answer to these methods instead of a proper one; ID stands for the request's id."""
    extra: NotRequired[Obj]
    """Unknown fields added to every answer."""
    ids: NotRequired[str]
    """`uuid`: the ids of its requests are UUID strings. Else they count from 0."""
    steers: NotRequired[bool]
    """It takes messages while it works. They are kept until a step takes them."""
    strict: NotRequired[bool]
    """Refuse each request that the SDK's schema refuses. Off, it starts in a fraction of the time: the schema loads slowly."""
    ignores_eof: NotRequired[bool]
    """It stays when its stdin is closed, and ignores SIGTERM and SIGHUP."""


def command(**manners: Unpack[Behavior]) -> tuple[str, ...]:
    """The command line of an agent with this behaviour."""
    return (sys.executable, "-P", str(Path(__file__).resolve().with_name("__main__.py")), json.dumps(manners))


def script(*steps: Obj) -> str:
    """The text of a prompt that makes the agent execute these steps."""
    return json.dumps(steps)
