"""Plans of `connect` and `disconnect`: every file as it is and as it will be, and their execution.

A plan is made without writing anything. It is carried out only if the files are still as they were when it was shown.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from handrail.clients.client_facts import Client, Setup
from handrail.clients.client_program import run_program
from handrail.clients.config_edit import ABSENT, BadFile
from handrail.clients.config_file import (
    FileProblem,
    check_writable,
    delete_file,
    delete_folders,
    digest_of,
    lock_folder,
    read_bytes,
    read_text,
    write_bytes,
)
from handrail.clients.connections import Connection, Connections, FileRecord, MovedServer, connection_key
from handrail.clients.pieces import ConfigPiece, Written
from handrail.clients.server_move import ServerMove
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places

T = TypeVar("T")
COMMAND_SECONDS = 60.0
"""Bounds a client's own command that hangs."""


class ConnectRefused(Exception):
    """A client cannot be connected or disconnected; the message is a sentence with what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """One file: its bytes now, and what they will be."""

    path: Path
    before: bytes | None
    after: bytes | None
    """None: the file is deleted."""
    original: bytes | None = None
    """The bytes that disconnect must restore."""
    record: FileRecord | None = None
    """What is remembered about it; None on disconnect."""
    mode: int = 0o600
    commands: tuple[tuple[str, ...], ...] = ()
    """The client's own commands, which make this change instead of us."""
    folders: tuple[Path, ...] = ()
    """Folders to delete with the file, if they are empty."""

    @property
    def is_change(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPlan:
    """All changes for one client."""

    client: Client
    connection: Connection
    changes: tuple[ConfigChange, ...]
    notes: tuple[str, ...] = ()
    """Warnings, and what differs from what was written."""
    steps: tuple[str, ...] = ()
    """What the person does afterwards."""
    returning: tuple[MovedServer, ...] = ()
    """Servers that the client starts itself again, on disconnect."""

    @property
    def is_change(self) -> bool:
        return any(change.is_change for change in self.changes)


def plan_connect(
    client: Client, setup: Setup, connections: Connections, moves: Sequence[ServerMove] = ()
) -> ConnectionPlan:
    """What connecting would change, with these MCP servers moved behind Handrail. Raises ConnectRefused.

    Servers that were moved earlier stay there.
    """
    known = connections.find(_key(client, setup))
    servers = known.servers if known else ()
    if servers and not setup.has_mcp:
        names = ", ".join(each.name for each in servers)
        raise ConnectRefused(
            f"{client.title} has {names} through Handrail's MCP server, so that stays. Leave out --no-mcp, or run "
            f"`handrail disconnect {client.name}` first."
        )
    if ignored := client.ignored_files(setup):
        raise ConnectRefused(f"{ignored[0]} Nothing was changed.")
    try:
        bases = {file.path: _undone(file, connections) for file in known.files} if known else {}
        removals = [*_earlier_removals(known), *(move.piece for move in moves)]
        changes = _build_changes(client, setup, bases, known, removals)
    except (BadFile, FileProblem) as problem:
        raise ConnectRefused(f"{problem} Nothing was changed for {client.title}.") from None
    connection = Connection(
        client=client.name,
        scope=setup.scope,
        project=_project(setup),
        launcher=setup.launcher.path,
        version=setup.version,
        has_mcp=setup.has_mcp,
        has_hooks=setup.has_hooks and client.has_hooks,
        is_locked=setup.is_locked,
        is_single_question=setup.is_single_question,
        hook_timeout=setup.hook_timeout,
        connected_at=known.connected_at if known else datetime.now(UTC).isoformat(timespec="seconds"),
        servers=(
            *(each for each in servers if each.name not in {move.server.name for move in moves}),
            *(move.server for move in moves),
        ),
        files=tuple(change.record for change in changes if change.record),
    )
    return ConnectionPlan(
        client=client,
        connection=connection,
        changes=tuple(changes),
        notes=tuple(client.warnings(setup)),
        steps=tuple(client.steps(setup)),
    )


def _earlier_removals(known: Connection | None) -> list[ConfigPiece]:
    """What an earlier connect took out, and nobody put back. Raises BadFile, FileProblem."""
    pieces = [each.piece for file in (known.files if known else ()) for each in file.pieces]
    return [each for each in pieces if each.kind == "absent" and each.is_in(read_text(each.path))]


def _key(client: Client, setup: Setup) -> str:
    return connection_key(client.name, _project(setup), is_locked=setup.is_locked)


def _project(setup: Setup) -> str:
    return str(setup.project) if setup.scope == "project" else ""


@dataclass(frozen=True, slots=True)
class _Base:
    """A file without the pieces of an earlier connect."""

    text: str
    original: bytes | None
    folders: tuple[Path, ...] = ()


def _undone(file: FileRecord, connections: Connections) -> _Base:
    """The file as it would be after disconnect. Raises BadFile, FileProblem."""
    current = read_bytes(file.path)
    if any(each.piece.add for each in file.pieces):  # changed by the client's own command only
        data = connections.original(file)
        return _Base(_decode(file.path, current), data, file.folders)
    if current is not None and digest_of(current) == file.written:
        data = connections.original(file)
        if data is not None or file.original is None:
            return _Base(_decode(file.path, data), data, file.folders)
    text = _decode(file.path, current)
    for written in reversed(file.pieces):
        text = _naming(file.path, partial(written.cut_from, text))
    original = None if file.original is None and not text.strip() else text.encode()
    return _Base(text, original, file.folders)


def _decode(path: Path, data: bytes | None) -> str:
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise FileProblem(f"{path} is not UTF-8. Save it as UTF-8, then try again.") from None


def _naming(path: Path, work: Callable[[], T]) -> T:
    """The result of the work; a problem with the text names the file."""
    try:
        return work()
    except BadFile as problem:
        raise BadFile(f"{path} cannot be edited: {problem}.") from None


def _build_changes(
    client: Client,
    setup: Setup,
    bases: Mapping[Path, _Base],
    known: Connection | None,
    removals: Sequence[ConfigPiece],
) -> list[ConfigChange]:
    earlier = [each for file in (known.files if known else ()) for each in file.pieces]
    first = [*client.pieces(setup), *removals]
    texts = {piece.path: _base_text(piece.path, bases) for piece in first}
    written = _apply(first, texts, earlier)
    derived = client.derived_pieces(setup, texts)
    for piece in derived:
        texts.setdefault(piece.path, _base_text(piece.path, bases))
    written += _apply(derived, texts, earlier)
    gone = [path for path in bases if path not in texts]
    changes = [
        _change(
            path,
            text,
            [each for each in written if each.piece.path == path],
            bases.get(path),
            known,
            is_locked=setup.is_locked,
        )
        for path, text in texts.items()
    ]
    return [*changes, *(_restore(path, bases[path]) for path in gone)]


def _base_text(path: Path, bases: Mapping[Path, _Base]) -> str:
    return bases[path].text if path in bases else read_text(path)


def _apply(
    pieces: Sequence[ConfigPiece], texts: dict[Path, str], earlier: Sequence[Written]
) -> list[Written]:
    """Add the pieces to the texts; returns those that were not there. Raises BadFile, FileProblem."""
    written: list[Written] = []
    for piece in pieces:
        text = texts[piece.path]
        # A file that only the client's own command changes still has what an earlier connect made.
        known = next((each for each in earlier if piece.add and _is_same_place(each.piece, piece)), None)
        if _naming(piece.path, partial(piece.is_in, text)):
            written += [] if known is None else [known]
            continue
        if piece.kind == "file" and text:
            raise FileProblem(
                f"{piece.path} exists and is not Handrail's. Move it away first, or use --no-hooks."
            )
        fresh = _naming(piece.path, partial(Written.over, piece, text))
        written.append(fresh if known is None else replace(known, piece=piece))
        texts[piece.path] = _naming(piece.path, partial(piece.add_to, text))
    return written


def _is_same_place(piece: ConfigPiece, other: ConfigPiece) -> bool:
    return (piece.path, piece.kind, piece.pointer) == (other.path, other.kind, other.pointer)


def _change(
    path: Path,
    text: str,
    written: list[Written],
    base: _Base | None,
    known: Connection | None,
    *,
    is_locked: bool,
) -> ConfigChange:
    before = read_bytes(path)
    data = text.encode() if written or before is not None else None
    original = base.original if base else before
    now = _decode(path, before)
    missing = [each.piece for each in written if not each.piece.is_in(now)]
    commands = tuple(command for each in missing for command in _add_commands(each, now))
    if before != data and not is_locked:
        check_writable(path)
    record = FileRecord(
        path=path,
        original=None if original is None else digest_of(original),
        written=digest_of(data or b""),
        pieces=tuple(written),
        folders=base.folders if base else (),
    )
    old = next((file for file in known.files if file.path == path), None) if known else None
    if old and before == data and any(each.piece.add for each in written):
        record = old
    mode = max((each.piece.mode for each in written), default=0o600)
    return ConfigChange(
        path=path,
        before=before,
        after=data,
        original=original,
        record=record if written else None,
        mode=0o644 if is_locked else mode,
        commands=commands,
    )


def _add_commands(piece: ConfigPiece, text: str) -> list[tuple[str, ...]]:
    """A client's command refuses to replace an entry, which therefore is removed first."""
    if not piece.add:
        return []
    is_replaced = piece.kind == "member" and piece.current(text) is not ABSENT
    return [*([piece.remove] if is_replaced else []), piece.add]


def _restore(path: Path, base: _Base) -> ConfigChange:
    """A file that is not needed any more, as it was before the earlier connect."""
    after = None if base.original is None and not base.text else base.text.encode()
    return ConfigChange(path=path, before=read_bytes(path), after=after, folders=base.folders)


def connect(plan: ConnectionPlan, connections: Connections, environ: Mapping[str, str]) -> None:
    """Carry out a plan to connect. The record is saved before the files change. Raises ConnectRefused."""
    with connections.lock():
        try:
            _check_unchanged(plan)
            for change in plan.changes:
                connections.keep_original(change.original)
            connections.save(plan.connection)
            files = [_execute(change, environ) for change in plan.changes]
            connections.save(replace(plan.connection, files=tuple(file for file in files if file)))
        except (FileProblem, BadFile) as problem:
            raise ConnectRefused(
                f"{problem} Run `handrail connect {plan.client.name}` again, or `handrail disconnect`."
            ) from None


def _check_unchanged(plan: ConnectionPlan) -> None:
    for change in plan.changes:
        if read_bytes(change.path) != change.before:
            raise ConnectRefused(
                f"{change.path} changed after the change was shown. Nothing was changed; try again."
            )


def _execute(change: ConfigChange, environ: Mapping[str, str]) -> FileRecord | None:
    if not change.is_change:
        return change.record
    # The daemon of this home holds Handrail's own folders as long as it runs.
    is_own = change.path == Places.find(environ).config
    with nullcontext() if is_own else lock_folder(change.path.parent):
        if change.commands:
            _run_commands(change, environ)
            return _record_of_command(change)
        if change.after is None:
            delete_file(change.path)
            delete_folders(change.folders)
            return change.record
        folders = write_bytes(change.path, change.after, change.mode)
        if change.record is None:
            return None
        return replace(change.record, folders=(*change.record.folders, *folders))


def _run_commands(change: ConfigChange, environ: Mapping[str, str]) -> None:
    for command in change.commands:
        try:
            done = run_program(command, environ, COMMAND_SECONDS)
        except OSError as error:
            raise FileProblem(f"`{' '.join(command)}` failed: {error}.") from None
        if done.status:
            words = (done.stderr or done.stdout).strip()[:400]
            raise FileProblem(f"`{' '.join(command)}` failed with status {done.status}: {words}")


def _record_of_command(change: ConfigChange) -> FileRecord | None:
    """The record with the bytes that the client's command wrote; checks that our piece is in them."""
    if change.record is None:
        return None
    data = read_bytes(change.path)
    text = _decode(change.path, data)
    missing = [each.piece.place for each in change.record.pieces if not each.piece.is_in(text)]
    if missing:
        raise FileProblem(f"The client's own command ran, but {missing[0]} is not what it should be.")
    return replace(change.record, written=digest_of(data or b""))


def plan_disconnect(client: Client, connection: Connection, connections: Connections) -> ConnectionPlan:
    """What disconnecting would change. Raises ConnectRefused."""
    try:
        pairs = [_plan_file_removal(file, connections) for file in connection.files]
    except (BadFile, FileProblem) as problem:
        raise ConnectRefused(f"{problem} Nothing was changed for {client.title}.") from None
    changes = tuple(change for change, _ in pairs)
    return ConnectionPlan(
        client=client,
        connection=connection,
        changes=changes,
        notes=tuple(note for _, notes in pairs for note in notes),
        returning=tuple(_find_returning(connection, changes)),
    )


def _find_returning(connection: Connection, changes: Sequence[ConfigChange]) -> Iterator[MovedServer]:
    """The moved servers that the client's files have after the changes."""
    after = {change.path: _decode(change.path, change.after) for change in changes}
    for file in connection.files:
        for piece in (each.piece for each in file.pieces if each.piece.kind == "absent"):
            if not piece.is_in(after[file.path]):
                yield from (each for each in connection.servers if each.place == piece.place)


def _plan_file_removal(file: FileRecord, connections: Connections) -> tuple[ConfigChange, list[str]]:
    current = read_bytes(file.path)
    if current is None:
        return ConfigChange(path=file.path, before=None, after=None, folders=file.folders), [
            f"{file.path} is gone."
        ]
    original = connections.original(file)
    if digest_of(current) == file.written and (original is not None or file.original is None):
        return ConfigChange(path=file.path, before=current, after=original, folders=file.folders), []
    text = _decode(file.path, current)
    notes = [f"{file.path} has changed since; only Handrail's own entries are removed."]
    notes += [
        f"{each.piece.place} {'was added again' if each.piece.kind == 'absent' else 'is not what Handrail wrote'}, and stays."
        for each in file.pieces
        if not _naming(file.path, partial(each.piece.is_in, text))
    ]
    removed = text
    for written in reversed(file.pieces):
        removed = _naming(file.path, partial(written.cut_from, removed))
    # An entry that comes back is written by us: as an argument of a command, everybody could see its secrets.
    is_by_command = all(each.before is ABSENT for each in file.pieces)
    commands = tuple(
        each.piece.remove
        for each in file.pieces
        if is_by_command and each.piece.remove and each.piece.is_in(text)
    )
    is_empty = file.original is None and removed.strip("\ufeff \t\r\n") in ("", "{}")
    after = None if is_empty else removed.encode()
    if after != current:
        check_writable(file.path)
    change = ConfigChange(
        path=file.path, before=current, after=after, folders=file.folders, commands=commands
    )
    return change, notes if after != current else [f"{file.path} has nothing of Handrail's in it any more."]


def disconnect(plan: ConnectionPlan, connections: Connections, environ: Mapping[str, str]) -> None:
    """Carry out a plan to disconnect, then forget the connection. Raises ConnectRefused."""
    with connections.lock():
        try:
            _check_unchanged(plan)
            for change in plan.changes:
                _execute_removal(change, environ)
            delete_folders(folder for change in plan.changes for folder in change.folders)
        except (FileProblem, BadFile) as problem:
            raise ConnectRefused(
                f"{problem} The rest is as it was; try `handrail disconnect {plan.client.name}` again."
            ) from None
        connections.delete(plan.connection)


def _execute_removal(change: ConfigChange, environ: Mapping[str, str]) -> None:
    try:
        _execute(change, environ)
    except FileProblem:
        if not change.commands or change.after is None:
            raise
        write_bytes(change.path, change.after, change.mode)  # the client was uninstalled: by our own edit


def needs_root(plan: ConnectionPlan) -> bool:
    """Whether only root can carry it out: settings for the whole machine."""
    return plan.connection.is_locked and plan.is_change and os.getuid() != 0


def stage(plan: ConnectionPlan, connections: Connections, *, forget: bool = False) -> list[str]:
    """Prepare a plan that needs root, and return the commands that carry it out. Raises ConnectRefused."""
    with connections.lock():
        try:
            for change in plan.changes:
                connections.keep_original(change.original)
            if not forget:
                connections.save(plan.connection)
            return [_stage_file(change, connections.originals) for change in plan.changes if change.is_change]
        except FileProblem as problem:
            raise ConnectRefused(str(problem)) from None


def _stage_file(change: ConfigChange, folder: Path) -> str:
    if change.after is None:
        return shlex.join(["sudo", "rm", str(change.path)])
    staged = folder / f"staged-{change.path.name}"
    write_bytes(staged, change.after)
    return shlex.join(["sudo", "install", "-D", "-m", "644", str(staged), str(change.path)])
