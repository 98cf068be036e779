"""The reducers, by generated cases: what holds for every state and every action."""

import copy

from hypothesis import given
from hypothesis import strategies as st
from tests.support.ahp_actions import CHAT_ACTIONS, IDS, SESSION_ACTIONS, TEXTS, Obj, new_chat

from handrail.server.ahp.reducers import (
    reduce_changeset,
    reduce_chat,
    reduce_root,
    reduce_session,
    reduce_terminal,
)


def run(actions: list[Obj]) -> Obj:
    state = new_chat()
    for each in actions:
        before = copy.deepcopy(state)
        after = reduce_chat(state, each)
        assert state == before, "a reducer changes no state in place"
        state = after
    return state


@given(st.lists(CHAT_ACTIONS, max_size=30))
def test_the_status_of_a_chat_follows_from_its_running_turn(actions: list[Obj]) -> None:
    state = run(actions)
    turn = state.get("activeTurn")
    if turn is None:
        assert state["status"] & 8 == 0
        return
    waits = [
        part for part in turn["responseParts"] if part["kind"] == "inputRequest" and "response" not in part
    ]
    calls = [part["toolCall"]["status"] for part in turn["responseParts"] if part["kind"] == "toolCall"]
    needed = bool(waits) or "pending-confirmation" in calls
    assert state["status"] & 31 == (24 if needed else 8)


@given(st.lists(CHAT_ACTIONS, max_size=30))
def test_an_ended_turn_has_no_open_calls_and_a_duration(actions: list[Obj]) -> None:
    for turn in run(actions)["turns"]:
        statuses = {
            part["toolCall"]["status"] for part in turn["responseParts"] if part["kind"] == "toolCall"
        }
        assert statuses <= {"completed", "cancelled"}
        assert turn["duration"] >= 0
        assert turn["state"] in ("complete", "cancelled", "error")
        errors = [part for part in turn["responseParts"] if part["kind"] == "error"]
        assert bool(errors) == (turn["state"] == "error")


@given(st.lists(CHAT_ACTIONS, max_size=20), CHAT_ACTIONS)
def test_an_action_for_another_turn_or_call_changes_nothing(actions: list[Obj], late: Obj) -> None:
    state = run(actions)
    scoped = "turnId" in late and late["type"] != "chat/turnStarted"
    if scoped and late["type"] != "chat/inputRequested":
        assert reduce_chat(state, {**late, "turnId": "of-no-turn"}) == state


@given(st.lists(CHAT_ACTIONS, max_size=30))
def test_no_field_is_null_and_queues_are_absent_when_empty(actions: list[Obj]) -> None:
    state = run(actions)
    assert None not in state.values()
    assert state.get("queuedMessages", [1]) != []
    ids = [one["id"] for one in state.get("queuedMessages", [])]
    assert len(ids) == len(set(ids))


@given(st.lists(SESSION_ACTIONS, max_size=30))
def test_a_session_needs_input_exactly_while_a_question_is_listed(actions: list[Obj]) -> None:
    state: Obj = {"title": "", "status": 1, "activeClients": [], "chats": [{"resource": "a", "title": ""}]}
    for each in actions:
        state = reduce_session(state, each)
    asks = [one for one in state.get("inputNeeded", []) if one["kind"] == "toolConfirmation"]
    assert bool(asks) == (state["status"] & 24 == 24)
    assert state.get("inputNeeded", [1]) != []
    flags = [each for each in actions if each["type"] == "session/isReadChanged"]
    assert bool(state["status"] & 32) == bool(flags and flags[-1]["isRead"])
    assert [chat["resource"] for chat in state["chats"]] == ["a"]
    clients = [one["clientId"] for one in state["activeClients"]]
    assert len(clients) == len(set(clients))


@given(st.lists(TEXTS.filter(bool), max_size=20))
def test_the_output_of_a_terminal_is_all_its_data_in_order(pieces: list[str]) -> None:
    state: Obj = {"content": [], "cols": 80, "rows": 24, "lifecycle": {"status": "running"}}
    for piece in pieces:
        state = reduce_terminal(state, {"type": "terminal/data", "data": piece})
    assert "".join(part["value"] for part in state["content"]) == "".join(pieces)
    assert len(state["content"]) <= 1
    state = reduce_terminal(state, {"type": "terminal/exited", "exitCode": 3})
    assert state["lifecycle"] == {"status": "exited", "exitCode": 3}
    assert reduce_terminal(state, {"type": "terminal/input", "data": "x"}) == state


@given(st.lists(st.tuples(st.booleans(), IDS, TEXTS), max_size=20))
def test_a_changeset_has_each_file_once_as_it_was_set_last(steps: list[tuple[bool, str, str]]) -> None:
    state: Obj = {"status": "ready", "files": []}
    expected: dict[str, str] = {}
    for sets, name, edit in steps:
        if sets:
            state = reduce_changeset(state, {"type": "changeset/fileSet", "file": {"id": name, "edit": edit}})
            expected[name] = edit
        else:
            state = reduce_changeset(state, {"type": "changeset/fileRemoved", "fileId": name})
            expected.pop(name, None)
    assert {file["id"]: file["edit"] for file in state["files"]} == expected
    assert len(state["files"]) == len(expected)


def test_the_settings_of_a_client_are_merged_or_replaced() -> None:
    state: Obj = {"agents": [], "config": {"values": {"a": 1}}}
    merged = reduce_root(state, {"type": "root/configChanged", "config": {"b": 2}})
    assert merged["config"]["values"] == {"a": 1, "b": 2}
    replaced = reduce_root(merged, {"type": "root/configChanged", "config": {"c": 3}, "replace": True})
    assert replaced["config"]["values"] == {"c": 3}
    assert reduce_root({"agents": []}, {"type": "root/configChanged", "config": {}}) == {"agents": []}
