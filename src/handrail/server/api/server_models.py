"""JSON models of the MCP servers behind the gate, and the conversion to them."""

import shlex
from typing import Annotated, Literal

from pydantic import Field

from handrail.config import McpServerSection
from handrail.server.api.models import Wire
from handrail.store.calls import ServerCounts
from handrail.store.threads.message import clean
from handrail.upstream.server_state import ServerState, ServerUse
from handrail.upstream.server_trial import ServerTrial
from handrail.upstream.servers import Servers
from handrail.upstream.tool_definition import ToolDefinition, diff_definitions

Runs = Literal["disabled", "held", "idle", "starting", "running", "failed"]


class ServerToolView(Wire):
    """A tool of an MCP server."""

    name: str
    """Its name behind Handrail: `server__tool`."""
    own_name: str
    title: str
    description: str
    """As the server describes it now."""
    state: Literal["known", "new", "changed"]
    """new, changed: no person has accepted the definition, so every call asks."""
    diff: str
    """From the accepted definition to the current one; empty if it is known."""
    digest: str
    """Names the current definition."""


class ServerView(Wire):
    """An MCP server behind the gate."""

    name: str
    target: str
    """The command that starts it, or its URL."""
    state: Runs
    """held: a person has to accept config.toml first. idle: no client uses it. failed: its last start failed, or it ended
    soon after."""
    problem: str
    """Why it failed last; empty if it did not."""
    cwd: str
    """The folder it runs in; empty for the workspace of the client."""
    variables: list[str]
    """Names of the environment variables that are set for it."""
    headers: list[str]
    """Names of the headers that a server over HTTP gets."""
    passed: list[str]
    """Names of the daemon's variables that it gets."""
    sampling: bool
    version: str
    """Its name and version, as it reported them last."""
    protocol: str
    is_listed: bool
    """Its tools were listed once. Before that, `tools` is empty."""
    tools: list[ServerToolView]
    refused: list[str]
    """Why tools are not offered, each as a sentence."""
    clients: list[str]
    """The clients that use it now: one process each."""
    calls_hour: int
    """Calls of its tools in the last hour."""
    errors_hour: int
    """Those that failed or were interrupted."""


class ServerProcessView(Wire):
    """One running process of an MCP server."""

    client: str
    pid: int | None
    lines: list[str]
    """The last lines of its standard error."""


class ServerLogView(Wire):
    """What an MCP server printed on its standard error. Only the last lines of each process are kept."""

    problem: str
    """Why the last process failed; empty if none did."""
    lines: list[str]
    """Of the process that ended last."""
    running: list[ServerProcessView]


class ServerTrialView(Wire):
    """How a trial of an MCP server went."""

    problem: str
    """What failed, as a sentence; empty if nothing did."""
    ms: int
    """From the start of the program to its list of tools."""
    lines: list[str]
    """The last lines of its standard error."""
    server: ServerView


class AcceptToolBody(Wire):
    """The definition that a person saw."""

    digest: Annotated[str, Field(max_length=64)]


def build_server_view(section: McpServerSection, servers: Servers, counts: ServerCounts) -> ServerView:
    name = section.name
    state, uses = servers.states.get(name, ServerState()), servers.uses(name)
    return ServerView(
        name=name,
        target=clean(section.url or shlex.join(section.command)),
        state=_find_state(section, servers, state, uses),
        problem=clean(state.last_problem) if state.has_failed else "",
        cwd=section.cwd,
        variables=sorted({*section.env, *section.secrets}),
        headers=sorted(section.headers),
        passed=list(section.env_pass),
        sampling=section.sampling,
        version=clean(state.version),
        protocol=clean(state.protocol),
        is_listed=section.enabled and name not in servers.unknown,
        tools=[_build_tool_view(tool, servers) for tool in servers.list_tools_of(name)],
        refused=[clean(each) for each in (*state.refused, *state.left_out.values())],
        clients=list(dict.fromkeys(clean(each.client) for each in uses)),
        calls_hour=counts.calls,
        errors_hour=counts.errors,
    )


def _find_state(
    section: McpServerSection, servers: Servers, state: ServerState, uses: list[ServerUse]
) -> Runs:
    if not section.enabled:
        return "disabled"
    if servers.is_held:
        return "held"
    if any(each.is_ready for each in uses):
        return "running"
    if uses:
        return "starting"
    return "failed" if state.has_failed else "idle"


def _build_tool_view(listed: ToolDefinition, servers: Servers) -> ServerToolView:
    accepted = servers.accepted(listed.server, listed.own_name)
    current = servers.get(listed.server, listed.own_name) or listed
    is_known = servers.is_accepted(current)
    return ServerToolView(
        name=current.name,
        own_name=current.own_name,
        title=clean(current.title),
        description=clean(current.description),
        state="known" if is_known else "new" if accepted is None else "changed",
        diff="" if is_known else clean(diff_definitions(accepted, current)),
        digest=current.digest,
    )


def build_log_view(state: ServerState, uses: list[ServerUse]) -> ServerLogView:
    running = [
        ServerProcessView(client=clean(each.client), pid=each.pid, lines=list(each.lines)) for each in uses
    ]
    problem = clean(state.last_problem) if state.has_failed else ""
    return ServerLogView(problem=problem, lines=list(state.said), running=running)


def build_trial_view(trial: ServerTrial, server: ServerView) -> ServerTrialView:
    return ServerTrialView(
        problem=clean(trial.problem),
        ms=round(trial.seconds * 1000),
        lines=list(trial.said),
        server=server,
    )
