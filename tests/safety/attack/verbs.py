"""Tries: a person's verbs, by the command line and by the daemon's socket."""

import io
import json
import os
import sys
from importlib import import_module

from handrail.cli.command_line import COMMANDS, run

from .ground import Got, Order, Try
from .sockets import converse


def command_line(*arguments: str) -> Try:
    def attempt(order: Order) -> Got:
        return _run([argument.format(**order.ids) for argument in arguments])

    return attempt


def greets_as_a_person(_order: Order) -> Got:
    reply = converse("daemon.sock", {"handrail": 1, "want": "person"})
    return Got(0 if reply.get("ok") or "bearer" in reply else 1, json.dumps(reply))


TRIES: dict[str, Try] = {
    "greeting": greets_as_a_person,
    "approve": command_line("approve", "{approval}"),
    "approve for good": command_line("approve", "{approval}", "--always"),
    "approve something else": command_line("approve", "{approval}", "--input", '{{"command": "true"}}'),
    "deny": command_line("deny", "{approval}"),
    "cancel": command_line("cancel", "{call}"),
    "complete": command_line("complete", "{call}"),
    "open": command_line("open", "--print"),
    "credential": command_line("credential", "--workspace", "{workspace}"),
    "revoke": command_line("credentials", "revoke", "{credential}"),
    "add a rule": command_line("rules", "add", "allow", "--tool", "execute_command", "--user"),
    "accept a policy": command_line("rules", "accept", "--yes"),
    "resume": command_line("resume"),
    "trust": command_line("trust", "{workspace}", "--yes"),
    "undo": command_line("undo", "{call}", "--yes"),
    "pair a phone": command_line("pair", "--json"),
    "pair an editor": command_line("editors", "pair", "e0123456789"),
    "sign a browser out": command_line("sign-ins", "revoke", "s0123456789"),
    "add a server": command_line("servers", "add", "hostile", "--", "true"),
    "remove a secret": command_line("servers", "secret", "remove", "TOKEN"),
    "restart": command_line("restart"),
    "down": command_line("down"),
}


def load_commands() -> None:
    """Import the commands once; else each of the children below would."""
    for module in {module for module, _, _ in COMMANDS}:
        import_module(module)


def _run(arguments: list[str]) -> Got:
    """One command of `handrail`, in a child of our own: it stands where we stand."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os.close(read)
        sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(fd, "w"), write_through=True) for fd in (1, 2))
        os._exit(run(arguments))
    os.close(write)
    with open(read, "rb") as told:
        said = told.read().decode(errors="replace")
    return Got(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said)
