"""The daemon: builds everything, in order, in one place, and owns the root of the scope tree.

The only composition root. It holds no behaviour of its own: each part is made, handed what it needs, and started.

The toolbox: every tool there is, handed what it needs.
"""

import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketListener, TaskGroup

from handrail import __version__
from handrail.agents.conversation.send_prompt import Door
from handrail.config import BadConfig, Config
from handrail.daemon.agent_host import AgentHost, build_agent_host, build_mcp_door
from handrail.daemon.notifications import Notifier
from handrail.daemon.state_files import (
    AlreadyRunning,
    DaemonFile,
    ForegroundOutput,
    build_connect_command,
    hold_lock,
    print_replaced,
    start_logging,
)
from handrail.daemon.terminal_events import TerminalEvents
from handrail.errors import NewerSchema, Unwritable
from handrail.gate.gate import Gate
from handrail.gate.restore import restore
from handrail.gate.rules.rules import Rules, Standing
from handrail.gate.rules.trust import Trusted
from handrail.gate.tool import Tool, Toolbox
from handrail.hardening import hide_memory
from handrail.keeper.protocol import Remember
from handrail.paths import Places
from handrail.server.access import Access, Client
from handrail.server.api.call_models import Restart
from handrail.server.api.calls import now_ms
from handrail.server.api.threads import welcome
from handrail.server.app import HOST, Web, guarded
from handrail.server.context import Presence, Rooms
from handrail.server.health import Pulse
from handrail.server.mcp.local_socket import Local
from handrail.server.mcp.mcp_server import Callers, Mcp
from handrail.server.mcp.streamable_http import Streamable
from handrail.store.blobs import BlobRetention, Blobs
from handrail.store.events import DaemonStarted, DaemonStopped
from handrail.store.journal import Journal, open_journal
from handrail.store.records import Records, open_records
from handrail.store.search_index import Index, open_index
from handrail.store.threads.threads import Threads
from handrail.store.values import Result
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.open_shell import Means
from handrail.terminal.person_check import Lineage, started_inside
from handrail.terminal.retention import Retention
from handrail.terminal.shell_marks import Marked
from handrail.terminal.terminals import Terminals
from handrail.terminal.wait.input_detection import Knowing
from handrail.tools.agent_form import AgentForm
from handrail.tools.agent_work import AgentWork
from handrail.tools.calls import GetCall, ListCalls, WaitForCall
from handrail.tools.commands.command_output import as_result, read_output
from handrail.tools.commands.execute_command import ExecuteCommand
from handrail.tools.files.edit_tools import ApplyDiff, EditFile, WriteFile
from handrail.tools.files.read_file import ReadFile, ReadTextFile
from handrail.tools.search.list_files import ListFiles, SearchFiles
from handrail.tools.search.search_content import SearchContent
from handrail.tools.terminals.close_terminal import CloseTerminal
from handrail.tools.terminals.create_tracked_terminal import CreateTrackedTerminal
from handrail.tools.terminals.get_terminal_buffer import GetTerminalBuffer
from handrail.tools.terminals.list_tracked_terminals import ListTrackedTerminals
from handrail.tools.terminals.search_terminal_buffer import SearchTerminalBuffer
from handrail.tools.terminals.send_to_terminal import SendToTerminal
from handrail.tools.terminals.wait_for_terminal import WaitForTerminal
from handrail.tools.tool_context import Reach, child_environment
from handrail.tools.undo.undo_call import Undo

log = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""Between threads: at the default 5 ms a busy loop would starve the journal's writer."""
SHUTDOWN_SECONDS = 4.0
"""After which a stop goes on without the keeper's word: a person waits for it."""
SIGN_INS = "sign-ins"
"""Under which the keeper remembers who is signed in."""
SEALED_INSIDE = (
    "This daemon was started from inside something Handrail had started, so it takes nobody for a person, and no "
    "page can sign in. Run `handrail down` and then `handrail up` in a terminal of your own."
)
SEALED_KEEPER = (
    "The keeper ended unexpectedly, so nobody is taken for a person any more, but for a page that is signed in "
    "already. Run `handrail restart` in a terminal of your own."
)


def run(places: Places, config: Config, *, port: int | None = None, announce: bool = False) -> int:
    """Be the daemon until told to stop; the exit status."""
    places.make()
    hide_memory()
    sys.setswitchinterval(SWITCH_SECONDS)
    start_logging(places.logs)
    try:
        standing = Standing.of(config, places.config, os.path.realpath(Path.home()))
        with hold_lock(places.daemon_lock):
            daemon = Daemon(places, config, standing, port, announce)
            return anyio.run(daemon.serve, backend="asyncio")
    except (BadConfig, AlreadyRunning, NewerSchema, Unwritable) as problem:
        sys.stderr.write(f"{problem}\n")
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """What everything else stands on."""

    journal: Journal
    records: Records
    index: Index
    keeper: Keeper
    terminals: Terminals
    watch: TerminalEvents


class Daemon:
    """Everything, built once, in order."""

    def __init__(
        self, places: Places, config: Config, standing: Standing, port: int | None, announce: bool
    ) -> None:
        self._places = places
        self._config = config
        self._standing = standing
        self._port = config.server.port if port is None else port
        self._announce = announce
        self._plate = DaemonFile(places, self._port)
        self._told = anyio.Event()
        self._ends_all = True
        self._access: Access | None = None
        self._marked = Marked()
        self._presence = Presence()
        self._blobs = Blobs(places.blobs)

    def stop(self, ends_all: bool) -> None:
        """End; with `ends_all`, end what was started too."""
        self._ends_all = ends_all
        self._told.set()

    async def serve(self) -> int:
        database, head = self._places.database, self._places.head
        async with (
            open_journal(database, head) as journal,
            open_records(database) as records,
            open_index(self._places.words, journal, records) as index,
        ):
            keeper, watch = Keeper(self._places), TerminalEvents(journal)
            terminals = Terminals(
                keeper,
                self._places.spool,
                opened=watch.opened,
                ended=watch.ended,
                lost=self._keeper_lost,
                typed=watch.typed,
                taken=watch.taken,
                released=watch.released,
                asked=watch.asked,
                went_on=watch.went_on,
            )
            async with anyio.create_task_group() as hands:
                try:
                    await hands.start(keeper.run)
                except KeeperError as problem:
                    sys.stderr.write(f"{problem}\n")
                    return 1
                await self._work(
                    Foundation(
                        journal=journal,
                        records=records,
                        index=index,
                        keeper=keeper,
                        terminals=terminals,
                        watch=watch,
                    )
                )
                hands.cancel_scope.cancel()
        return 0

    async def _work(self, ground: Foundation) -> None:
        """Serve until told to stop, then let go of everything in order."""
        async with anyio.create_task_group() as group:
            gate = await self._gate(ground, group)
            access = self._access = await self._make_access(ground)
            listener = await ground.keeper.listen(*self._plate.ports)
            self._plate.note_port(listener.getsockname()[1])
            url = f"http://{HOST}:{listener.getsockname()[1]}"
            minds = self._minds(ground, gate, build_mcp_door(access, self._places, url))
            rooms = await self._rooms(ground, gate, access, url, minds)
            mcp = Mcp(gate, self._config.command.wait_seconds)
            callers = Callers(rooms.prompts.calling)
            local = Local(mcp, rooms.access, callers, Lineage(), rooms.url)
            streamable = Streamable(mcp, callers)
            async with streamable.run():
                self._attend(group, ground, gate)
                await minds.start(group)
                await self._open(group, rooms, listener, local, streamable)
                await self._told.wait()
                if self._announce and not self._ends_all:
                    print_replaced()
                gate.leave()
                await minds.leave()
                await local.leave()
                await self._let_go(ground.keeper)
                ground.journal.append(DaemonStopped(why="told to"))
                self._plate.take_down()
            group.cancel_scope.cancel()

    async def _gate(self, ground: Foundation, group: TaskGroup) -> Gate:
        tools: dict[str, Tool[Any, Any]] = {}
        gate = Gate(
            ground.journal,
            await self._rules(ground),
            tools,
            group,
            self._config.approvals.expire_seconds,
        )
        tools |= self._toolbox(gate, ground)
        return gate

    async def _rules(self, ground: Foundation) -> Rules:
        """What the person's file says, what their answers made, and which folders they trust."""
        kept = [record.rule for record in await ground.records.rules.all() if record.removed_at is None]
        trusted = [
            Trusted(folder=record.folder, config=record.config)
            for record in await ground.records.rules.folders()
        ]
        return Rules(ground.journal, self._standing, kept, trusted)

    def _minds(self, ground: Foundation, gate: Gate, door: Door) -> AgentHost:
        return build_agent_host(
            self._config.agents,
            Blobs(self._places.images),
            partial(child_environment, os.environ),
            self._places.environment,
            gate,
            ground.records,
            ground.terminals,
            door,
        )

    async def _rooms(
        self, ground: Foundation, gate: Gate, access: Access, url: str, minds: AgentHost
    ) -> Rooms:
        """What the routes need."""
        return Rooms(
            journal=ground.journal,
            records=ground.records,
            gate=gate,
            terminals=ground.terminals,
            means=self._means(),
            undo=Undo(ground.records, ground.journal, self._blobs, self._own),
            marked=self._marked,
            access=access,
            url=url,
            command_line=build_connect_command(self._places.environment),
            started=await self._restore(gate, ground, minds.threads),
            pulse=Pulse(ground.keeper),
            stop=self.stop,
            presence=self._presence,
            index=ground.index,
            threads=minds.threads,
            images=minds.images,
            pictures=minds.pictures,
            registry=minds.registry,
            agents=minds.agents,
            prompts=minds.prompts,
        )

    def _attend(self, group: TaskGroup, ground: Foundation, gate: Gate) -> None:
        """Look after what goes on by itself: terminals, questions that nobody sees, and how long things are kept."""
        kept, undo = self._config.terminal, self._config.undo
        retention = Retention(
            ground.records,
            ground.terminals,
            self._places.spool,
            kept.keep_days,
            kept.keep_bytes,
            ground.watch.forgotten,
        )
        blobs = BlobRetention(self._blobs, undo.keep_days, undo.keep_bytes)
        knowing = Knowing(ground.terminals, self._marked)
        for work in (ground.terminals.run, knowing.run, retention.run, blobs.run, ground.index.run):
            group.start_soon(work)
        if self._config.notify.desktop:
            group.start_soon(Notifier(gate, self._presence.count, os.environ).run)

    async def _open(
        self, group: TaskGroup, rooms: Rooms, listener: socket.socket, local: Local, streamable: Streamable
    ) -> None:
        """From here on anybody may come in."""
        web = Web(guarded(rooms, streamable, listener.getsockname()[1]))
        group.start_soon(rooms.pulse.run)
        group.start_soon(self._heed_signals)
        group.start_soon(web.serve, [listener])
        group.start_soon((await self._doorway()).serve, local.handle)
        group.start_soon(welcome, rooms)
        self._plate.put_up(rooms.url)
        if self._announce:
            wished = None if rooms.url.endswith(f":{self._port}") else self._port
            group.start_soon(ForegroundOutput(rooms.access, rooms.url, rooms.command_line, wished).run)

    @property
    def _own(self) -> tuple[Path, ...]:
        """Handrail's own files, which are protected."""
        return self._places.config_dir, self._places.data, self._places.state

    def _toolbox(self, gate: Gate, ground: Foundation) -> Toolbox:
        own = self._own
        reach = Reach(
            terminals=ground.terminals,
            records=ground.records,
            means=self._means(),
            own=own,
            marked=self._marked,
        )
        return build_toolbox(gate, reach, self._blobs, own)

    def _means(self) -> Means:
        terminal, command = self._config.terminal, self._config.command
        return Means(
            environment=child_environment(os.environ, command.env_pass),
            shell=terminal.shell,
            max_bytes=terminal.max_bytes,
            max_lines=terminal.max_lines,
            grace=command.stop_grace,
        )

    async def _make_access(self, ground: Foundation) -> Access:
        clients = [
            (record.sha256, Client(credential=record.id, name=record.name, workspace=record.workspace))
            for record in await ground.records.credentials.all()
            if record.revoked_at is None
        ]
        inside = started_inside()
        # A daemon from inside may have met a keeper from inside, which remembers what it likes.
        kept = b"" if inside else await ground.keeper.recall(SIGN_INS) or b""
        access = Access(ground.journal, clients, kept)
        access.keep = partial(_remember, ground.keeper)
        if inside:
            access.seal(SEALED_INSIDE)
        return access

    def _keeper_lost(self, why: str) -> None:
        if self._access is not None and not self._told.is_set():
            log.warning("the keeper was lost: %s", why)
            self._access.seal(SEALED_KEEPER)

    async def _restore(self, gate: Gate, ground: Foundation, threads: Threads) -> Restart:
        terminals = ground.terminals

        def output_of(terminal: str) -> Result:
            return as_result(read_output(terminals.tail(terminal)), terminal)

        crashed = self._plate.hangs
        await ground.watch.catch_up(ground.records, terminals)
        await threads.restore()
        found = await restore(gate, ground.records, output_of)
        event = DaemonStarted(
            version=__version__,
            pid=os.getpid(),
            crashed=crashed,
            interrupted=found.interrupted,
            approvals_kept=found.approvals_kept,
            terminals_adopted=sum(not terminal.pipes for terminal in terminals.live.values()),
        )
        seq = gate.journal.append(event)
        await gate.journal.committed(seq)
        facts = asdict(event)
        return Restart(
            seq=seq, at=now_ms(), **{name: facts[name] for name in Restart.model_fields if name in facts}
        )

    async def _doorway(self) -> SocketListener:
        self._places.daemon_socket.unlink(missing_ok=True)
        return await anyio.create_unix_listener(self._places.daemon_socket, mode=0o600)

    async def _heed_signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async for _ in signals:
                self.stop(True)

    async def _let_go(self, keeper: Keeper) -> None:
        """End what was started, or leave it to the keeper for the next daemon."""
        if not self._ends_all:
            keeper.leave()
            return
        try:
            with anyio.move_on_after(SHUTDOWN_SECONDS):
                await keeper.shutdown(self._config.command.stop_grace)
        except KeeperError as problem:
            log.warning("the keeper did not end what it had started: %s", problem)


def _remember(keeper: Keeper, sign_ins: bytes) -> None:
    keeper.post(Remember(keeper.number(), SIGN_INS, sign_ins))


def build_toolbox(gate: Gate, reach: Reach, blobs: Blobs, own: Sequence[Path]) -> Toolbox:
    """`own` are Handrail's own files, which are protected."""
    tools: list[Tool[Any, Any]] = [
        ReadFile(own),
        ListFiles(own),
        SearchFiles(own),
        SearchContent(own),
        WriteFile(own, blobs),
        EditFile(own, blobs),
        ApplyDiff(own, blobs),
        ExecuteCommand(reach),
        CreateTrackedTerminal(reach),
        ListTrackedTerminals(reach),
        GetTerminalBuffer(reach),
        SendToTerminal(reach),
        WaitForTerminal(reach),
        SearchTerminalBuffer(reach),
        CloseTerminal(reach),
        ListCalls(reach.records),
        GetCall(reach.records),
        WaitForCall(reach, gate.open, gate.journal),
        ReadTextFile(own),
        AgentWork(own, reach.means.environment),
        AgentForm(),
    ]
    return {tool.name: tool for tool in tools}
