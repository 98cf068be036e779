"""Routes of the daemon itself: state snapshot, events after it, health, shutdown."""

from fastapi import APIRouter, Request, Response

from handrail import __version__
from handrail.server.api import calls
from handrail.server.api.approvals import filter_approvals, load_open_views
from handrail.server.api.call_models import CallView, LiveEntries, State
from handrail.server.api.daemon_models import Health
from handrail.server.api.models import as_json, now_ms
from handrail.server.api.pause import pause_view
from handrail.server.api.policy_changes import policy_view
from handrail.server.api.terminals import build_views
from handrail.server.context import ServerContext, person_of
from handrail.server.health import build_health
from handrail.server.live.event_stream import filter_entries
from handrail.store.values import Position

MOST_OPEN = 2000
"""Open calls in a snapshot, per status. Bounds its size."""
MOST_TERMINALS = 200
"""Running terminals in a snapshot. Bounds its size; the page lists older ones separately."""
MOST_USUAL = 50
"""Running calls that get a typical duration: one query each."""
RECENT = 50
"""Settled calls in a snapshot: about one page."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/state", response_model=State)
    async def state(request: Request) -> Response:
        seq, standing = context.journal.durable, context.gate.rules.standing
        open_calls = await _open_calls(context)
        newest = await context.records.calls.find(limit=RECENT + len(open_calls))
        running = await context.records.terminals.find(running_only=True, limit=MOST_TERMINALS)
        snapshot = State(
            seq=seq,
            now=now_ms(),
            version=__version__,
            started=context.started,
            auto_approve=standing.default == "allow" and not context.gate.rules.suspended,
            human_in_the_loop=standing.human_in_the_loop,
            policy=policy_view(context),
            pause=pause_view(context.gate.rules.pause),
            command_line=context.command_line,
            calls=open_calls,
            recent=[
                calls.call_view(calls.hide_server_words(call, person_of(request)), None)
                for call in newest
                if call.id not in context.gate.open
            ],
            terminals=await build_views(context, running, person_of(request)),
            approvals=filter_approvals(await load_open_views(context), person_of(request)),
        )
        return as_json(snapshot, State)

    @router.get("/events")
    async def events(request: Request, after: Position = 0) -> LiveEntries:
        entries = filter_entries(await context.journal.since(after), person_of(request))
        return LiveEntries(now=now_ms(), entries=entries)

    @router.get("/health")
    async def health(request: Request) -> Health:
        return await build_health(context.pulse, request)

    @router.post("/down", status_code=202)
    async def down(keep_terminals: bool = False) -> dict[str, bool]:
        context.stop(not keep_terminals)
        return {"ok": True}

    return router


async def _open_calls(context: ServerContext) -> list[CallView]:
    """Open calls, oldest first, with the gate's current state."""
    waiting = await context.records.calls.find(status="waiting", limit=MOST_OPEN)
    running = await context.records.calls.find(status="running", limit=MOST_OPEN)
    records = sorted((*waiting, *running), key=lambda record: record.opened_seq)
    durations = {
        record.id: await context.records.calls.typical_duration(record.tool, record.title)
        for record in running[-MOST_USUAL:]
    }
    return [
        calls.call_view(record, context.gate.open[record.id], durations.get(record.id))
        for record in records
        if record.id in context.gate.open
    ]
