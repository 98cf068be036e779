"""JSON models of the clients that run now, and the conversion to them."""

from typing import Literal

import anyio

from handrail.gate.gate import Gate
from handrail.server.access import Person
from handrail.server.api.models import Wire, now_ms
from handrail.server.client_sessions import ClientSession
from handrail.store.threads.message import clean


class ClientView(Wire):
    """A session of a connected client that runs now."""

    key: str
    """The same as `caller.key` of its calls."""
    client: str
    title: str
    """The client's name for people."""
    session: str
    """The client's own id of the conversation."""
    folder: str
    pid: int | None
    terminal_id: str | None
    """The terminal that it runs in, if that is one of ours."""
    tty: str
    """The name of its terminal device, such as pts/3; empty if it has none."""
    state: Literal["working", "needs_you", "idle"]
    """needs_you: one of its calls waits for an answer, or the client wants its user's attention."""
    since: int
    """When that state began."""
    started_at: int
    """When its first hook came."""
    tool: str
    """The client's name of the tool that it uses now."""
    message: str
    """The last thing that the client said; empty for a watcher."""
    approvals: list[str]
    """Ids of its open approvals."""


class DemoView(Wire):
    """The demo that runs now."""

    terminal: str
    """The terminal in which it says what it does. Closing it ends the demo."""


class KnownClientView(Wire):
    """A client that `handrail connect` knows."""

    name: str
    title: str
    found: bool
    """It is installed here."""
    set_up: bool
    """`handrail connect` has written its configuration."""


def build_client_views(sessions: list[ClientSession], gate: Gate, person: Person) -> list[ClientView]:
    """The sessions with their open approvals."""
    waiting: dict[str, list[tuple[int, str]]] = {}
    for call in gate.open.values():
        approval = call.approval
        if approval is not None and approval.open:
            asked_at = now_ms() - int((anyio.current_time() - approval.since) * 1000)
            waiting.setdefault(call.caller.key, []).append((asked_at, approval.id))
    return [_build_view(session, sorted(waiting.get(session.key, ())), person) for session in sessions]


def _build_view(session: ClientSession, waiting: list[tuple[int, str]], person: Person) -> ClientView:
    needs_you = bool(waiting) or session.activity == "asks"
    return ClientView(
        key=session.key,
        client=session.client,
        title=session.title,
        session=clean(session.session),
        folder=clean(session.folder),
        pid=None if session.process is None else session.process.pid,
        terminal_id=session.terminal,
        tty=session.tty,
        state="needs_you" if needs_you else "idle" if session.activity == "idle" else "working",
        since=waiting[0][0] if waiting else session.since,
        started_at=session.started_at,
        tool=clean(session.tool),
        message=clean(session.message) if person.approves else "",
        approvals=[approval for _, approval in waiting],
    )
