"""An MCP server for tests of the relay that makes the mistakes and the attacks a relay has to live with.

`python hostile.py FOLDER [FLAG]` serves stdio: MCP 2025 with its handshake, with `--modern` MCP 2026-07-28 alone, with
`--both` the one that its first request is of. With `--narrow` it ends if its first request is not the handshake. It lists its
tools in another order each time, with one that MCP does not allow. FOLDER/log gets a line for each call and cancellation
that tests look for; FOLDER/tools.json, if it exists, has more tools. To a client that takes elicitations it offers one more, as some real servers do.
"""

import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

Json = dict[str, Any]
FLAGS = sys.argv[2:]
FOLDER = Path(sys.argv[1])
WRITING = threading.Lock()
CANCELLED: dict[object, threading.Event] = {}
ANSWERS: dict[object, tuple[threading.Event, Json]] = {}
CLIENT: Json = {}
ERA = {"modern": "--modern" in FLAGS}
TOGETHER = threading.Barrier(2)
ANY: Json = {"type": "object"}
STRICT: Json = {
    "type": "object",
    "$defs": {"amount": {"type": "number", "minimum": 0}},
    "properties": {"sum": {"$ref": "#/$defs/amount"}},
    "required": ["sum"],
    "additionalProperties": False,
}
NAME: Json = {"type": "object", "properties": {"name": {"type": "string"}}}
LINK = "https://good.example@evil.example/sign-in"
PLAIN = ("steps", "stubborn", "roots", "works", "noisy", "links", "samples", "elicits", "requires", "tells")
USELESS = ("x" * 60, "bad name", "twice", "twice", "")


def log(line: str) -> None:
    with (FOLDER / "log").open("a") as file:
        file.write(f"{line}\n")


def send(message: Json) -> None:
    with WRITING:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def text(said: str) -> Json:
    return {"content": [{"type": "text", "text": said}]}


def ask(method: str, params: Json) -> Json:
    """Ask the client as a server of MCP 2025 does, and wait for its answer."""
    number = f"s{len(ANSWERS)}"
    came = threading.Event()
    ANSWERS[number] = (came, {})
    send({"id": number, "method": method, "params": params})
    came.wait(60)
    return ANSWERS[number][1]


class LinkRequired(Exception):
    """The client has to open a link before it calls again."""


def definitions() -> list[Json]:
    echo: Json = {
        "name": "echo",
        "title": "Echo",
        "description": "Says it again.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    }
    adds = {"name": "adds", "inputSchema": ANY, "outputSchema": STRICT}
    lies: Json = {"name": "lies", "description": 7, "inputSchema": {"type": "object", "properties": []}}
    found = [echo, adds, lies, *({"name": name, "inputSchema": ANY} for name in (*PLAIN, *USELESS))]
    more = FOLDER / "tools.json"
    found += json.loads(more.read_text()) if more.exists() else []
    if "elicitation" in CLIENT.get("capabilities", {}):
        found.append({"name": "for_some", "inputSchema": ANY})
    random.shuffle(found)
    return found


def use(number: object, params: Json) -> Json | None:  # noqa: PLR0911 - a case for each tool
    given: Json = params.get("arguments") or {}
    meta: Json = params.get("_meta") or {}
    match params["name"]:
        case "echo":
            return text(str(given.get("text")))
        case "adds":
            return {**text("3"), "structuredContent": {"sum": 3}}
        case "steps":
            return step(str(given["name"]), meta.get("progressToken"))
        case "stubborn":
            return refuse_to_stop(number)
        case "works":
            return work(number, float(given["seconds"]), meta.get("progressToken"))
        case "noisy":
            return make_noise(int(given["lines"]))
        case "tells":
            secret = len(os.environ.get("SECRET", ""))
            facts = {"pid": os.getpid(), "params": params, "env": sorted(os.environ), "secret": secret}
            return text(json.dumps({**facts, "client": CLIENT}))
        case "requires":
            raise LinkRequired
        case name if name in QUESTIONS:
            return question(name, params)
        case name:
            return {**text(name), "structuredContent": {"text": name}}


def step(name: str, token: object) -> Json:
    """Report progress while another call does the same."""
    TOGETHER.wait(30)
    for number in range(1, 6):
        send_progress(token, number, f"{name} {number}")
        time.sleep(0.002)
    return text(name)


def send_progress(token: object, progress: float, message: str) -> None:
    params = {"progressToken": token, "progress": progress, "total": 100, "message": message}
    send({"method": "notifications/progress", "params": params})


def refuse_to_stop(number: object) -> None:
    """Answer twice after the cancel, and with progress, as a server that did not notice it."""
    log(f"stubborn began {number}")
    CANCELLED[number].wait(60)
    log(f"stubborn cancelled {time.monotonic()}")
    for _ in range(2):
        send_progress(number, 99, "late")
        send({"id": number, "result": text("late")})


def work(number: object, seconds: float, token: object) -> Json | None:
    """Work for some time, with progress, and with messages for whoever listens."""
    log(f"works began {number}")
    end, done = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        if CANCELLED[number].wait(0.05):
            log(f"works cancelled {time.monotonic()}")
            return None
        done += 1
        if token is not None:
            send_progress(token, done, f"part {done}")
        send({"method": "notifications/message", "params": {"level": "info", "data": f"part {done}"}})
    log("works ended")
    return text("finished")


def make_noise(lines: int) -> Json:
    """Write to standard error, and text that is no message to the standard output."""
    for number in range(lines):
        sys.stderr.write(f"\x1b]0;title\x07\x1b[31mnoise {number} {'x' * 1000}\n")
        if number % 100 == 0:
            with WRITING:
                print(f"debug {number}", flush=True)
    sys.stderr.flush()
    return text("quiet")


QUESTIONS: dict[str, tuple[str, Json]] = {
    "roots": ("roots/list", {}),
    "elicits": ("elicitation/create", {"message": "Who?", "requestedSchema": NAME}),
    "links": (
        "elicitation/create",
        {"mode": "url", "message": "Sign in", "url": LINK, "elicitationId": "e1"},
    ),
    "samples": (
        "sampling/createMessage",
        {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 5},
    ),
}


def question(name: str, params: Json) -> Json:
    """Ask what the tool is named for, as this generation asks."""
    method, asked = QUESTIONS[name]
    log(f"{name} began {'again' if 'inputResponses' in params else 'first'}")
    if not ERA["modern"]:
        return text(json.dumps(ask(method, asked)))
    if "inputResponses" in params:
        return text(json.dumps({"answers": params["inputResponses"], "state": params.get("requestState")}))
    wanted = {"only": {"method": method, "params": asked}}
    return {"resultType": "input_required", "inputRequests": wanted, "requestState": "the server's own"}


def call(number: object, params: Json) -> None:
    try:
        result = use(number, params)
    except LinkRequired:
        link = {"mode": "url", "message": "Sign in", "url": LINK, "elicitationId": "e2"}
        error = {"code": -32042, "message": "Sign in first.", "data": {"elicitations": [link]}}
        send({"id": number, "error": error})
        return
    except KeyError as problem:
        send({"id": number, "error": {"code": -32602, "message": f"No such thing: {problem}"}})
        return
    if result is not None:
        send({"id": number, "result": {"resultType": "complete", **result} if ERA["modern"] else result})


def answer(method: str, params: Json) -> Json:  # noqa: PLR0911 - a case for each method
    abilities: Json = {"tools": {"listChanged": True}, "resources": {}, "logging": {}}
    match method:
        case "initialize" if not ERA["modern"]:
            info = {"name": "hostile", "version": "1"}
            CLIENT.update(params)
            return {
                "result": {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": abilities,
                    "serverInfo": info,
                }
            }
        case "server/discover" if ERA["modern"]:
            return {
                "result": {
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": abilities,
                }
            }
        case "tools/list":
            return {"result": {"tools": definitions()}}
        case "resources/list":
            uris = ("hostile://shared", f"hostile://{FOLDER.name}")
            lies: Json = {"uri": 7, "name": None}
            return {"result": {"resources": [*({"uri": uri, "name": uri} for uri in uris), lies]}}
        case "resources/read":
            return {"result": {"contents": [{"uri": params["uri"], "text": f"of {FOLDER.name}"}]}}
        case "resources/templates/list":
            return {"result": {"resourceTemplates": []}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def serve(message: Json) -> None:
    method, number = message.get("method"), message.get("id")
    params: Json = message.get("params") or {}
    if method is None:
        came, kept = ANSWERS[number]
        kept.update({name: message[name] for name in ("result", "error") if name in message})
        came.set()
    elif method == "notifications/cancelled":
        CANCELLED[params["requestId"]].set()
    elif method == "tools/call":
        CANCELLED[number] = threading.Event()
        threading.Thread(target=call, args=(number, params), daemon=True).start()
    elif number is not None:
        send({"id": number, **answer(method, params)})


def main() -> None:
    log(f"started {os.getpid()}")
    for number, line in enumerate(sys.stdin):
        message = json.loads(line)
        if number == 0 and "--both" in FLAGS:
            ERA["modern"] = message["method"] == "server/discover"
        if number == 0 and "--narrow" in FLAGS and message["method"] != "initialize":
            sys.exit(f"{message['method']} is no handshake")
        serve(message)


if __name__ == "__main__":
    main()
