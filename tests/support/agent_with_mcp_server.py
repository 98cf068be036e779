"""Our own agent with an extra MCP server, as an editor starts it.

`python -m tests.support.agent_with_mcp_server` starts `handrail agent`, forwards every line, and adds the
server `stranger` (mcp_servers/stubborn.py) to each session.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

STRANGER = {
    "name": "stranger",
    "command": sys.executable,
    "args": ["-P", str(Path(__file__).parent / "mcp_servers" / "stubborn.py")],
    "env": [],
}


def main() -> None:
    agent = subprocess.Popen([sys.executable, "-P", "-m", "handrail", "agent"], stdin=subprocess.PIPE)
    threading.Thread(target=_end_with, args=(agent,)).start()
    assert agent.stdin is not None
    with suppress(BrokenPipeError), agent.stdin as out:
        for line in sys.stdin.buffer:
            out.write(_with_stranger(line))
            out.flush()


def _end_with(agent: "subprocess.Popen[bytes]") -> None:
    """Whatever we are just waiting for."""
    os._exit(agent.wait())


def _with_stranger(line: bytes) -> bytes:
    message: dict[str, Any] = json.loads(line)
    if message.get("method") not in ("session/new", "session/load", "session/resume"):
        return line
    message["params"]["mcpServers"] = [*message["params"].get("mcpServers", []), STRANGER]
    return json.dumps(message).encode() + b"\n"


if __name__ == "__main__":
    main()
