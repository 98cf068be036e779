"""A stand-in for the keeper, which remembers a sign-in that never was."""

import base64
import fcntl
import json
import os
import socket
from contextlib import suppress
from typing import Any, NoReturn

from .ground import HOME
from .web import FORGED, hashed


def be_a_keeper() -> NoReturn:
    lock = os.open(HOME / "keeper.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(HOME / "keeper.sock"))
    listener.listen()
    listener.settimeout(1)
    while HOME.exists():
        with suppress(TimeoutError), listener.accept()[0] as peer, peer.makefile("rb") as lines:
            for line in lines:
                _answer(peer, json.loads(line))
    os._exit(0)


def _answer(peer: socket.socket, message: dict[str, Any]) -> None:
    match message["is"]:
        case "hello":
            _say(peer, {"is": "welcome", "protocol": message["protocol"], "pid": os.getpid()})
        case "recall":
            forged = json.dumps({hashed(FORGED): ["s00000000000", "page"]}).encode()
            value = base64.b64encode(forged).decode()
            _say(peer, {"is": "recalled", "id": message["id"], "value": value})
        case "listen":
            port = socket.create_server(("127.0.0.1", 0))
            _say(peer, {"is": "listening", "id": message["id"], "descriptors": 1}, port.fileno())
        case _:
            _say(peer, {"is": "done", "id": message["id"]})


def _say(peer: socket.socket, reply: dict[str, Any], *descriptors: int) -> None:
    socket.send_fds(peer, [json.dumps(reply).encode() + b"\n"], descriptors)
