"""`handrail approvals -f`: put each open approval to the person in turn, or print changes for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail.cli.client import Live, follow_status
from handrail.cli.exact import exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.interactive.keyboard import ApprovalKeys, Inbox, Keyboard
from handrail.cli.interactive.question import Question
from handrail.cli.render.formats import format_caller, format_risk, format_state
from handrail.cli.render.output import note, say

if TYPE_CHECKING:
    from handrail.cli.wire import ApprovalView


def ask_for_each() -> None:
    """Put each approval to the person, oldest first, until Ctrl-C."""
    with Live("person") as live, Keyboard() as keyboard:
        inbox = Inbox([row["id"] for row in live.state["approvals"]])
        note(("Approvals appear here as they come. Ctrl-C exits.", "dim"))
        while True:
            approval_id = inbox.first()
            try:
                if approval_id is None:
                    inbox.apply(live.wait())
                else:
                    approval = live.link.get("approvals", approval_id)
                    Question(ApprovalKeys(live, keyboard, inbox, approval), approval).ask()
            except Failure as problem:
                if problem.code is not Code.NO_DAEMON:
                    raise
                inbox.apply(live.wait())


def print_changes(for_programs: bool) -> None:
    """Print each change of an approval, for a program or a pipe."""
    follow_status("approval", _print, for_programs)


def _print(row: ApprovalView) -> None:
    title = exact_line(f"  {format_caller(row)}  {row['title']}")
    say(format_state(row["status"]), f"  {row['id']}  ", format_risk(row["risk"]), title)
