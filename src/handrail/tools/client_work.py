"""The client_work tool: a tool call that a client is about to do itself, as the client's hook reports it.

The claims come from the client's own input, with the same readers as for our tools, and edits are compared with the file
on disk. The call is advisory: after it is allowed, the client does the work. It stays open until the client reports the
end. The old contents of edited files are kept for undo.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import BaseModel, Field

from handrail.clients.hook_event import HookEvent, Work
from handrail.clients.open_work import ClientProcess, OpenWork, OpenWorks, WorkEnd
from handrail.gate.rules.matching import CLIENT_WORK
from handrail.gate.tool import CallReport, Plan, ReceiptFacts, Refusal, Salvage, Tool, UnknownEnd
from handrail.lazy_dataclass import dataclass
from handrail.store.blobs import Blobs, BlobUnavailable
from handrail.store.values import (
    Caller,
    Claim,
    CommandPreview,
    DiffPreview,
    FileChange,
    Json,
    PathPreview,
    Preview,
    ProcessSeen,
    Result,
)
from handrail.tools._client_edits import PlannedEdit, plan_edits, read_present
from handrail.tools.commands.command_claims import command_claims, hosts, read_line
from handrail.tools.commands.secret_search import SecretSearch
from handrail.tools.files.diff import unified
from handrail.tools.results import Input, count_text, printable_line
from handrail.tools.workspace import Place, Workspace

PATHS_MAX = 400
"""Paths, lines and addresses judged in one question; a person cannot review more. More make the claim opaque."""
KEPT_SECONDS = 3600.0
"""How long an allow is kept for a client that was told to repeat its call. Bounds how old an answer can be used."""
OUTPUT_MAX = 60_000
"""Characters of a client's output that are kept, at each end: its transcript has the rest."""
HOSTED = (
    "An agent that Handrail hosts has started this, and it asks over its own protocol. This is only recorded."
)
GONE = "Handrail was restarted since this was asked. Ask again."
UNKNOWN_TOOL = "Handrail does not know this tool"
TOO_MUCH = "it touches more than anybody could judge"
NO_ADDRESS = "Handrail does not see which machines it would reach"
SEEN = "The client sent no report. The files hold what was allowed."
NOT_REPEATED = "It was allowed, and the client did not repeat it in time. It was not run."
ONLY_INPUT = "Only `input` can be edited: the other fields say who asks."


class ClientWorkInput(Input):
    client: str
    tool: Annotated[str, Field(description="The client's own name of the tool.")]
    input: Annotated[Json, Field(description="The client's own input. Only this can be edited.")]
    cwd: str = ""
    session: str = ""
    call: Annotated[str, Field(description="The client's id of the tool call.")] = ""
    work: Annotated[str, Field(description="Our id of the open work.")]
    hosted: bool = False
    process: Annotated[ClientProcess | None, Field(description="The client's process.")] = None


class ClientWorkOutput(BaseModel, defer_build=True):
    output: str | None = Field(None, description="What the client reported, shortened.")
    exit_code: int | None = None
    applied: str | None = Field(None, description="How the files changed, as a unified diff.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan(Plan):
    """The claims and the preview of a client's work, and the file contents before it."""

    work: str
    client: str
    process: ClientProcess | None = None
    edits: tuple[PlannedEdit, ...] = ()


class ClientWork(Tool[ClientWorkInput, ClientPlan]):
    """Ask about work that a client does itself, and follow it to its end."""

    name = CLIENT_WORK
    title = "Client's own work"
    description = (
        "The client does this itself, outside of Handrail. Its hook asks first and reports the end; Handrail cannot hold it "
        "to what it said, and cannot stop it."
    )
    input = ClientWorkInput
    output = ClientWorkOutput
    listed = False
    assurance = "advisory"

    def __init__(
        self, works: OpenWorks, own: Sequence[Path], environment: Mapping[str, str], blobs: Blobs
    ) -> None:
        """`own` are Handrail's own files, always protected; `environment` is that of child processes."""
        self._works = works
        self._own = tuple(own)
        self._path = environment.get("PATH", os.defpath)
        self._blobs = blobs

    def refuse_edit(self, asked: Json, edited: Json | None = None) -> str:
        held = self._works.get(str(asked.get("work")))
        if held is None:
            return GONE
        if held.edits or edited is None:
            return held.edits
        fixed = {**edited, "input": None} == {**asked, "input": None}
        return "" if fixed and isinstance(edited.get("input"), dict) else ONLY_INPUT

    def describe_edit(self, asked: Json, edited: Json) -> str:
        """What its client's model learns about the change, as not every client passes it on."""
        change, held = super().describe_edit(asked, edited), self._works.get(str(asked.get("work")))
        return held.edit_notice or change if held is not None and change else change

    def display(self, input: ClientWorkInput) -> str:
        try:
            return printable_line(_title(self._read(input), input))
        except Refusal:
            return printable_line(input.tool)

    async def plan(self, input: ClientWorkInput, caller: Caller) -> ClientPlan:
        work, workspace = self._read(input), Workspace.of(caller, self._own)
        judge = _Judge(work, input, workspace, self._path)
        edits = await anyio.to_thread.run_sync(judge.plan_edits) if work.edits else ()
        claims = await anyio.to_thread.run_sync(judge.build_claims, edits)
        return ClientPlan(
            claims=claims,
            preview=_preview(judge, edits),
            bound={"edits": [edit.bound for edit in edits]},
            files=tuple(change for edit in edits for change in edit.files),
            old_contents=tuple(content for edit in edits for content in edit.old_contents),
            passes=HOSTED if input.hosted else "",
            server=work.server or None,
            work=input.work,
            client=input.client,
            process=input.process,
            edits=edits,
        )

    async def run(self, plan: ClientPlan, call: CallReport) -> Result:
        """Let the client begin, and wait for its report."""
        await anyio.to_thread.run_sync(self._keep, plan.edits)
        work = self._works.get(plan.work)
        if work is None:
            raise Refusal(GONE)
        call.hand_back()
        work.begin()
        return await self._follow(plan, work, call)

    async def wait_ready(self, input: ClientWorkInput, answered_ms: int) -> None:
        """Wait for the client, if it has to repeat its call."""
        work = self._works.get(input.work)
        if work is None or not await work.wait_wanted(KEPT_SECONDS - answered_ms / 1000):
            raise UnknownEnd(NOT_REPEATED)

    def keep_answer(self, input: ClientWorkInput) -> bool:
        self._hold(input)
        return True

    def outlives_daemon(self, call: CallReport) -> bool:
        return isinstance(call.plan, ClientPlan) and call.plan.process is not None

    async def find_work(self, input: ClientWorkInput, call: CallReport) -> ClientPlan | None:
        """Hold it open again, for the client's report. Whether the client still runs is for the hook server to see."""
        if input.process is None:
            return None
        work = self._hold(input)
        work.begin()
        return ClientPlan(claims=(), bound={}, work=work.id, client=input.client, process=input.process)

    def _hold(self, input: ClientWorkInput) -> OpenWork:
        """The work of an earlier daemon, without the client's payload."""
        event = HookEvent(
            kind="before",
            session=input.session,
            cwd=input.cwd,
            tool=input.tool,
            input=input.input,
            call=input.call,
        )
        work = self._works[input.work] = OpenWork(event, _refuse_read, GONE, input.process, input.work)
        return work

    async def rejoin(self, plan: ClientPlan, call: CallReport) -> Result:
        return await self._follow(plan, self._works[plan.work], call)

    async def _follow(self, plan: ClientPlan, work: OpenWork, call: CallReport) -> Result:
        """Wait for the client's report, or until the files show that work without a report is done."""
        workspace = Workspace.of(call.caller, self._own)
        while (end := await work.wait_news()) is None or end.by_files:
            if await anyio.to_thread.run_sync(_is_done, plan, workspace):
                end = WorkEnd(output=SEEN)
            if end is not None:
                break
        read = partial(_build_result, plan, end, workspace, self._blobs)
        result, changed = await anyio.to_thread.run_sync(read)
        if changed:
            call.add_receipt(ReceiptFacts(files_changed=changed))
        if end.unknown:
            raise UnknownEnd(end.unknown, result)
        if end.failed and end.exit_code is None:
            raise Refusal(f"{plan.client} reported that this failed.", result)
        return result

    def changed_since(self, plan: ClientPlan) -> tuple[str, str] | None:
        return next((change for edit in plan.edits if (change := edit.find_drift()) is not None), None)

    def salvage(self, call: CallReport) -> Salvage | None:
        plan = call.plan
        if not isinstance(plan, ClientPlan):
            return None
        message = f"{plan.client} does this itself, so Handrail cannot stop it: it may still run. Stop it in {plan.client}."
        process = plan.process
        left = (ProcessSeen(pid=process.pid, name=process.name),) if process else ()
        return Salvage(
            result=Result(text=message, data={}),
            message=message,
            runs_on=True,
            receipt=ReceiptFacts(processes_left=left),
        )

    def _read(self, input: ClientWorkInput) -> Work:
        held = self._works.get(input.work)
        if held is None:
            raise Refusal(GONE)
        try:
            return held.read(input.input)
        except ValueError as problem:
            raise Refusal(f"{input.client} cannot take this input. {problem}") from None

    def _keep(self, edits: Sequence[PlannedEdit]) -> None:
        """Make sure that the old contents are on disk before the client replaces them."""
        for edit in edits:
            before = None if edit.change is None else edit.change.target.before
            try:
                if before is not None:
                    self._blobs.put(before)
            except OSError as error:
                raise Refusal(
                    f"What {edit.place.shown} holds could not be kept for undo ({error.strerror}), so this was refused."
                ) from None


class _Judge:
    """The claims of one piece of work. Reads the disk: call it in a thread."""

    def __init__(self, work: Work, input: ClientWorkInput, workspace: Workspace, path: str) -> None:
        self.work = work
        self.input = input
        self.workspace = workspace
        self._path = path
        self._problem = ""
        folder = input.cwd or workspace.root or "/"
        self.folder = _join(folder, work.cwd) if work.cwd else folder

    def plan_edits(self) -> tuple[PlannedEdit, ...]:
        try:
            return plan_edits(self.work.edits[:PATHS_MAX], partial(_join, self.folder), self.workspace)
        except Refusal as refusal:
            self._problem = refusal.sentence
            return ()

    def build_claims(self, edits: Sequence[PlannedEdit]) -> tuple[Claim, ...]:
        work = self.work
        claims = [claim for edit in edits for claim in edit.claims]
        for line in work.commands[:PATHS_MAX]:
            claims += self._command_claims(line)
        for path in self._read_paths():
            claims += self._path_claims(path)
        for url in work.urls[:PATHS_MAX]:
            claims += self._host_claims(url)
        claims += self._sort_claims()
        if max(map(len, (work.edits, work.commands, work.paths, work.urls))) > PATHS_MAX:
            claims.append(self.opaque_claim(TOO_MUCH))
        if self._problem:
            claims.append(self.opaque_claim(self._problem))
        if work.warning:
            claims.append(self.opaque_claim(work.warning))
        return tuple(dict.fromkeys(claims)) or (self.opaque_claim(UNKNOWN_TOOL),)

    def opaque_claim(self, why: str) -> Claim:
        title = printable_line(_title(self.work, self.input))
        return Claim(action="run", resource=title, inside=True, opaque=why)

    def _read_paths(self) -> Sequence[str]:
        """The paths that it reads; the folder itself if it names none."""
        return self.work.paths[:PATHS_MAX] or (["."] if self.work.sort == "read" else [])

    def _command_claims(self, line: str) -> Sequence[Claim]:
        try:
            place = self.workspace.place(self.folder)
            return command_claims(read_line(line), place, self.workspace, self._path)
        except Refusal as refusal:
            return [self.opaque_claim(refusal.sentence)]

    def _path_claims(self, path: str) -> Sequence[Claim]:
        try:
            place = self.workspace.place(_join(self.folder, path))
        except Refusal as refusal:
            return [self.opaque_claim(refusal.sentence)]
        claim = place.claim("read")
        if self.work.globs and SecretSearch(self.workspace).are_chosen(place.path, self.work.globs):
            claim = replace(claim, protected=True)
        return [claim]

    def _host_claims(self, url: str) -> Sequence[Claim]:
        names = list(dict.fromkeys(hosts(("curl", url))))
        return [Claim(action="connect", resource=name, inside=True) for name in names] or [
            self.opaque_claim(NO_ADDRESS)
        ]

    def _sort_claims(self) -> Sequence[Claim]:
        work = self.work
        match work.sort:
            case "harmless":
                return [Claim(action="plan", resource=printable_line(self.input.tool), inside=True)]
            case "mcp":
                name = printable_line(f"{work.server} {work.server_tool}")
                return [Claim(action="run", resource=name, inside=True)]
            case "fetch":
                return [] if work.urls else [self.opaque_claim(NO_ADDRESS)]
            case "other":
                return [] if work.warning else [self.opaque_claim(UNKNOWN_TOOL)]
            case _:
                return []


def _join(folder: str, path: str) -> str:
    """A path relative to the client's folder."""
    path = path.removeprefix("file://")
    return path if path.startswith("~") else os.path.join(folder, path)  # noqa: PTH118 - resolved by Workspace


def _title(work: Work, input: ClientWorkInput) -> str:
    match work.sort:
        case "command":
            return " && ".join(work.commands) or input.tool
        case "edit":
            more = f" and {count_text(len(work.edits) - 1, 'more file')}" if len(work.edits) > 1 else ""
            return (
                f"{_edit_verb(work)} {_shown(work.edits[0].path, input)}{more}" if work.edits else input.tool
            )
        case "read":
            shown = ", ".join(_shown(path, input) for path in work.paths[:PATHS_MAX])
            return f"{input.tool} {shown}".rstrip()
        case "fetch":
            return f"Fetch {', '.join(work.urls)}" if work.urls else input.tool
        case "mcp":
            return f"{work.server}: {work.server_tool}"
        case "harmless" | "other":
            return input.tool


def _shown(path: str, input: ClientWorkInput) -> str:
    """A path relative to the client's folder, if it lies below."""
    return path.removeprefix(f"{input.cwd.rstrip('/')}/") if input.cwd else path


def _edit_verb(work: Work) -> str:
    edit = work.edits[0]
    if edit.delete:
        return "Delete"
    if edit.move_to:
        return "Move"
    return "Write" if edit.content is not None and not edit.appended else "Edit"


def _preview(judge: _Judge, edits: Sequence[PlannedEdit]) -> Preview | None:
    """A preview that shows all of the work; None shows the person the client's input instead."""
    work = judge.work
    if work.sort == "command" and work.commands and not edits:
        lines = "\n".join(work.commands)
        return CommandPreview(command=lines, cwd=judge.folder, program=f"{judge.input.client}, by itself")
    if work.sort == "edit" and edits:
        return _preview_edits(edits)
    if work.sort == "read" and len(work.paths) == 1:
        return PathPreview(path=_join(judge.folder, work.paths[0]))
    return None


def _preview_edits(edits: Sequence[PlannedEdit]) -> DiffPreview:
    first, diffs = edits[0], [edit.change.diff for edit in edits if edit.change is not None]
    more = (f"Changes {count_text(len(edits), 'file')}.",) if len(edits) > 1 else ()
    whole = first.change.preview if len(edits) == 1 and first.change is not None else None
    return DiffPreview(
        path=first.place.path,
        diff="".join(diff.text for diff in diffs),
        added=sum(diff.added for diff in diffs),
        removed=sum(diff.removed for diff in diffs),
        creates=whole is not None and whole.creates,
        deletes=whole is not None and whole.deletes,
        notes=(*more, *(note for edit in edits for note in edit.notes)),
    )


def _refuse_read(_input: Json) -> Work:
    raise ValueError(GONE)


def _is_done(plan: ClientPlan, workspace: Workspace) -> bool:
    """Whether all that it would do is to change files, and they hold exactly the allowed content. Reads the files."""
    paths = {change.path for change in plan.files}
    only_edits = bool(paths) and all(claim.resource in paths for claim in plan.claims)
    return only_edits and all(_holds(change, workspace) for change in plan.files)


def _holds(change: FileChange, workspace: Workspace) -> bool:
    if change.after is None:
        return not os.path.lexists(change.path)
    try:
        content = read_present(workspace.place(change.path))
    except Refusal:
        return False
    return content is not None and hashlib.sha256(content).hexdigest() == change.after


def _build_result(
    plan: ClientPlan, end: WorkEnd, workspace: Workspace, blobs: Blobs
) -> tuple[Result, tuple[str, ...]]:
    """The result, and the files that have really changed. Reads the files again."""
    known = _find_known(plan, workspace, blobs)
    diffs = [unified(place.shown, before, read_present(place)).text for place, before in known]
    changed = tuple(place.path for (place, _), diff in zip(known, diffs, strict=True) if diff)
    output = _shorten(end.output)
    data: Json = {"output": output, "exit_code": end.exit_code}
    if plan.edits or plan.files:
        data["applied"] = _shorten("".join(diffs))
    code = f"\n[exit code {end.exit_code}]" if end.exit_code is not None else ""
    return Result(text=f"{output}{code}", data=data), changed


def _find_known(plan: ClientPlan, workspace: Workspace, blobs: Blobs) -> Sequence[tuple[Place, bytes | None]]:
    """The files that it may change and their old contents; after a restart, as they were kept for undo."""
    if plan.edits:
        return [(edit.place, edit.change.target.before) for edit in plan.edits if edit.change is not None]
    known: list[tuple[Place, bytes | None]] = []
    for change in plan.files:
        with suppress(Refusal, BlobUnavailable):
            before = None if change.before is None else blobs.get(change.before)
            known.append((workspace.place(change.path), before))
    return known


def _shorten(text: str) -> str:
    left_out = len(text) - 2 * OUTPUT_MAX
    if left_out <= 0:
        return text
    return f"{text[:OUTPUT_MAX]}\n… {left_out:,} characters left out …\n{text[-OUTPUT_MAX:]}"
