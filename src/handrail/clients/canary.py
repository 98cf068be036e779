"""The canary: a hook payload with which `handrail doctor` measures that a client's hook reaches the daemon.

The recorded command is run as the client would run it. The daemon recognises the payload by `CANARY_FIELD` and refuses with
`CANARY_ANSWER`; no person is asked and no call is opened.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from handrail.clients.client_program import run_program
from handrail.clients.config_edit import is_list, is_object
from handrail.clients.connections import Connection
from handrail.clients.hook_event import CANARY_ANSWER, CANARY_FIELD
from handrail.clients.pieces import ConfigPiece
from handrail.lazy_dataclass import dataclass

CANARY_SECONDS = 10.0
"""Bounds the wait for a hook that hangs."""
SLOW_SECONDS = 1.0
"""A hook that takes longer slows down every tool call of the client. Most of it is the start of Python."""


@dataclass(frozen=True, slots=True)
class CanaryResult:
    """What came of one canary."""

    is_answered: bool
    seconds: float
    says: str
    """What the hook printed, or why it could not be run."""


def send_canary(connection: Connection, environ: Mapping[str, str]) -> CanaryResult:
    """Run the hook command of a connection, and see whether the daemon answers."""
    command = find_hook_command(connection)
    if command is None:
        return CanaryResult(False, 0.0, "no hook command is recorded")
    began = time.monotonic()
    try:
        payload = json.dumps({CANARY_FIELD: True})
        done = run_program(command, environ, CANARY_SECONDS, input=payload, cwd="/")
    except TimeoutError:
        return CanaryResult(False, CANARY_SECONDS, f"the hook gave no answer in {CANARY_SECONDS:.0f} s")
    except OSError as error:
        return CanaryResult(False, 0.0, f"{command[0]} cannot be run: {error.strerror}")
    words = " ".join(f"{done.stdout} {done.stderr}".split())
    return CanaryResult(CANARY_ANSWER in words, time.monotonic() - began, words[:300])


def find_hook_command(connection: Connection) -> list[str] | None:
    """The recorded command that decides about tool calls: program and arguments, or a shell with a line."""
    if not connection.has_hooks:
        return None
    pieces = [written.piece for file in connection.files for written in file.pieces]
    return next((command for piece in pieces for command in _commands(piece)), None)


def _commands(piece: ConfigPiece) -> Iterator[list[str]]:
    if piece.kind == "member":
        return
    if piece.kind == "item":
        yield from _commands_in(piece.value)
    elif piece.mode & 0o100:
        yield [str(piece.path)]
    elif plugin := re.search(r"^const COMMAND = (\[.*\])$", str(piece.value), re.M):
        yield json.loads(plugin[1])
    elif piece.path.suffix == ".json":
        yield from _commands_in(json.loads(piece.value))


def _commands_in(value: Any) -> Iterator[list[str]]:
    """Commands in a hook entry; the deciding command comes first."""
    if is_list(value):
        for each in value:
            yield from _commands_in(each)
    if not is_object(value):
        return
    line = value.get("command", value.get("bash"))
    if isinstance(line, str) and isinstance(value.get("args"), list):
        yield [line, *value["args"]]
    elif isinstance(line, str):
        yield ["/bin/sh", "-c", line]
    for each in value.values():
        yield from _commands_in(each)
