"""A trial of an MCP server: started as for a client, asked for its tools, and ended again."""

import secrets

import anyio

from handrail.gate.tool import Refusal
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller
from handrail.upstream.no_client import NoClient
from handrail.upstream.servers import Servers

TRIAL_SECONDS = 28.0
"""Bounds a trial: the command line waits 30 s for the daemon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTrial:
    """How a trial went."""

    problem: str
    """What failed, as a sentence; empty if nothing did."""
    seconds: float
    """From the start of the program to its list of tools."""
    said: tuple[str, ...]
    """The last lines of its standard error."""


async def try_server(servers: Servers, name: str, client: str) -> ServerTrial:
    """Start a process of its own for the trial. Clients that use the server do not notice."""
    key = f"trial:{secrets.token_hex(8)}"
    link = NoClient(Caller(door="page", client=client, key=key, workspace=None))
    start = anyio.current_time()
    problem, said = f"{name} did not answer within {TRIAL_SECONDS:g} s of its start.", tuple[str, ...]()
    with anyio.move_on_after(TRIAL_SECONDS):
        try:
            async with servers.using(name, key, link):
                problem, said = "", next((use.lines for use in servers.uses(name, key)), ())
        except Refusal as refused:
            problem, said = str(refused), servers.states[name].said
    seconds = anyio.current_time() - start
    await servers.end(key)
    return ServerTrial(problem=problem, seconds=seconds, said=said)
