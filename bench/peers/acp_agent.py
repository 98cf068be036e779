"""An ACP agent that streams words at a steady pace, each with its time. Standard library only, so that it is fast.

The text of a prompt is the number of words and the words per second. Each word is `NUMBER@MILLISECONDS;`, by the system clock.
"""

import json
import sys
import time
from typing import Any

PARAGRAPH = 50
"""Words in a paragraph, as models write."""


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            _send({"id": message["id"], "result": _answer(message["method"], message.get("params") or {})})


def _answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
        case "session/new":
            return {"sessionId": "bench"}
        case "session/prompt":
            words, pace = params["prompt"][-1]["text"].split()
            _stream(params["sessionId"], int(words), float(pace))
            return {"stopReason": "end_turn"}
        case _:
            return {}


def _stream(session: str, words: int, pace: float) -> None:
    began = time.monotonic()
    for number in range(words):
        time.sleep(max(0.0, began + number / pace - time.monotonic()))
        after = "\n\n" if number % PARAGRAPH == PARAGRAPH - 1 else " "
        content = {"type": "text", "text": f"{number}@{time.time() * 1000:.2f};{after}"}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        _send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def _send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
