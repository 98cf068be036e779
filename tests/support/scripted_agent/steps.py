"""The steps that a script may hold, one method each."""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, cast

from tests.support.scripted_agent import OPTIONS, Obj
from tests.support.scripted_agent.wire import Ended, Refused, Session

if TYPE_CHECKING:
    from tests.support.scripted_agent.agent import Agent

CHILD = """
import os, signal, sys, time
if sys.argv[2]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.write(int(sys.argv[1]), str(os.getpid()).encode())
os.close(int(sys.argv[1]))
time.sleep(3600)
"""


class Actor:
    """Executes the steps of one prompt."""

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
        """The value with `$x.field` replaced by the stored answer."""
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

    # Output

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

    # Activities

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

    async def do_take_steering(self, step: Obj) -> None:
        self.kept[step["take_steering"]] = await self.session.steered.get()

    # Requests to the client

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

    # Reports about itself

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
        """Report hashes of environment variables."""
        found = {name: os.environ.get(name) for name in step["hash_env"]}
        await self.tell(
            {name: value and hashlib.sha256(value.encode()).hexdigest() for name, value in found.items()}
        )

    async def do_tell_pid(self, _: Obj) -> None:
        await self.tell(os.getpid())

    async def do_tell_heard(self, _: Obj) -> None:
        await self.tell(self.wire.heard)

    # Misbehaviour

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
        told, tell = os.pipe()  # a separate pipe, since its stdout may be ours
        argv = [sys.executable, "-S", "-c", CHILD, str(tell), "ignores" if step.get("ignores_term") else ""]
        out = None if step.get("holds_stdout") else subprocess.DEVNULL
        subprocess.Popen(  # noqa: ASYNC220 - it is not waited for
            ["sh", "-c", '"$@" &', "sh", *argv] if step.get("forks") else argv,
            stdin=subprocess.PIPE if step.get("spoken_to") else subprocess.DEVNULL,
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
        if self.session.was_cancelled or not step.get("after_cancel"):
            raise Refused(step["fail"])

    async def do_if(self, step: Obj) -> None:
        await self.act(step.get("then" if step["if"] == step["is"] else "else", ()))


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
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers=pairs, timeout=60, verify=False)
            )
            line: Any = streamable_http_client(server["url"], http_client=http)
        else:
            line = StdioServerParameters(command=server["command"], args=server["args"], env=pairs)
        yield await stack.enter_async_context(Client(line, mode="legacy", cache=None))
