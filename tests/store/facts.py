"""Events as the store's tests need them; only what a test is about is said at its call."""

from handrail.store.events import (
    ApprovalAnswered,
    ApprovalOpened,
    CallOpened,
    CallSettled,
    CallStarted,
    DaemonStopped,
)
from handrail.store.values import Caller, Claim, Ending, Json, PathPreview, Receipt, Result

WRITES = (Claim(action="write", resource="/w/a.txt", inside=True),)


def said(why: str = "for a test") -> DaemonStopped:
    """The smallest fact there is."""
    return DaemonStopped(why=why)


def caller(client: str = "claude-code") -> Caller:
    return Caller(
        door="stdio", client=client, key=f"{client}@/w", workspace="/w", thread="t1", operation="o1"
    )


def opened(
    call: str = "c1",
    tool: str = "write_file",
    client: str = "claude-code",
    title: str = "write a.txt",
    input: Json | None = None,
) -> CallOpened:
    return CallOpened(
        call=call, tool=tool, title=title, input=input or {"path": "a.txt"}, caller=caller(client)
    )


def asked(approval: str = "a1", call: str = "c1") -> ApprovalOpened:
    return ApprovalOpened(
        approval=approval,
        call=call,
        digest="d1",
        claims=WRITES,
        risk="medium",
        reasons=("changes a file",),
        why="no rule allows it",
        preview=PathPreview(path="/w/a.txt"),
    )


def allowed(approval: str = "a1", call: str = "c1") -> ApprovalAnswered:
    return ApprovalAnswered(approval=approval, call=call, answer="allow", reason="", by="ann")


def started(call: str = "c1") -> CallStarted:
    return CallStarted(call=call, claims=WRITES, allowed_by="approval a1")


def settled(call: str = "c1", ending: Ending = "done", message: str = "") -> CallSettled:
    return CallSettled(
        call=call,
        ending=ending,
        by="ann",
        message=message,
        result=Result(text="written", data={"bytes": 3}),
        receipt=Receipt(ended_by="ann", stopped=False),
    )
