"""The state of MCP servers: each running one, delays after failures, and what a person wants to know."""

import logging
from collections.abc import Callable
from dataclasses import field

import anyio

from handrail.config import McpServerSection
from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.terminal.keeper_client import KeeperError
from handrail.terminal.pipe_process import PipeProcess
from handrail.terminal.terminal import Terminal
from handrail.upstream._transports import Transport
from handrail.upstream.jsonrpc_connection import ConnectionLost, RpcError
from handrail.upstream.server_connection import ClientLink, ServerConnection

log = logging.getLogger(__name__)

RETRY_FIRST = 1.0
RETRY_MAX = 60.0
"""Delays before a server that failed is started again: the first, and the longest."""
STABLE_SECONDS = 30.0
"""A server that ran this long did not fail at its start: its next start is not delayed."""


@dataclass()
class ServerState:
    """What a person wants to know of a server."""

    last_problem: str = ""
    has_failed: bool = False
    """Its last start failed, or it ended soon after."""
    version: str = ""
    """Its name and version, as it reports them."""
    protocol: str = ""
    said: tuple[str, ...] = ()
    """The last lines of its standard error."""
    refused: tuple[str, ...] = ()
    """Tools that cannot be offered, with the reason."""
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    """The same for the entries of other lists: a sentence for each list that has such entries."""
    is_legacy: bool = False
    """It speaks MCP 2025 only, so it is not asked for 2026-07-28 again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUse:
    """One process of a server, and the client that it serves."""

    client: str
    pid: int | None
    """None while it is started, and for a server over HTTP."""
    is_ready: bool
    lines: tuple[str, ...]
    """The last lines of its standard error."""


@dataclass()
class RunningServer:
    """One server for one client, from its start to its end."""

    section: McpServerSection
    key: str
    link: ClientLink
    started: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    connection: ServerConnection | None = None
    transport: Transport | None = None
    problem: str = ""
    users: int = 0
    """Requests in progress."""
    leaving: bool = False
    """Its client has left: it ends with the last request."""
    ended_by_discovery: bool = False
    """It ended when it was asked for 2026-07-28. It can be started again for the handshake of MCP 2025."""
    why: str = ""
    since: float = 0.0
    is_stopped: bool = False

    @property
    def is_young(self) -> bool:
        """Whether its end would be a failure of its start."""
        return self.since == 0 or anyio.current_time() - self.since < STABLE_SECONDS

    def describe_use(self, mask: Callable[[str], str]) -> ServerUse:
        process = process_of(self.transport)
        return ServerUse(
            client=str(self.link.info.get("name", "")),
            pid=None if process is None else process.pid,
            is_ready=self.connection is not None,
            lines=() if self.transport is None else tuple(map(mask, self.transport.stderr_lines)),
        )

    def end(self, why: str) -> None:
        self.why, self.is_stopped = self.why or why, True
        self.give_up_if_stopped()

    def give_up_if_stopped(self) -> None:
        """End the transport, once the server has started."""
        if self.is_stopped and self.connection is not None and self.transport is not None:
            self.transport.give_up(self.why)

    def fail_start(self, problem: TimeoutError | RpcError | ConnectionLost, garbage: str) -> None:
        """Note why it could not be used, and what it sent instead of messages."""
        name = self.section.name
        match problem:
            case TimeoutError():
                why = f"{name} did not answer within {self.section.start_seconds:g} s of its start."
            case RpcError():
                why = f"{name} could not be started: {problem.excerpt}"
            case ConnectionLost() if self.section.url and str(problem).startswith(f"{name} "):
                why = str(problem)  # nothing was started
            case ConnectionLost():
                why = f"{name} could not be started: {_refer('it', problem, name)}"
        self.problem = f"{why} {garbage}".rstrip()

    def fail(self, problem: Exception) -> None:
        """Note why it does not run. A fault of ours is logged."""
        name = self.section.name
        if isinstance(problem, KeeperError | Refusal):
            self.problem = f"{name} could not be started. {_refer('It', problem, name)}"
            return
        log.error("the MCP server %s was ended by a fault", name, exc_info=problem)
        self.problem = f"{name} was ended by a fault in Handrail; its log has the details."

    def serve(self, link: ClientLink) -> None:
        """Go on for this link of the client, unless the client has left: its last calls use the link they began with."""
        if link.has_left:
            return
        self.link, self.leaving = link, False
        if self.connection is not None:
            self.connection.serve(link)

    def end_if_unused(self) -> None:
        if self.leaving and not self.users:
            self.end("Its client has left.")


def _refer(pronoun: str, problem: Exception, name: str) -> str:
    """A sentence that follows one about the same server."""
    sentence = str(problem)
    return f"{pronoun}{sentence.removeprefix(name)}" if sentence.startswith(f"{name} ") else sentence


@dataclass()
class Retry:
    """The failures of a server for one client, and when it may be started again."""

    failures: int = 0
    at: float = 0.0
    problem: str = ""

    def add(self, problem: str) -> None:
        """Delay the next start: not after the first failure, then longer and longer."""
        delay = min(RETRY_MAX, RETRY_FIRST * 2**self.failures) if self.failures else 0.0
        self.failures = min(self.failures + 1, 20)
        self.at, self.problem = anyio.current_time() + delay, problem


def process_of(transport: Transport | None) -> Terminal | None:
    """The process of a server on stdio."""
    return transport.terminal if isinstance(transport, PipeProcess) else None
