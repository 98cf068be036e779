"""JSON models of editors, and the conversion to them."""

from typing import Annotated, Literal

from pydantic import Field

from handrail.server.api.models import Wire
from handrail.server.editor_pairings import EditorPairings, Pairing
from handrail.store.threads.message import clean


class EditorView(Wire):
    """An editor that runs, and whether it may decide."""

    id: str
    state: Literal["waiting", "paired", "refused"]
    """waiting: it asks to be paired."""
    number: int
    """Compare it with the number in the editor's window."""
    pid: int
    program: str
    """The path of its executable."""
    command: str
    """Its command line, as the process states it."""
    workspace: str
    """The folder that it has open, as it says."""
    started_at: int
    """When the editor's process started."""
    since: int
    """When it asked, or was answered."""
    windows: int
    """Its connections, one for each window."""


class PairBody(Wire):
    """The number that the person compared."""

    number: Annotated[int, Field(ge=100, le=999)]


def build_editor_views(editors: EditorPairings) -> list[EditorView]:
    """The editors that run, oldest first."""
    return [_build_view(pairing, editors.count_connections(pairing)) for pairing in editors.current]


def _build_view(pairing: Pairing, windows: int) -> EditorView:
    process = pairing.process
    return EditorView(
        id=pairing.id,
        state=pairing.state,
        number=pairing.number,
        pid=process.pid,
        program=clean(process.program),
        command=clean(process.command),
        workspace=clean(pairing.workspace),
        started_at=process.started_at,
        since=pairing.since,
        windows=windows,
    )
