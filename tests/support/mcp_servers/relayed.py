"""An MCP server for tests of the relay: in plain Python, with the handshake of MCP 2025, and with bad habits on request.

`python relayed.py FOLDER` serves stdio. FOLDER/log gets a line for each start, cancellation and end; FOLDER/description,
if it exists, is the description of the tool `echo`, and FOLDER/fault makes the server do wrong at its start.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
WRITING = threading.Lock()
CANCELLED: dict[object, threading.Event] = {}
ANSWERS: dict[object, tuple[threading.Event, Json]] = {}
CLIENT: Json = {}
TEXT: Json = {"type": "object", "properties": {"text": {"type": "string"}, "title": {"type": "string"}}}
NUMBERS: Json = {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}
SUM: Json = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
ANY: Json = {"type": "object"}


class Folder:
    path = Path()

    @classmethod
    def read(cls, name: str) -> str:
        file = cls.path / name
        return file.read_text() if file.exists() else ""

    @classmethod
    def log(cls, line: str) -> None:
        with (cls.path / "log").open("a") as file:
            file.write(f"{line}\n")


def send(message: Json) -> None:
    with WRITING:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask(method: str, params: Json) -> Json:
    """Ask the client, and wait for its answer."""
    number = f"s{len(ANSWERS)}"
    came = threading.Event()
    ANSWERS[number] = (came, {})
    send({"id": number, "method": method, "params": params})
    came.wait(60)
    return ANSWERS[number][1]


def tools() -> list[Json]:
    described = Folder.read("description") or "Says it again."
    more = [{"name": name, "inputSchema": ANY} for name in Folder.read("tools").split()]
    return [
        {"name": "waits", "description": "Until it is cancelled.", "inputSchema": ANY},
        {
            "name": "echo",
            "description": described,
            "inputSchema": TEXT,
            "annotations": {"readOnlyHint": True},
        },
        {"name": "add", "inputSchema": NUMBERS, "outputSchema": SUM},
        {"name": "asks", "inputSchema": ANY},
        {"name": "samples", "inputSchema": ANY},
        {"name": "roots", "inputSchema": ANY},
        {"name": "counts", "inputSchema": ANY},
        {"name": "fails", "inputSchema": ANY},
        {"name": "refuses", "inputSchema": ANY},
        {"name": "crashes", "inputSchema": ANY},
        {"name": "floods", "inputSchema": ANY},
        {"name": "facts", "inputSchema": ANY},
        {"name": "forbidden", "inputSchema": ANY},
        {"name": "x" * 60, "inputSchema": ANY},
        {"name": "bad name", "inputSchema": ANY},
        {"name": "twice", "inputSchema": ANY},
        {"name": "twice", "inputSchema": TEXT},
        *more,
    ]


def text(said: str) -> Json:
    return {"content": [{"type": "text", "text": said}]}


def use(number: object, params: Json) -> Json | None:  # noqa: C901, PLR0911, PLR0912 - a case for each tool
    given: Json = params.get("arguments") or {}
    meta: Json = params.get("_meta") or {}
    match params["name"]:
        case "echo":
            return {**text(str(given.get("text"))), "_meta": {"got": given, "meta": meta}}
        case "add":
            total = given["a"] + given["b"]
            return {**text(str(total)), "structuredContent": {"sum": total}}
        case "waits":
            Folder.log(f"waits began {number}")
            CANCELLED[number].wait(60)
            Folder.log(f"waits cancelled {number} {time.monotonic()}")
            return None
        case "asks":
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            return text(json.dumps(ask("elicitation/create", {"message": "Who?", "requestedSchema": schema})))
        case "samples":
            block = {"role": "user", "content": {"type": "text", "text": "Hi"}}
            return text(json.dumps(ask("sampling/createMessage", {"messages": [block], "maxTokens": 5})))
        case "roots":
            return text(json.dumps(ask("roots/list", {})))
        case "counts":
            for step in (1, 2, 3):
                send(
                    {
                        "method": "notifications/progress",
                        "params": {
                            "progressToken": meta.get("progressToken"),
                            "progress": step,
                            "total": 3,
                            "message": f"step {step}",
                        },
                    }
                )
                send({"method": "notifications/message", "params": {"level": "info", "data": f"log {step}"}})
            return text("counted")
        case "fails":
            return {**text("It did not work."), "isError": True}
        case "crashes":
            print("I will crash now", file=sys.stderr, flush=True)
            os._exit(3)
        case "floods":
            for step in range(1_000_000):
                send(
                    {"method": "notifications/message", "params": {"level": "info", "data": f"noise {step}"}}
                )
            return text("flooded")
        case "facts":
            return text(
                json.dumps(
                    {"pid": os.getpid(), "cwd": str(Path.cwd()), "env": dict(os.environ), "client": CLIENT}
                )
            )
        case _:
            raise ValueError


def call(number: object, params: Json) -> None:
    try:
        result = use(number, params)
    except ValueError:
        send({"id": number, "error": {"code": -32602, "message": "No such thing", "data": {"why": 1}}})
        return
    if result is not None and not CANCELLED[number].is_set():
        send({"id": number, "result": result})


def change_tools(name: str) -> None:
    (Folder.path / "tools").write_text(name)
    send({"method": "notifications/tools/list_changed"})


def answer(method: str, params: Json) -> Json:  # noqa: C901, PLR0911 - a case for each method
    match method:
        case "initialize":
            CLIENT.update(params)
            can = {
                "tools": {"listChanged": True},
                "logging": {},
                "resources": {"subscribe": True},
                "prompts": {},
                "completions": {},
            }
            return {
                "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": can,
                    "serverInfo": {"name": "relayed", "version": "1"},
                }
            }
        case "tools/list":
            return {"result": {"tools": tools()}}
        case "resources/list":
            return {"result": {"resources": [{"uri": "relayed://one", "name": "one"}]}}
        case "resources/templates/list":
            return {"result": {"resourceTemplates": [{"uriTemplate": "relayed://{id}", "name": "any"}]}}
        case "resources/read":
            return {"result": {"contents": [{"uri": params["uri"], "text": f"read {params['uri']}"}]}}
        case "resources/subscribe":
            send({"method": "notifications/resources/updated", "params": {"uri": params["uri"]}})
            return {"result": {}}
        case "prompts/list":
            return {"result": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}}
        case "prompts/get":
            block = {
                "role": "user",
                "content": {"type": "text", "text": f"Greet {params['arguments']['who']}"},
            }
            return {"result": {"messages": [block]}}
        case "completion/complete":
            return {"result": {"completion": {"values": [params["argument"]["value"] + "!"]}}}
        case "logging/setLevel":
            Folder.log(f"level {params['level']}")
            return {"result": {}}
        case "ping":
            return {"result": {}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def serve(message: Json) -> None:
    method, number = message.get("method"), message.get("id")
    params: Json = message.get("params") or {}
    arguments: Json = params.get("arguments") or {}
    if method is None:
        came, kept = ANSWERS[number]
        kept.update({"result": message["result"]} if "result" in message else {"error": message["error"]})
        came.set()
    elif method == "notifications/cancelled":
        CANCELLED[params["requestId"]].set()
    elif method == "notifications/roots/list_changed":
        Folder.log("roots changed")
    elif method == "tools/call":
        CANCELLED[number] = threading.Event()
        if arguments.get("new_tool"):
            change_tools(arguments["new_tool"])
        threading.Thread(target=call, args=(number, params), daemon=True).start()
    elif number is not None:
        send({"id": number, **answer(method, params)})


def main() -> None:
    Folder.path = Path(sys.argv[1])
    Folder.log(f"started {os.getpid()}")
    match Folder.read("fault"):
        case "exits":
            print("no licence found", file=sys.stderr, flush=True)
            sys.exit(4)
        case "hangs":
            time.sleep(600)
        case "lies":
            print("this is not JSON-RPC", flush=True)
        case _:
            pass
    for line in sys.stdin:
        serve(json.loads(line))


if __name__ == "__main__":
    main()
