"""The smallest MCP server, for tests and measurements that start hundreds: one tool, `echo`. FOLDER/log gets its pid."""

import json
import os
import sys
from typing import Any

ECHO = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "tiny", "version": "1"}
            version = params["protocolVersion"]
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "tools/list":
            return {"result": {"tools": [ECHO]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": params["arguments"].get("text", "")}]}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    if len(sys.argv) > 1:
        with open(f"{sys.argv[1]}/log", "a") as log:
            log.write(f"started {os.getpid()}\n")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            reply = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


if __name__ == "__main__":
    main()
