"""The scripted ACP agent: a real program on the official SDK's agent side that does what it is told to.

Tests start it with `command(**manners)` (see `Manners`) and prompt it with `script(*steps)`: the last text block of a
prompt that holds a JSON list is acted out, step by step, in order; any other prompt is answered `You said: …`.
The prompt ends with `end_turn` unless a step says otherwise. A step is an object; its first key is the verb:

What it says (each is one `session/update`, or `times` of them, `every` so many seconds; `{n}` is the running number)
  {"say": "word {n} ", "times": 100, "every": 0.01}      {"think": "…"}      {"user": "…"}
  {"image": "<base64>", "mime": "image/png"}
  {"tool_call": {"toolCallId": "1", "title": "…", …}}     {"tool_call_update": {"toolCallId": "1", "status": …}}
  {"plan": ["first", {"content": "second", "status": "completed", "priority": "high"}]}
  {"commands": [{"name": "web", "description": "…"}]}     {"mode": "code"}     {"options": [{…}]}
  {"info": {"title": "…"}}     {"usage": {"used": 10, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}}}
  {"update": {"sessionUpdate": "of_no_known_kind", …}}    as it is; add "session": "…" for another session's id
  {"notify": "some/method", "params": {…}}                any notification
  {"note": "…"}                                           what the agent itself has to say, as ours does
What it is busy with, where the manners' capabilities are TELLING: `_handrail/activity`, and `times` of one with `{n}`
  {"begin": "a1", "in": "a0", "sort": "model", "title": "…", "call": "<toolCallId>"}   {"finish": "a1", "how": "done", "detail": "…"}
  {"busy": "a1", "then": [steps]}: until it is asked to cancel that one, which then ends as cancelled; then the steps

What it asks the client for. `"as": "x"` keeps the answer: later `"$x.some.field"` stands for it, `{"tell": "x"}` says it
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

What it tells of itself, as JSON in an agent message
  {"tell": "x"}   {"tell_session": true} (what session/new, load or resume got)   {"tell_client": true} (what initialize got)
  {"tell_prompt": true} (the blocks)   {"tell_env": ["PATH", …] or true}   {"hash_env": ["KEY", …]}   {"tell_pid": true}   {"tell_heard": true}
  (names of notifications heard so far, and of requests)

How it misbehaves
  {"sleep": 0.1}   {"hang": true} (until cancelled)
  {"ignore_cancel": true} (from here on)   {"on_cancel": [steps], "stop": "cancelled"} (what it does when cancelled, and
  how the prompt then ends; default: nothing, cancelled)
  {"waits_for_answers": true}: when cancelled, it first waits for the answers to all its open requests
  {"crash": 3, "stderr": ["last", "words"]}   {"signal": 9} (kills itself)   {"stderr": "line"} (and "times")
  {"garbage": "not json"} (and "times")   {"bytes": "<base64>"}: raw on stdout
  {"flood": 1000000000} (bytes without a newline)   {"huge": 40000000} (one well-formed message of that size)
  {"spawn": "x", "setsid": true, "holds_stdout": true, "ignores_term": true, "forks": true}: a child that sleeps for ever;
  its pid is kept as x.pid; `forks` makes it an orphan at once     {"close_stdout": true}   {"stop_reading": true}
  {"log": "path", "say": …}: any saying step; each piece is noted in that file with its time, before it is sent

How the prompt ends
  {"stop": "max_tokens", "usage": {…}, …any other field of the answer}     {"fail": {"code": -32603, "message": …, "data": …}}
  {"if": "$x.outcome.outcome", "is": "selected", "then": [steps], "else": [steps]}
"""

import asyncio
import base64
import contextlib
import hashlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NotRequired, TypedDict, Unpack, cast

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
TELLING: Obj = {**CAPABILITIES, "_meta": {"handrail": {"activities": True}}}

CHILD = """
import os, signal, sys, time
if sys.argv[2]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.write(int(sys.argv[1]), str(os.getpid()).encode())
os.close(int(sys.argv[1]))
time.sleep(3600)
"""


class Manners(TypedDict):
    """How the program behaves from its start on."""

    capabilities: NotRequired[Obj]
    """Instead of CAPABILITIES."""
    calls_itself: NotRequired[str]
    version: NotRequired[str]
    protocol: NotRequired[Any]
    """What it answers as protocolVersion."""
    logins: NotRequired[list[Obj]]
    """Its authMethods."""
    login_needed: NotRequired[bool]
    """session/new fails with -32000 until `authenticate`."""
    login_says: NotRequired[str]
    """With these words."""
    login_fails: NotRequired[bool]
    modes: NotRequired[Obj]
    """Answered by session/new, load and resume; set_mode changes it and says so in an update."""
    options: NotRequired[list[Obj]]
    """Its configOptions, in the same way."""
    models: NotRequired[Obj]
    """As agents without options for it list them: {"currentModelId": …, "availableModels": [{"modelId", "name"}]}."""
    commands: NotRequired[list[Obj]]
    """Said in an update after each session/new."""
    sessions: NotRequired[str]
    """A directory that keeps its sessions over a restart."""
    at_start: NotRequired[list[Obj]]
    """Steps acted out before it reads anything: crash, stderr, garbage, flood, hang (never answers), spawn …"""
    at_new: NotRequired[list[Obj]]
    """Steps acted out within session/new, before its answer; `fail` fails it."""
    at_load: NotRequired[list[Obj]]
    answers: NotRequired[dict[str, str]]
    """Raw lines sent in answer to these methods instead of a proper one; ID stands for the request's id."""
    extra: NotRequired[Obj]
    """Unknown fields added to every answer."""
    ids: NotRequired[str]
    """`uuid`: the ids of its requests are UUID strings. Else they count from 0."""
    strict: NotRequired[bool]
    """Refuse each request that the SDK's schema refuses. Off, it starts in a third of the time: the schema loads slowly."""
    ignores_eof: NotRequired[bool]
    """It stays when its stdin is closed, and ignores SIGTERM and SIGHUP."""


def command(**manners: Unpack[Manners]) -> tuple[str, ...]:
    """The command line of an agent with these manners."""
    return (sys.executable, "-P", str(Path(__file__).resolve()), json.dumps(manners))


def script(*steps: Obj) -> str:
    """The text of a prompt that makes it act these steps out."""
    return json.dumps(steps)


class Ended(Exception):
    """A step ended the prompt, with this answer."""

    def __init__(self, answer: Obj) -> None:
        self.answer = answer


class Refused(Exception):
    """A step fails the request it is acted out in."""

    def __init__(self, error: Obj) -> None:
        self.error = error


class Wire:
    """Lines on stdin and stdout: the SDK's transport, with a side door for what the SDK would not send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.heard: list[str] = []
        self.waiting: dict[Any, asyncio.Future[Obj]] = {}
        self.reads = True
        self.answers: dict[str, str] = {}

    async def send(self, message: Obj) -> None:
        await self.raw(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> Obj | None:
        while line := await self.reader.readline():
            message = json.loads(line)
            if "method" in message:
                self.heard.append(message["method"])
                if message["method"] in self.answers:
                    line = self.answers[message["method"]].replace("ID", json.dumps(message["id"]))
                    await self.raw(line.encode() + b"\n")
                    continue
            elif message.get("id") in self.waiting:
                waiting = self.waiting.pop(message["id"])
                if not waiting.done():
                    waiting.set_result(message)
                continue
            if not self.reads:
                await asyncio.Event().wait()
            return message
        return None

    async def close(self) -> None:
        self.writer.close()


class Session:
    """One conversation, as this agent keeps it."""

    def __init__(self, id: str, opened: Obj) -> None:
        self.id, self.opened = id, opened
        self.said: list[Obj] = []
        self.prompt: list[Obj] = []
        self.ignores_cancel = False
        self.on_cancel: list[Obj] = []
        self.cancel_stop = "cancelled"
        self.waits_for_answers = False
        self.running: asyncio.Task[Any] | None = None
        self.doing: dict[str, asyncio.Event] = {}
        """What it is busy with; set when that is cancelled."""


class Actor:
    """Acts steps out, for one prompt of one session."""

    def __init__(self, agent: "Agent", session: Session) -> None:
        self.agent, self.session, self.wire = agent, session, agent.wire
        self.kept: Obj = {}
        self.ids: Obj = {}
        self.tasks: dict[str, asyncio.Task[Any]] = {}

    async def act(self, steps: Sequence[Obj]) -> None:
        for step in steps:
            verb = next(iter(step))
            if verb == "log":
                verb = list(step)[1]
            await getattr(self, f"do_{verb}")(self.fill(step))

    def fill(self, value: Any) -> Any:
        """The value with what was kept in place of `$x.field`."""
        if isinstance(value, str) and value.startswith("$") and value[1:].partition(".")[0] in self.kept:
            found: Any = self.kept
            for name in value[1:].split("."):
                found = found[int(name) if isinstance(found, list) else name]
            return found
        match value:
            case dict():
                entries = cast("Obj", value)
                late = {"then", "else", "on_cancel"}
                return {key: inner if key in late else self.fill(inner) for key, inner in entries.items()}
            case list():
                return [self.fill(inner) for inner in cast("list[Any]", value)]
            case _:
                return value

    # What it says

    async def update(self, step: Obj, update: Obj) -> None:
        if "log" in step:
            with open(step["log"], "a") as log:  # noqa: ASYNC230 - in order, and on disk before it is sent
                log.write(json.dumps({"at": time.time(), "update": update}) + "\n")
        self.session.said.append(update)
        session = step.get("session", self.session.id)
        params = {"sessionId": session, "update": update}
        await self.wire.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    async def chunks(self, step: Obj, kind: str, text: str) -> None:
        for n in range(step.get("times", 1)):
            if step.get("every"):
                await asyncio.sleep(step["every"])
            content = {"type": "text", "text": text.replace("{n}", str(n))}
            await self.update(step, {"sessionUpdate": kind, "content": content})

    async def do_say(self, step: Obj) -> None:
        await self.chunks(step, "agent_message_chunk", step["say"])

    async def do_think(self, step: Obj) -> None:
        await self.chunks(step, "agent_thought_chunk", step["think"])

    async def do_user(self, step: Obj) -> None:
        await self.chunks(step, "user_message_chunk", step["user"])

    async def do_image(self, step: Obj) -> None:
        content = {"type": "image", "data": step["image"], "mimeType": step.get("mime", "image/png")}
        await self.update(step, {"sessionUpdate": "agent_message_chunk", "content": content})

    async def do_tool_call(self, step: Obj) -> None:
        await self.update(step, {"sessionUpdate": "tool_call", **step["tool_call"]})

    async def do_tool_call_update(self, step: Obj) -> None:
        await self.update(step, {"sessionUpdate": "tool_call_update", **step["tool_call_update"]})

    async def do_plan(self, step: Obj) -> None:
        plain = {"priority": "medium", "status": "pending"}
        said: list[Obj] = [{"content": it} if isinstance(it, str) else it for it in step["plan"]]
        entries = [{**plain, **entry} for entry in said]
        await self.update(step, {"sessionUpdate": "plan", "entries": entries})

    async def do_commands(self, step: Obj) -> None:
        update = {"sessionUpdate": "available_commands_update", "availableCommands": step["commands"]}
        await self.update(step, update)

    async def do_mode(self, step: Obj) -> None:
        await self.update(step, {"sessionUpdate": "current_mode_update", "currentModeId": step["mode"]})

    async def do_options(self, step: Obj) -> None:
        await self.update(step, {"sessionUpdate": "config_option_update", "configOptions": step["options"]})

    async def do_info(self, step: Obj) -> None:
        await self.update(step, {"sessionUpdate": "session_info_update", **step["info"]})

    async def do_usage(self, step: Obj) -> None:
        await self.update(step, {"sessionUpdate": "usage_update", **step["usage"]})

    async def do_update(self, step: Obj) -> None:
        for _ in range(step.get("times", 1)):
            await self.update(step, step["update"])

    async def do_notify(self, step: Obj) -> None:
        message = {"jsonrpc": "2.0", "method": step["notify"]}
        await self.wire.send({**message, "params": step["params"]} if "params" in step else message)

    async def do_note(self, step: Obj) -> None:
        content = {"type": "text", "text": step["note"]}
        meta = {"handrail": {"note": True}}
        await self.update(step, {"sessionUpdate": "agent_message_chunk", "content": content, "_meta": meta})

    # What it is busy with

    async def activity(self, **told: Any) -> None:
        params = {"sessionId": self.session.id, "activity": told}
        await self.wire.send({"jsonrpc": "2.0", "method": "_handrail/activity", "params": params})

    async def do_begin(self, step: Obj) -> None:
        for n in range(step.get("times", 1)):
            name = step["begin"].replace("{n}", str(n))
            self.session.doing[name] = asyncio.Event()
            await self.activity(
                id=name,
                parent=step.get("in"),
                sort=step.get("sort", "step"),
                title=step.get("title", name),
                toolCallId=step.get("call"),
                how=None,
                detail="",
            )

    async def do_finish(self, step: Obj) -> None:
        for n in range(step.get("times", 1)):
            name = step["finish"].replace("{n}", str(n))
            self.session.doing.pop(name, None)
            how, detail = step.get("how", "done"), step.get("detail", "")
            await self.activity(id=name, sort=step.get("sort", "step"), how=how, detail=detail)

    async def do_busy(self, step: Obj) -> None:
        await self.session.doing[step["busy"]].wait()
        await self.do_finish({"finish": step["busy"], "how": "cancelled"})
        await self.act(step.get("then", ()))

    # What it asks for

    async def request(self, step: Obj, method: str, params: Any) -> None:
        name = step.get("as", "answer")
        number = self.agent.number() if "id" not in step else step["id"]
        number = self.ids[name] = str(uuid.uuid4()) if number == "uuid" else number
        task = self.tasks[name] = asyncio.create_task(self.answered(name, number, method, params))
        if step.get("wait", True):
            await asyncio.shield(task)

    async def answered(self, name: str, id: Any, method: str, params: Any) -> None:
        answer = asyncio.get_running_loop().create_future()
        self.wire.waiting[id] = answer
        await self.wire.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        message = await answer
        result: Any = message.get("result")
        self.kept[name] = {"error": message["error"]} if "error" in message else result

    async def for_session(self, step: Obj, method: str, params: Any) -> None:
        await self.request(step, method, {"sessionId": self.session.id, **params})

    async def do_ask(self, step: Obj) -> None:
        plain = {"toolCall": {"toolCallId": "call-1", "title": "Do it"}, "options": OPTIONS}
        await self.for_session(step, "session/request_permission", {**plain, **step["ask"]})

    async def do_read(self, step: Obj) -> None:
        await self.for_session(step, "fs/read_text_file", step["read"])

    async def do_write(self, step: Obj) -> None:
        await self.for_session(step, "fs/write_text_file", step["write"])

    async def do_terminal(self, step: Obj) -> None:
        await self.for_session(step, "terminal/create", step["terminal"])

    async def do_output(self, step: Obj) -> None:
        await self.for_session(step, "terminal/output", {"terminalId": step["output"]})

    async def do_wait_for_exit(self, step: Obj) -> None:
        await self.for_session(step, "terminal/wait_for_exit", {"terminalId": step["wait_for_exit"]})

    async def do_kill(self, step: Obj) -> None:
        await self.for_session(step, "terminal/kill", {"terminalId": step["kill"]})

    async def do_release(self, step: Obj) -> None:
        await self.for_session(step, "terminal/release", {"terminalId": step["release"]})

    async def do_elicit(self, step: Obj) -> None:
        await self.for_session(step, "elicitation/create", {"mode": "form", **step["elicit"]})

    async def do_request(self, step: Obj) -> None:
        await self.for_session(step, step["request"], step.get("params", {}))

    async def do_cancel_request(self, step: Obj) -> None:
        params = {"requestId": self.ids[step["cancel_request"]]}
        await self.wire.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})

    async def do_join(self, step: Obj) -> None:
        await self.tasks[step["join"]]

    async def do_mcp(self, step: Obj) -> None:
        async with mcp_client(self.session.opened["mcpServers"]) as client:
            result = await client.call_tool(step["mcp"], step.get("arguments", {}))
            self.kept[step.get("as", "answer")] = result.model_dump(mode="json", by_alias=True)

    async def do_mcp_list(self, step: Obj) -> None:
        async with mcp_client(self.session.opened["mcpServers"]) as client:
            listed = await client.list_tools()
            self.kept[step.get("as", "answer")] = [tool.name for tool in listed.tools]

    # What it tells of itself

    async def tell(self, value: Any) -> None:
        content = {"type": "text", "text": json.dumps(value)}
        await self.update({}, {"sessionUpdate": "agent_message_chunk", "content": content})

    async def do_tell(self, step: Obj) -> None:
        await self.tell(self.kept.get(step["tell"]))

    async def do_tell_session(self, _: Obj) -> None:
        await self.tell(self.session.opened)

    async def do_tell_client(self, _: Obj) -> None:
        await self.tell(self.agent.client)

    async def do_tell_prompt(self, _: Obj) -> None:
        await self.tell(self.session.prompt)

    async def do_tell_env(self, step: Obj) -> None:
        names = list(os.environ) if step["tell_env"] is True else step["tell_env"]
        await self.tell({name: os.environ.get(name) for name in names})

    async def do_hash_env(self, step: Obj) -> None:
        """What it has, without saying it."""
        found = {name: os.environ.get(name) for name in step["hash_env"]}
        await self.tell(
            {name: value and hashlib.sha256(value.encode()).hexdigest() for name, value in found.items()}
        )

    async def do_tell_pid(self, _: Obj) -> None:
        await self.tell(os.getpid())

    async def do_tell_heard(self, _: Obj) -> None:
        await self.tell(self.wire.heard)

    # How it misbehaves

    async def do_sleep(self, step: Obj) -> None:
        await asyncio.sleep(step["sleep"])

    async def do_hang(self, _: Obj) -> None:
        await asyncio.Event().wait()

    async def do_ignore_cancel(self, _: Obj) -> None:
        self.session.ignores_cancel = True

    async def do_on_cancel(self, step: Obj) -> None:
        self.session.on_cancel = step["on_cancel"]
        self.session.cancel_stop = step.get("stop", "cancelled")

    async def do_waits_for_answers(self, _: Obj) -> None:
        self.session.waits_for_answers = True

    async def do_stderr(self, step: Obj) -> None:
        for n in range(step.get("times", 1)):
            sys.stderr.write(step["stderr"].replace("{n}", str(n)) + "\n")
        sys.stderr.flush()

    async def do_crash(self, step: Obj) -> None:
        for line in step.get("stderr", ()):
            await self.do_stderr({"stderr": line})
        os._exit(step["crash"])

    async def do_signal(self, step: Obj) -> None:
        os.kill(os.getpid(), step["signal"])

    async def do_garbage(self, step: Obj) -> None:
        for n in range(step.get("times", 1)):
            await self.wire.raw(step["garbage"].replace("{n}", str(n)).encode() + b"\n")

    async def do_bytes(self, step: Obj) -> None:
        await self.wire.raw(base64.b64decode(step["bytes"]))

    async def do_flood(self, step: Obj) -> None:
        left, piece = step["flood"], b"x" * (1 << 20)
        while left > 0:
            await self.wire.raw(piece[:left])
            left -= len(piece)

    async def do_huge(self, step: Obj) -> None:
        await self.chunks(step, "agent_message_chunk", "x" * step["huge"])

    async def do_spawn(self, step: Obj) -> None:
        told, tell = os.pipe()  # a pipe of its own, for its stdout may be ours
        argv = [sys.executable, "-S", "-c", CHILD, str(tell), "ignores" if step.get("ignores_term") else ""]
        out = None if step.get("holds_stdout") else subprocess.DEVNULL
        subprocess.Popen(  # noqa: ASYNC220 - it is not waited for
            ["sh", "-c", '"$@" &', "sh", *argv] if step.get("forks") else argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=(tell,),
            start_new_session=step.get("setsid", False),
        )
        os.close(tell)
        pid = await asyncio.to_thread(os.read, told, 100)
        os.close(told)
        self.kept[step["spawn"]] = {"pid": int(pid)}

    async def do_close_stdout(self, _: Obj) -> None:
        self.wire.writer.close()
        await asyncio.sleep(0)
        os.close(1)

    async def do_stop_reading(self, _: Obj) -> None:
        self.wire.reads = False

    # How the prompt ends

    async def do_stop(self, step: Obj) -> None:
        answer = {key: value for key, value in step.items() if key != "stop"}
        raise Ended({"stopReason": step["stop"], **answer})

    async def do_fail(self, step: Obj) -> None:
        raise Refused(step["fail"])

    async def do_if(self, step: Obj) -> None:
        await self.act(step.get("then" if step["if"] == step["is"] else "else", ()))


class Agent:
    """The methods the SDK's router calls, for a client that comes to this agent."""

    def __init__(self, wire: Wire, manners: Manners) -> None:
        self.wire, self.manners = wire, manners
        self.client: Any = None
        self.sessions: dict[str, Session] = {}
        self.logged_in = not manners.get("login_needed", False)
        self.modes = manners.get("modes")
        self.options = manners.get("options")
        self.models = manners.get("models")
        self.next_id = 0

    def number(self) -> Any:
        self.next_id += 1
        return str(uuid.uuid4()) if self.manners.get("ids") == "uuid" else self.next_id - 1

    def answer(self, **fields: Any) -> Obj:
        return {
            **{key: value for key, value in fields.items() if value is not None},
            **self.manners.get("extra", {}),
        }

    @property
    def settings(self) -> Obj:
        return {"modes": self.modes, "configOptions": self.options, "models": self.models}

    async def initialize(self, params: Obj) -> Obj:
        self.client = params
        return self.answer(
            protocolVersion=self.manners.get("protocol", 1),
            agentCapabilities=self.manners.get("capabilities", CAPABILITIES),
            agentInfo={
                "name": self.manners.get("calls_itself", "scripted"),
                "title": "The scripted agent",
                "version": self.manners.get("version", "1.2.3"),
            },
            authMethods=self.manners.get("logins", []),
        )

    async def authenticate(self, params: Obj) -> Obj:
        if self.manners.get("login_fails"):
            raise Refused({"code": -32603, "message": "The password is wrong", "data": params})
        self.logged_in = True
        return self.answer()

    async def new(self, params: Obj) -> Obj:
        if not self.logged_in:
            says = self.manners.get("login_says", "Authentication required")
            raise Refused({"code": -32000, "message": says})
        session = Session(f"session-{uuid.uuid4().hex[:8]}", params)
        self.sessions[session.id] = session
        await Actor(self, session).act(self.manners.get("at_new", ()))
        self.keep(session)
        if commands := self.manners.get("commands"):
            background(Actor(self, session).act([{"sleep": 0}, {"commands": commands}]))
        return self.answer(sessionId=session.id, **self.settings)

    async def load(self, params: Obj) -> Obj:
        session = self.recall(params)
        actor = Actor(self, session)
        for update in list(session.said):
            await actor.update({}, update)
        session.said = session.said[: len(session.said) // 2]  # what was replayed was noted a second time
        await actor.act(self.manners.get("at_load", ()))
        return self.answer(**self.settings)

    async def resume(self, params: Obj) -> Obj:
        self.recall(params)
        return self.answer(**self.settings)

    async def fork(self, params: Obj) -> Obj:
        before = self.recall(params)
        session = Session(f"session-{uuid.uuid4().hex[:8]}", params)
        session.said = list(before.said)
        self.sessions[session.id] = session
        return self.answer(sessionId=session.id, **self.settings)

    async def list(self, _: Obj) -> Obj:
        opened: Obj = {path.stem: json.loads(path.read_text())["opened"] for path in self.shelf()}
        opened |= {it.id: it.opened for it in self.sessions.values()}
        known = [{"sessionId": of, "cwd": it["cwd"], "title": f"about {of}"} for of, it in opened.items()]
        return self.answer(sessions=known)

    async def close(self, params: Obj) -> Obj:
        self.sessions.pop(params["sessionId"], None)
        return self.answer()

    async def delete(self, params: Obj) -> Obj:
        self.sessions.pop(params["sessionId"], None)
        for path in self.shelf():
            if path.stem == params["sessionId"]:
                path.unlink()
        return self.answer()

    async def set_mode(self, params: Obj) -> Obj:
        assert self.modes is not None
        self.modes = {**self.modes, "currentModeId": params["modeId"]}
        await Actor(self, self.sessions[params["sessionId"]]).act([{"mode": params["modeId"]}])
        return self.answer()

    async def set_option(self, params: Obj) -> Obj:
        chosen = {"currentValue": params["value"]}
        self.options = [
            {**it, **chosen} if it["id"] == params["configId"] else it for it in self.options or ()
        ]
        return self.answer(configOptions=self.options)

    async def set_model(self, params: Obj) -> Obj:
        self.models = {**(self.models or {}), "currentModelId": params["modelId"]}
        return self.answer()

    async def prompt(self, params: Obj) -> Obj:
        session = self.sessions[params["sessionId"]]
        session.prompt = params["prompt"]
        session.ignores_cancel, session.on_cancel, session.cancel_stop = False, [], "cancelled"
        session.waits_for_answers = False
        for block in session.prompt:
            session.said.append({"sessionUpdate": "user_message_chunk", "content": block})
        actor = Actor(self, session)
        session.running = asyncio.create_task(actor.act(steps_in(session.prompt)))
        try:
            await session.running
        except Ended as ended:
            return self.answer(**ended.answer)
        except asyncio.CancelledError:
            if session.waits_for_answers:
                await asyncio.gather(*actor.tasks.values())
            await actor.act(session.on_cancel)
            return self.answer(stopReason=session.cancel_stop)
        finally:
            session.running = None
            self.keep(session)
        return self.answer(stopReason="end_turn")

    def cancel(self, params: Obj) -> None:
        session = self.sessions.get(params["sessionId"])
        if session is not None and session.running is not None and not session.ignores_cancel:
            session.running.cancel()

    async def cancel_activity(self, params: Obj) -> Obj:
        doing = self.sessions[params["sessionId"]].doing.get(params["activity"])
        if doing is not None:
            doing.set()
        return self.answer(cancelled=doing is not None)

    def recall(self, params: Obj) -> Session:
        wanted = params["sessionId"]
        if wanted not in self.sessions:
            found = [path for path in self.shelf() if path.stem == wanted]
            if not found:
                raise Refused({"code": -32002, "message": "Resource not found", "data": {"uri": wanted}})
            self.sessions[wanted] = Session(wanted, {})
            self.sessions[wanted].said = json.loads(found[0].read_text())["said"]
        self.sessions[wanted].opened = params
        return self.sessions[wanted]

    def shelf(self) -> Sequence[Path]:
        folder = self.manners.get("sessions")
        return sorted(Path(folder).glob("*.json")) if folder else ()

    def keep(self, session: Session) -> None:
        folder = self.manners.get("sessions")
        if folder:
            kept = {"opened": session.opened, "said": session.said}
            Path(folder, f"{session.id}.json").write_text(json.dumps(kept))


def steps_in(prompt: Sequence[Obj]) -> list[Obj]:
    texts = [block["text"] for block in prompt if block.get("type") == "text"]
    for text in reversed(texts):
        with contextlib.suppress(ValueError):
            steps = json.loads(text)
            if isinstance(steps, list):
                return steps  # pyright: ignore[reportUnknownVariableType]
    return [{"say": f"You said: {texts[-1] if texts else ''}"}]


TASKS: set[asyncio.Task[Any]] = set()


def background(work: Any) -> None:
    task = asyncio.ensure_future(work)
    TASKS.add(task)
    task.add_done_callback(TASKS.discard)


@contextlib.asynccontextmanager
async def mcp_client(servers: Sequence[Obj]) -> AsyncGenerator[Any]:
    """A client of the first server that was offered."""
    import httpx2  # noqa: PLC0415 - slow to import, and few scripts need them
    from mcp.client.client import Client  # noqa: PLC0415
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    server = servers[0]
    pairs = {entry["name"]: entry["value"] for entry in server["headers" if "url" in server else "env"]}
    async with contextlib.AsyncExitStack() as stack:
        if "url" in server:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=pairs, timeout=60))
            line: Any = streamable_http_client(server["url"], http_client=http)
        else:
            line = StdioServerParameters(command=server["command"], args=server["args"], env=pairs)
        yield await stack.enter_async_context(Client(line, mode="legacy", cache=None))


def skip_schema() -> None:
    """Let `acp` be a bare package, so that importing its connection does not load the whole schema with it."""
    found = importlib.util.find_spec("acp")
    assert found is not None
    bare = ModuleType("acp")
    bare.__path__ = list(found.submodule_search_locations or ())
    sys.modules["acp"] = bare


def validate(model: str, params: Any) -> None:
    from acp import schema  # noqa: PLC0415 - slow to import

    getattr(schema, model).model_validate(params)


async def stdio_streams(limit: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """As the SDK makes them, whose module loads the schema."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def main(manners: Manners) -> None:
    """Serve one client on stdin and stdout, through the SDK's connection and the agent's routes."""
    from acp.connection import Connection  # noqa: PLC0415 - not needed by who imports `command` and `script`
    from acp.exceptions import RequestError  # noqa: PLC0415
    from acp.router import MessageRouter, Route  # noqa: PLC0415

    wire = Wire(*await stdio_streams(limit=64 * 1024 * 1024))
    wire.answers = manners.get("answers", {})
    agent = Agent(wire, manners)
    await Actor(agent, Session("", {})).act(manners.get("at_start", ()))
    router = MessageRouter()

    def checked(model: str, serve: Callable[[Obj], Awaitable[Obj]]) -> Callable[[Any], Awaitable[Any]]:
        async def handle(params: Any) -> Obj:
            if manners.get("strict"):
                validate(
                    "SetSessionConfigOptionBooleanRequest" if params.get("type") == "boolean" else model,
                    params,
                )
            try:
                return await serve(params)
            except Refused as refused:
                error = refused.error
                raise RequestError(error["code"], error["message"], error.get("data")) from refused

        return handle

    for method, model, serve in (
        ("initialize", "InitializeRequest", agent.initialize),
        ("authenticate", "AuthenticateRequest", agent.authenticate),
        ("session/new", "NewSessionRequest", agent.new),
        ("session/load", "LoadSessionRequest", agent.load),
        ("session/resume", "ResumeSessionRequest", agent.resume),
        ("session/fork", "ForkSessionRequest", agent.fork),
        ("session/list", "ListSessionsRequest", agent.list),
        ("session/close", "CloseSessionRequest", agent.close),
        ("session/delete", "DeleteSessionRequest", agent.delete),
        ("session/set_mode", "SetSessionModeRequest", agent.set_mode),
        ("session/set_config_option", "SetSessionConfigOptionSelectRequest", agent.set_option),
        ("session/prompt", "PromptRequest", agent.prompt),
    ):
        router.add_route(Route(method=method, func=checked(model, serve), kind="request"))
    router.add_route(Route(method="session/set_model", func=agent.set_model, kind="request"))

    async def extended(method: str, params: Any) -> Obj:
        assert method == "handrail/cancel_activity", method  # the SDK takes the first character off
        return await agent.cancel_activity(params)

    router.handle_extension_request(extended)

    async def cancel(params: Any) -> None:
        agent.cancel(params)

    router.add_route(Route(method="session/cancel", func=cancel, kind="notification"))
    if manners.get("ignores_eof"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    connection = Connection(router, wire, listening=False)
    await connection.main_loop()
    if manners.get("ignores_eof"):
        await asyncio.Event().wait()


if __name__ == "__main__":
    chosen = cast("Manners", json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    if not chosen.get("strict"):
        skip_schema()
    asyncio.run(main(chosen))
