"""An MCP server on stdio that misbehaves. It needs the standard library only.

    greet      answers
    raises     answers with an error
    dies       exits the whole server
    stubborn   ignores its cancel, and answers 1 s after it

It ignores SIGTERM and the end of its input: only SIGKILL ends it.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

Json = dict[str, Any]
TOOLS = ("greet", "raises", "dies", "stubborn")
cancelled = threading.Event()


def main() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        message: Json = json.loads(line)
        if message.get("method") == "notifications/cancelled":
            cancelled.set()
        elif "id" in message and "method" in message:
            serve(message["id"], message["method"], message.get("params") or {})
    while True:
        time.sleep(60)


def serve(id: Any, method: str, params: Json) -> None:
    match method:
        case "initialize":
            info = {"name": "stranger", "version": "1"}
            answer(
                id,
                {
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                },
            )
        case "tools/list":
            schema: Json = {"type": "object", "properties": {}}
            answer(id, {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]})
        case "tools/call":
            use(id, params["name"])
        case _:
            say({"id": id, "error": {"code": -32601, "message": "There is no such method."}})


def use(id: Any, tool: str) -> None:
    match tool:
        case "greet":
            answer(id, worded("Hello from the stranger."))
        case "raises":
            say({"id": id, "error": {"code": -32603, "message": "ZeroDivisionError: division by zero"}})
        case "dies":
            os._exit(3)
        case _:
            threading.Thread(target=be_stubborn, args=(id,), daemon=True).start()


def be_stubborn(id: Any) -> None:
    cancelled.wait()
    time.sleep(1)
    answer(id, worded("I have gone on all the same."))


def worded(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


def answer(id: Any, result: Json) -> None:
    say({"id": id, "result": result})


def say(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
