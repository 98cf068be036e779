"""Being asked in the terminal: each approval in full, answered by one key.

Owns the queue of what is still to be asked and what each key means. Does not know how keys are read safely
(keyboard.py), nor what an approval allows.
"""

from typing import Literal

from handrail.cli.approvals import answer
from handrail.cli.card import show_approval
from handrail.cli.failure import Code, Failure
from handrail.cli.keyboard import Keyboard
from handrail.cli.live import Live
from handrail.cli.show import as_json, note, say
from handrail.cli.words import Row, caller, risk, state

Choice = Literal["allow", "deny", "reason", "skip"]

TICK = 0.1
"""Seconds between two looks at what happened elsewhere while a question stands."""


class Inbox:
    """What waits, oldest first, as the facts tell it."""

    def __init__(self, waiting: list[str]) -> None:
        self._waiting = dict.fromkeys(waiting)

    def hear(self, entries: list[Row]) -> None:
        for entry in entries:
            event: Row = entry["event"]
            match event["kind"]:
                case "ApprovalOpened":
                    self._waiting[event["approval"]] = None
                case "ApprovalAnswered" | "ApprovalWithdrawn":
                    self._waiting.pop(event["approval"], None)
                case _:
                    pass

    def drop(self, id: str) -> None:
        self._waiting.pop(id, None)

    def first(self) -> str | None:
        return next(iter(self._waiting), None)

    def __contains__(self, id: str) -> bool:
        return id in self._waiting


def choice(key: str, risk: str) -> Choice | None:
    """What a key means. High risk, and one we do not know, is allowed by a capital letter alone."""
    match key:
        case "A":
            return "allow"
        case "a":
            return "allow" if risk in ("low", "medium") else None
        case "d":
            return "deny"
        case "r":
            return "reason"
        case "s":
            return "skip"
        case _:
            return None


def everything() -> None:
    """Ask for each approval, until Ctrl-C."""
    with Live("person") as live, Keyboard() as keyboard:
        inbox = Inbox([row["id"] for row in live.state["approvals"]])
        note(("Whatever needs you is asked here. Ctrl-C ends it.", "dim"))
        while True:
            next_one = inbox.first()
            try:
                if next_one is None:
                    inbox.hear(live.wait())
                else:
                    _ask(live, keyboard, inbox, live.link.get("approvals", next_one))
            except Failure as problem:
                if problem.code is not Code.NO_DAEMON:
                    raise
                inbox.hear(live.wait())


def stream(for_programs: bool) -> None:
    """The same for a program or a pipe: each change of an approval, without asking."""
    shown: dict[str, str] = {}
    with Live("read") as live:
        for row in live.state["approvals"]:
            _change(row, shown, for_programs)
        for row in live.changed("approval"):
            _change(row, shown, for_programs)


def _ask(live: Live, keyboard: Keyboard, inbox: Inbox, asked: Row) -> None:
    """One question, until it is answered here or elsewhere, or skipped."""
    say("")
    show_approval(asked)
    say(_keys(asked["risk"]))
    chosen = _chosen(live, keyboard, inbox, asked)
    reason = ""
    if chosen == "reason":
        reason = keyboard.line(lambda: say("Reason (the agent reads it; empty goes back):"))
        if not reason:
            return
    if chosen == "skip":
        say("Skipped; it still waits.")
    elif chosen is not None:
        _send(live, asked, "allow" if chosen == "allow" else "deny", reason)
    inbox.drop(asked["id"])


def _chosen(live: Live, keyboard: Keyboard, inbox: Inbox, asked: Row) -> Choice | None:
    """The person's choice; None when the question is no longer open."""
    keyboard.guard()
    link = live.link
    while asked["id"] in inbox and asked["status"] == "open":
        key = keyboard.key(TICK)
        inbox.hear(live.wait(0))
        if live.link is not link:  # a new daemon: what was typed meanwhile answers nothing
            link = live.link
            keyboard.guard()
        elif key and (found := choice(key, asked["risk"])):
            return found
        elif key == "a":
            say(("High risk: press Shift+A to allow it.", "yellow"))
    say(("Answered elsewhere, or no longer needed.", "dim"))
    return None


def _send(live: Live, asked: Row, kind: str, reason: str) -> None:
    try:
        answered = answer(live.link, asked, kind, reason)
    except Failure as problem:
        if problem.code is Code.NO_DAEMON:
            raise
        say((str(problem), "yellow"))
    else:
        say(state(answered["status"]), f": {reason}" if reason else "")


def _keys(level: str) -> str:
    allow = (
        "[a]llow once" if risk(level)[0] != "HIGH" and level in ("low", "medium") else "[A]llow once (Shift)"
    )
    return f"{allow}   [d]eny   deny with a [r]eason   [s]kip"


def _change(row: Row, shown: dict[str, str], for_programs: bool) -> None:
    if shown.get(row["id"]) == row["status"]:
        return
    shown[row["id"]] = row["status"]
    if for_programs:
        as_json(row, line=True)
    else:
        say(state(row["status"]), f"  {row['id']}  ", risk(row["risk"]), f"  {caller(row)}  {row['title']}")
