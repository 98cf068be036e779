"""Strategies for the states and actions of the Agent Host Protocol, for tests of its reducers."""

from typing import Any

from hypothesis import strategies as st

Obj = dict[str, Any]
IDS = st.sampled_from(["a", "b", "c"])
TEXTS = st.text("xy `", max_size=4)
TIME = "2026-11-18T12:00:00.000Z"


def new_chat() -> Obj:
    return {"resource": "c", "title": "", "status": 1, "modifiedAt": TIME, "turns": []}


def action(type: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Obj]:
    return st.fixed_dictionaries({"type": st.just(type), **fields})


MESSAGE = st.just({"text": "go", "origin": {"kind": "user"}})
PART = st.fixed_dictionaries(
    {"kind": st.sampled_from(["markdown", "reasoning"]), "id": IDS, "content": TEXTS}
)
OPTIONS = st.just(
    [{"id": "once", "label": "Once", "kind": "approve"}, {"id": "deny", "label": "No", "kind": "deny"}]
)
CALL: dict[str, st.SearchStrategy[Any]] = {"turnId": IDS, "toolCallId": IDS}
CHAT_ACTIONS = st.one_of(
    action("chat/turnStarted", turnId=IDS, startedAt=st.just(TIME), message=MESSAGE, queuedMessageId=IDS),
    action("chat/turnComplete", turnId=IDS, duration=st.integers(-5, 5000)),
    action("chat/turnCancelled", turnId=IDS, duration=st.integers(0, 5000)),
    action("chat/error", turnId=IDS, duration=st.just(1), part=st.just({"kind": "error", "error": {}})),
    action("chat/responsePart", turnId=IDS, part=PART),
    action("chat/delta", turnId=IDS, partId=IDS, content=TEXTS),
    action("chat/reasoning", turnId=IDS, partId=IDS, content=TEXTS),
    action("chat/toolCallStart", **CALL, toolName=TEXTS, displayName=TEXTS),
    action("chat/toolCallReady", **CALL, invocationMessage=TEXTS, options=OPTIONS),
    action("chat/toolCallReady", **CALL, invocationMessage=TEXTS, confirmed=st.just("not-needed")),
    action(
        "chat/toolCallConfirmed",
        **CALL,
        approved=st.booleans(),
        selectedOptionId=st.sampled_from(["once", "x"]),
    ),
    action("chat/toolCallComplete", **CALL, result=st.just({"success": True})),
    action("chat/toolCallContentChanged", **CALL, content=st.just([])),
    action("chat/inputRequested", turnId=IDS, request=st.fixed_dictionaries({"id": IDS})),
    action("chat/inputAnswerChanged", requestId=IDS, questionId=IDS, answer=st.none() | TEXTS),
    action("chat/inputCompleted", requestId=IDS, response=st.sampled_from(["accept", "decline"])),
    action("chat/pendingMessageSet", kind=st.sampled_from(["steering", "queued"]), id=IDS, message=MESSAGE),
    action("chat/pendingMessageRemoved", kind=st.sampled_from(["steering", "queued"]), id=IDS),
    action("chat/queuedMessagesReordered", order=st.lists(IDS)),
    action("chat/usage", turnId=IDS, usage=st.none() | st.just({"inputTokens": 1})),
    action("chat/draftChanged", draft=st.none() | MESSAGE),
    action("chat/activityChanged", activity=st.none() | TEXTS),
    action("chat/ofNoKnownKind"),
)

NEEDED = st.fixed_dictionaries(
    {"id": IDS, "kind": st.sampled_from(["toolConfirmation", "toolClientExecution"])}
)
SESSION_ACTIONS = st.one_of(
    action("session/inputNeededSet", request=NEEDED),
    action("session/inputNeededRemoved", id=IDS),
    action("session/isReadChanged", isRead=st.booleans()),
    action("session/isArchivedChanged", isArchived=st.booleans()),
    action("session/titleChanged", title=TEXTS),
    action(
        "session/activeClientSet", activeClient=st.fixed_dictionaries({"clientId": IDS, "tools": st.just([])})
    ),
    action("session/activeClientRemoved", clientId=IDS),
    action("session/chatUpdated", chat=IDS, changes=st.fixed_dictionaries({"title": TEXTS, "resource": IDS})),
    action("session/changesetsChanged", changesets=st.none() | st.just([{"label": "All"}])),
    action("session/activityChanged", activity=st.none() | TEXTS),
    action("session/configChanged", config=st.dictionaries(IDS, TEXTS)),
)
ROOT_ACTIONS = st.one_of(
    action("root/agentsChanged", agents=st.lists(st.fixed_dictionaries({"provider": IDS}))),
    action("root/activeSessionsChanged", activeSessions=st.integers(0, 9)),
    action("root/terminalsChanged", terminals=st.lists(st.fixed_dictionaries({"resource": IDS}))),
    action("root/configChanged", config=st.dictionaries(IDS, TEXTS), replace=st.booleans()),
)
CHANGESET_ACTIONS = st.one_of(
    action("changeset/statusChanged", status=st.sampled_from(["computing", "ready"])),
    action("changeset/fileSet", file=st.fixed_dictionaries({"id": IDS, "edit": TEXTS})),
    action("changeset/fileRemoved", fileId=IDS),
)
TERMINAL_ACTIONS = st.one_of(
    action("terminal/data", data=TEXTS),
    action("terminal/input", data=TEXTS),
    action("terminal/resized", cols=st.integers(1, 300), rows=st.integers(1, 90)),
    action("terminal/claimed", claim=st.fixed_dictionaries({"kind": st.just("client"), "clientId": IDS})),
    action("terminal/titleChanged", title=TEXTS),
    action("terminal/cwdChanged", cwd=TEXTS),
    action("terminal/exited", exitCode=st.none() | st.integers(0, 255)),
)
