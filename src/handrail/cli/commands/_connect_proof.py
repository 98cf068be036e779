"""`handrail connect CLIENT --prove`: one headless turn of the real client, whose shell call must reach the inbox."""

from __future__ import annotations

import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.cli.client import Live
from handrail.cli.failure import Failure
from handrail.cli.render.output import note, print_json, say
from handrail.clients.client_facts import Client, Setup
from handrail.clients.connection_plan import ConnectRefused
from handrail.clients.proof import Proof, run_proof
from handrail.clients.proof_recipes import RECIPES

if TYPE_CHECKING:
    from handrail.cli.wire import AnswerBody, ApprovalView, CallDetail, CallView

CALL_SECONDS = 90.0
"""How long the call may take to come. Clients that run on Node take many seconds to start on a busy machine."""
LOOK_SECONDS = 60.0
"""How long a person at a terminal may look at the question before it is denied."""
SETTLE_SECONDS = 15.0
"""How long the client may take to obey the answer, and the daemon to see that the client has ended."""
POLL_SECONDS = 0.1
REASON = "This was a proof of the connection."
_OPEN = ("waiting", "running")


def prove(client: Client, setup: Setup, *, stays: bool, as_json: bool) -> None:
    """Raises Failure if the call does not reach Handrail. With `stays`, the question waits for a person for a minute."""
    _check(client, setup)
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the client ends with us
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with Live("person") as live:
        note((f"Starting {client.title} in a scratch home …", "dim"))
        try:
            with run_proof(client, setup) as proof:
                call = _await_call(live, client, proof)
                if call is None:
                    raise Failure(_explain(client, setup, proof))
                if stays and call["status"] == "waiting":
                    _let_look(live, call)
                seen: CallDetail = live.link.get("calls", call["id"])
                _deny(live, seen)
                _await_result(proof)
                proof.stop()
                has_run = proof.has_run
        except (ConnectRefused, OSError) as problem:
            raise Failure(f"{client.title} could not be started in a scratch home: {problem}") from None
        outcome = _await_end(live, call["id"])
    _report(client, setup, seen, outcome, has_run, as_json)


def _check(client: Client, setup: Setup) -> None:
    if client.name not in RECIPES:
        raise Failure(
            f"There is no proof for {client.title}: Handrail does not know how to run it without its user. "
            f"--prove works with {', '.join(RECIPES)}."
        )
    if setup.program is None:
        raise Failure(
            f"{client.title} is not installed: there is no {' or '.join(client.programs)} on PATH. Install it first."
        )


def _await_call(live: Live, client: Client, proof: Proof) -> CallView | None:
    """The client's call, as soon as it is decided or asked about; None if the client ends without it, or takes too long."""
    until = time.monotonic() + CALL_SECONDS
    is_over = False
    while not is_over:
        is_over = proof.exit_code is not None or time.monotonic() > until  # then one last look
        calls: list[CallView] = live.link.get("calls", agent=client.name, limit=50)
        found = next((call for call in calls if proof.command in call["title"]), None)
        if found and _is_decided(found):
            return found
        if not is_over:
            live.wait(0.5)
    return None


def _is_decided(call: CallView) -> bool:
    """Whether the gate has asked a person, or has not needed one."""
    return bool(call["approval_id"] or call["allowed_by"]) or call["status"] not in _OPEN


def _let_look(live: Live, call: CallView) -> None:
    """Until the person has answered or pressed Enter, or the time is over."""
    say(("? ", "yellow"), f"{call['id']} waits in the inbox: {call['title']}")
    say(f"Answer it there, or press Enter to deny it. It is denied after {LOOK_SECONDS:.0f} s.")
    until = time.monotonic() + LOOK_SECONDS
    while time.monotonic() < until and live.link.get("calls", call["id"])["status"] in _OPEN:
        if select.select([sys.stdin], [], [], 0)[0]:
            sys.stdin.readline()
            return
        live.wait(0.5)


def _deny(live: Live, call: CallDetail) -> None:
    """So that the command does not run. Does nothing if the person was faster."""
    if call["status"] != "waiting" or call["approval_id"] is None:
        return
    approval: ApprovalView = live.link.get("approvals", call["approval_id"])
    body: AnswerBody = {"answer": "deny", "digest": approval["digest"], "reason": REASON}
    with suppress(Failure):  # answered meanwhile
        live.link.post("approvals", approval["id"], "answer", body=body)


def _await_result(proof: Proof) -> None:
    """Until the client has told the model what became of the call, or has ended: then it can no longer run it."""
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until and proof.exit_code is None and not proof.model.has_result:
        time.sleep(POLL_SECONDS)


def _await_end(live: Live, id: str) -> CallDetail:
    until = time.monotonic() + SETTLE_SECONDS
    call: CallDetail = live.link.get("calls", id)
    while call["status"] in _OPEN and time.monotonic() < until:
        live.wait(0.5)
        call = live.link.get("calls", id)
    return call


def _explain(client: Client, setup: Setup, proof: Proof) -> str:
    """Why no call came, from the most certain reason to the least; and the client's own words."""
    code = proof.exit_code
    if proof.has_run:
        what = "ran the command without asking Handrail: its hooks did not run."
    elif not proof.model.requests:
        what = "did not ask the model for anything."
    elif not proof.model.has_called:
        what = "asked the model, but did not offer its shell tool."
    else:
        what = "was told to run a command, but neither ran it nor asked Handrail."
    ending = (
        f"It ended with status {code}." if code is not None else f"It was ended after {CALL_SECONDS:.0f} s."
    )
    reasons = client.overrides(setup)
    if client.tried and setup.version != client.tried:
        reasons.append(f"Version {setup.version or 'unknown'} is installed; {client.tried} was tried.")
    words = proof.output
    return "\n".join(
        [f"{client.title} {what} {ending}", *reasons, *([f"It printed:\n{words}"] if words else [])]
    )


def _report(
    client: Client, setup: Setup, seen: CallDetail, outcome: CallDetail, has_run: bool, as_json: bool
) -> None:
    if as_json:
        print_json(
            {
                "client": client.name,
                "version": setup.version,
                "call_id": seen["id"],
                "approval_id": seen["approval_id"],
                "title": seen["title"],
                "verdict": seen["status"],
                "outcome": outcome["status"],
                "ran": has_run,
            }
        )
        return
    say(
        ("✓ ", "green"), f"{client.title} {setup.version} asked Handrail before its shell tool ran a command."
    )
    say(f"  call     {seen['id']}  {seen['title']}")
    say(f"  verdict  {_describe_verdict(seen)}")
    say(f"  outcome  {outcome['status']}: {'the command ran' if has_run else 'the command did not run'}")
    say(("The client was ended and its scratch home removed. Your own files were not changed.", "dim"))
    for sentence in client.overrides(setup):
        note((f"With your own files it is different: {sentence}", "yellow"))


def _describe_verdict(call: CallDetail) -> str:
    match call["status"]:
        case "waiting":
            return "a person has to answer; the question was in the inbox"
        case "denied":
            return f"denied by {call['by'] or 'a rule'}"
        case _:
            return f"allowed by {call['allowed_by'] or 'a rule'}"
