"""An agent asks for permission: rules may answer, else a person; and it is told one of the options it offered, exactly."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from tests.support.acp_requests import RequestingAgent, requesting_agent
from tests.support.actors import ANN

from handrail.agents.requests._permission import permission_answer, permission_input
from handrail.config import AgentSection
from handrail.gate import person_actions
from handrail.gate.approval import Answer
from handrail.gate.call import Outcome
from handrail.gate.tool import NO_EDITS, Refusal
from handrail.store.values import Caller, CommandPreview, DiffPreview, Ending, Json

pytestmark = pytest.mark.anyio

OPTIONS = [
    {"optionId": "y!", "name": "Always", "kind": "allow_always"},
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "No", "kind": "reject_once"},
    {"optionId": "n!", "name": "Never", "kind": "reject_always"},
]
RUN: dict[str, Any] = {
    "toolCall": {"toolCallId": "1", "kind": "execute", "title": "Test", "rawInput": {"command": "make test"}},
    "options": OPTIONS,
}


def offering(*options: tuple[Any, str]) -> Json:
    return {"options": [{"optionId": name, "name": str(name), "kind": kind} for name, kind in options]}


def ended(ending: Ending, message: str = "") -> Outcome:
    return Outcome(ending=ending, by=ANN, message=message)


def selected(id: Any) -> Json:
    return {"outcome": {"outcome": "selected", "optionId": id}}


NO = Answer(kind="deny", by=ANN)
PLAIN = AgentSection(name="mind", command=("mind",))
CANCELLED: Json = {"outcome": {"outcome": "cancelled"}}


@pytest.fixture
async def here(home: Path, caller: Caller) -> AsyncGenerator[RequestingAgent]:
    async with requesting_agent(home, caller, default="ask", agrees=False) as found:
        yield found


@pytest.mark.parametrize(
    ("options", "allowed", "denied"),
    [
        ([("a", "allow_once"), ("r", "reject_once")], "a", "r"),
        (
            [("A", "allow_always"), ("a", "allow_once"), ("R", "reject_always"), ("r", "reject_once")],
            "a",
            "r",
        ),
        ([("A", "allow_always"), ("R", "reject_always")], "A", "R"),
        (
            [("a1", "allow_once"), ("a2", "allow_once"), ("r1", "reject_once"), ("r2", "reject_once")],
            "a1",
            "r1",
        ),
        ([("", "allow_once"), ("reject", "reject_once")], "", "reject"),
        ([("reject me", "allow_once"), ("allow all", "reject_once")], "reject me", "allow all"),
        ([(0, "allow_once"), (1, "reject_once")], 0, 1),
        ([("x", "allow_for_this_folder"), ("y", "reject_and_say_why")], "x", "y"),
        ([("r", "reject_once")], None, "r"),
        ([("A", "allow_always")], "A", None),
        ([("odd", "think_again")], None, None),
        ([], None, None),
    ],
)
def test_the_offered_option_is_answered_exactly(
    options: list[tuple[Any, str]], allowed: Any, denied: Any
) -> None:
    offered = offering(*options)
    assert permission_answer(offered, ended("done")) == (CANCELLED if allowed is None else selected(allowed))
    assert permission_answer(offered, ended("denied")) == (CANCELLED if denied is None else selected(denied))


@pytest.mark.parametrize("ending", get_args(Ending))
def test_only_what_was_allowed_is_told_as_allowed(ending: Ending) -> None:
    told = permission_answer(offering(("yes", "allow_once"), ("no", "reject_once")), ended(ending))
    expected = {"done": selected("yes"), "denied": selected("no"), "failed": selected("no")}
    assert told == expected.get(ending, CANCELLED)


@pytest.mark.parametrize("options", [None, "x", [None, 7, "x"], [{}], [{"kind": "allow_once"}]])
@pytest.mark.parametrize("ending", ["done", "denied"])
def test_options_that_make_no_sense_are_none(options: Any, ending: Ending) -> None:
    assert permission_answer({"options": options}, ended(ending)) == CANCELLED


def test_the_reason_goes_along_where_a_program_may_look_for_it() -> None:
    told = permission_answer(offering(("no", "reject_once")), ended("denied", "use make"))
    assert told["_meta"] == {"handrail": {"reason": "use make", "by": "ann"}}


ODD: list[Any] = [
    {},
    {"toolCall": None},
    {"toolCall": "x"},
    {"toolCall": {"toolCallId": "1"}},
    {"toolCall": {"toolCallId": 0, "kind": 3, "title": None, "content": "x", "locations": {"path": 1}}},
    {"toolCall": {"content": [{"type": "diff"}, {"type": "terminal"}, 7], "locations": [{}, None]}},
]


@pytest.mark.parametrize("odd", ODD)
def test_whatever_an_agent_sends_becomes_a_question(odd: Any) -> None:
    found = permission_input(odd, {}, "/w", PLAIN)
    assert (found["sort"], found["title"], found["cwd"]) == ("other", "", "/w")


def test_what_was_said_before_need_not_be_said_again() -> None:
    before: Json = {"kind": "execute", "title": "Run it", "rawInput": {"command": "ls"}, "content": []}
    found = permission_input(
        {"toolCall": {"toolCallId": "1", "title": None, "kind": None}}, before, "/w", PLAIN
    )
    assert (found["sort"], found["title"], found["input"]) == ("execute", "Run it", {"command": "ls"})
    newer = permission_input({"toolCall": {"toolCallId": "1", "title": "Run that"}}, before, "/w", PLAIN)
    assert (newer["title"], newer["input"]) == ("Run that", {"command": "ls"})


def test_what_is_too_large_to_be_kept_is_not_taken_for_a_command() -> None:
    found = permission_input(
        {"toolCall": {"kind": "execute", "rawInput": {"command": "x" * 1_000_000}}}, {}, "/w", PLAIN
    )
    assert isinstance(found["input"], str)
    assert len(found["input"]) < 300_000


async def test_a_person_who_allows_it_answers_once_and_never_always(here: RequestingAgent) -> None:
    assert await here.both("session/request_permission", {"kind": "allow"}, **RUN) == selected("y")
    [call] = await here.opened()
    assert (call.tool, call.title, call.assurance) == ("agent_work", "make test", "advisory")
    assert here.asked == [("1", call.call)]


async def test_a_person_who_denies_it_answers_with_a_reason(here: RequestingAgent) -> None:
    denial = {"kind": "deny", "reason": "not now"}
    told = await here.both("session/request_permission", denial, **RUN)
    assert told == {**selected("n"), "_meta": {"handrail": {"reason": "not now", "by": "ann"}}}


async def test_the_person_sees_what_the_agent_says_it_will_do(here: RequestingAgent) -> None:
    seen: list[Any] = []

    async def looks() -> None:
        approval = await here.question()
        seen.append(approval.asked)
        await person_actions.answer(here.gate, approval, NO, approval.digest)

    path = str(here.root / "a.py")
    diff = {"type": "diff", "path": path, "oldText": "1\n", "newText": "2\n"}
    edit = {"toolCallId": "2", "kind": "edit", "content": [diff], "locations": [{"path": path, "line": 1}]}
    await here.meanwhile(looks, "session/request_permission", **RUN)
    await here.meanwhile(looks, "session/request_permission", toolCall=edit, options=OPTIONS)
    command, change = seen
    assert command.preview == CommandPreview(
        command="make test", cwd=str(here.root), program="mind, by itself"
    )
    assert [claim.words for claim in command.claims] == [("make", "test")]
    assert isinstance(change.preview, DiffPreview)
    assert [(claim.action, claim.resource) for claim in change.claims] == [("write", path)]


async def test_a_rule_about_our_commands_answers_for_the_agents_own(here: RequestingAgent) -> None:
    rules, folder = here.gate.rules, str(here.root)
    await rules.add(rules.build_rule(tool="execute_command", command="make test", workspace=folder), ANN)
    await rules.add(rules.build_rule(effect="deny", command="git push", workspace=folder), ANN)
    assert await here.ask("session/request_permission", **RUN) == selected("y")
    push = {"toolCallId": "2", "kind": "execute", "rawInput": {"command": ["git", "push", "-f"]}}
    told = await here.ask("session/request_permission", toolCall=push, options=OPTIONS)
    assert told["outcome"] == {"outcome": "selected", "optionId": "n"}
    assert here.seen == set(), "nobody was asked"


@pytest.mark.parametrize("agent", ["goose", "kimi", "fast-agent"])
async def test_a_rule_allows_the_command_as_agents_wrap_it(here: RequestingAgent, agent: str) -> None:
    rules, folder = here.gate.rules, str(here.root)
    for command in ("touch", "cd"):
        await rules.add(rules.build_rule(tool="execute_command", command=command, workspace=folder), ANN)
    kimi = {"NO_COLOR": "1", "TERM": "dumb", "GIT_TERMINAL_PROMPT": "0", "SHELL": "/bin/bash"}
    env = {"goose": {"AGENT_SESSION_ID": "20261118_1"}, "kimi": kimi}.get(agent, {})
    words = {
        "goose": ("/bin/bash", "-c", "touch made-here"),
        "kimi": ("/bin/bash", "-c", f"cd '{folder}' && touch made-here"),
        "fast-agent": ("/bin/sh", "-lc", "touch made-here"),
    }[agent]
    variables = [{"name": name, "value": value} for name, value in env.items()]
    terminal = await here.terminal(*words, env=variables)
    await here.ask("terminal/wait_for_exit", terminalId=terminal)
    assert (here.root / "made-here").exists()
    assert here.seen == set(), "nobody was asked"


async def test_always_becomes_a_rule_of_ours_and_the_agent_is_told_once(here: RequestingAgent) -> None:
    rule = here.gate.rules.build_rule(tool="execute_command", command="make test", workspace=str(here.root))
    told = await here.both("session/request_permission", {"rules": (rule,)}, **RUN)
    assert told == selected("y")
    assert await here.ask("session/request_permission", **RUN) == selected("y")
    await here.gate.rules.remove(rule.id, ANN)
    denied = await here.both("session/request_permission", {"kind": "deny"}, **RUN)
    assert denied["outcome"]["optionId"] == "n", "what was taken back is asked again"


async def test_an_id_alone_is_a_question_that_no_rule_can_allow(home: Path, caller: Caller) -> None:
    async with requesting_agent(home, caller, agrees=False) as here:
        bare = {"toolCall": {"toolCallId": "7"}, "options": OPTIONS}
        assert await here.both("session/request_permission", {"kind": "allow"}, **bare) == selected("y")
        assert here.asked[0][0] == "7"


async def test_an_id_that_was_spoken_of_before_is_judged_by_that(here: RequestingAgent) -> None:
    here.told["7"] = {"kind": "read", "locations": [{"path": str(here.root / "a")}]}
    bare = {"toolCall": {"toolCallId": "7"}, "options": OPTIONS}
    assert await here.ask("session/request_permission", **bare) == selected("y"), "reading here needs nobody"


async def test_what_is_asked_cannot_be_edited(here: RequestingAgent) -> None:
    refused: list[str] = []

    async def edits() -> None:
        approval = await here.question()
        call = here.gate.open[approval.call]
        with pytest.raises(Refusal) as caught:
            await person_actions.edit(here.gate, call, {**call.input, "title": "another"})
        refused.append(caught.value.sentence)
        await person_actions.answer(here.gate, approval, NO, approval.digest)

    await here.meanwhile(edits, "session/request_permission", **RUN)
    assert refused == [NO_EDITS]


async def test_a_cancelled_operation_answers_its_questions_as_cancelled(here: RequestingAgent) -> None:
    answered: list[Any] = []
    async with here.gate.operation(here.caller) as operation:
        during = here.another(operation=operation.id)

        async def cancels() -> None:
            await during.question()
            operation.cancel(ANN)

        with anyio.CancelScope(shield=True):
            answered.append(await during.meanwhile(cancels, "session/request_permission", **RUN))
            answered.append(await during.ask("session/request_permission", **RUN))
    assert [each["outcome"] for each in answered] == [{"outcome": "cancelled"}] * 2


async def test_a_person_who_cancels_the_question_answers_it_as_cancelled(here: RequestingAgent) -> None:
    async def cancels() -> None:
        assert person_actions.cancel(here.gate, here.gate.open[(await here.question()).call], ANN)

    told = await here.meanwhile(cancels, "session/request_permission", **RUN)
    assert told["outcome"] == {"outcome": "cancelled"}


async def test_an_agent_that_takes_its_question_back_leaves_none_in_the_inbox(here: RequestingAgent) -> None:
    approval = await here.given_up("session/request_permission", **RUN)
    assert not approval.open
    assert here.gate.open == {}
