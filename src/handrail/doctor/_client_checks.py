"""Checks of connected clients: a canary through each hook, drift of their files, and what switches the hooks off."""

import os
from collections.abc import Iterator
from pathlib import Path

from handrail.clients.canary import SLOW_SECONDS, send_canary
from handrail.clients.client_facts import Machine
from handrail.clients.config_file import FileProblem
from handrail.clients.connection_state import ClientState, examine_client
from handrail.clients.connections import Connection, Connections
from handrail.clients.known_clients import find_client
from handrail.clients.launcher_path import find_launcher
from handrail.doctor.checks import Finding
from handrail.paths import Places


def check_clients(places: Places) -> Iterator[Finding]:
    """One finding for each problem of a connected client, or a single one that all is well. None if no client is connected."""
    connections = Connections(places.data)
    try:
        known = connections.all()
    except FileProblem as problem:
        yield Finding(name="clients", level="bad", says=str(problem))
        return
    if not known:
        return
    machine = Machine.of(os.environ, Path.cwd())
    launcher = find_launcher(os.environ)
    for connection in known:  # one after the other, because the time is measured
        yield _check_canary(connection)
    for name in dict.fromkeys(each.client for each in known):
        yield from _check_state(examine_client(name, machine, launcher, connections, known))


def _check_canary(connection: Connection) -> Finding:
    title = find_client(connection.client).title
    if not connection.has_hooks:
        return Finding(
            name=connection.client, level="ok", says=f"{title} has Handrail's tools, and no hooks."
        )
    result = send_canary(connection, os.environ)
    if not result.is_answered:
        says = f"{title}'s hook did not reach the daemon: {result.says.rstrip('.') or 'it printed nothing'}."
        fix = f"handrail up, then handrail connect {connection.client}"
        return Finding(name=connection.client, level="bad", says=says, fix=fix)
    took = f"{title}'s hook was answered in {result.seconds * 1000:.0f} ms."
    return Finding(name=connection.client, level="warn" if result.seconds > SLOW_SECONDS else "ok", says=took)


def _check_state(state: ClientState) -> Iterator[Finding]:
    fix = f"handrail connect {state.client}" if state.state == "drifted" else None
    for problem in state.problems:
        yield Finding(name=state.client, level="bad", says=problem, fix=fix)
    for remark in state.notes:
        yield Finding(name=state.client, level="warn" if remark.startswith("Newer") else "ok", says=remark)
