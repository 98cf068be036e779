"""The state of every client: found, connected, drifted, overridden, or connected to another Handrail."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from handrail.clients.client_facts import (
    SERVER,
    Client,
    Machine,
    Setup,
    is_older,
    read_value,
    version_key,
)
from handrail.clients.client_program import find_version
from handrail.clients.config_edit import ABSENT, BadFile, is_list
from handrail.clients.config_file import FileProblem, read_text
from handrail.clients.connection_plan import ConnectRefused, plan_connect
from handrail.clients.connections import Connection, Connections
from handrail.clients.known_clients import NAMES, find_client
from handrail.clients.launcher_path import Launcher, find_problem
from handrail.clients.pieces import ConfigPiece
from handrail.lazy_dataclass import dataclass

State = Literal["not found", "found", "connected", "drifted", "overridden", "other Handrail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientState:
    """One client, as `handrail connect` lists it."""

    client: str
    title: str
    state: State
    found: bool
    program: str | None
    version: str
    scopes: tuple[str, ...]
    """`user`, `locked`, or the folder of a project."""
    hooks: bool
    """Whether hooks are written; else only the MCP server is."""
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    """Facts that are no problem, such as a version that is newer than ours."""
    files: tuple[str, ...]


def examine_clients(machine: Machine, launcher: Launcher, connections: Connections) -> list[ClientState]:
    """The state of every client, in the order of NAMES. Raises FileProblem if the records cannot be read."""
    known = connections.all()
    with ThreadPoolExecutor(8) as pool:  # some clients are asked for their version
        states = [pool.submit(examine_client, name, machine, launcher, connections, known) for name in NAMES]
        return [state.result() for state in states]


def examine_client(
    name: str, machine: Machine, launcher: Launcher, connections: Connections, known: list[Connection]
) -> ClientState:
    client = find_client(name)
    own = [each for each in known if each.client == name]
    version = find_version(client, machine)
    setup = Setup(machine=machine, launcher=launcher, version=version, program=client.program(machine))
    drift = [problem for each in own for problem in find_drift(client, each, setup, connections)]
    is_locked = any(each.is_locked for each in own)
    has_hooks = any(each.has_hooks for each in own)
    overrides = client.overrides(replace(setup, is_locked=is_locked)) if has_hooks else []
    overrides += find_namesakes(client, setup) if own else []
    others = [] if own else [str(each) for each in find_other_entries(client, setup)]
    found = client.is_found(machine)
    is_old = bool(client.needs) and is_older(version, client.needs)
    old = (
        [f"{client.title} {version} is older than {client.needs}, which has the hooks."]
        if is_old and own
        else []
    )
    state: State = "found" if found else "not found"
    if others:
        state = "other Handrail"
    if own:
        state = "drifted" if drift else "overridden" if overrides or old else "connected"
    return ClientState(
        client=name,
        title=client.title,
        state=state,
        found=found,
        program=setup.program,
        version=version,
        scopes=tuple("locked" if each.is_locked else each.project or "user" for each in own),
        hooks=has_hooks,
        problems=(*others, *drift, *overrides, *old),
        notes=(*_warnings(client, own, setup), *_version_notes(client, version)),
        files=tuple(str(file.path) for each in own for file in each.files),
    )


def find_namesakes(client: Client, setup: Setup) -> list[str]:
    """Sentences about MCP servers of this project that are called like ours, and take its place there."""
    if not client.has_project_scope:
        return []
    here = replace(setup, scope="project", program=None)
    return [
        f"{piece.path} has another MCP server called {SERVER}: Handrail's own tools are missing in this project."
        for piece in client.mcp_pieces(here)
        if _names_other_program(read_value(piece.path, piece.pointer, piece.format))
    ]


def _names_other_program(entry: Any) -> bool:
    """Whether an entry exists, and does not run `handrail mcp`."""
    text = json.dumps(entry) if entry is not ABSENT else ""
    return bool(text) and not ('handrail"' in text and '"mcp"' in text)


def _warnings(client: Client, own: list[Connection], setup: Setup) -> list[str]:
    is_single = any(each.is_single_question for each in own)
    return client.warnings(replace(setup, is_single_question=is_single))


def _version_notes(client: Client, version: str) -> Iterator[str]:
    if version and client.tried and version_key(version) > version_key(client.tried):
        yield f"Newer than {client.tried}, which Handrail's facts were read from."
    elif is_older(version, client.tried):
        yield f"Older than {client.tried}, which Handrail's facts were read from."


def find_drift(
    client: Client, connection: Connection, setup: Setup, connections: Connections
) -> Iterator[str]:
    """How the client's files differ from the recorded text, and from the text of a new connection."""
    for file in connection.files:
        try:
            text = read_text(file.path)
            missing = [each.piece for each in file.pieces if not each.piece.is_in(text)]
        except (BadFile, FileProblem) as problem:
            yield f"{file.path} cannot be read: {problem}"
            continue
        back = [piece for piece in missing if piece.kind == "absent"]
        if back:
            yield f"{', '.join(piece.place for piece in back)} was moved behind Handrail, and is there again."
        missing = [piece for piece in missing if piece.kind != "absent"]
        if missing:
            yield f"{_describe(missing)} not as Handrail wrote {'it' if len(missing) == 1 else 'them'}."
    if Path(connection.launcher) != Path(setup.launcher.path) and find_problem(Launcher(connection.launcher)):
        yield find_problem(Launcher(connection.launcher))
    yield from _find_outdated(client, connection, setup, connections)


def _describe(pieces: list[ConfigPiece]) -> str:
    if len(pieces) == 1:
        return f"{pieces[0].place} is"
    return f"{pieces[0].place} and {len(pieces) - 1} more are"


def _find_outdated(
    client: Client, connection: Connection, setup: Setup, connections: Connections
) -> Iterator[str]:
    """Whether connecting again would write something else, because the client's version or Handrail changed."""
    if connection.version == setup.version or connection.project or not setup.version:
        return
    again = Setup(
        machine=setup.machine,
        launcher=Launcher(connection.launcher, setup.launcher.home),
        version=setup.version,
        program=setup.program,
        has_mcp=connection.has_mcp,
        has_hooks=connection.has_hooks,
        is_locked=connection.is_locked,
        is_single_question=connection.is_single_question,
        hook_timeout=connection.hook_timeout,
    )
    try:
        plan = plan_connect(client, again, connections)
    except ConnectRefused:
        return
    if plan.is_change:
        yield (
            f"Connected when {client.title} was {connection.version or 'of an unknown version'}; {setup.version} needs "
            f"another entry. Run `handrail connect {client.name}`."
        )


_HOOK = re.compile(r"handrail['\"]?,?\s+\"?hook\"?,?\s+\"?\w+")
_HOME = re.compile(
    r"""HANDRAIL_HOME":\s*"([^"]*)"|"HANDRAIL_HOME=((?:(?![ ]hook[ ])[^"'])*)"|HANDRAIL_HOME='([^']*)'|HANDRAIL_HOME=([^\s"']+)"""
)
"""In the environment of an MCP server, as an argument of a program, and in a line for the shell."""


@dataclass(frozen=True, slots=True)
class OtherEntry:
    """An entry in a client's file that Handrail did not record: of another home, or written by hand."""

    path: Path
    home: str
    """HANDRAIL_HOME of the entry; empty for the default."""
    is_hook: bool
    is_other_home: bool

    def __str__(self) -> str:
        if not self.is_other_home:
            return f"{self.path} has an entry for Handrail that this one did not write."
        home = f"HANDRAIL_HOME={self.home}" if self.home else "the default home"
        return f"{self.path} has an entry of another Handrail ({home})."


def find_other_entries(client: Client, setup: Setup) -> list[OtherEntry]:
    found: dict[tuple[Path, str, bool], OtherEntry] = {}
    for piece in client.pieces(setup):
        try:
            source = _entry_source(piece, read_text(piece.path))
        except (BadFile, FileProblem):
            continue
        if source:
            home = _HOME.search(source)
            name = next(filter(None, home.groups()), "") if home else ""
            is_hook = piece.kind != "member"
            entry = OtherEntry(piece.path, name, is_hook, name != setup.launcher.home)
            found.setdefault((piece.path, name, is_hook), entry)
    return [*found.values()]


def _entry_source(piece: ConfigPiece, text: str) -> str:
    """The source of an entry of some Handrail where this piece belongs; empty without one."""
    current: Any = piece.current(text)
    if current is ABSENT:
        return ""
    if piece.kind == "member":
        return json.dumps(current) if piece.pointer[-1] == SERVER else ""
    items: list[Any] = current if is_list(current) else [current]
    sources = [each if isinstance(each, str) else json.dumps(each).replace('\\"', '"') for each in items]
    return next((source for source in sources if _HOOK.search(source)), "")
