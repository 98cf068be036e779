"""A handwritten MCP server for messages that no library sends: `python handmade.py WAY`, on stdio.

`new`: speaks the newer protocol generation only. `chatty`: prints lines that are not messages. `endless`: its list of
tools has no end.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

SCHEMA: Json = {"type": "object", "properties": {}}
CAN: Json = {"tools": {}}
LASTING: Json = {"ttlMs": 0, "cacheScope": "public"}
NEW = "2026-07-28"


def main(way: str) -> None:
    if way == "chatty":
        print("Welcome to the server!\n{not json\n", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            told = {
                "jsonrpc": "2.0",
                "id": asked["id"],
                **answer(way, asked["method"], asked.get("params") or {}),
            }
            print(json.dumps(told), flush=True)


def answer(way: str, method: str, params: Json) -> Json:
    match method:
        case "initialize" if way == "new":
            data = {"supported": [NEW], "requested": params["protocolVersion"]}
            return {"error": {"code": -32022, "message": "too old", "data": data}}
        case "initialize" | "server/discover" | "tools/list" | "tools/call":
            return {"result": {"resultType": "complete", **ANSWERS[method](way, params)}}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


def greeted(_way: str, params: Json) -> Json:
    about = {"name": "plain", "version": "1"}
    return {"protocolVersion": params["protocolVersion"], "capabilities": CAN, "serverInfo": about}


def discovered(_way: str, _params: Json) -> Json:
    return {"supportedVersions": [NEW], "capabilities": CAN, **LASTING}


def listed(way: str, params: Json) -> Json:
    cursor = int(params.get("cursor", 0))
    more = {"nextCursor": str(cursor + 1)} if way == "endless" else {}
    return {"tools": [{"name": f"tool{cursor}", "inputSchema": SCHEMA}], **LASTING, **more}


def called(way: str, _params: Json) -> Json:
    return {"content": "not a list" if way == "chatty" else [{"type": "text", "text": "plainly"}]}


ANSWERS: dict[str, Callable[[str, Json], Json]] = {
    "initialize": greeted,
    "server/discover": discovered,
    "tools/list": listed,
    "tools/call": called,
}


if __name__ == "__main__":
    main(sys.argv[1])
