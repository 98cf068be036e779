"""What an agent is told of a conversation that it has not heard, and what the person is told about that."""

from typing import Any

from handrail.agents.conversation.send_prompt import LONGEST, Summary, describe_handover, summarize_messages
from handrail.store.threads.thread_records import MessagePart, MessageRecord
from handrail.store.values import PartKind, Role, Stop


def message(
    n: int, role: Role, *parts: tuple[PartKind, str, Any], stop: Stop | None = "end_turn"
) -> MessageRecord:
    return MessageRecord(
        id=f"m{n}",
        thread="h1",
        n=n,
        role=role,
        agent="ann",
        operation=None,
        queued=False,
        opened_at=0,
        ended_at=0,
        stop=stop,
        parts=tuple(MessagePart(n=i, kind=k, text=t, data=d) for i, (k, t, d) in enumerate(parts)),
    )


def test_a_summary_has_what_was_said_and_the_titles_of_what_was_done() -> None:
    found = summarize_messages(
        [
            message(
                1,
                "user",
                ("text", "Mend the house.", {}),
                ("file", "", {"uri": "file:///w/plan", "name": "plan"}),
            ),
            message(
                2,
                "assistant",
                ("thought", "How?", {}),
                ("text", "I look.", {}),
                ("call", "", {"title": "Read roof.py", "status": "completed", "output": "secret"}),
                ("note", "A note of ours.", {}),
                stop="cancelled",
            ),
        ]
    )
    assert found is not None
    assert (found.messages, found.left_out) == (2, 0)
    assert "Person:\nMend the house.\n[file file:///w/plan]" in found.text
    assert "ann (cancelled):\nI look.\n[Read roof.py: completed]" in found.text
    for unsaid in ("How?", "secret", "A note"):
        assert unsaid not in found.text


def test_nothing_said_is_no_summary() -> None:
    assert summarize_messages([]) is None
    assert summarize_messages([message(1, "assistant", ("thought", "Hm.", {}))]) is None


def test_the_newest_messages_are_kept_whole_and_the_oldest_left_out() -> None:
    many = [message(n, "user", ("text", f"{n}: " + "ä" * 5_000, {})) for n in range(1, 31)]
    found = summarize_messages(many)
    assert found is not None
    assert len(found.text.encode()) <= LONGEST + 200
    assert (found.messages, found.left_out) == (5, 25)
    assert "(25 older messages are left out.)" in found.text
    assert found.text.index("26: ") < found.text.index("30: ")
    assert "25: " not in found.text


def test_a_message_too_long_by_itself_keeps_its_beginning_and_its_end() -> None:
    found = summarize_messages([message(1, "user", ("text", "begin" + "ä" * 200_000 + "end", {}))])
    assert found is not None
    assert len(found.text.encode()) <= LONGEST + 200
    assert "begin" in found.text
    assert "end\n" in found.text


def test_the_person_is_told_how_the_agent_knows() -> None:
    assert describe_handover("ann", "known", None) == describe_handover("ann", "new", None) == ""
    assert describe_handover("ann", "resumed", None) == "ann resumed its own record."
    assert (
        describe_handover("ann", "transcript", Summary("", 14, 0)) == "ann was sent a summary of 14 messages."
    )
    both = describe_handover("ann", "loaded", Summary("", 1, 3))
    assert both == "ann loaded its own record. ann was sent a summary of 1 message; 3 older ones did not fit."
