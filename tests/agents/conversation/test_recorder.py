"""The recorder: from updates, in whatever order and shape they come, to the parts of a message."""

import base64
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.agents.acp.agent_errors import AgentError, Login
from handrail.agents.conversation.recorder import MOST_PARTS, MOST_RAW, MOST_TEXT, Recorder
from handrail.agents.conversation.tool_calls import MOST_CALLS, MOST_HEARD, OwnCall
from handrail.store.threads.message import Message
from handrail.store.values import Json, Stop

RUN = OwnCall("c1", "execute_command", "make test", {"command": "make test"})


class Page:
    """A recorder on a message in memory, and what else it said."""

    def __init__(self, *, begun: bool = True) -> None:
        self._rev = count(1)
        self.states: list[tuple[str, Json]] = []
        self.kept: list[bytes] = []
        self.titles: list[str] = []
        self.recorder = Recorder(
            lambda name, data: self.states.append((name, data)), self.keep, self.titles.append
        )
        self.message = self._blank()
        if begun:
            self.turn()

    def turn(self) -> Message:
        """The next message begins."""
        self.message = Message(
            lambda _: next(self._rev),
            lambda _: None,
            id="m1",
            thread="h1",
            n=1,
            role="assistant",
            agent="ann",
        )
        self.recorder.begin(self.message)
        return self.message

    def _blank(self) -> Message:
        return Message(
            lambda _: next(self._rev),
            lambda _: None,
            id="m1",
            thread="h1",
            n=1,
            role="assistant",
            agent="ann",
        )

    def keep(self, content: bytes) -> str:
        self.kept.append(content)
        return f"sha{len(self.kept)}"

    def hears(self, kind: str, /, **fields: Any) -> None:
        self.recorder.update({"sessionUpdate": kind, **fields})

    def says(self, text: str, kind: str = "agent_message_chunk", **fields: Any) -> None:
        self.hears(kind, content={"type": "text", "text": text}, **fields)

    @property
    def parts(self) -> list[tuple[str, str]]:
        return [(part.kind, part.text) for part in self.message.parts]

    @property
    def calls(self) -> list[Any]:
        return [part.data for part in self.message.parts if part.kind == "call"]


def test_words_of_one_kind_grow_one_part() -> None:
    page = Page()
    for word in ("Let ", "me ", "see."):
        page.says(word, "agent_thought_chunk")
    for word in ("It ", "is ", "done."):
        page.says(word)
    page.says("Or is it?", "agent_thought_chunk")
    assert page.parts == [("thought", "Let me see."), ("text", "It is done."), ("thought", "Or is it?")]


def test_words_go_on_in_a_new_part_after_something_else_was_shown() -> None:
    page = Page()
    page.says("First I look.")
    page.hears("tool_call", toolCallId="1", title="Look")
    page.says("Then I leap.")
    page.says("A message of its own.", messageId="2")
    assert page.parts == [
        ("text", "First I look."),
        ("call", ""),
        ("text", "Then I leap."),
        ("text", "A message of its own."),
    ]


def test_ten_thousand_updates_keep_their_order() -> None:
    page = Page()
    for n in range(10_000):
        page.says(f"{n} ", "agent_message_chunk" if n % 100 < 50 else "agent_thought_chunk")
    assert len(page.parts) == 200
    assert "".join(text for _, text in page.parts).split() == [str(n) for n in range(10_000)]


def test_the_output_of_a_terminal_that_codex_has_itself_is_shown() -> None:
    page = Page()
    terminal = {"type": "terminal", "terminalId": "1"}
    page.hears("tool_call", toolCallId="1", kind="execute", status="in_progress", content=[terminal])
    for word in ("begun\n", "ended\n"):
        output = {"terminal_output_delta": {"data": word, "terminal_id": "1"}}
        page.hears("tool_call_update", toolCallId="1", _meta=output)
    page.hears("tool_call_update", toolCallId="1", status="completed", _meta={"terminal_exit": {"code": 0}})
    [call] = page.calls
    assert call["content"] == [{"kind": "text", "text": "begun\nended\n"}]


def test_a_call_of_ours_is_one_with_the_card_in_which_the_agent_names_it() -> None:
    write = OwnCall("c1", "write_file", "write a", {"path": "a", "content": ""})
    codex = {"title": "mcp.handrail.write_file", "kind": "execute"}
    named = {"server": "handrail", "tool": "write_file", "arguments": write.input}
    goose = {"title": "handrail: write file · a", "kind": "other", "rawInput": write.input}
    for told in ({**codex, "rawInput": named}, goose):
        page = Page()
        page.hears("tool_call", toolCallId="1", **told)
        page.recorder.link("", write)
        assert [call["call"] for call in page.calls] == ["c1"]
    page = Page()
    page.hears("tool_call", toolCallId="1", **codex, rawInput={**named, "arguments": {"path": "b"}})
    page.recorder.link("", write)
    assert [call["call"] for call in page.calls] == [None, "c1"]


def test_a_command_of_ours_is_one_with_the_card_whose_line_it_contains() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="Bash", kind="execute", rawInput={"command": "make test"})
    line = "/bin/bash -c 'cd /w && make test'"
    page.recorder.link("", OwnCall("c1", "execute_command", line, {"command": line}))
    assert [call["call"] for call in page.calls] == ["c1"]


def test_a_call_is_one_part_however_many_updates_tell_of_it() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="Edit a.py", kind="edit", status="pending")
    page.hears(
        "tool_call_update", toolCallId="1", status="in_progress", locations=[{"path": "/w/a.py", "line": 3}]
    )
    diff = {"type": "diff", "path": "/w/a.py", "oldText": "a", "newText": "b"}
    page.hears("tool_call_update", toolCallId="1", status="completed", content=[diff], rawOutput={"ok": True})
    page.hears("tool_call", toolCallId="1", title="Edit a.py", kind="edit", status="pending")
    [call] = page.calls
    assert call == {
        "id": "1",
        "title": "Edit a.py",
        "sort": "edit",
        "status": "completed",
        "call": None,
        "tool": "",
        "locations": [{"path": "/w/a.py", "line": 3}],
        "content": [{"kind": "diff", "path": "/w/a.py", "old": "a", "new": "b"}],
        "input": None,
        "output": {"ok": True},
    }


def test_a_call_that_our_own_agent_says_was_cancelled_is_not_shown_as_failed() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="Look around", status="in_progress")
    page.hears(
        "tool_call_update", toolCallId="1", status="failed", _meta={"handrail": {"status": "cancelled"}}
    )
    page.hears("tool_call", toolCallId="2", title="Look again", status="in_progress")
    page.hears("tool_call_update", toolCallId="2", status="failed", _meta={"handrail": {"status": "no word"}})
    assert [call["status"] for call in page.calls] == ["cancelled", "failed"]


def test_an_update_of_a_call_that_was_never_announced_shows_it() -> None:
    page = Page()
    page.hears("tool_call_update", toolCallId="9")
    page.hears("tool_call_update", toolCallId=8, status="completed")
    assert [(call["id"], call["status"]) for call in page.calls] == [("9", "pending"), ("8", "completed")]


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
calls = st.fixed_dictionaries(
    {
        "sessionUpdate": st.sampled_from(["tool_call", "tool_call_update"]),
        "toolCallId": st.sampled_from(["1", "2", "3"]),
    },
    optional={
        "title": st.sampled_from(["Run", "Look"]) | anything,
        "kind": st.sampled_from(["execute", "read", "nonsense"]) | anything,
        "status": st.sampled_from(["pending", "in_progress", "completed", "failed", "nonsense"]) | anything,
        "content": anything,
        "locations": anything,
        "rawInput": anything,
        "rawOutput": anything,
        "_meta": anything,
    },
)


@settings(deadline=None)
@given(
    st.lists(
        calls | st.dictionaries(st.sampled_from(["sessionUpdate", "content", "plan"]), anything), max_size=20
    )
)
def test_updates_in_any_order_twice_or_mangled_give_a_message_that_makes_sense(updates: list[Any]) -> None:
    page = Page()
    for update in updates:
        page.recorder.update(update)
        page.recorder.update(update)
    page.recorder.end("end_turn")
    told = {update["toolCallId"] for update in updates if "toolCallId" in update}
    assert {call["id"] for call in page.calls} == told
    assert len(page.calls) == len(told), "one part each"
    over = {
        u["toolCallId"] for u in updates if u.get("status") in ("completed", "failed") and "toolCallId" in u
    }
    for call in page.calls:
        assert call["status"] in ("completed", "failed"), "nothing is left open"
        assert call["id"] in over or call["status"] == "completed"


def test_a_plan_is_replaced_within_its_message_and_kept_as_the_state_of_the_thread() -> None:
    page = Page()
    page.hears("plan", entries=[{"content": "a", "status": "pending", "priority": "high"}])
    page.says("Working.")
    page.hears(
        "plan", entries=[{"content": "a", "status": "completed", "priority": "high"}, {"content": "b"}]
    )
    assert page.parts == [("plan", ""), ("text", "Working.")]
    entries = page.message.parts[0].data["entries"]
    assert entries == [
        {"content": "a", "status": "completed", "priority": "high"},
        {"content": "b", "status": "pending", "priority": "medium"},
    ]
    assert page.states[-1] == ("plan", {"entries": entries})
    page.turn()
    page.hears("plan", entries=[{"content": "c"}])
    assert page.parts == [("plan", "")], "the next message has one of its own"


def test_what_is_unknown_is_kept_as_it_came() -> None:
    page = Page()
    page.hears("of_no_known_kind", some={"deep": [1]})
    assert page.message.parts[0].data == {
        "update": {"sessionUpdate": "of_no_known_kind", "some": {"deep": [1]}}
    }
    for _ in range(MOST_RAW + 10):
        page.hears("of_no_known_kind")
    assert len(page.parts) == MOST_RAW + 1
    assert page.parts[-1][0] == "note"


def test_what_the_person_said_is_not_taken_down_again() -> None:
    page = Page()
    page.says("You asked me.", "user_message_chunk")
    assert page.parts == []


def test_pictures_and_files_are_parts_without_their_bytes() -> None:
    page = Page()
    data = base64.b64encode(b"\x89PNG").decode()
    page.hears("agent_message_chunk", content={"type": "image", "data": data, "mimeType": "image/png"})
    page.hears("agent_message_chunk", content={"type": "resource_link", "uri": "file:///a", "name": "a"})
    inner = {"uri": "file:///w/b.txt", "text": "what it holds"}
    page.hears("agent_message_chunk", content={"type": "resource", "resource": inner})
    page.hears("agent_message_chunk", content={"type": "image", "data": "!", "mimeType": "image/png"})
    assert [(part.kind, part.data, part.text) for part in page.message.parts[:3]] == [
        ("image", {"image": "sha1", "mime": "image/png"}, ""),
        ("file", {"uri": "file:///a", "name": "a"}, ""),
        ("file", {"uri": "file:///w/b.txt", "name": "b.txt"}, "what it holds"),
    ]
    assert page.parts[3][0] == "raw", "what is no picture is shown as it came"
    assert page.kept == [b"\x89PNG"]


def test_a_flood_of_words_is_not_kept_beyond_its_bound() -> None:
    page = Page()
    for _ in range(20):
        page.says("x" * (MOST_TEXT // 16))
    assert sum(len(text) for kind, text in page.parts if kind == "text") <= MOST_TEXT
    assert [kind for kind, _ in page.parts] == ["text", "note"]


def test_a_flood_of_calls_is_not_shown_beyond_its_bound() -> None:
    page = Page()
    for n in range(MOST_CALLS + 10):
        page.hears("tool_call", toolCallId=n, title="Again")
    assert len(page.calls) == MOST_CALLS


def test_a_title_is_handed_on() -> None:
    page = Page()
    page.hears("session_info_update", title="  About the house ")
    page.hears("session_info_update", title=None, updatedAt="2026")
    assert (page.titles, page.parts) == (["About the house"], [])


def test_a_call_of_ours_is_linked_by_the_id_its_agent_gave() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="Running tests", kind="execute")
    page.recorder.link("1", RUN)
    [call] = page.calls
    assert (call["call"], call["tool"], call["title"]) == ("c1", "execute_command", "Running tests")


def test_a_call_of_ours_for_an_id_that_was_not_heard_of_is_shown_all_the_same() -> None:
    page = Page()
    page.recorder.link("7", RUN)
    page.hears("tool_call", toolCallId="7", title="Running tests", status="completed")
    [call] = page.calls
    assert (call["id"], call["call"], call["status"]) == ("7", "c1", "completed")


def test_a_call_over_mcp_is_linked_by_its_tool_and_input() -> None:
    page = Page()
    page.hears(
        "tool_call", toolCallId="1", title="mcp__handrail__execute_command", rawInput={"command": "ls"}
    )
    page.hears(
        "tool_call", toolCallId="2", title="mcp__handrail__execute_command", rawInput={"command": "make test"}
    )
    page.hears("tool_call", toolCallId="3", title="handrail_read_file (MCP)", rawInput={})
    page.recorder.link("", RUN)
    page.recorder.link("", OwnCall("c2", "read_file", "read a", {"path": "a"}))
    assert [call["call"] for call in page.calls] == [None, "c1", "c2"]


def test_a_call_of_ours_that_came_first_is_the_one_its_agent_then_speaks_of() -> None:
    page = Page()
    page.recorder.link("", RUN)
    page.hears(
        "tool_call", toolCallId="1", title="handrail/execute_command", rawInput={"command": "make test"}
    )
    page.hears(
        "tool_call", toolCallId="2", title="handrail/execute_command", rawInput={"command": "make test"}
    )
    assert [(call["id"], call["call"]) for call in page.calls] == [("1", "c1"), ("2", None)]


def test_a_call_of_ours_that_is_over_is_still_the_one_its_agent_then_speaks_of() -> None:
    page = Page()
    page.recorder.link("", RUN)
    page.recorder.settled("c1", "done")
    page.hears(
        "tool_call", toolCallId="1", title="handrail/execute_command", rawInput={"command": "make test"}
    )
    page.hears("tool_call_update", toolCallId="1", status="completed", title="Ran the tests")
    [call] = page.calls
    assert (call["id"], call["call"], call["title"]) == ("1", "c1", "Ran the tests")


def test_what_an_agent_does_with_our_hands_is_linked_by_what_it_is_about() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="`make test`", kind="execute", status="in_progress")
    page.hears("tool_call", toolCallId="2", title="Edit", kind="edit", locations=[{"path": "/w/a"}])
    page.recorder.link("1", OwnCall("c0", "agent_work", "Run make test", {}))
    page.recorder.link("", RUN)
    page.recorder.link("", OwnCall("c2", "write_file", "write a", {"path": "/w/a", "content": ""}))
    assert [(call["call"], call["tool"]) for call in page.calls] == [
        ("c1", "execute_command"),
        ("c2", "write_file"),
    ], "what does the work stands in place of what allowed it"


def test_a_call_of_ours_that_no_agent_speaks_of_is_a_part_of_its_own_and_ends_with_its_outcome() -> None:
    page = Page()
    page.recorder.link("", RUN)
    [call] = page.calls
    assert (call["id"], call["status"], call["title"]) == ("", "in_progress", "make test")
    page.recorder.settled("c1", "denied")
    assert page.calls[0]["status"] == "failed"


def test_one_call_of_an_agent_that_makes_two_of_ours_shows_both() -> None:
    page = Page()
    page.recorder.link("1", RUN)
    page.recorder.link("1", OwnCall("c2", "write_file", "write a", {"path": "a"}))
    assert [call["call"] for call in page.calls] == ["c1", "c2"]


def test_when_an_agent_stops_nothing_of_it_stays_open() -> None:
    ends: list[tuple[Stop, str]] = [
        ("cancelled", "cancelled"),
        ("failed", "failed"),
        ("end_turn", "completed"),
    ]
    for stop, status in ends:
        page = Page()
        page.hears("tool_call", toolCallId="1", title="Think", status="in_progress")
        page.hears("tool_call", toolCallId="2", title="Look", status="failed")
        page.recorder.end(stop)
        assert [call["status"] for call in page.calls] == [status, "failed"]


def test_a_call_of_ours_that_outlives_the_prompt_ends_when_it_does() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="Serve", status="in_progress")
    page.recorder.link("1", RUN)
    page.recorder.end("end_turn")
    first = page.message.parts[0]
    assert first.data["status"] == "in_progress"
    page.turn()
    page.recorder.settled("c1", "done")
    assert first.data["status"] == "completed"


def test_what_comes_late_is_added_until_the_next_prompt() -> None:
    page = Page()
    page.hears("tool_call", toolCallId="1", title="Look", status="in_progress")
    page.recorder.end("cancelled")
    page.says("One more thing.")
    page.hears("tool_call_update", toolCallId="1", status="completed")
    assert (page.parts[-1], page.calls[0]["status"]) == (("text", "One more thing."), "completed")
    first = page.message
    page.turn()
    page.hears("tool_call_update", toolCallId="1", title="Looked")
    page.hears("tool_call", toolCallId="1", title="Look again")
    assert first.parts[0].data["title"] == "Looked", "an update is of the call that was begun"
    assert [call["title"] for call in page.calls] == ["Look again"], "an id may be used again"


def test_a_failure_says_what_happened_what_the_agent_said_last_and_how_to_log_in() -> None:
    page = Page()
    login = Login("key", "API key", "Set one", "tool login")
    page.recorder.fail(AgentError("It wants a login.", ("no key",), (login,)))
    [part] = page.message.parts
    assert (part.kind, part.text) == ("error", "It wants a login.")
    assert part.data == {
        "said": ["no key"],
        "logins": [{"id": "key", "name": "API key", "description": "Set one", "command": "tool login"}],
    }


def test_what_is_said_before_the_first_prompt_has_no_place_but_its_state_has() -> None:
    page = Page()
    fresh = Page()
    fresh.recorder.__init__(
        lambda name, data: page.states.append((name, data)), page.keep, page.titles.append
    )
    fresh.says("Hello!")
    fresh.hears("tool_call", toolCallId="1", title="Look")
    fresh.recorder.link("1", RUN)
    fresh.hears("current_mode_update", currentModeId="code")
    assert page.states == [("modes", {"modes": [], "current": "code"})]
    assert fresh.parts == []


def test_the_state_is_shown_again_when_another_agent_spoke_in_between() -> None:
    page = Page()
    page.hears("usage_update", used=1, size=10)
    page.states.clear()
    page.recorder.show_state()
    usage = {"used": 1, "size": 10, "cost": None}
    assert dict(page.states) == {"modes": {}, "options": {}, "commands": {}, "usage": usage, "plan": {}}


def test_of_more_things_than_anybody_reads_the_rest_is_not_kept_and_that_is_said() -> None:
    page = Page()
    for n in range(MOST_PARTS // 2 + 10):
        page.says(f"{n}")
        page.says("hm", "agent_thought_chunk")
    assert len(page.parts) == MOST_PARTS + 1
    assert page.parts[-1][0] == "note"


def test_what_is_told_of_calls_is_kept_within_a_bound_and_how_they_went_is_always_heard() -> None:
    page = Page()
    large = "x" * 200_000
    for n in range(2 * MOST_HEARD // len(large)):
        page.hears("tool_call", toolCallId=f"{n}", title=f"{n}", rawOutput=large)
        page.hears("tool_call_update", toolCallId=f"{n}", status="completed", rawOutput=large)
    calls = page.calls
    assert {call["status"] for call in calls} == {"completed"}
    kept = sum(len(call["output"] or "") for call in calls)
    assert 0.9 * MOST_HEARD < kept <= MOST_HEARD
