"""Chat actions, by generated threads: the actions lead to what the thread shows, in every order of changes."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from handrail.server.ahp._chat_actions import ChatActions, empty_chat
from handrail.server.ahp.reducers import reduce_chat
from handrail.server.ahp.turns import CallPart, FormPart, Phase, Question, TextPart, Turn, TurnPart

Obj = dict[str, Any]
DENY: Obj = {"id": "deny", "label": "Deny", "kind": "deny"}
ENDED = {"done": {"completed"}, "failed": {"completed", "cancelled"}, "denied": {"completed", "cancelled"}}
"""A call that was waiting for its answer is cancelled; one that ran completes, without success."""


def call_part(name: str, phase: Phase, digest: str) -> CallPart:
    question = (
        Question(digest=digest, title="Run (risk: low)", options=(DENY,)) if phase == "asking" else None
    )
    kind: Obj = {"toolKind": "terminal"} if digest == "d1" else {}
    return CallPart(
        id=name, tool="execute_command", title="ls", phase=phase, input="ls", meta=kind, question=question
    )


PHASES = st.lists(st.sampled_from(["asking", "running"]), max_size=4)
LAST = st.sampled_from(["done", "failed", "denied"])


@st.composite
def part_history(draw: st.DrawFn, name: str) -> list[TurnPart]:
    """One part at each moment of its life."""
    kind = draw(st.sampled_from(["text", "call", "form"]))
    if kind == "text":
        pieces = draw(st.lists(st.text("ab ", max_size=3), min_size=1, max_size=5))
        sort = draw(st.sampled_from(["markdown", "reasoning"]))
        texts = ["".join(pieces[: n + 1]) for n in range(len(pieces))]
        return [TextPart(id=name, kind=cast("Any", sort), text=text) for text in texts]
    if kind == "form":
        request: Obj = {"id": name, "questions": []}
        return [
            FormPart(id=name, request=request),
            FormPart(id=name, request=request, response="accept", answers={}),
        ]
    digest = draw(st.sampled_from(["d1", "d2"]))
    return [call_part(name, cast("Phase", phase), digest) for phase in [*draw(PHASES), draw(LAST)]]


@st.composite
def turn_histories(draw: st.DrawFn) -> list[Turn]:
    """A turn at each moment: its parts appear one after another and then change on their own."""
    histories = [draw(part_history(f"p{n}")) for n in range(draw(st.integers(0, 4)))]
    shown = [0] * len(histories)
    moments: list[Turn] = [turn("active", ())]
    for known in range(1, len(histories) + 1):
        for _ in range(draw(st.integers(0, 4))):
            changed = draw(st.integers(0, known - 1))
            shown[changed] = min(shown[changed] + draw(st.integers(0, 2)), len(histories[changed]) - 1)
            moments.append(turn("active", tuple(histories[n][shown[n]] for n in range(known))))
    end = draw(st.sampled_from(["complete", "cancelled", "error"]))
    moments.append(turn(end, tuple(history[-1] for history in histories)))
    return moments


def turn(state: str, parts: tuple[TurnPart, ...]) -> Turn:
    return Turn(
        id="t1", message={"text": "go"}, started_at=0, state=cast("Any", state), parts=parts, error="why"
    )


@given(turn_histories())
def test_the_actions_lead_to_the_last_moment_whatever_came_between(moments: list[Turn]) -> None:
    state = client = empty_chat("chat", "Title", 0)
    for moment in moments:
        actions = ChatActions(state)
        actions.reach([moment], [], {})
        for action in actions.actions:
            client = reduce_chat(client, action)
        state = actions.state
        assert client == state
        again = ChatActions(state)
        again.reach([moment], [], {})
        assert again.actions == []
    check_turn(state["turns"][0], moments[-1])


def check_turn(ended: Obj, moment: Turn) -> None:
    """The ended turn shows each part as it was at last."""
    assert ended["state"] == moment.state
    shown = [part for part in ended["responseParts"] if part["kind"] != "error"]
    assert len(shown) == len(moment.parts)
    for part in moment.parts:
        if isinstance(part, TextPart):
            [found] = [one for one in shown if one.get("id") == part.id]
            assert found["content"] == part.text
        elif isinstance(part, CallPart):
            [found] = [
                one["toolCall"] for one in shown if one.get("toolCall", {}).get("toolCallId") == part.id
            ]
            assert found["status"] in ENDED[part.phase]
            assert found.get("success", False) == (part.phase == "done")
        else:
            [found] = [one for one in shown if one.get("request", {}).get("id") == part.id]
            assert found["response"] == "accept"


def test_a_question_is_asked_without_the_kind_that_hides_our_options() -> None:
    actions = ChatActions(empty_chat("chat", "Title", 0))
    actions.reach([turn("active", (call_part("p", "asking", "d1"),))], [], {})
    [part] = actions.state["activeTurn"]["responseParts"]
    assert part["toolCall"]["status"] == "pending-confirmation"
    assert part["toolCall"]["options"] == [DENY]
    assert "toolKind" not in part["toolCall"]["_meta"]
    assert part["toolCall"]["_meta"]["handrail/digest"] == "d1"


def test_a_long_input_is_shown_whole_in_a_fence_that_it_cannot_close() -> None:
    part = CallPart(
        id="p",
        tool="execute_command",
        title="echo …",
        phase="asking",
        input="echo ```\nrm -rf /",
        meta={},
        question=Question(digest="d", title="Run", options=(DENY,)),
    )
    actions = ChatActions(empty_chat("chat", "Title", 0))
    actions.reach([turn("active", (part,))], [], {})
    shown = actions.state["activeTurn"]["responseParts"][0]["toolCall"]["invocationMessage"]["markdown"]
    assert shown == "````\necho ```\nrm -rf /\n````"
