"""The table of clients that `handrail connect` prints, and what is to be known about each."""

from collections.abc import Sequence

from handrail.cli.render.output import Piece, note, print_table, say
from handrail.clients.connection_state import ClientState

_STYLES = {
    "connected": "green",
    "drifted": "yellow",
    "overridden": "red",
    "other Handrail": "yellow",
    "found": "",
}


def show_client_states(states: Sequence[ClientState]) -> None:
    print_table(("CLIENT", "STATE", "VERSION", "WHERE", ""), [_cells(state) for state in states])
    for state in states:
        for sentence in state.problems:
            say((f"{state.client}: ", "bold"), sentence)
        for sentence in state.notes if state.scopes else ():
            say((f"{state.client}: {sentence}", "dim"))
    if not any(state.scopes for state in states):
        note(("`handrail connect CLIENT` connects one, `handrail connect --all` all that are found.", "dim"))


def _cells(state: ClientState) -> tuple[Piece, ...]:
    scope = ", ".join(state.scopes)
    only = "MCP server only" if state.scopes and not state.hooks else ""
    return (state.client, (state.state, _STYLES.get(state.state, "dim")), state.version, scope, only)
