"""Hooks of clients: judge the tool calls that clients are about to do, and follow them to their end.

One question for one tool call: a client's second hook for the same call, its own permission request and a repeated call
find the open one. If the client cannot wait for the person, it must repeat exactly this call; the answer is kept
for that, and used once. Calls that an earlier daemon allowed are followed to their end. Knows no client's format: the
dialects do.
"""

import hmac
import logging
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from pydantic import JsonValue, TypeAdapter, ValidationError

from handrail.clients.hook_event import (
    CANARY_ANSWER,
    CANARY_FIELD,
    RUNS_EDITED,
    HookAnswer,
    HookDialect,
    HookEvent,
    Verdict,
    Work,
)
from handrail.clients.open_work import ClientProcess, OpenWork, OpenWorks, WorkEnd
from handrail.errors import Unwritable
from handrail.gate.call import Call
from handrail.gate.gate import Gate, Request
from handrail.gate.rules.matching import CLIENT_WORK
from handrail.lazy_dataclass import dataclass
from handrail.server._hook_call import HookCall, build_allow, describe_denial, describe_waiting, read_edited
from handrail.store.actor import CLIENT
from handrail.store.values import Caller, Json
from handrail.terminal.person_check import wait_for_exit

log = logging.getLogger(__name__)

_PAYLOAD = TypeAdapter(dict[str, JsonValue])
KEPT_MAX = 200
"""Denials kept for clients that were told to repeat their call; the oldest are dropped."""
MARGIN_SECONDS = 8.0
"""Time between our answer and the end of the client's limit. On a busy machine, a hook takes some of it to start."""
RECORD_SECONDS = 3.0
"""How long a hook waits, past its time, for an allow that is being recorded. Less than the client's limit leaves."""
REPORT_SECONDS = 5.0
"""How long the report of a call may come after its turn, its session or its client has ended."""
LARGE = 256 << 10
"""Bytes of a payload that is parsed in a thread, to keep the event loop free."""
MARK = "HANDRAIL_HOSTED"
"""The variable in which agents that Handrail hosts get the mark of this daemon."""

EVENT_FIELDS = ("hook_event_name", "hookEventName", "hookName", "agent_action_name", "event")
"""Fields in which clients name the event."""
CLAUDE = "claude"
ALLOWED = "Allowed. Claude Code does this itself, and does not report its end."
NO_REPORT = "The agent's turn ended without a report about this call, so its outcome is unknown."
HARMLESS = "The client sent no report. This changes nothing outside of the agent."
SESSION_OVER = "The client's session ended without a report about this call, so its outcome is unknown."
CLIENT_OVER = "The client ended before it reported about this call, so its outcome is unknown."
NOT_OURS = "This MCP server has Handrail's name, but this client has not started Handrail's own."
NOT_ANSWERED = "The client's hook ended before it got the answer, so it has probably not begun this."


class BadPayload(ValueError):
    """A payload that cannot be judged; the message is a sentence."""


class HookObserver(Protocol):
    """Follows what the clients' hooks report."""

    def observe(self, client: str, event: HookEvent, process: ClientProcess | None) -> None:
        """A hook reported an event. Must not block and must not raise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReport:
    """What one hook program sends."""

    client: str
    payload: str
    event: str = ""
    """The event by which the hook was configured, for a client whose payload does not name it."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    mark: str = ""
    """The mark of an agent that Handrail hosts, or empty."""
    process: ClientProcess | None = None
    timeout: float = 0.0
    """Seconds after which the client ends the hook; 0 for the client's longest."""

    def seconds(self, dialect: HookDialect) -> float:
        """How long the client can wait for an answer."""
        margin = max(MARGIN_SECONDS, self.timeout / 10)
        return min(dialect.clock_seconds, self.timeout - margin) if self.timeout else dialect.clock_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownClients:
    """What the daemon knows about a client besides its reports."""

    mark: str
    """The secret of agents that this daemon hosts."""
    has_server: Callable[[ClientProcess], bool]
    """Whether a client has started our MCP server."""
    has_session: Callable[[str], bool]
    """Whether a hosted agent has this session."""


class Hooks:
    """Judges the reports of all hooks."""

    def __init__(
        self,
        gate: Gate,
        works: OpenWorks,
        dialects: Mapping[str, HookDialect],
        find_workspace: Callable[[str], str | None],
        known: KnownClients,
    ) -> None:
        self._gate = gate
        self._works = works
        self._dialects = dialects
        self._find_workspace = find_workspace
        self._known = known
        self._calls: dict[str, HookCall] = {}
        """Open and kept calls by the id of their work, oldest first."""
        self._watched: set[ClientProcess] = set()
        self._group: TaskGroup | None = None
        self.observers: list[HookObserver] = []
        self.report_seconds = REPORT_SECONDS

    async def run(self) -> None:
        """Follow the open calls, until cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            self._follow_restored(group)
            await anyio.sleep_forever()

    def _follow_restored(self, group: TaskGroup) -> None:
        """Follow the calls that an earlier daemon allowed: those that have begun, and those that wait for a repetition."""
        for call in self._gate.open.values():
            work = self._works.get(str(call.input.get("work"))) if call.tool == CLIENT_WORK else None
            if work is None:
                continue
            opened = self._calls[work.id] = HookCall(str(call.input.get("client")), work)
            opened.call = call
            opened.delivered = opened.is_restored = work.begun
            group.start_soon(self._follow, opened, None)
            self._watch(work.process)

    async def answer(self, report: HookReport) -> HookAnswer:
        """Judge one report, and answer in the client's format. Raises BadPayload."""
        dialect = self._find_dialect(report.client)
        payload = await _parse_payload(report.payload)
        if payload.get(CANARY_FIELD) is True:
            raise BadPayload(CANARY_ANSWER)
        if report.event and not any(name in payload for name in EVENT_FIELDS):
            payload = {**payload, "hook_event_name": report.event}
        try:
            event = dialect.read(payload, report.environment)
        except ValueError as problem:
            raise BadPayload(f"{report.client}'s payload is not understood. {problem}") from None
        if self._is_hosted(report) and self._known.has_session(event.session):
            # Its thread shows this work. One call for it is enough.
            return dialect.answer(event, Verdict(effect="pass"))
        for observer in self.observers:
            observer.observe(report.client, event, report.process)
        verdict = await self._handle(report, dialect, event, payload)
        return dialect.answer(event, verdict)

    def answer_canary(self, client: str) -> str:
        """The answer to `handrail doctor`, which opens no call. Raises BadPayload."""
        self._find_dialect(client)
        return CANARY_ANSWER

    def _find_dialect(self, client: str) -> HookDialect:
        if client not in self._dialects:
            known = ", ".join(sorted(self._dialects))
            raise BadPayload(f"it does not know the client {client[:40]!r}. Use one of: {known}.")
        return self._dialects[client]

    async def _handle(
        self, report: HookReport, dialect: HookDialect, event: HookEvent, payload: Json
    ) -> Verdict:
        match event.kind:
            case "before" | "permission":
                self._check_unreported(report.client, event)
                return await self._judge(report, dialect, event, payload)
            case "after":
                self._report_end(report.client, event)
            case "stopped" | "session_ended":
                self._end_session(report.client, event)
            case _:
                pass
        return Verdict(effect="pass")

    async def _judge(
        self, report: HookReport, dialect: HookDialect, event: HookEvent, payload: Json
    ) -> Verdict:
        is_hosted = self._is_hosted(report)  # by its session, another client that a hosted agent has started
        if event.work is not None and event.work.ours:
            if is_hosted or self._is_ours(event.work, report.process):
                # Our own tool asks through its own call. A permission is granted, so that nobody is asked twice.
                return Verdict(effect="allow" if event.kind == "permission" else "pass")
            event = replace(event, work=replace(event.work, ours=False, warning=NOT_OURS))
        read = partial(read_edited, dialect, payload, event.input, report.environment)
        verdict = await self.decide(
            report.client,
            OpenWork(event, read, dialect.edits, report.process, edit_notice=dialect.edit_notice),
            self._build_caller(report.client, event),
            report.seconds(dialect),
            is_hosted=is_hosted,
        )
        return Verdict(effect="pass") if is_hosted else verdict

    def _is_ours(self, work: Work, process: ClientProcess | None) -> bool:
        """Whether a server that has our name is ours: the client tells where it comes from, or has started our door.

        Where the system does not show who started what, the name has to do.
        """
        if process is None:
            return work.is_vouched or sys.platform != "linux"
        return work.is_vouched or self._known.has_server(process)

    def _is_hosted(self, report: HookReport) -> bool:
        """Whether the client is an agent that Handrail hosts, or was started by one."""
        return bool(report.mark) and hmac.compare_digest(report.mark.encode(), self._known.mark.encode())

    async def approve(self, caller: Caller, tool: str, input: Json, call: str, doubt: str = "") -> Verdict:
        """Judge a tool call about which Claude Code asks through its permission prompt tool.

        `doubt` says why a server with our name may not be ours. No one reports the end of the call, unless a hook asked
        about the same call before. Raises ValueError.
        """
        dialect = self._dialects[CLAUDE]
        cwd = caller.workspace or ""
        about: Json = {"hook_event_name": "PreToolUse", "session_id": caller.key, "cwd": cwd}
        payload: Json = {**about, "tool_name": tool, "tool_input": input, "tool_use_id": call}
        event = replace(dialect.read(payload, {}), kind="permission")
        if event.work is not None and event.work.ours:
            if not doubt:
                return Verdict(effect="allow")
            event = replace(event, work=replace(event.work, ours=False, warning=doubt))
        read = partial(read_edited, dialect, payload, input, {})
        work = OpenWork(event, read, dialect.edits, None, edit_notice=RUNS_EDITED)
        verdict = await self.decide(CLAUDE, work, caller, math.inf)
        if work.begun:
            work.report_end(WorkEnd(output=ALLOWED))
        return verdict

    async def decide(
        self, client: str, work: OpenWork, caller: Caller, seconds: float, *, is_hosted: bool = False
    ) -> Verdict:
        """The decision about a tool call; a denial that tells the client to repeat it if there is none in time."""
        deadline = anyio.current_time() + seconds
        while True:
            found = self._find(client, work.event)
            if found is None:
                found = self._open(client, work, caller, is_hosted=is_hosted)
            if found.is_missed:
                self._withdraw(found)
                self._calls.pop(found.work.id, None)
                continue
            was_kept = found.is_kept
            if was_kept:
                found.work.renew(work)  # with the client's new id, under which it will report the end
            await self._wait(found, deadline - anyio.current_time())
            verdict = None if was_kept and self._has_changed(found) else self._verdict(found, work.event)
            if verdict is not None:
                return verdict

    def _has_changed(self, opened: HookCall) -> bool:
        """Whether a kept allow does not hold any more: it is used up, and the question is asked again."""
        outcome = None if opened.call is None else opened.call.outcome
        if outcome is None or outcome.ending not in ("failed", "interrupted"):
            return False
        self._calls.pop(opened.work.id, None)
        return True

    def _find(self, client: str, event: HookEvent) -> HookCall | None:
        """The call that an event is about: the same tool call, a repeated one, or one that a permission is asked for."""
        among = [each for each in self._calls.values() if each.client == client and not each.is_restored]
        same = next((each for each in among if each.has_same_call(event)), None)
        if same is not None:
            return same
        among = [each for each in among if each.event.session == event.session]
        if event.kind == "permission":
            return next((each for each in among if each.can_grant and each.does_same(event)), None)
        return next(
            (
                each
                for each in among
                if (each.is_kept or each.is_missed)
                and each.event.cwd == event.cwd
                and each.has_same_input(event)
            ),
            None,
        )

    def _open(self, client: str, work: OpenWork, caller: Caller, *, is_hosted: bool) -> HookCall:
        assert self._group is not None, "hooks are served outside of run()"
        opened = self._calls[work.id] = HookCall(client, work)
        self._works[work.id] = work
        event = work.event
        arguments: Json = {
            "client": client,
            "tool": event.tool,
            "input": event.input,
            "cwd": event.cwd,
            "session": event.session,
            "call": event.call,
            "work": work.id,
            "hosted": is_hosted,
            "process": None if work.process is None else asdict(work.process),
        }
        request = Request(tool=CLIENT_WORK, input=arguments, caller=caller, patience=math.inf)
        self._group.start_soon(self._follow, opened, request)
        self._watch(work.process)
        return opened

    async def _follow(self, opened: HookCall, request: Request | None) -> None:
        """Ask the gate about a call, unless it is known, and follow it until it is settled."""
        try:
            with opened.scope:
                if request is not None:
                    await self._gate.ask(request, opened.opened)
                if opened.call is not None:
                    await opened.call.settled()
        except Unwritable as problem:
            opened.problem = str(problem)
        except Exception:
            log.exception("a hook of %s could not be judged", opened.client)
            opened.problem = "This is a fault in Handrail; its log has the details."
        finally:
            opened.is_over = True
            opened.work.decided.set()
            if opened.call is None or opened.call.outcome is not None:  # else it is left to the next daemon
                self._works.pop(opened.work.id, None)
            self._forget(opened)

    def _forget(self, opened: HookCall) -> None:
        """Keep a denial for the client that will repeat its call; forget every other call that is over."""
        outcome = None if opened.call is None else opened.call.outcome
        if not opened.is_kept or outcome is None or outcome.ending == "interrupted":
            self._calls.pop(opened.work.id, None)
        kept = [each for each in self._calls.values() if each.is_over]
        for each in kept[:-KEPT_MAX]:
            self._calls.pop(each.work.id, None)

    async def _wait(self, opened: HookCall, seconds: float) -> None:
        """Wait for the decision. If the last client that waits is gone, the question is withdrawn."""
        opened.waiters += 1
        opened.work.want()
        try:
            with anyio.move_on_after(max(0.0, seconds)):
                await opened.work.decided.wait()
            if not self._hand_back(opened):
                with anyio.move_on_after(RECORD_SECONDS):
                    await opened.work.decided.wait()
        except anyio.get_cancelled_exc_class():
            opened.waiters -= 1
            self._withdraw(opened)
            raise
        opened.waiters -= 1

    def _hand_back(self, opened: HookCall) -> bool:
        """Hand an undecided call back; False if its allow is being recorded, for which it is worth to wait."""
        if opened.work.decided.is_set():
            return True
        if opened.call is None:
            opened.scope.cancel()
            return True
        opened.call.hand_back()
        return opened.waiters > 1 or opened.work.leave()

    def _withdraw(self, opened: HookCall) -> None:
        """Withdraw the question that no one waits for, unless the client must repeat its call."""
        if opened.waiters or opened.delivered:
            return
        if opened.work.begun:  # it was decided while its hook ended
            opened.work.report_end(WorkEnd(unknown=NOT_ANSWERED))
        elif not opened.work.decided.is_set() and not (opened.call and opened.call.handed_back):
            opened.scope.cancel()
        elif not opened.work.leave():
            opened.work.report_end(WorkEnd(unknown=NOT_ANSWERED))

    def _verdict(self, opened: HookCall, event: HookEvent) -> Verdict | None:
        """The answer to one hook; None if the call that it waited for is of no use to it."""
        if opened.problem:
            return Verdict(effect="deny", reason=f"Handrail could not record this call. {opened.problem}")
        call = opened.call
        if call is None or not opened.work.decided.is_set():
            return Verdict(effect="deny", reason=describe_waiting(call))
        if opened.work.begun and not opened.is_over:
            return self._deliver(opened, event, call)
        outcome = call.outcome
        if outcome is None or (outcome.ending == "cancelled" and outcome.by == CLIENT):
            self._calls.pop(opened.work.id, None)
            return None
        self._calls.pop(opened.work.id, None)
        return Verdict(effect="deny", reason=describe_denial(outcome))

    def _deliver(self, opened: HookCall, event: HookEvent, call: Call) -> Verdict | None:
        """Allow, once: a second call with the same input is another one, unless the client's id differs."""
        if opened.delivered and event.kind != "permission" and not opened.has_same_call(event):
            return None
        if event.kind == "permission" and opened.delivered:
            opened.granted = True
        opened.delivered = True
        return build_allow(call)

    def _report_end(self, client: str, event: HookEvent) -> None:
        running = [each for each in self._running() if each.client == client]
        by_id = [each for each in running if event.call and each.event.call == event.call]
        found = next((each for each in by_id if each.has_same_input(event)), None)
        if found is None and len(by_id) == 1:  # some clients change the input, or leave it out of the report
            found = by_id[0]
        if found is None:
            # The id of a repeated call is not in the input of a call of an earlier daemon.
            others = [
                each
                for each in running
                if each.event.session == event.session and (each.is_restored or not each.event.call)
            ]
            found = next((each for each in others if each.has_same_input(event)), None)
        if found is not None:
            end = WorkEnd(output=event.output, exit_code=event.exit_code, failed=event.failed)
            found.work.report_end(end)

    def _end_session(self, client: str, event: HookEvent) -> None:
        why = SESSION_OVER if event.kind == "session_ended" else NO_REPORT
        same = [
            each for each in self._running() if (each.client, each.event.session) == (client, event.session)
        ]
        self._end_unreported(same, why)

    def _end_unreported(self, calls: list[HookCall], why: str) -> None:
        for each in calls:
            each.work.check_files()  # an edit may be done
        if calls and self._group is not None:
            self._group.start_soon(self._end_later, calls, why)

    async def _end_later(self, calls: list[HookCall], why: str) -> None:
        """End calls without a report, unless one is on its way: some clients do not wait for the hooks that report."""
        await anyio.sleep(self.report_seconds)
        for each in calls:
            is_harmless = each.event.work is not None and each.event.work.sort == "harmless"
            end = WorkEnd(output=HARMLESS) if is_harmless else WorkEnd(unknown=why, by_files=True)
            each.work.report_end(end)

    def _check_unreported(self, client: str, event: HookEvent) -> None:
        """Settle the edits of this session that the client does not report, if they are done."""
        for each in self._running():
            work = each.event.work
            is_same = (each.client, each.event.session) == (client, event.session)
            if is_same and work is not None and work.unreported:
                each.work.check_files()

    def _running(self) -> list[HookCall]:
        """The calls that the client may begin; those of an earlier daemon last, as it may have repeated one."""
        running = [each for each in self._calls.values() if each.work.begun and each.delivered]
        return sorted(running, key=lambda each: each.is_restored)

    def _watch(self, process: ClientProcess | None) -> None:
        if process is not None and process not in self._watched and self._group is not None:
            self._watched.add(process)
            self._group.start_soon(self._wait_for_exit, process)

    async def _wait_for_exit(self, process: ClientProcess) -> None:
        """End the calls of a client that ended without a report, and mark those that it must repeat."""
        try:
            await wait_for_exit(process.pid, process.start)
            lost = [each for each in self._calls.values() if each.work.process == process]
            self._end_unreported([each for each in lost if each.work.begun and each.delivered], CLIENT_OVER)
            for each in lost:
                if each.call is not None and each.is_kept and each.call.outcome is None:
                    self._gate.mark_client_gone(each.call)
        finally:
            self._watched.discard(process)

    def _build_caller(self, client: str, event: HookEvent) -> Caller:
        workspace = self._find_workspace(event.cwd) if event.cwd.startswith("/") else None
        return Caller(door="hook", client=client, key=f"{client} {event.session}", workspace=workspace)


async def _parse_payload(text: str) -> Json:
    try:
        if len(text) > LARGE:
            return await anyio.to_thread.run_sync(_PAYLOAD.validate_json, text)
        return _PAYLOAD.validate_json(text)
    except ValidationError:
        raise BadPayload("its input is not a valid JSON object.") from None
