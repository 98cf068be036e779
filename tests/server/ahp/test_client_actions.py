"""What a client does through the agent host: prompts, answers, forms, steering and stopping."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.ahp_client import AhpClient, AhpError, ahp_client
from tests.support.daemon_home import Home
from tests.support.person_client import Person
from tests.support.scripted_agent import script
from tests.support.thread_client import Conversation

from handrail.server.ahp._client_actions import (
    ACTION_MAX,
    MOST_ACTIVE,
)

pytestmark = [pytest.mark.anyio]

AGENT = "handrail-scripted"
RUN = {"terminal": {"command": "seq", "args": ["3"]}, "as": "t"}
WAIT = {"wait_for_exit": "$t.terminalId"}


async def test_a_session_is_announced_with_its_first_prompt(editor: AhpClient, folder: Path) -> None:
    uri = f"{AGENT}:/announced"
    await editor.ask(
        "createSession", channel=uri, provider=AGENT, workingDirectories=[folder.as_uri()], config={}
    )
    assert uri not in [one["resource"] for one in await editor.sessions()]
    chat = await editor.open(uri)
    await chat.prompt(script({"say": "begun"}))
    await chat.over()
    added = await editor.until(
        lambda: [one for one in editor.notices if one["method"] == "root/sessionAdded"]
    )
    assert [one["params"]["summary"]["resource"] for one in added] == [uri]
    assert uri in [one["resource"] for one in await editor.sessions()]
    with pytest.raises(AhpError):
        await editor.ask("disposeSession", channel=uri)  # a thread is not deleted by an editor


async def test_a_session_that_is_not_used_leaves_nothing(editor: AhpClient, person: Person) -> None:
    before = len(await person.get("threads"))
    await editor.ask("createSession", channel=f"{AGENT}:/unused", provider=AGENT)
    await editor.ask("disposeSession", channel=f"{AGENT}:/unused")
    assert len(await person.get("threads")) == before
    with pytest.raises(AhpError) as refused:
        await editor.subscribe(f"{AGENT}:/unused")
    assert refused.value.code == -32008


async def test_a_command_is_confirmed_with_an_option_for_the_thread(
    editor: AhpClient, folder: Path, person: Person
) -> None:
    chat = await editor.begin(
        AGENT, str(folder), script(RUN, WAIT, RUN, WAIT, {"say": "finished"}), "thread-rule"
    )
    call = await chat.question()
    labels = {option["id"]: option["label"] for option in call["options"]}
    assert labels["once"] == "Allow once"
    assert labels["deny"] == "Deny"
    needed = await editor.until(lambda: editor.states[chat.session].get("inputNeeded"))
    assert needed[0]["toolCall"]["toolCallId"] == call["toolCallId"]
    assert editor.states[chat.session]["status"] & 24 == 24
    envelope = await chat.confirm(call, "thread")
    assert "rejectionReason" not in envelope
    turn = await chat.over()
    assert chat.text == "finished"
    assert [one["status"] for one in chat.calls()] == ["completed", "completed"]
    assert "inputNeeded" not in editor.states[chat.session]
    assert turn["state"] == "complete"
    assert await editor.same(chat.uri)
    rules = (await person.get("rules"))["rules"]
    assert any(rule["rule"]["scope"] == "session" for rule in rules)


async def test_a_denied_command_is_cancelled(editor: AhpClient, folder: Path) -> None:
    chat = await editor.begin(AGENT, str(folder), script(RUN, {"tell": "t"}), "denied")
    call = await chat.question()
    await chat.confirm(call, "deny")
    await chat.over()
    assert [one["status"] for one in chat.calls()] == ["cancelled"]
    assert "error" in json.loads(chat.text)


async def test_an_answer_on_the_page_settles_the_card(
    editor: AhpClient, folder: Path, person: Person
) -> None:
    chat = await editor.begin(AGENT, str(folder), script(RUN, WAIT, {"say": "went on"}), "elsewhere")
    call = await chat.question()
    await person.allow("seq")
    await chat.over()
    assert chat.calls()[0]["status"] == "completed"
    reason = (await _late(editor, chat.uri, call))["rejectionReason"]
    assert reason == "This question is no longer open."
    assert await editor.same(chat.uri)


async def _late(editor: AhpClient, uri: str, call: dict[str, Any]) -> dict[str, Any]:
    return await editor.act(
        uri,
        "chat/toolCallConfirmed",
        turnId="any",
        toolCallId=call["toolCallId"],
        approved=True,
        confirmed="user-action",
        selectedOptionId="once",
    )


async def test_a_write_shows_its_diff_before_the_answer(editor: AhpClient, folder: Path) -> None:
    path = folder / "README.md"
    write = {"write": {"path": str(path), "content": "# hi\nmore\n"}}
    chat = await editor.begin(AGENT, str(folder), script(write, {"say": "written"}), "diff")
    call = await chat.question()
    [edit] = call["edits"]["items"]
    assert edit["diff"] == {"added": 1, "removed": 0}
    before, after = edit["before"]["content"]["uri"], edit["after"]["content"]["uri"]
    assert (await editor.ask("resourceRead", uri=before, encoding="base64"))["data"] == "# hi\n"
    assert (await editor.ask("resourceRead", uri=after))["data"] == "# hi\nmore\n"
    assert path.read_text() == "# hi\n"
    for other in (before.replace("README.md", "package.json"), path.as_uri(), "file:///etc/passwd"):
        with pytest.raises(AhpError) as refused:
            await editor.ask("resourceRead", uri=other)
        assert refused.value.code == -32008
    await chat.confirm(call, "once")
    await chat.over()
    assert path.read_text() == "# hi\nmore\n"
    changes = await editor.subscribe(editor.states[chat.session]["changesets"][0]["uriTemplate"])
    [file] = changes["files"]
    assert file["id"] == path.as_uri()
    assert file["edit"]["diff"] == {"added": 1, "removed": 0}
    old, new = (file["edit"][side]["content"]["uri"] for side in ("before", "after"))
    assert (await editor.ask("resourceRead", uri=old))["data"] == "# hi\n"
    assert (await editor.ask("resourceRead", uri=new))["data"] == "# hi\nmore\n"
    path.write_text("changed by a person\n")
    with pytest.raises(AhpError, match="was changed since"):
        await editor.ask("resourceRead", uri=new)


async def test_a_form_is_answered(editor: AhpClient, folder: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "branch": {"type": "string", "enum": ["main", "dev"], "title": "Branch"},
            "force": {"type": "boolean"},
        },
        "required": ["branch"],
    }
    elicit = {"elicit": {"message": "Which branch?", "requestedSchema": schema}, "as": "form"}
    chat = await editor.begin(AGENT, str(folder), script(elicit, {"tell": "form"}), "form")
    [part] = await editor.until(lambda: [one for one in chat.parts if one["kind"] == "inputRequest"])
    request = part["request"]
    assert [one["kind"] for one in request["questions"]] == ["single-select", "boolean"]
    answers = {
        "branch": {"state": "submitted", "value": {"kind": "selected", "value": "dev"}},
        "force": {"state": "submitted", "value": {"kind": "boolean", "value": True}},
    }
    await editor.act(
        chat.uri, "chat/inputCompleted", requestId=request["id"], response="accept", answers=answers
    )
    await chat.over()
    assert json.loads(chat.text)["content"] == {"branch": "dev", "force": True}


async def test_a_steering_prompt_waits_and_becomes_the_next_turn(editor: AhpClient, folder: Path) -> None:
    gate = folder / "go"
    wait = {
        "terminal": {"command": "sh", "args": ["-c", f"until [ -e {gate} ]; do sleep 0.05; done"]},
        "as": "t",
    }
    chat = await editor.begin(AGENT, str(folder), script(wait, WAIT, {"say": "first"}), "steer")
    await chat.confirm(await chat.question(), "once")
    envelope = await editor.act(
        chat.uri,
        "chat/pendingMessageSet",
        kind="steering",
        id="request_steer",
        message={"text": script({"say": "second"}), "origin": {"kind": "user"}},
    )
    assert "rejectionReason" not in envelope
    assert chat.state["steeringMessage"]["id"] == "request_steer"
    gate.touch()
    await editor.until(lambda: len(chat.state["turns"]) == 2)
    assert "steeringMessage" not in chat.state
    assert chat.text == "second"
    assert await editor.same(chat.uri)


async def test_an_agent_that_takes_prompts_while_it_works_is_steered(editor: AhpClient, folder: Path) -> None:
    steps = script({"say": "at work"}, {"take_steering": "x"}, {"say": "now: "}, {"tell": "x"})
    chat = await editor.begin("handrail-steered", str(folder), steps, "steered")
    await editor.until(lambda: chat.text == "at work")
    message = {"text": "use tabs", "origin": {"kind": "user"}}
    envelope = await editor.act(
        chat.uri, "chat/pendingMessageSet", kind="steering", id="request_now", message=message
    )
    assert "rejectionReason" not in envelope
    await editor.until(lambda: len(chat.state["turns"]) == 2)
    assert [turn["message"]["text"] for turn in chat.state["turns"]] == [steps, "use tabs"]
    assert [turn["state"] for turn in chat.state["turns"]] == ["complete", "complete"]
    assert chat.text == 'now: "use tabs"'
    assert "steeringMessage" not in chat.state
    assert await editor.same(chat.uri)


async def test_a_stop_cancels_the_operation(editor: AhpClient, folder: Path, person: Person) -> None:
    chat = await editor.begin(AGENT, str(folder), script({"say": "busy"}, {"hang": True}), "stop")
    await editor.until(lambda: chat.text == "busy")
    turn = chat.state["activeTurn"]["id"]
    await editor.act(chat.uri, "chat/turnCancelled", turnId=turn, duration=5)
    assert (await chat.over())["state"] == "cancelled"
    await chat.prompt(script({"say": "again"}))
    await chat.over()
    assert chat.text == "again"


async def test_a_stop_cancels_an_operation_that_was_steered(
    editor: AhpClient, folder: Path, person: Person
) -> None:
    steps = script(
        {"say": "at work"}, {"take_steering": "x"}, {"say": "now: "}, {"tell": "x"}, {"hang": True}
    )
    chat = await editor.begin("handrail-steered", str(folder), steps, "steered and stopped")
    await editor.until(lambda: chat.text == "at work")
    message = {"text": "use tabs", "origin": {"kind": "user"}}
    await editor.act(chat.uri, "chat/pendingMessageSet", kind="steering", id="request_now", message=message)
    await editor.until(lambda: chat.text == 'now: "use tabs"')
    turn = chat.state["activeTurn"]["id"]
    await editor.act(chat.uri, "chat/turnCancelled", turnId=turn, duration=5)
    assert (await chat.over())["state"] == "cancelled"
    threads = [one for one in await person.get("threads") if one["agent"] == "steered"]
    await Conversation(person, threads[0]["id"]).idle()


async def test_what_only_the_page_does_is_rejected_with_a_reason(editor: AhpClient, folder: Path) -> None:
    chat = await editor.begin(AGENT, str(folder), script({"say": "one"}), "rejected")
    turn = await chat.over()
    assert "fork the thread" in await editor.rejected(chat.uri, "chat/truncated", turnId=turn["id"])
    assert "does not take" in await editor.rejected(
        chat.uri, "chat/delta", turnId="x", partId="y", content="z"
    )
    assert await editor.rejected(chat.uri, "chat/toolCallConfirmed") == "This action is malformed."
    for method in (
        "resourceWrite",
        "resourceDelete",
        "resourceMove",
        "resourceList",
        "invokeChangesetOperation",
    ):
        with pytest.raises(AhpError) as refused:
            await editor.ask(method, uri=folder.as_uri(), data=base64.b64encode(b"x").decode())
        assert refused.value.code == -32601


async def test_settings_of_the_editor_never_approve(editor: AhpClient, folder: Path) -> None:
    rules = {"terminalAutoApproveRules": {"sh": True}, "globalAutoApproveEnabled": True}
    await editor.act("ahp-root://", "root/configChanged", config=rules)
    config = await editor.ask("resolveSessionConfig", provider=AGENT, config={"autoApprove": "autoApprove"})
    assert config == {"schema": {"type": "object", "properties": {}}, "values": {}}
    chat = await editor.begin(AGENT, str(folder), script(RUN), "settings")
    call = await chat.question()
    await chat.confirm(call, "deny")
    await chat.over()


async def test_what_clients_publish_in_a_session_is_bounded(home: Home, folder: Path) -> None:
    """Also a client that may not decide can publish, and come back under another name each time."""
    async with ahp_client(home) as client:
        await client.initialize()
        uri = f"{AGENT}:/crowded"
        await client.ask("createSession", channel=uri, provider=AGENT)
        await client.subscribe(uri)
        me = {"clientId": client.client, "tools": ["x" * ACTION_MAX]}
        assert "longer than" in await client.rejected(uri, "session/activeClientSet", activeClient=me)
        for number in range(MOST_ACTIVE + 3):
            client.client = f"client-{number}"
            await client.initialize()
            await client.act(uri, "session/activeClientSet", activeClient={"clientId": client.client})
        await client.until(lambda: len(client.states[uri]["activeClients"]) == MOST_ACTIVE)
        assert client.states[uri]["activeClients"][-1]["clientId"] == client.client
        assert await client.same(uri)


async def test_what_clients_add_to_drafts_and_answers_is_bounded(editor: AhpClient, folder: Path) -> None:
    """Also by clients that may not decide, and in many small pieces."""
    schema = {"type": "object", "properties": {"branch": {"type": "string"}}}
    elicit = {"elicit": {"message": "Which branch?", "requestedSchema": schema}, "as": "form"}
    chat = await editor.begin(AGENT, str(folder), script(elicit, {"tell": "form"}), "flood")
    [part] = await editor.until(lambda: [one for one in chat.parts if one["kind"] == "inputRequest"])
    request = part["request"]
    quarter = "x" * (ACTION_MAX // 4)

    def answer(name: str) -> dict[str, Any]:
        return {"requestId": request["id"], "questionId": name, "answer": quarter}

    for number in range(3):
        await editor.act(chat.uri, "chat/inputAnswerChanged", **answer(f"q{number}"))
    reason = await editor.rejected(chat.uri, "chat/inputAnswerChanged", **answer("q3"))
    replaced = await editor.act(chat.uri, "chat/inputAnswerChanged", **answer("q2"))
    long = await editor.rejected(chat.uri, "chat/draftChanged", draft={"text": 4 * quarter})

    assert "longer than 262,144 characters" in reason
    assert "rejectionReason" not in replaced
    assert "longer than 262,144 characters" in long
    assert await editor.same(chat.uri)
    await editor.act(chat.uri, "chat/inputCompleted", requestId=request["id"], response="decline")
    await chat.over()
