"""JSON-RPC with agents as they are: order, ids, cancelling in both directions, and what makes no sense."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError
from tests.support.agent_host import BOUND, AgentHost, RecordingHandler, agent_host, prompt
from tests.support.scripted_agent import OPTIONS, Obj, script

from handrail.agents.acp.acp_connection import SERVED_MAX
from handrail.agents.acp.agent import Agent
from handrail.agents.acp.agent_errors import AgentError
from handrail.agents.acp.capabilities import Folder
from handrail.agents.acp.session import Session
from handrail.agents.acp.sessions import SessionHandler
from handrail.store.values import Json


async def opened(stage: AgentHost, desk: SessionHandler, name: str = "scripted") -> tuple[Agent, Session]:
    agent = await stage.agent(name)
    with anyio.fail_after(BOUND):
        return agent, await agent.open(Folder(cwd=str(stage.cwd)), desk)


async def test_ten_thousand_updates_keep_their_order(home: Path) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        _, session = await opened(stage, desk)
        await prompt(
            session,
            {"say": "{n}", "times": 5000},
            {"tool_call": {"toolCallId": "1", "title": "between"}},
            {"say": "{n}", "times": 5000},
        )

    numbers = [str(n) for n in range(5000)]
    assert desk.texts == numbers * 2
    assert desk.kinds()[5000] == "tool_call"


async def test_every_kind_of_update_comes_as_it_was_sent(home: Path) -> None:
    odd = {"sessionUpdate": "of_no_known_kind", "deep": {"er": [1, None, {"x": "ü"}]}}
    bare = {"sessionUpdate": "tool_call_update", "toolCallId": "never-seen"}
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        _, session = await opened(stage, desk)
        await prompt(
            session,
            {"think": "hm"},
            {"say": "ah"},
            {"user": "echo"},
            {"image": "aGk=", "mime": "image/png"},
            {"tool_call": {"toolCallId": "1", "title": "Edit", "kind": "edit", "newField": True}},
            {"tool_call_update": {"toolCallId": "1", "status": "completed"}},
            {"plan": ["first", {"content": "second", "status": "completed"}]},
            {"commands": [{"name": "web", "description": "Search"}]},
            {"mode": "code"},
            {
                "options": [
                    {"id": "model", "name": "Model", "type": "select", "currentValue": "a", "options": []}
                ]
            },
            {"info": {"title": "A title"}},
            {"usage": {"used": 1, "size": 10, "cost": {"amount": 0.5, "currency": "USD"}}},
            {"update": odd},
            {"update": bare},
            {"update": {}},
        )

    assert desk.kinds() == [
        *("agent_thought_chunk", "agent_message_chunk", "user_message_chunk", "agent_message_chunk"),
        *("tool_call", "tool_call_update", "plan", "available_commands_update", "current_mode_update"),
        *("config_option_update", "session_info_update", "usage_update", "of_no_known_kind"),
        *("tool_call_update", None),
    ]
    assert desk.updates[4]["newField"] is True
    assert desk.updates[12:14] == [odd, bare]


@pytest.mark.parametrize("number", [0, "uuid", "0", "a string"])
async def test_a_request_may_have_any_id(home: Path, number: int | str) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler(answer=lambda _, __: _selected("yes"))
        _, session = await opened(stage, desk)
        await prompt(session, {"ask": {}, "as": "x", "id": number}, {"tell": "x"})

        assert desk.told == {"outcome": {"outcome": "selected", "optionId": "yes"}}
        assert desk.requests[0][0] == "session/request_permission"
        assert desk.requests[0][1]["options"] == OPTIONS


async def test_every_request_reaches_the_desk_with_its_params_and_its_answer_the_agent(home: Path) -> None:
    async def answer(method: str, _: Json) -> Json | None:
        return None if method == "terminal/release" else {"of": method, "terminalId": "t1"}

    async with agent_host(home) as stage:
        desk = RecordingHandler(answer=answer)
        _, session = await opened(stage, desk)
        await prompt(
            session,
            {"read": {"path": "/w/a", "line": 2, "limit": 3, "later": 1}},
            {"write": {"path": "/w/a", "content": "x"}},
            {"terminal": {"command": "ls", "args": ["-l"]}, "as": "t"},
            {"output": "$t.terminalId"},
            {"wait_for_exit": "$t.terminalId"},
            {"kill": "$t.terminalId"},
            {"release": "$t.terminalId", "as": "r"},
            {
                "elicit": {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}},
                "as": "e",
            },
            {"tell": "r"},
            {"tell": "e"},
        )

    assert [method for method, _ in desk.requests] == [
        *("fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output"),
        *("terminal/wait_for_exit", "terminal/kill", "terminal/release", "elicitation/create"),
    ]
    assert desk.requests[0][1] == {"sessionId": session.id, "path": "/w/a", "line": 2, "limit": 3, "later": 1}
    assert desk.requests[3][1]["terminalId"] == "t1"
    assert desk.texts == ["null", '{"of": "elicitation/create", "terminalId": "t1"}']


async def test_the_agent_is_told_what_the_desk_refuses_and_what_breaks(home: Path) -> None:
    async def answer(method: str, _: Json) -> Json | None:
        if method == "fs/read_text_file":
            raise RequestError(-32002, "Resource not found", {"uri": "/w/a"})
        raise ZeroDivisionError("oh")

    async with agent_host(home) as stage:
        desk = RecordingHandler(answer=answer)
        _, session = await opened(stage, desk)
        await prompt(
            session,
            {"read": {"path": "/w/a"}, "as": "r"},
            {"write": {"path": "/w/a", "content": ""}, "as": "w"},
            {"tell": "r"},
            {"tell": "w"},
            {"request": "mcp/connect", "as": "m"},
            {"tell": "m"},
            {"request": "fs/read_text_file", "params": {"sessionId": "another"}, "as": "s"},
            {"tell": "s"},
        )

    refused, broken, unknown, elsewhere = (error["error"] for error in map(json.loads, desk.texts))
    assert refused == {"code": -32002, "message": "Resource not found", "data": {"uri": "/w/a"}}
    assert broken["code"] == -32603
    assert unknown["code"] == -32601
    assert (elsewhere["code"], elsewhere["message"]) == (-32602, "There is no open session another")


@pytest.mark.parametrize("number", [0, "uuid"])
async def test_a_request_that_the_agent_cancels_is_given_up_and_answered(
    home: Path, number: int | str
) -> None:
    given_up = anyio.Event()

    async def wait(_: str, __: Json) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            given_up.set()

    async with agent_host(home) as stage:
        desk = RecordingHandler(answer=wait)
        _, session = await opened(stage, desk)
        await prompt(
            session,
            {"ask": {}, "as": "x", "id": number, "wait": False},
            {"sleep": 0.05},
            {"cancel_request": "x"},
            {"join": "x"},
            {"tell": "x"},
        )

        assert desk.told["error"]["code"] == -32800
        assert given_up.is_set()


async def test_a_cancel_that_comes_in_the_same_breath_as_its_request_is_heeded(home: Path) -> None:
    async def wait(_: str, __: Json) -> None:
        await anyio.sleep_forever()

    async with agent_host(home) as stage:
        desk = RecordingHandler(answer=wait)
        _, session = await opened(stage, desk)
        steps: list[Any] = [
            {"ask": {}, "as": "x", "id": 0, "wait": False},
            {"sleep": 0},
            {"cancel_request": "x"},
        ]
        await prompt(session, *steps, {"cancel_request": "x"}, {"join": "x"}, {"tell": "x"})

        assert desk.told["error"]["code"] == -32800


async def test_cancels_of_what_is_not_under_way_are_ignored(home: Path) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        _, session = await opened(stage, desk)
        odd: list[Any] = [0, "x", None, [1], {}]
        cancels = [{"notify": "$/cancel_request", "params": {"requestId": it}} for it in odd]
        ended = await prompt(session, *cancels, {"notify": "$/cancel_request"}, {"ask": {}, "as": "x"})

        assert ended.stop == "end_turn"


async def test_a_request_of_ours_that_is_given_up_is_cancelled_at_the_agent(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("slow", at_new=[{"sleep": 0.2}])
        desk = RecordingHandler()
        agent = await stage.agent("slow")
        with anyio.move_on_after(0.05) as scope:
            await agent.open(Folder(cwd=str(stage.cwd)), desk)
        session = await agent.open(Folder(cwd=str(stage.cwd)), desk)
        await prompt(session, {"tell_heard": True})

        assert scope.cancelled_caught
        assert "$/cancel_request" in desk.told


async def test_unknown_notifications_and_fields_do_no_harm(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("new", extra={"future": {"x": 1}}, capabilities={"loadSession": True, "teleport": {}})
        desk = RecordingHandler()
        agent, session = await opened(stage, desk, "new")
        ended = await prompt(
            session,
            {"notify": "session/of_no_known_kind", "params": {"sessionId": "x"}},
            {"notify": "_vendor/thing", "params": [1, 2]},
            {"notify": "elicitation/complete", "params": {"elicitationId": "e"}},
            {"notify": "session/update"},
            {"notify": "session/update", "params": {"sessionId": 5, "update": "x"}},
            {"say": "still here"},
        )

        assert (ended.stop, desk.texts) == ("end_turn", ["still here"])
        assert agent.about.can("teleport")


async def test_what_is_no_message_is_skipped_and_told_of_when_the_agent_fails(home: Path) -> None:
    async with agent_host(home) as stage:
        stage.add("chatty", at_start=[{"garbage": "Starting up …"}])
        desk = RecordingHandler()
        _, session = await opened(stage, desk, "chatty")
        ended = await prompt(
            session,
            {"garbage": "[1, 2, 3]"},
            {"garbage": '{"jsonrpc": "2.0", "id": 99, "result": {}}'},
            {"garbage": '{"half": '},
            {"garbage": ""},
            {"bytes": "//79AAo="},
            {"garbage": "line {n}", "times": 5000},
            {"say": "still here"},
        )
        assert (ended.stop, desk.texts) == ("end_turn", ["still here"])
        with pytest.raises(AgentError) as failed:
            await prompt(session, {"fail": {"code": 7, "message": "no"}})

    assert str(failed.value) == (
        "chatty refused `session/prompt`: no (7). It printed 5004 lines that made no sense, the last: line 4999"
    )


async def test_careless_answers_are_understood(home: Path) -> None:
    answers = {
        "odd/text": '{"id": ID, "error": "went wrong"}',
        "odd/both": '{"id": ID, "result": null, "error": {"code": 5, "message": "went wrong"}}',
        "odd/bare": '{"id": ID, "error": {}}',
        "odd/neither": '{"id": ID}',
        "odd/null": '{"id": ID, "error": null, "result": {"fine": true}}',
    }
    async with agent_host(home) as stage:
        stage.add("odd", answers=answers)
        agent = await stage.agent("odd")

        async def answered(method: str) -> object:
            with anyio.fail_after(BOUND):
                try:
                    return await agent.ask(method, {}).answer()
                except RequestError as error:
                    return error.code, str(error)

        assert await answered("odd/text") == (-32603, "went wrong")
        assert await answered("odd/both") == (5, "went wrong")
        assert await answered("odd/bare") == (-32603, "Error")
        assert await answered("odd/neither") is None
        assert await answered("odd/null") == {"fine": True}


async def test_no_more_than_so_many_requests_are_done_at_once(home: Path) -> None:
    async def wait(_: str, __: Json) -> None:
        await anyio.sleep_forever()

    async with agent_host(home) as stage:
        desk = RecordingHandler(answer=wait)
        _, session = await opened(stage, desk)
        many: list[Obj] = [{"ask": {}, "as": f"x{n}", "wait": False} for n in range(SERVED_MAX + 20)]
        last = f"x{SERVED_MAX + 19}"
        await prompt(session, *many, {"join": last}, {"tell": last})

        assert desk.told["error"]["code"] == -32003
        assert len(desk.requests) == SERVED_MAX


async def test_a_desk_that_stumbles_over_an_update_costs_the_agent_nothing(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(RecordingHandler):
        def update(self, update: Json) -> None:
            if update["sessionUpdate"] == "plan":
                raise KeyError("entries")
            super().update(update)

    async with agent_host(home) as stage:
        desk = Clumsy()
        _, session = await opened(stage, desk)
        ended = await prompt(session, {"say": "a"}, {"plan": []}, {"say": "b"})

        assert (ended.stop, desk.texts) == ("end_turn", ["a", "b"])
        assert "could not be recorded" in caplog.text


async def test_a_question_about_a_request_goes_to_the_session_the_request_is_about(home: Path) -> None:
    async with agent_host(home) as stage:
        desk = RecordingHandler()
        agent, session = await opened(stage, desk)
        asking = agent.ask(
            "session/prompt",
            {
                "sessionId": session.id,
                "prompt": [
                    {
                        "type": "text",
                        "text": script(
                            {
                                "request": "elicitation/create",
                                "params": {"message": "?", "requestId": 2},
                                "as": "e",
                            },
                            {"tell": "e"},
                        ),
                    }
                ],
            },
        )
        with anyio.fail_after(BOUND):
            await asking.answer()

        assert asking.id == 2
        assert desk.requests[0][1]["sessionId"] == session.id


async def _selected(option: str) -> Json:
    return {"outcome": {"outcome": "selected", "optionId": option}}
