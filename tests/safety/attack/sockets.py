"""Speaking on the sockets of the home."""

import contextlib
import json
import socket
from typing import Any

from .ground import BOUND, HOME


def converse(name: str, *messages: dict[str, Any]) -> dict[str, Any]:
    """Say something, line by line; the last answer."""
    said: dict[str, Any] = {}
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(BOUND)
        sock.connect(str(HOME / name))
        with sock.makefile("rb") as lines, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for message in messages:
                sock.sendall(json.dumps(message).encode() + b"\n")
                said = json.loads(lines.readline() or b"{}") or said
    return said
