"""A small MCP server in plain Python, for tests whose subject is the agent: it starts in a twentieth of the time of sample.py.

`python plain.py LOG` serves stdio. It has four of the tools of sample.py and writes the same lines to LOG.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Json = dict[str, Any]
NEW = "2026-07-28"
CAN: Json = {"tools": {}}
LASTING: Json = {"ttlMs": 0, "cacheScope": "public"}
WRITING = threading.Lock()
CANCELLED: dict[object, threading.Event] = {}
"""The requests that are under way."""


class Log:
    path = Path()

    @classmethod
    def write(cls, line: str) -> None:
        with cls.path.open("a") as file:
            file.write(f"{line}\n")


def echo(_cancelled: threading.Event, given: Json) -> str:
    return given["text"]


def waits(cancelled: threading.Event, given: Json) -> str | None:
    """Until it is cancelled."""
    Log.write(f"{given['name']} began")
    if not cancelled.wait(60):
        return "slept"
    Log.write(f"{given['name']} cancelled")
    return None


def ignores(_cancelled: threading.Event, given: Json) -> str:
    """Works on, whatever its client wants."""
    Log.write(f"{given['name']} began")
    time.sleep(given["seconds"])
    Log.write(f"{given['name']} ended")
    return "slept"


def environment(_cancelled: threading.Event, _given: Json) -> str:
    return json.dumps({**os.environ, "cwd": str(Path.cwd()), "pid": os.getpid()})


TOOLS: dict[str, tuple[Callable[[threading.Event, Json], str | None], Json]] = {
    "echo": (echo, {"text": "string"}),
    "waits": (waits, {"name": "string"}),
    "ignores": (ignores, {"name": "string", "seconds": "number"}),
    "environment": (environment, {}),
}


def tools() -> list[Json]:
    return [
        {
            "name": name,
            "inputSchema": {
                "type": "object",
                "properties": {field: {"type": kind} for field, kind in fields.items()},
                "required": list(fields),
            },
        }
        for name, (_, fields) in TOOLS.items()
    ]


def answer(method: str, params: Json) -> Json:
    match method:
        case "initialize":
            about = {"name": "plain", "version": "1"}
            told = {"protocolVersion": params["protocolVersion"], "capabilities": CAN, "serverInfo": about}
        case "server/discover":
            told = {"supportedVersions": [NEW], "capabilities": CAN, **LASTING}
        case "tools/list":
            told = {"tools": tools(), **LASTING}
        case "ping":
            told = {}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}
    return {"result": {"resultType": "complete", **told}}


def call(id: object, params: Json) -> None:
    """Run a tool. A request that was cancelled has no answer."""
    run, _ = TOOLS[params["name"]]
    said = run(CANCELLED[id], params.get("arguments") or {})
    if not CANCELLED.pop(id).is_set() and said is not None:
        send(id, {"result": {"resultType": "complete", "content": [{"type": "text", "text": said}]}})


def send(id: object, told: Json) -> None:
    with WRITING:
        print(json.dumps({"jsonrpc": "2.0", "id": id, **told}), flush=True)


def serve(message: Json) -> None:
    method, asked = message.get("method", ""), message.get("id")
    params: Json = message.get("params") or {}
    if method == "notifications/cancelled":
        with suppress(KeyError):
            CANCELLED[params["requestId"]].set()
    elif method == "tools/call":
        CANCELLED[asked] = threading.Event()
        threading.Thread(target=call, args=(asked, params), daemon=True).start()
    elif asked is not None:
        send(asked, answer(method, params))


def main(log: str) -> None:
    Log.path = Path(log)
    Log.write(f"up {os.getpid()}")
    for line in sys.stdin:
        serve(json.loads(line))
    Log.write("down")


if __name__ == "__main__":
    main(sys.argv[1])
