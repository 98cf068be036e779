"""A conversation that is taken out and in again is the same conversation, under other ids."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles, call_opened, call_settled
from tests.support.thread_store import ThreadStore, thread_store

from handrail.store.export import NotImportable, export, import_thread
from handrail.store.export_markdown import as_markdown
from handrail.store.threads.thread_records import MessageRecord
from handrail.store.values import Json, Result

pytestmark = pytest.mark.anyio

CALL: Json = {
    "id": "7",
    "title": "Edit a.py",
    "sort": "edit",
    "status": "completed",
    "call": None,
    "tool": "edit",
    "locations": [{"path": "/w/a.py", "line": 3}],
    "content": [
        {"kind": "diff", "path": "/w/a.py", "old": "one\n", "new": "two\n"},
        {"kind": "text", "text": "```\nfenced\n```"},
    ],
    "input": {"any": ["thing"]},
    "output": None,
}


async def a_talk(talk: ThreadStore) -> str:
    """One with every kind of part."""
    thread = talk.open(title="On kites")
    talk.say(thread, "How do kites *fly*?")
    answer = talk.threads.open_message(thread, "assistant", agent="demo", operation="o1")
    answer.add("thought", "Wind.")
    answer.add("text", "With wind ").grow("🪁")
    answer.add("call", data=CALL)
    answer.add("call", data={**CALL, "id": "", "call": "c1", "content": [], "title": "?"})
    answer.add("plan", data={"entries": [{"content": "Build it", "priority": "high", "status": "completed"}]})
    answer.add("image", data={"image": "ab" * 32, "mime": "image/png"})
    answer.add("file", data={"uri": "file:///w/a.py", "name": "a.py"})
    answer.add("note", "demo resumed its own record")
    answer.add("error", "It crashed.", {"said": ["Traceback", "boom"], "logins": []})
    answer.add("raw", data={"update": {"sessionUpdate": "unheard_of"}})
    answer.end("failed")
    talk.threads.open_message(thread, "user", queued=True).add("text", "not yet said")
    talk.journal.append(call_opened("c1", title="make kite", input={"command": "make kite"}))
    talk.journal.append(replace(call_settled("c1"), result=Result(text="built", data={})))
    await talk.threads.written()
    return thread


def same(message: MessageRecord) -> tuple[Any, ...]:
    """All of a message but its ids, and what was ours."""
    parts = [(part.n, part.kind, part.text, {**part.data, "call": None}) for part in message.parts]
    return (message.role, message.agent, message.opened_at, message.ended_at, message.stop, parts)


async def test_a_conversation_taken_out_and_in_again_is_the_same(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = await a_talk(talk)
        file = (await export(talk.threads, talk.records, thread)).model_dump_json()
        assert json.loads(file)["handrail"] == 1
        copy = await import_thread(talk.threads, file, ANN, "/elsewhere")
        found = await talk.records.threads.get(copy)
        assert found is not None
        assert (found.title, found.workspace, found.agent) == ("On kites", "/elsewhere", "demo")
        said, told = await talk.threads.transcript(thread), await talk.threads.messages(copy)
        assert {message.id for message in said}.isdisjoint(message.id for message in told)
        ours = {
            "title": "make kite",
            "tool": "write_file",
            "input": {"command": "make kite"},
            "output": "built",
        }
        parts = [*said[1].parts]
        parts[3] = replace(parts[3], data={**parts[3].data, **ours, "call": None})
        assert [same(message) for message in told] == [
            same(said[0]),
            same(replace(said[1], parts=tuple(parts))),
        ]
        assert told[1].parts[3].data["call"] is None
        again = await export(talk.threads, talk.records, copy)
        assert again.messages[1].parts[3].data == told[1].parts[3].data


async def test_a_file_does_not_say_what_agents_may_touch(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        file = (await export(talk.threads, talk.records, await a_talk(talk))).model_dump_json()
        found = await talk.records.threads.get(await import_thread(talk.threads, file, ANN))
        assert found is not None
        assert found.workspace is None


async def test_markdown_reads_well(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        shown = as_markdown(await export(talk.threads, talk.records, await a_talk(talk)))
    assert shown.startswith("# On kites\n\n*demo · /w · 20")
    for block in (
        "How do kites *fly*?",
        "<details><summary>Thought</summary>\n\nWind.\n\n</details>",
        "With wind 🪁",
        "- **Edit a.py** · completed",
        "```diff\n--- /w/a.py\n+++ /w/a.py\n@@ -1 +1 @@\n-one\n+two\n```",
        "````\n```\nfenced\n```\n````",
        "- **make kite** · completed\n\n```\nbuilt\n```",
        "- [x] Build it",
        "*A picture (image/png, abababababab…), not part of this file*",
        "> demo resumed its own record",
        "**Error:** It crashed.\n\n```\nTraceback\nboom\n```",
        "*Failed.*",
    ):
        assert f"\n\n{block}\n" in shown, block
    assert "not yet said" not in shown


GOOD: dict[str, Any] = {
    "handrail": 1,
    "thread": {"title": "T", "agent": "demo", "created_at": 1, "updated_at": 2},
    "messages": [{"role": "user", "opened_at": 1, "parts": [{"kind": "text", "text": "hi"}]}],
}


def but(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


def with_part(**part: Any) -> str:
    return but(messages=[{"role": "user", "opened_at": 1, "parts": [part]}])


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("{", "This is not JSON: Invalid JSON: EOF"),
        (but(thread={**GOOD["thread"], "title": "half of \ud83d"}), "This is not JSON: "),
        ("[]", "This is not a conversation as Handrail exports it. the file: "),
        (but(handrail=2), "This is an export of version 2, and this Handrail reads version 1 only."),
        (json.dumps({"messages": []}), "thread: Field required"),
        (but(messages=[{"role": "king", "opened_at": 1, "parts": []}]), "messages.0.role: Input should be"),
        (but(messages=[{"role": "user", "opened_at": 1 << 80, "parts": []}]), "messages.0.opened_at: "),
        (with_part(kind="song"), "messages.0.parts.0.kind: Input should be"),
        (with_part(kind="call", data={"title": "x"}), "messages.0.parts.0.data: Value error, status: Field"),
        (with_part(kind="plan"), "messages.0.parts.0.data: Value error, entries: Field required"),
        (with_part(kind="image", data={"image": 3, "mime": ""}), "image: Input should be a valid string"),
        (but(messages=[{}] * 9), "; and 24 more."),
    ],
)
async def test_what_cannot_be_taken_in_is_said_in_a_sentence_and_leaves_nothing(
    kept: JournalFiles, file: str, sentence: str
) -> None:
    async with thread_store(kept) as talk:
        with pytest.raises(NotImportable) as refusal:
            await import_thread(talk.threads, file, ANN)
        assert sentence in str(refusal.value)
        assert await talk.records.threads.find() == []


async def test_the_least_that_is_a_conversation_is_taken_in(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = await import_thread(talk.threads, json.dumps(GOOD), ANN)
        (message,) = await talk.threads.messages(thread)
        assert [part.text for part in message.parts] == ["hi"]
        assert message.stop == "interrupted"
