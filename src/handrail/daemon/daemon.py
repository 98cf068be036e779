"""The daemon: composition root. Builds every part in order and owns the root task group.

It holds no behaviour of its parts: each part is created with its dependencies, and started.
"""

import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from handrail.agents.conversation.agent_sessions import McpEntryBuilder
from handrail.clients.hooks import DIALECTS
from handrail.clients.open_work import ClientProcess, OpenWorks
from handrail.config import Config
from handrail.daemon._agent_host_protocol import serve_ahp
from handrail.daemon._toolbox import build_toolbox
from handrail.daemon._upstream import build_servers
from handrail.daemon.agent_host import AgentHost, build_agent_host, build_mcp_entry
from handrail.daemon.background import start_background
from handrail.daemon.keeper_memory import (
    DEVICES,
    PolicyMemory,
    build_access,
    build_client_sessions,
    build_devices,
    build_editors,
    build_launchers,
)
from handrail.daemon.push_notifications import PushNotifier
from handrail.daemon.restart import restore_all
from handrail.daemon.start import end_worker_threads
from handrail.daemon.state_files import (
    EXPLAINED,
    DaemonFile,
    ForegroundOutput,
    build_connect_command,
    explain_failure,
    hold_lock,
    print_replaced,
    prints_on_terminal,
    start_logging,
)
from handrail.daemon.terminal_events import TerminalEvents
from handrail.gate.gate import Gate
from handrail.gate.rules.accepted_policy import AcceptedPolicy
from handrail.gate.rules.rules import Rules, UserRules
from handrail.gate.rules.trust import TrustedFolder
from handrail.gate.tool import Tool, Toolbox
from handrail.hardening import hide_memory
from handrail.launcher.child import prestart
from handrail.launcher.child_guard import refuse_other_children
from handrail.lazy_dataclass import dataclass
from handrail.paths import Places
from handrail.server.access import Access, Callers
from handrail.server.api.daemon_models import Restart
from handrail.server.app import HOST, LazyApi, build_device_app, build_guarded_app
from handrail.server.client_hooks import MARK, Hooks, KnownClients
from handrail.server.connection_limit import ConnectionBudget
from handrail.server.context import Presence, ServerContext
from handrail.server.demo_terminal import DemoTerminal
from handrail.server.editor_pairings import EditorPairings
from handrail.server.editor_windows import EditorWindows
from handrail.server.first_thread import create_first_thread
from handrail.server.health import LoopMonitor
from handrail.server.mcp.local_socket import LocalSocketServer, find_workspace
from handrail.server.mcp.mcp_endpoints import McpEndpoints
from handrail.server.settings_file import SettingsFile
from handrail.server.web_server import WebServer
from handrail.store.blobs import Blobs
from handrail.store.events import DaemonStopped, PolicyAccepted
from handrail.store.journal import Journal, open_journal
from handrail.store.mcp_servers import PinnedServer
from handrail.store.old_contents import open_old_contents
from handrail.store.records import Records, open_records
from handrail.store.rule_replay import replay_rules
from handrail.store.search_index import SearchIndex, open_index
from handrail.store.threads.threads import Threads
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.open_shell import TerminalSettings
from handrail.terminal.person_check import DoorLaunchers
from handrail.terminal.shell_marks import MarksCache
from handrail.terminal.survivors import Survivors
from handrail.terminal.terminals import Terminals
from handrail.tools.tool_context import ToolContext, child_environment
from handrail.tools.undo.undo_call import Undo
from handrail.upstream.servers import Servers

log = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""Interpreter switch interval, in seconds: at the default 5 ms a busy event loop would starve the journal's
writer."""
SHUTDOWN_SECONDS = 4.0
"""Bounds the wait for the keeper when the daemon stops: a person waits for it."""
SEALED_KEEPER = (
    "The keeper ended unexpectedly, so nobody is taken for a person any more, but for a page that is signed in "
    "already. Run `handrail restart` in a terminal of your own."
)


def run(places: Places, config: Config, *, port: int | None = None, announce: bool = False) -> int:
    """Run the daemon until it is stopped; returns the exit status."""
    hide_memory()
    refuse_other_children()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        places.make()
        start_logging(places.logs)
    except OSError as problem:
        sys.stderr.write(f"Handrail cannot use its folders: {problem}.\n")
        return 1
    try:
        standing = UserRules.of(config, places.config, os.path.realpath(Path.home()))
        with hold_lock(places.daemon_lock, places.data):
            prestart()
            daemon = Daemon(places, config, standing, port, announce)
            loop = {"use_uvloop": find_spec("uvloop") is not None}  # it needs less time per call
            try:
                return anyio.run(daemon.serve, backend="asyncio", backend_options=loop)
            finally:
                end_worker_threads()
    except Exception as problem:
        if not isinstance(problem, EXPLAINED):
            log.exception("the daemon ended with an error")
        sys.stderr.write(f"{explain_failure(problem, places.logs)}\n")
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The storage, the keeper, the terminals and the policy, on which all other parts depend."""

    journal: Journal
    records: Records
    blobs: Blobs
    index: SearchIndex
    keeper: Keeper
    terminals: Terminals
    terminal_events: TerminalEvents
    rules: Rules
    policy: AcceptedPolicy
    policy_memory: PolicyMemory
    settings: TerminalSettings
    pinned: Sequence[PinnedServer]


class Daemon:
    """Builds and runs all parts."""

    def __init__(
        self, places: Places, config: Config, standing: UserRules, port: int | None, announce: bool
    ) -> None:
        self._places = places
        self._config = config
        self._standing = standing
        self._port = config.server.port if port is None else port
        self._announce = announce
        self._has_person = False
        self._daemon_file = DaemonFile(places, self._port)
        self._stop_requested = anyio.Event()
        self._ends_all = True
        self._access: Access | None = None
        self._policy_memory: PolicyMemory | None = None
        self._marked = MarksCache()
        self._presence = Presence()
        self._survivors = Survivors(config.command.stop_grace)
        self._works: OpenWorks = {}
        self._windows = EditorWindows()
        self._tools: dict[str, Tool[Any, Any]] = {}
        self._mark = secrets.token_urlsafe(32)
        """The secret by which hooks of agents that this daemon hosts are recognised."""

    def stop(self, ends_all: bool) -> None:
        """Stop the daemon; with `ends_all`, also end everything that was started."""
        self._ends_all = ends_all
        self._stop_requested.set()

    async def serve(self) -> int:
        database, head = self._places.database, self._places.head
        async with (
            open_journal(database, head) as journal,
            open_records(database) as records,
            open_old_contents(self._places.blobs, database, journal.queue) as blobs,
            open_index(self._places.words, journal, records) as index,
        ):
            keeper, terminal_events = Keeper(self._places), TerminalEvents(journal)
            terminals = Terminals(
                keeper,
                self._places.spool,
                opened=terminal_events.opened,
                ended=terminal_events.ended,
                lost=self._keeper_lost,
                typed=terminal_events.typed,
                taken=terminal_events.taken,
                released=terminal_events.released,
                asked=terminal_events.asked,
                went_on=terminal_events.went_on,
            )
            async with anyio.create_task_group() as hands:
                try:
                    await hands.start(keeper.run)
                except KeeperError as problem:
                    sys.stderr.write(f"{problem}\n")
                    return 1
                memory = self._policy_memory = PolicyMemory(keeper, journal, self._places)
                rules, policy, pinned = await self._build_rules(journal, memory)
                await self._work(
                    Foundation(
                        journal=journal,
                        records=records,
                        blobs=blobs,
                        index=index,
                        keeper=keeper,
                        terminals=terminals,
                        terminal_events=terminal_events,
                        rules=rules,
                        policy=policy,
                        policy_memory=memory,
                        settings=self._build_terminal_settings(policy),
                        pinned=pinned,
                    )
                )
                hands.cancel_scope.cancel()
        return 0

    async def _work(self, foundation: Foundation) -> None:
        """Serve until stopped, then shut down in order."""
        async with anyio.create_task_group() as group:
            gate = self._build_gate(foundation, group)
            access = self._access = await build_access(
                foundation.keeper, foundation.journal, foundation.records
            )
            launchers = await build_launchers(foundation.keeper)
            editors = await build_editors(foundation.keeper, foundation.journal, access, launchers)
            listeners = await foundation.keeper.listen_both(*self._daemon_file.ports)
            self._daemon_file.note_port(port := listeners[0].getsockname()[1])
            url = f"http://{HOST}:{port}"
            agent_host = self._build_agent_host(foundation, gate, build_mcp_entry(access, self._places, url))
            servers = build_servers(
                self._config, foundation.terminals, gate, self._tools, self._places, foundation.policy
            )
            context = await self._build_server_context(
                foundation, gate, access, launchers, editors, url, agent_host, servers
            )
            hooks = self._build_hooks(gate, launchers, agent_host)
            mcp = McpEndpoints(
                gate,
                hooks,
                access,
                Callers(context.prompts.calling),
                self._config.command.wait_seconds,
                self._windows.bell,
                servers,
                foundation.records,
            )
            self._has_person = prints_on_terminal() and not launchers.is_agent(os.getpid(), os.getppid())
            local = LocalSocketServer(mcp, hooks, access, launchers, editors, self._windows, context.url)
            hooks.observers.append(context.clients)
            group.start_soon(hooks.run)
            group.start_soon(context.clients.run)
            async with mcp.run():
                group.start_soon(self._survivors.run)
                start_background(
                    group,
                    self._config,
                    self._places,
                    context,
                    foundation.blobs,
                    foundation.policy_memory,
                    foundation.terminal_events,
                )
                await agent_host.start(group)
                await group.start(servers.run, foundation.pinned)
                kept = b"" if access.sealed else await foundation.keeper.recall(DEVICES) or b""
                await self._accept_connections(group, context, listeners, local, mcp, kept)
                group.start_soon(
                    serve_ahp, self._config.ahp, self._places, context, foundation.blobs, launchers
                )
                await self._stop_requested.wait()
                await self._leave(foundation, gate, agent_host, servers, mcp)
            group.cancel_scope.cancel()

    async def _leave(
        self,
        foundation: Foundation,
        gate: Gate,
        agent_host: AgentHost,
        servers: Servers,
        mcp: McpEndpoints,
    ) -> None:
        """End what clients and agents wait for, and pass the terminals on, in order."""
        if self._announce and not self._ends_all:
            print_replaced()
        gate.leave(work_stays=not self._ends_all)
        await agent_host.leave()
        await servers.leave()
        await mcp.leave()
        await foundation.policy_memory.leave(foundation.policy)
        await self._release_keeper(foundation.keeper)
        foundation.journal.append(DaemonStopped(why="told to"))
        self._daemon_file.take_down()

    def _build_hooks(self, gate: Gate, launchers: DoorLaunchers, agent_host: AgentHost) -> Hooks:
        def has_server(client: ClientProcess) -> bool:
            return launchers.has_server((client.pid, client.start))

        known = KnownClients(
            mark=self._mark, has_server=has_server, has_session=agent_host.agents.has_session
        )
        return Hooks(gate, self._works, DIALECTS, find_workspace, known)

    def _build_gate(self, foundation: Foundation, group: TaskGroup) -> Gate:
        expire_seconds = self._config.approvals.expire_seconds
        gate = Gate(foundation.journal, foundation.rules, self._tools, group, expire_seconds)
        self._tools |= self._build_toolbox(gate, foundation)
        return gate

    async def _build_rules(
        self, journal: Journal, memory: PolicyMemory
    ) -> tuple[Rules, AcceptedPolicy, tuple[PinnedServer, ...]]:
        """The rules of the configuration, those made from answers, the trusted folders, and the accepted tools of servers.

        What people made comes from the journal's events. The tables are only rebuilt from them. All of it is in force
        only if a person accepted it.
        """
        replay = await to_thread.run_sync(replay_rules, self._places.database)
        found = await memory.find(self._config, replay, os.environ)
        if replay.repair:
            journal.queue.write(replay.repair, 0, lambda _fate: None)
        trusted = [TrustedFolder(folder=record.folder, config=record.config) for record in replay.folders]
        rules = Rules(journal, self._standing, [record.rule for record in replay.rules], trusted)
        rules.pause.current = replay.pause
        policy = AcceptedPolicy(rules, journal, found, memory.keep)
        for change in policy.changes:
            log.warning("not accepted by a person: %s", change.part)
        if policy.taken:
            journal.append(PolicyAccepted(by=policy.taken_by, changes=tuple(map(str, policy.taken))))
        return rules, policy, replay.servers

    def _build_agent_host(self, foundation: Foundation, gate: Gate, door: McpEntryBuilder) -> AgentHost:
        return build_agent_host(
            self._config.agents,
            Blobs(self._places.images),
            self._build_agent_environment,
            self._places.environment,
            gate,
            foundation.records,
            foundation.terminals,
            door,
            foundation.policy,
            self._places.config,
        )

    def _build_agent_environment(self, passed: Sequence[str]) -> dict[str, str]:
        """The environment of hosted agents, with the mark by which their hooks are recognised."""
        return {**child_environment(os.environ, passed), MARK: self._mark}

    async def _build_server_context(
        self,
        foundation: Foundation,
        gate: Gate,
        access: Access,
        launchers: DoorLaunchers,
        editors: EditorPairings,
        url: str,
        agent_host: AgentHost,
        servers: Servers,
    ) -> ServerContext:
        return ServerContext(
            journal=foundation.journal,
            records=foundation.records,
            gate=gate,
            policy=foundation.policy,
            settings_file=SettingsFile(self._places.config, self._config, foundation.policy),
            demo=DemoTerminal(gate, foundation.terminals, foundation.settings, self._places.environment),
            terminals=foundation.terminals,
            settings=foundation.settings,
            undo=Undo(foundation.records, foundation.journal, foundation.blobs, self._places.own_folders),
            marked=self._marked,
            access=access,
            launchers=launchers,
            url=url,
            command_line=build_connect_command(self._places.environment),
            started=await self._restore(gate, foundation, agent_host.threads),
            pulse=LoopMonitor(foundation.keeper),
            stop=self.stop,
            presence=self._presence,
            index=foundation.index,
            threads=agent_host.threads,
            images=agent_host.images,
            pictures=agent_host.pictures,
            registry=agent_host.registry,
            agents=agent_host.agents,
            prompts=agent_host.prompts,
            clients=await build_client_sessions(foundation.keeper, foundation.terminals),
            editors=editors,
            devices=build_devices(foundation.keeper, self._places, self._config.devices, foundation.policy),
            servers=servers,
        )

    async def _accept_connections(
        self,
        group: TaskGroup,
        context: ServerContext,
        listeners: list[socket.socket],
        local: LocalSocketServer,
        mcp: McpEndpoints,
        devices: bytes,
    ) -> None:
        """Accept connections from now on; those of devices too, if the previous daemon did."""
        budget, api = ConnectionBudget.of_process(), LazyApi(context)
        web = WebServer(build_guarded_app(context, api, mcp, listeners[0].getsockname()[1]), budget)
        push = PushNotifier(
            context.gate,
            context.access.sign_ins,
            self._presence.count_looking,
            context.devices.build_push_sender,
        )
        group.start_soon(push.run)
        group.start_soon(context.devices.run, partial(build_device_app, context, api), devices)
        group.start_soon(context.pulse.run)
        group.start_soon(self._stop_on_signal)
        group.start_soon(web.serve, listeners)
        self._places.daemon_socket.unlink(missing_ok=True)
        listener = await anyio.create_unix_listener(self._places.daemon_socket, mode=0o600)
        group.start_soon(local.serve, listener, budget.local)
        group.start_soon(create_first_thread, context)
        self._daemon_file.put_up(context.url)
        if self._announce:
            taken_port = None if context.url.endswith(f":{self._port}") else self._port
            group.start_soon(
                ForegroundOutput(
                    context.access, context.url, context.command_line, taken_port, has_person=self._has_person
                ).run
            )

    def _build_toolbox(self, gate: Gate, foundation: Foundation) -> Toolbox:
        own = self._places.own_folders
        context = ToolContext(
            terminals=foundation.terminals,
            records=foundation.records,
            settings=foundation.settings,
            own=own,
            marked=self._marked,
        )
        return build_toolbox(gate, context, foundation.blobs, own, self._works, self._windows)

    def _build_terminal_settings(self, policy: AcceptedPolicy) -> TerminalSettings:
        """Settings of terminals and commands. While no person accepted config.toml, it passes no variable on."""
        terminal, command = self._config.terminal, self._config.command
        environment = child_environment(os.environ, () if policy.holds_config else command.env_pass)
        policy.on_release.append(lambda: environment.update(child_environment(os.environ, command.env_pass)))
        return TerminalSettings(
            environment=environment,
            shell=terminal.shell,
            max_bytes=terminal.max_bytes,
            max_lines=terminal.max_lines,
            grace=command.stop_grace,
        )

    def _keeper_lost(self, why: str) -> None:
        if self._access is not None and not self._stop_requested.is_set():
            log.warning("the keeper was lost: %s", why)
            self._access.seal(SEALED_KEEPER)
        if self._policy_memory is not None:
            self._policy_memory.keeper_lost()

    async def _restore(self, gate: Gate, foundation: Foundation, threads: Threads) -> Restart:
        terminals, events = foundation.terminals, foundation.terminal_events
        crashed = self._daemon_file.hangs
        return await restore_all(
            gate, foundation.records, terminals, events, threads, self._survivors, crashed=crashed
        )

    async def _stop_on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
            async for _ in signals:
                self.stop(True)

    async def _release_keeper(self, keeper: Keeper) -> None:
        """End everything that was started, or leave it to the keeper for the next daemon."""
        if not self._ends_all:
            keeper.leave()
            return
        try:
            with anyio.move_on_after(SHUTDOWN_SECONDS):
                await keeper.shutdown(self._config.command.stop_grace)
        except KeeperError as problem:
            log.warning("the keeper did not end what it had started: %s", problem)
