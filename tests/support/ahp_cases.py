"""Situations of the reducers of the Agent Host Protocol: those that its repository lists as test cases, for the actions that we know.

A case is what a channel has seen, the action at hand, and whether that action changes the state. Which state follows is not
written here: the tests compare ours with the one that VS Code computes.
"""

from dataclasses import dataclass
from typing import Any

from tests.support.ahp_actions import TIME, Obj


@dataclass(frozen=True, slots=True)
class Case:
    """One situation of a channel of this kind."""

    kind: str
    before: list[Obj]
    action: Obj
    changes: bool = True


def _act(type: str, **fields: Any) -> Obj:
    return {"type": type, **fields}


def _message(text: str) -> Obj:
    return {"text": text, "origin": {"kind": "user"}}


def _turn(type: str, turn: str = "t", **fields: Any) -> Obj:
    return _act(f"chat/{type}", turnId=turn, **fields)


def _call(type: str, call: str = "c", turn: str = "t", **fields: Any) -> Obj:
    return _turn(type, turn, toolCallId=call, **fields)


def _start(**fields: Any) -> Obj:
    return _turn("turnStarted", startedAt=TIME, message=_message("go"), **fields)


def _set(kind: str, id: str, text: str = "later") -> Obj:
    return _act("chat/pendingMessageSet", kind=kind, id=id, message=_message(text))


def _remove(kind: str, id: str) -> Obj:
    return _act("chat/pendingMessageRemoved", kind=kind, id=id)


def _reorder(*order: str) -> Obj:
    return _act("chat/queuedMessagesReordered", order=list(order))


def _chat(*before: Obj, then: Obj, changes: bool = True) -> Case:
    return Case("chat", list(before), then, changes)


def _in_turn(*before: Obj, then: Obj, changes: bool = True) -> Case:
    return _chat(_start(), *before, then=then, changes=changes)


TEXT = _turn("responsePart", part={"kind": "markdown", "id": "p", "content": "Hel"})
THOUGHT = _turn("responsePart", part={"kind": "reasoning", "id": "r", "content": "Hm"})
MORE = {"partId": "p", "content": "lo"}
BEGUN = _call("toolCallStart", toolName="run", displayName="Run")
OPTIONS = [
    {"id": "once", "label": "Once", "kind": "approve"},
    {"id": "no", "label": "No", "kind": "deny", "group": 1},
]
FAILED = _turn("error", duration=7, part={"kind": "error", "error": {"message": "no"}})
ASKS = _call("toolCallReady", invocationMessage="Run ls", toolInput="ls", options=OPTIONS)
RUNS = _call("toolCallReady", invocationMessage="Run ls", toolInput="ls", confirmed="not-needed")
YES = _call("toolCallConfirmed", approved=True, confirmed="user-action", selectedOptionId="once")
NO = _call("toolCallConfirmed", approved=False, reason="denied", selectedOptionId="no")
DONE = _call("toolCallComplete", result={"success": True, "pastTenseMessage": "Ran ls"})
OUTPUT = _call("toolCallContentChanged", content=[{"type": "terminal", "resource": "ahp-terminal:/1"}])
END = _turn("turnComplete", duration=7)
QUEUE = _set("queued", "a"), _set("queued", "b"), _set("queued", "c")
FORM = _turn("inputRequested", request={"id": "f", "message": "Which?"})
ANSWER = _act("chat/inputAnswerChanged", requestId="f", questionId="q", answer={"value": "x"})

CHATS = {
    "a turn starts": _chat(then=_start()),
    "a turn starts with a queued message": _chat(*QUEUE, then=_start(queuedMessageId="b")),
    "a turn starts with the last queued message": _chat(_set("queued", "a"), then=_start(queuedMessageId="a")),
    "a turn starts with the steering message": _chat(_set("steering", "s"), then=_start(queuedMessageId="s")),
    "a turn starts beside pending messages": _chat(_set("steering", "s"), *QUEUE, then=_start()),
    "a text grows": _in_turn(TEXT, then=_turn("delta", **MORE)),
    "a text of another turn grows": _in_turn(TEXT, then=_turn("delta", "u", **MORE), changes=False),
    "a text grows without a turn": _chat(then=_turn("delta", **MORE), changes=False),
    "an unknown text grows": _in_turn(then=_turn("delta", **MORE), changes=False),
    "a thought grows": _in_turn(THOUGHT, then=_turn("reasoning", partId="r", content="m")),
    "a part is added": _in_turn(TEXT, then=THOUGHT),
    "a part of another turn is added": _in_turn(then={**TEXT, "turnId": "u"}, changes=False),
    "a turn completes": _in_turn(TEXT, then=END),
    "a turn is cancelled": _in_turn(TEXT, then=_turn("turnCancelled", duration=7)),
    "a turn fails": _in_turn(then=FAILED),
    "a turn completes while a call streams": _in_turn(BEGUN, then=END),
    "a turn completes while a call waits": _in_turn(BEGUN, ASKS, then=END),
    "a turn completes while a call runs": _in_turn(BEGUN, RUNS, then=END),
    "another turn completes": _in_turn(then={**END, "turnId": "u"}, changes=False),
    "usage is told": _in_turn(then=_turn("usage", usage={"inputTokens": 1, "outputTokens": 2})),
    "usage of another turn is told": _in_turn(then=_turn("usage", "u", usage={}), changes=False),
    "a call starts": _in_turn(then=BEGUN),
    "a call of another turn starts": _in_turn(then={**BEGUN, "turnId": "u"}, changes=False),
    "a call asks": _in_turn(BEGUN, then=ASKS),
    "a call asks after its turn has failed": _in_turn(BEGUN, FAILED, then=ASKS),
    "a call needs no answer": _in_turn(BEGUN, then=RUNS),
    "a call is allowed": _in_turn(BEGUN, ASKS, then=YES),
    "a call is allowed with another input": _in_turn(BEGUN, ASKS, then={**YES, "editedToolInput": "ls -l"}),
    "a call is denied": _in_turn(BEGUN, ASKS, then=NO),
    "a call is denied with words": _in_turn(BEGUN, ASKS, then={**NO, "reasonMessage": "not now"}),
    "a call that runs is allowed": _in_turn(BEGUN, RUNS, then=YES, changes=False),
    "a call that runs asks again": _in_turn(BEGUN, RUNS, then=ASKS),
    "a call that asked again is allowed": _in_turn(BEGUN, RUNS, ASKS, then=YES),
    "a call that asked again is denied": _in_turn(BEGUN, RUNS, ASKS, then=NO),
    "a call that ended asks": _in_turn(BEGUN, RUNS, DONE, then=ASKS, changes=False),
    "a call that was denied asks": _in_turn(BEGUN, ASKS, NO, then=ASKS, changes=False),
    "a call completes": _in_turn(BEGUN, ASKS, YES, then=DONE),
    "a call completes while it asks": _in_turn(BEGUN, ASKS, then=DONE),
    "a call completes while it streams": _in_turn(BEGUN, then=DONE, changes=False),
    "a call completes again": _in_turn(BEGUN, RUNS, DONE, then=DONE, changes=False),
    "an unknown call completes": _in_turn(then=DONE, changes=False),
    "an unknown call is allowed": _in_turn(then=YES, changes=False),
    "a call that runs has output": _in_turn(BEGUN, RUNS, then=OUTPUT),
    "a call that runs has other output": _in_turn(BEGUN, RUNS, OUTPUT, then={**OUTPUT, "content": []}),
    "a call that asks has output": _in_turn(BEGUN, ASKS, then=OUTPUT, changes=False),
    "a form is asked": _in_turn(then=FORM),
    "a form is asked without a turn": _chat(then=FORM, changes=False),
    "a form is asked again": _in_turn(FORM, ANSWER, then=FORM, changes=False),
    "a form is filled in": _in_turn(FORM, then=ANSWER),
    "a form is cleared": _in_turn(
        FORM, ANSWER, then=_act("chat/inputAnswerChanged", requestId="f", questionId="q")
    ),
    "a form is accepted": _in_turn(
        FORM, ANSWER, then=_act("chat/inputCompleted", requestId="f", response="accept", answers={"z": 1})
    ),
    "a form is declined": _in_turn(
        FORM, then=_act("chat/inputCompleted", requestId="f", response="decline")
    ),
    "an unknown form is accepted": _in_turn(
        then=_act("chat/inputCompleted", requestId="f", response="accept"), changes=False
    ),
    "steering is set": _chat(then=_set("steering", "s")),
    "steering is replaced": _chat(_set("steering", "s"), then=_set("steering", "z")),
    "steering is reworded": _chat(_set("steering", "s"), then=_set("steering", "s", "sooner")),
    "steering is removed": _chat(_set("steering", "s"), then=_remove("steering", "s")),
    "other steering is removed": _chat(_set("steering", "s"), then=_remove("steering", "z"), changes=False),
    "no steering is removed": _chat(then=_remove("steering", "s"), changes=False),
    "a first message is queued": _chat(then=_set("queued", "a")),
    "a message is queued": _chat(_set("queued", "a"), then=_set("queued", "b")),
    "a queued message is reworded": _chat(*QUEUE, then=_set("queued", "b", "sooner")),
    "a queued message is removed": _chat(*QUEUE, then=_remove("queued", "b")),
    "the last queued message is removed": _chat(_set("queued", "a"), then=_remove("queued", "a")),
    "an unknown queued message is removed": _chat(*QUEUE, then=_remove("queued", "z"), changes=False),
    "a message is removed from no queue": _chat(then=_remove("queued", "a"), changes=False),
    "a message is queued beside steering": _chat(_set("steering", "a"), then=_set("queued", "a")),
    "the queue is reordered": _chat(*QUEUE, then=_reorder("c", "a", "b")),
    "a part of the queue is reordered": _chat(*QUEUE, then=_reorder("c")),
    "the queue is reordered with unknown messages": _chat(*QUEUE, then=_reorder("z", "b", "a", "c")),
    "the queue is reordered by nothing": _chat(*QUEUE, then=_reorder(), changes=False),
    "no queue is reordered": _chat(then=_reorder("a"), changes=False),
    "a draft is written": _chat(then=_act("chat/draftChanged", draft=_message("half a"))),
    "an activity begins": _chat(then=_act("chat/activityChanged", activity="thinking")),
    "an unknown action comes": _in_turn(then=_act("chat/ofAnotherVersion"), changes=False),
}  # fmt: skip


def _session(*before: Obj, then: Obj, changes: bool = True) -> Case:
    return Case("session", list(before), then, changes)


READ = _act("session/isReadChanged", isRead=True)
ARCHIVED = _act("session/isArchivedChanged", isArchived=True)
CLIENT = _act("session/activeClientSet", activeClient={"clientId": "v", "tools": []})
NEEDED = _act("session/inputNeededSet", request={"id": "c", "kind": "toolConfirmation"})
GONE = _act("session/activeClientRemoved", clientId="v")
SESSIONS = {
    "a title changes": _session(then=_act("session/titleChanged", title="New")),
    "a session is read": _session(then=READ),
    "a session is unread": _session(READ, then={**READ, "isRead": False}),
    "a session is archived": _session(then=ARCHIVED),
    "a session is taken from the archive": _session(ARCHIVED, then={**ARCHIVED, "isArchived": False}),
    "a client comes": _session(then=CLIENT),
    "a client brings tools": _session(
        CLIENT, then={**CLIENT, "activeClient": {"clientId": "v", "tools": [{"name": "rename"}]}}
    ),
    "a client leaves": _session(CLIENT, then=GONE),
    "an unknown client leaves": _session(CLIENT, then={**GONE, "clientId": "z"}, changes=False),
    "a chat is renamed": _session(then=_act("session/chatUpdated", chat="a", changes={"title": "New"})),
    "an unknown chat is renamed": _session(
        then=_act("session/chatUpdated", chat="z", changes={"title": "New"}), changes=False
    ),
    "input is needed": _session(READ, then=NEEDED),
    "input is needed by a tool of the client": _session(
        then={**NEEDED, "request": {"id": "c", "kind": "toolClientExecution"}}
    ),
    "input is not needed any more": _session(NEEDED, then=_act("session/inputNeededRemoved", id="c")),
    "other input is not needed any more": _session(
        NEEDED, then=_act("session/inputNeededRemoved", id="z"), changes=False
    ),
    "changesets are listed": _session(then=_act("session/changesetsChanged", changesets=[{"label": "All"}])),
    "an activity of a session begins": _session(then=_act("session/activityChanged", activity="thinking")),
    "an option is set": _session(then=_act("session/configChanged", config={"mode": "plan"})),
    "options are replaced": _session(
        _act("session/configChanged", config={"mode": "plan"}),
        then=_act("session/configChanged", config={"effort": "high"}, replace=True),
    ),
    "an unknown action comes to a session": _session(then=_act("session/ofAnotherVersion"), changes=False),
}


def _root(action: Obj) -> Case:
    return Case("root", [], action)


SET = _act("root/configChanged", config={"proxy": "p"})
ROOTS = {
    "agents change": _root(_act("root/agentsChanged", agents=[{"provider": "x", "models": []}])),
    "terminals change": _root(_act("root/terminalsChanged", terminals=[{"resource": "ahp-terminal:/1"}])),
    "sessions are counted": _root(_act("root/activeSessionsChanged", activeSessions=2)),
    "a setting changes": _root(SET),
    "settings are replaced": _root({**SET, "replace": True}),
    "an unknown action comes to the host": Case("root", [], _act("root/ofAnotherVersion"), changes=False),
}


def _terminal(*before: Obj, then: Obj, changes: bool = True) -> Case:
    return Case("terminal", list(before), then, changes)


DATA = _act("terminal/data", data="x\r\n")
CLAIMED = _act(
    "terminal/claimed", claim={"kind": "session", "session": "s", "turnId": "t", "toolCallId": "c"}
)
TERMINALS = {
    "first output comes": _terminal(then=DATA),
    "more output comes": _terminal(DATA, then=DATA),
    "a person types": _terminal(DATA, then=_act("terminal/input", data="y"), changes=False),
    "a terminal is resized": _terminal(then=_act("terminal/resized", cols=44, rows=13)),
    "a client claims a terminal": _terminal(
        CLAIMED, then=_act("terminal/claimed", claim={"kind": "client", "clientId": "v"})
    ),
    "a session claims a terminal": _terminal(then=CLAIMED),
    "a call leaves its terminal": _terminal(
        CLAIMED, then=_act("terminal/claimed", claim={"kind": "session", "session": "s"})
    ),
    "a terminal is renamed": _terminal(then=_act("terminal/titleChanged", title="New")),
    "a terminal changes its folder": _terminal(then=_act("terminal/cwdChanged", cwd="file:///x")),
    "a terminal exits": _terminal(DATA, then=_act("terminal/exited", exitCode=0)),
    "a terminal exits without a code": _terminal(then=_act("terminal/exited")),
    "an unknown action comes to a terminal": _terminal(then=_act("terminal/ofAnotherVersion"), changes=False),
}


def _changeset(*before: Obj, then: Obj, changes: bool = True) -> Case:
    return Case("changeset", list(before), then, changes)


FILE = _act("changeset/fileSet", file={"id": "f", "edit": {"diff": {"added": 1}}})
OTHER = _act("changeset/fileSet", file={"id": "g", "edit": {}})
CHANGESETS = {
    "a changeset is ready": _changeset(then=_act("changeset/statusChanged", status="ready")),
    "a file is added": _changeset(FILE, then=OTHER),
    "a file is changed again": _changeset(FILE, OTHER, then={**FILE, "file": {"id": "f", "edit": {}}}),
    "a file is removed": _changeset(FILE, OTHER, then=_act("changeset/fileRemoved", fileId="f")),
    "an unknown file is removed": _changeset(
        FILE, then=_act("changeset/fileRemoved", fileId="z"), changes=False
    ),
    "an unknown action comes to a changeset": _changeset(
        then=_act("changeset/ofAnotherVersion"), changes=False
    ),
}
CASES: dict[str, Case] = CHATS | SESSIONS | ROOTS | TERMINALS | CHANGESETS
