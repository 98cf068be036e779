"""The reducers of the protocol: a channel's state and an action give the next state. Pure.

VS Code applies our actions with its own reducers, so these must agree with those of version 0.9. Only the actions that
we send or accept are known; any other changes nothing. A field that is None here is `undefined` there, and is left out.
"""

from collections.abc import Callable, Iterable
from typing import cast

from handrail.server.ahp.ahp_wire import (
    ACTIVITY,
    ERROR,
    IDLE,
    IN_PROGRESS,
    INPUT_NEEDED,
    IS_ARCHIVED,
    IS_READ,
    Obj,
    iso_time,
    ms_of_iso,
    without_none,
)

Reducer = Callable[[Obj, Obj], Obj]


def reduce_root(state: Obj, action: Obj) -> Obj:
    match action.get("type"):
        case "root/agentsChanged":
            return {**state, "agents": action["agents"]}
        case "root/activeSessionsChanged":
            return {**state, "activeSessions": action["activeSessions"]}
        case "root/terminalsChanged":
            return {**state, "terminals": action["terminals"]}
        case "root/configChanged":
            return _with_config(state, action)
        case _:
            return state


def _with_config(state: Obj, action: Obj) -> Obj:
    config: Obj | None = state.get("config")
    if not config:
        return state
    before: Obj = {} if action.get("replace") else config.get("values", {})
    return {**state, "config": {**config, "values": {**before, **action["config"]}}}


def reduce_session(state: Obj, action: Obj) -> Obj:
    reduce = _SESSION.get(cast("str", action.get("type")))
    return state if reduce is None else reduce(state, action)


def _set_client(state: Obj, action: Obj) -> Obj:
    return {**state, "activeClients": _upsert(state["activeClients"], action["activeClient"], "clientId")}


def _remove_client(state: Obj, action: Obj) -> Obj:
    left = [one for one in state["activeClients"] if one["clientId"] != action["clientId"]]
    return {**state, "activeClients": left}


def _set_needed(state: Obj, action: Obj) -> Obj:
    return _with_needed(state, _upsert(state.get("inputNeeded", ()), action["request"], "id"))


def _remove_needed(state: Obj, action: Obj) -> Obj:
    before: list[Obj] = state.get("inputNeeded", [])
    left = [one for one in before if one["id"] != action["id"]]
    return state if len(left) == len(before) else _with_needed(state, left)


def _set_flag(flag: int, name: str) -> Reducer:
    return lambda state, action: {**state, "status": _with_flag(state["status"], flag, bool(action[name]))}


def _with_chat(state: Obj, action: Obj) -> Obj:
    changes: Obj = {key: value for key, value in action["changes"].items() if key != "resource"}
    chats: list[Obj] = state["chats"]
    updated = [{**chat, **changes} if chat["resource"] == action["chat"] else chat for chat in chats]
    return {**state, "chats": updated}


def _with_needed(state: Obj, needed: list[Obj]) -> Obj:
    asks = any(one.get("kind") != "toolClientExecution" for one in needed)
    status = state["status"] & ~ACTIVITY | INPUT_NEEDED if asks else state["status"] & ~16
    return {**_put(state, "inputNeeded", needed or None), "status": status}


_SESSION: dict[str, Reducer] = {
    "session/titleChanged": lambda state, action: {**state, "title": action["title"]},
    "session/isReadChanged": _set_flag(IS_READ, "isRead"),
    "session/isArchivedChanged": _set_flag(IS_ARCHIVED, "isArchived"),
    "session/activityChanged": lambda state, action: _put(state, "activity", action.get("activity")),
    "session/changesetsChanged": lambda state, action: _put(state, "changesets", action.get("changesets")),
    "session/configChanged": _with_config,
    "session/chatUpdated": _with_chat,
    "session/activeClientSet": _set_client,
    "session/activeClientRemoved": _remove_client,
    "session/inputNeededSet": _set_needed,
    "session/inputNeededRemoved": _remove_needed,
}


def reduce_changeset(state: Obj, action: Obj) -> Obj:
    match action.get("type"):
        case "changeset/statusChanged":
            return {**state, "status": action["status"]}
        case "changeset/fileSet":
            return {**state, "files": _upsert(state["files"], action["file"], "id")}
        case "changeset/fileRemoved":
            return {**state, "files": [file for file in state["files"] if file["id"] != action["fileId"]]}
        case _:
            return state


def reduce_terminal(state: Obj, action: Obj) -> Obj:
    match action.get("type"):
        case "terminal/data":
            return {**state, "content": _with_output(state["content"], action["data"])}
        case "terminal/resized":
            return {**state, "cols": action["cols"], "rows": action["rows"]}
        case "terminal/claimed" | "terminal/titleChanged" | "terminal/cwdChanged":
            name = _TERMINAL_FIELDS[action["type"]]
            return {**state, name: action[name]}
        case "terminal/exited":
            return {**state, "lifecycle": without_none(status="exited", exitCode=action.get("exitCode"))}
        case _:
            return state


_TERMINAL_FIELDS = {
    "terminal/claimed": "claim",
    "terminal/titleChanged": "title",
    "terminal/cwdChanged": "cwd",
}


def _with_output(content: list[Obj], data: str) -> list[Obj]:
    last = content[-1] if content else None
    if last is not None and last["type"] == "unclassified":
        return [*content[:-1], {**last, "value": last["value"] + data}]
    return [*content, {"type": "unclassified", "value": data}]


def reduce_chat(state: Obj, action: Obj) -> Obj:
    reduce = _CHAT.get(cast("str", action.get("type")))
    return state if reduce is None else reduce(state, action)


def _start_turn(state: Obj, action: Obj) -> Obj:
    turn: Obj = {
        "id": action["turnId"],
        "startedAt": action["startedAt"],
        "message": action["message"],
        "responseParts": [],
    }
    begun = {**state, "activeTurn": turn, "modifiedAt": action["startedAt"]}
    begun["status"] = _with_flag(_chat_status(begun), IS_READ, False)
    sent = action.get("queuedMessageId")
    return begun if sent is None else _without_pending(begun, sent)


def _without_pending(state: Obj, id: str) -> Obj:
    if state.get("steeringMessage", {}).get("id") == id:
        state = _put(state, "steeringMessage", None)
    return _without_queued(state, id)


def _without_queued(state: Obj, id: str) -> Obj:
    before: list[Obj] = state.get("queuedMessages", [])
    left = [one for one in before if one["id"] != id]
    return state if len(left) == len(before) else _put(state, "queuedMessages", left or None)


def _end_turn(state: Obj, action: Obj) -> Obj:
    turn = _active(state, action)
    if turn is None:
        return state
    parts = [_closed_part(part) for part in turn["responseParts"]]
    failed = action["type"] == "chat/error"
    duration = max(0, action["duration"])
    ended = without_none(
        id=turn["id"],
        startedAt=turn["startedAt"],
        duration=duration,
        message=turn["message"],
        responseParts=[*parts, action["part"]] if failed else parts,
        usage=turn.get("usage"),
        state=_TURN_STATES[action["type"]],
    )
    began = ms_of_iso(turn["startedAt"]) or 0
    after = {**state, "turns": [*state["turns"], ended], "modifiedAt": iso_time(began + int(duration))}
    after = _put(after, "activeTurn", None)
    return {**after, "status": _with_activity(after["status"], ERROR) if failed else _chat_status(after)}


_TURN_STATES = {
    "chat/turnComplete": "complete",
    "chat/turnCancelled": "cancelled",
    "chat/error": "error",
}


def _closed_part(part: Obj) -> Obj:
    """A part of an ended turn: a call that has not ended is cancelled."""
    if part["kind"] != "toolCall" or part["toolCall"]["status"] in ("completed", "cancelled"):
        return part
    call: Obj = part["toolCall"]
    streams = call["status"] == "streaming"
    cancelled = without_none(
        status="cancelled",
        **_call_base(call),
        invocationMessage=call.get("invocationMessage", "" if streams else None),
        toolInput=None if streams else call.get("toolInput"),
        reason="skipped",
    )
    return {"kind": "toolCall", "toolCall": cancelled}


def _add_part(state: Obj, action: Obj) -> Obj:
    turn = _active(state, action)
    if turn is None or action["part"]["kind"] == "error":
        return state
    return _with_parts(state, turn, [*turn["responseParts"], action["part"]])


def _extend_part(state: Obj, action: Obj) -> Obj:
    kind = "markdown" if action["type"] == "chat/delta" else "reasoning"
    turn = _active(state, action)
    if turn is None:
        return state

    def extend(part: Obj) -> Obj:
        if part["kind"] != kind or part.get("id") != action["partId"]:
            return part
        return {**part, "content": part["content"] + action["content"]}

    return _with_parts(state, turn, [extend(part) for part in turn["responseParts"]])


def _start_call(state: Obj, action: Obj) -> Obj:
    turn = _active(state, action)
    if turn is None:
        return state
    call = without_none(**_call_base(action), status="streaming")
    return _with_parts(state, turn, [*turn["responseParts"], {"kind": "toolCall", "toolCall": call}])


def _ready_call(state: Obj, action: Obj) -> Obj:
    def ready(call: Obj) -> Obj:
        if call["status"] not in ("streaming", "running", "pending-confirmation"):
            return call
        base = _call_base(call, action)
        base["intention"] = action.get("intention") or base["intention"]
        given = None if call["status"] == "streaming" else call.get("toolInput")
        common = {**base, "invocationMessage": action["invocationMessage"]}
        common["toolInput"] = given if action.get("toolInput") is None else action["toolInput"]
        if action.get("confirmed"):
            return without_none(status="running", **common, confirmed=action["confirmed"])
        before = call if call["status"] == "pending-confirmation" else {}
        names = ("confirmationTitle", "riskAssessment", "edits", "editable", "options")
        asked = {name: before.get(name) if action.get(name) is None else action[name] for name in names}
        return without_none(status="pending-confirmation", **common, **asked)

    return _with_call(state, action, ready)


def _confirm_call(state: Obj, action: Obj) -> Obj:
    def confirm(call: Obj) -> Obj:
        if call["status"] != "pending-confirmation":
            return call
        options: Iterable[Obj] = call.get("options", ())
        chosen = next((one for one in options if one["id"] == action.get("selectedOptionId")), None)
        common = {**_call_base(call, action), "invocationMessage": call["invocationMessage"]}
        given, edited = call.get("toolInput"), action.get("editedToolInput")
        if action["approved"]:
            used = edited if edited is not None and isinstance(given, str) else given
            confirmed = action.get("confirmed")
            return without_none(
                status="running", **common, toolInput=used, confirmed=confirmed, selectedOption=chosen
            )
        return without_none(
            status="cancelled",
            **common,
            toolInput=given,
            reason=action.get("reason"),
            reasonMessage=action.get("reasonMessage"),
            userSuggestion=action.get("userSuggestion"),
            selectedOption=chosen,
        )

    return _with_call(state, action, confirm)


def _complete_call(state: Obj, action: Obj) -> Obj:
    def complete(call: Obj) -> Obj:
        if call["status"] not in ("running", "pending-confirmation"):
            return call
        runs = call["status"] == "running"
        return without_none(
            **{
                "status": "completed",
                **_call_base(call, action),
                "invocationMessage": call["invocationMessage"],
                "toolInput": call.get("toolInput"),
                "confirmed": call.get("confirmed") if runs else "not-needed",
                "selectedOption": call.get("selectedOption") if runs else None,
                **action["result"],
            }
        )

    return _with_call(state, action, complete)


def _change_content(state: Obj, action: Obj) -> Obj:
    def change(call: Obj) -> Obj:
        if call["status"] != "running":
            return call
        meta: Obj = {} if action.get("_meta") is None else {"_meta": action["_meta"]}
        return {**call, **meta, "content": action["content"]}

    return _with_call(state, action, change, keeps_status=True)


def _set_usage(state: Obj, action: Obj) -> Obj:
    turn = _active(state, action)
    return state if turn is None else {**state, "activeTurn": _put(turn, "usage", action.get("usage"))}


def _request_input(state: Obj, action: Obj) -> Obj:
    turn: Obj | None = state.get("activeTurn")
    if turn is None:
        return state
    request: Obj = action["request"]
    parts = list(turn["responseParts"])
    at = _open_request(parts, request["id"])
    if at is None:
        parts.append({"kind": "inputRequest", "request": request})
    else:
        answers = request.get("answers") or parts[at]["request"].get("answers")
        parts[at] = {"kind": "inputRequest", "request": _put(request, "answers", answers)}
    after = {**state, "activeTurn": {**turn, "responseParts": parts}}
    return {**after, "status": _with_flag(_chat_status(after), IS_READ, False)}


def _change_answer(state: Obj, action: Obj) -> Obj:
    def change(answers: Obj) -> Obj:
        return _put(answers, action["questionId"], action.get("answer"))

    return _with_request(state, action, change, None)


def _complete_input(state: Obj, action: Obj) -> Obj:
    given: Obj = action.get("answers") or {}
    return _with_request(state, action, lambda answers: {**answers, **given}, action["response"])


def _with_request(state: Obj, action: Obj, change: Callable[[Obj], Obj], response: str | None) -> Obj:
    turn: Obj | None = state.get("activeTurn")
    at = None if turn is None else _open_request(turn["responseParts"], action["requestId"])
    if turn is None or at is None:
        return state
    parts: list[Obj] = list(turn["responseParts"])
    request: Obj = parts[at]["request"]
    answers = change(request.get("answers", {}))
    parts[at] = _put(
        {**parts[at], "request": _put(request, "answers", answers or None)}, "response", response
    )
    after = {**state, "activeTurn": {**turn, "responseParts": parts}}
    return {**after, "status": _chat_status(after)} if response else after


def _open_request(parts: list[Obj], id: str) -> int | None:
    for at, part in enumerate(parts):
        if part["kind"] == "inputRequest" and "response" not in part and part["request"]["id"] == id:
            return at
    return None


def _set_pending(state: Obj, action: Obj) -> Obj:
    entry: Obj = {"id": action["id"], "message": action["message"]}
    if action["kind"] == "steering":
        return {**state, "steeringMessage": entry}
    return {**state, "queuedMessages": _upsert(state.get("queuedMessages", ()), entry, "id")}


def _remove_pending(state: Obj, action: Obj) -> Obj:
    if action["kind"] != "steering":
        return _without_queued(state, action["id"])
    is_it = state.get("steeringMessage", {}).get("id") == action["id"]
    return _put(state, "steeringMessage", None) if is_it else state


def _reorder_queued(state: Obj, action: Obj) -> Obj:
    queued: list[Obj] | None = state.get("queuedMessages")
    if queued is None:
        return state
    by_id = {one["id"]: one for one in queued}
    named = [by_id[each] for each in dict.fromkeys(action["order"]) if each in by_id]
    rest = [one for one in queued if one not in named]
    return {**state, "queuedMessages": [*named, *rest]}


_CHAT: dict[str, Reducer] = {
    "chat/turnStarted": _start_turn,
    "chat/turnComplete": _end_turn,
    "chat/turnCancelled": _end_turn,
    "chat/error": _end_turn,
    "chat/responsePart": _add_part,
    "chat/delta": _extend_part,
    "chat/reasoning": _extend_part,
    "chat/toolCallStart": _start_call,
    "chat/toolCallReady": _ready_call,
    "chat/toolCallConfirmed": _confirm_call,
    "chat/toolCallComplete": _complete_call,
    "chat/toolCallContentChanged": _change_content,
    "chat/usage": _set_usage,
    "chat/inputRequested": _request_input,
    "chat/inputAnswerChanged": _change_answer,
    "chat/inputCompleted": _complete_input,
    "chat/pendingMessageSet": _set_pending,
    "chat/pendingMessageRemoved": _remove_pending,
    "chat/queuedMessagesReordered": _reorder_queued,
    "chat/draftChanged": lambda state, action: _put(state, "draft", action.get("draft")),
    "chat/activityChanged": lambda state, action: _put(state, "activity", action.get("activity")),
}


def _active(state: Obj, action: Obj) -> Obj | None:
    turn: Obj | None = state.get("activeTurn")
    return turn if turn is not None and turn["id"] == action["turnId"] else None


def _with_parts(state: Obj, turn: Obj, parts: list[Obj]) -> Obj:
    return {**state, "activeTurn": {**turn, "responseParts": parts}}


def _with_call(state: Obj, action: Obj, change: Callable[[Obj], Obj], *, keeps_status: bool = False) -> Obj:
    """The state with one call changed. VS Code computes the status anew even if the turn of the call has ended."""
    turn = _active(state, action)

    def update(part: Obj) -> Obj:
        if part["kind"] != "toolCall" or part["toolCall"]["toolCallId"] != action["toolCallId"]:
            return part
        return {**part, "toolCall": change(part["toolCall"])}

    if turn is not None:
        state = _with_parts(state, turn, [update(part) for part in turn["responseParts"]])
    return state if keeps_status else {**state, "status": _chat_status(state)}


def _call_base(call: Obj, action: Obj | None = None) -> Obj:
    """The fields that a call has in every status."""
    names = ("toolCallId", "toolName", "displayName", "intention", "contributor", "_meta")
    base = {name: call.get(name) for name in names}
    if action is not None and action.get("_meta") is not None:
        base["_meta"] = action["_meta"]
    return base


_WAITING = ("pending-confirmation", "pending-result-confirmation", "auth-required")


def _chat_status(state: Obj) -> int:
    turn: Obj | None = state.get("activeTurn")
    if turn is None:
        return _with_activity(state["status"], IDLE)
    waits = any(
        part["toolCall"]["status"] in _WAITING
        if part["kind"] == "toolCall"
        else part["kind"] == "inputRequest" and "response" not in part
        for part in turn["responseParts"]
    )
    return _with_activity(state["status"], INPUT_NEEDED if waits else IN_PROGRESS)


def _with_activity(status: int, activity: int) -> int:
    return status & ~ACTIVITY | activity


def _with_flag(status: int, flag: int, on: bool) -> int:
    return status | flag if on else status & ~flag


def _put(state: Obj, name: str, value: object) -> Obj:
    """The state with this field, or without it if the value is None."""
    rest = {key: kept for key, kept in state.items() if key != name}
    return rest if value is None else {**rest, name: value}


def _upsert(items: Iterable[Obj], item: Obj, key: str) -> list[Obj]:
    """Replace the item with the same key, or append it."""
    found = list(items)
    if all(one[key] != item[key] for one in found):
        return [*found, item]
    return [item if one[key] == item[key] else one for one in found]
