"""A stand-in for the keeper, which remembers a sign-in that never was."""

import base64
import fcntl
import json
import os
import socket
from typing import Any, NoReturn

from .ground import HOME
from .web import FORGED, hashed


def be_a_keeper() -> NoReturn:
    lock = os.open(HOME / "keeper.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(HOME / "keeper.sock"))
    listener.listen()
    while True:
        with listener.accept()[0] as peer, peer.makefile("rb") as lines:
            for line in lines:
                peer.sendall(json.dumps(_answer(json.loads(line))).encode() + b"\n")


def _answer(message: dict[str, Any]) -> dict[str, Any]:
    match message["is"]:
        case "hello":
            return {"is": "welcome", "protocol": message["protocol"], "pid": os.getpid()}
        case "recall":
            forged = json.dumps({hashed(FORGED): ["s00000000000", "page"]}).encode()
            return {"is": "recalled", "id": message["id"], "value": base64.b64encode(forged).decode()}
        case _:
            return {"is": "done", "id": message["id"]}
