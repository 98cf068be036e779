"""The processes: a daemon that answers, its keeper, their versions, the port.

Asks the daemon as a reader. Does not start or end anything.
"""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from handrail import __version__
from handrail.config import BadConfig, load
from handrail.doctor.finding import Finding
from handrail.door.connect import HelloRefused, dial, dial_path, say_hello
from handrail.places import Places

ANSWER_SECONDS = 10.0
"""A daemon answers in milliseconds; one that takes longer hangs, which is the finding."""


def check_processes(places: Places, within: float = ANSWER_SECONDS) -> Iterator[Finding]:
    sock = dial(places)
    if sock is None:
        yield Finding(name="daemon", level="warn", says="The daemon is not running.", fix="handrail up")
        yield from _left_keeper(places)
        yield from _port(places, None)
        return
    with closing(sock):
        try:
            reply = say_hello(sock, "read", within=within)
            health = _health(reply["url"], reply["bearer"])
        except (HelloRefused, OSError, http.client.HTTPException, ValueError) as problem:
            says = f"The daemon runs but does not answer ({problem})."
            yield Finding(name="daemon", level="bad", says=says, fix="handrail restart")
            return
    yield Finding(name="daemon", level="ok", says=f"Runs at {reply['url']} (pid {reply['pid']}).")
    yield _version(reply["version"])
    yield _keeper(health)
    yield from _port(places, reply["url"])


def _health(url: str, bearer: str) -> dict[str, Any]:
    where = urlsplit(url).netloc
    with closing(http.client.HTTPConnection(where, timeout=ANSWER_SECONDS)) as connection:
        connection.request("GET", "/api/health", headers={"Authorization": f"Bearer {bearer}"})
        return json.loads(connection.getresponse().read())


def _version(daemon: str) -> Finding:
    if daemon == __version__:
        return Finding(name="version", level="ok", says=f"Command and daemon are both {daemon}.")
    says = f"The daemon is version {daemon}, this command {__version__}."
    return Finding(name="version", level="warn", says=says, fix="handrail restart")


def _keeper(health: dict[str, Any]) -> Finding:
    keeper = health.get("keeper")
    if keeper:
        return Finding(name="keeper", level="ok", says=f"Lives (pid {keeper['pid']}).")
    says = "The daemon has lost its keeper, so no command can be run."
    return Finding(name="keeper", level="bad", says=says, fix="handrail restart")


def _left_keeper(places: Places) -> Iterator[Finding]:
    keeper = dial_path(str(places.keeper_socket))
    if keeper is not None:
        keeper.close()
        says = "A keeper still holds what the last daemon started."
        yield Finding(
            name="keeper", level="warn", says=says, fix="handrail up   (or handrail down, to end it)"
        )


def _port(places: Places, url: str | None) -> Iterator[Finding]:
    try:
        wanted = load(places.config).server.port
    except BadConfig:
        return  # a finding of its own
    used = urlsplit(url).port if url else None
    if used in (wanted, None) and (used or _is_free(wanted)):
        yield Finding(name="port", level="ok", says=f"{wanted}, as configured.")
        return
    if used and _is_free(wanted):
        yield _moved(places, wanted, used)
        return
    says = f"Port {wanted} is taken by another program" + (f", so {used} is used." if used else ".")
    fix = f"Set another port under [server] in {places.config}."
    yield Finding(name="port", level="warn", says=says, fix=fix)


def _moved(places: Places, wanted: int, used: int) -> Finding:
    """The port is not the configured one, although that is free: another was asked for, or it was taken then."""
    if _wished(places) != wanted:
        return Finding(name="port", level="ok", says=f"{used}, as asked for at the start.")
    says = f"{used}, because {wanted} was taken at the start; it is free now."
    return Finding(name="port", level="warn", says=says, fix="handrail down, then handrail up")


def _wished(places: Places) -> int | None:
    """The port that the daemon was to have, as it noted itself."""
    try:
        return int(places.port.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
