"""The smallest MCP server in plain Python, for measurements that start hundreds.

The tool `echo` returns its argument; `wait` returns nothing, and FILE gets a line when it begins and when it is cancelled.
"""

import json
import sys
import time
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in ("echo", "wait")]


def note(text: str) -> None:
    with open(sys.argv[1], "a") as file:
        file.write(f"{text}\n")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "tiny", "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": params["arguments"]["text"]}]}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin.buffer:
    message = json.loads(line)
    method = message.get("method")
    params: dict[str, Any] = message.get("params") or {}
    if params.get("name") == "wait":
        note(f"began {params['arguments']['text']}")
    elif method == "notifications/cancelled":
        note(f"cancelled {time.monotonic()}")
    elif "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(method, params)}), flush=True)
