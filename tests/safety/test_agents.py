"""A hosted agent that is hostile or broken: what it says costs nobody else anything, and what it asks for is never
taken for less than it says.

The agent is a real program of a real daemon's, which does what a prompt tells it to.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from tests.support.daemon_home import Home, eventually, find_processes, running_daemon
from tests.support.person_client import Json, Person, person_of
from tests.support.scripted_agent import CAPABILITIES, command
from tests.support.thread_client import (
    Conversation,
    agents_config,
    open_thread,
    parts_of,
    reported_json,
    session_of,
    text_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

STDIO: Json = {**CAPABILITIES, "mcpCapabilities": {}}


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    same = command(answers={"session/new": '{"jsonrpc":"2.0","id":ID,"result":{"sessionId":"same"}}'})
    config = agents_config(scripted=command(), other=command(), stdio=command(capabilities=STDIO), same=same)
    with running_daemon(config) as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "README").write_text("here\n")
    return folder


async def waiting(person: Person, thread: Conversation) -> list[Json]:
    """Questions of this thread that wait for a person."""
    calls = {call["id"] for call in await person.get("calls", limit=500) if call["thread"] == thread.id}
    return [asked for asked in await person.get("approvals", open=True) if asked["call_id"] in calls]


async def is_well(person: Person, workspace: Path) -> None:
    """Another conversation works, at once and from its beginning to its end."""
    other = await open_thread(person, workspace)
    assert text_of(await other.act({"say": "well"})) == "well"


def understated(folder: Path) -> list[Json]:
    """What an agent says of its work, each less harmless than it looks."""
    here = str(folder / "README")
    run = {"command": "rm -rf ."}
    return [
        {"kind": "read", "locations": [{"path": here}], "rawInput": run},
        {"kind": "search", "locations": [{"path": here}], "rawInput": {"cmd": ["rm", "-rf", "."]}},
        {"kind": "read", "locations": [{"path": here}], "rawInput": {"file_path": "/etc/shadow"}},
        {"kind": "read", "locations": [{"path": here}, {"path": "/etc/shadow"}]},
        {"kind": "read", "locations": [{"path": here}, "/etc/shadow"]},
        {"kind": "read", "locations": [{"path": here}] * 200 + [{"path": "/etc/shadow"}]},
        {"kind": "read", "locations": [{"path": here}], "rawInput": {"x": "y" * 300_000, **run}},
        {"kind": "read", "locations": [{"path": f"{folder}/../../../../etc/shadow"}]},
        {
            "kind": "read",
            "locations": [{"path": here}],
            "content": [{"type": "diff", "path": "/etc/passwd", "newText": "x"}],
        },
        {
            "kind": "read",
            "locations": [{"path": here}],
            "content": [{"type": "text", "text": "…"}] * 300
            + [{"type": "diff", "path": "/etc/passwd", "newText": "x"}],
        },
        {"kind": "execute", "rawInput": {"command": ["ls", 7, "; rm -rf ."]}},
        {"kind": "execute", "rawInput": {"command": "git", "args": ["push", "--force"]}},
        {"kind": "execute", "rawInput": {"command": "ls", "env": {"LD_PRELOAD": "/tmp/x.so"}}},
        {"kind": "execute", "rawInput": {"command": {"line": "rm -rf ."}}},
        {"kind": "execute", "rawInput": ["rm", "-rf", "."]},
        {"kind": "fetch", "rawInput": {"url": "https://example.org", "file_path": "/etc/cron.d/x"}},
        {"kind": "read", "locations": [{"path": here}], "rawInput": {"path": here, "content": "x"}},
        {"kind": {"read": True}, "locations": [{"path": here}]},
        {"kind": "read", "locations": [{"path": ""}]},
        {},
    ]


async def test_work_that_an_agent_understates_is_asked_about_at_the_worst_of_what_it_says(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    claims = understated(workspace)
    asks = [
        {"ask": {"toolCall": {"toolCallId": f"t{n}", "title": f"Look at README {n}", **said}}, "wait": False}
        for n, said in enumerate(claims)
    ]
    prompted = await thread.prompt(*asks, {"hang": True})

    async def all_wait() -> list[Json] | None:
        found = await waiting(person, thread)
        return found if len(found) == len(claims) else None

    found = await eventually(all_wait)
    assert {asked["risk"] for asked in found} == {"high"}
    assert {asked["can_edit"] for asked in found} == {False}

    await person.post(f"operations/{prompted['operation']}/cancel")
    await thread.idle()
    assert await waiting(person, thread) == []


async def test_what_an_agent_said_of_its_work_before_it_asked_still_counts(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    here = {"path": str(workspace / "README")}
    before = {"toolCallId": "1", "title": "Work", "kind": "execute", "rawInput": {"command": "rm -rf ."}}
    after = {"toolCallId": "1", "kind": "read", "rawInput": {"path": here["path"]}, "locations": [here]}
    await thread.prompt({"tool_call": before}, {"ask": {"toolCall": after}, "as": "x"}, {"tell": "x"})
    asked = await person.question("rm -rf .")
    assert asked["risk"] == "high"
    assert any(claim["words"] == ["rm", "-rf", "."] for claim in asked["claims"])
    (await person.answer(asked, "deny")).raise_for_status()
    assert reported_json((await thread.idle())["said"][-1])["outcome"] == {
        "outcome": "selected",
        "optionId": "no",
    }


async def test_no_is_never_said_by_an_option_that_also_says_yes(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    options = [
        {"optionId": "a", "name": "Reject", "kind": "allow_once"},
        {"optionId": "a", "name": "Allow", "kind": "reject_once"},
    ]
    ask = {"toolCall": {"toolCallId": "1", "title": "Lie"}, "options": options}
    prompted = await thread.prompt({"ask": ask, "as": "x"}, {"tell": "x"})
    await person.deny("Lie")
    assert reported_json(await thread.ended(prompted["operation"]))["outcome"] == {"outcome": "cancelled"}


async def test_a_lent_credential_does_no_persons_work_and_ends_with_its_thread_and_with_the_daemon(
    workspace: Path,
) -> None:
    with running_daemon(agents_config(scripted=command())) as home:
        person = person_of(home)
        threads = [await open_thread(person, workspace), await open_thread(person, workspace)]
        first, second = [
            reported_json(await thread.act({"tell_session": True}))["mcpServers"][0]["headers"][0]["value"]
            for thread in threads
        ]
        assert await asked_with(home, first, "POST", "mcp") != 401
        for method, path in [
            ("GET", "api/state"),
            ("GET", "api/threads"),
            ("GET", f"api/threads/{threads[1].id}"),
            ("POST", f"api/threads/{threads[1].id}/prompt"),
            ("POST", "api/approvals/a0/answer"),
            ("POST", "api/code"),
            ("POST", "api/credentials"),
            ("POST", "api/folders/trust"),
            ("DELETE", f"api/threads/{threads[1].id}"),
        ]:
            assert await asked_with(home, first, method, path) in (401, 403), path

        (await person.ask("DELETE", threads[0].path)).raise_for_status()
        assert await asked_with(home, first, "POST", "mcp") == 401
        assert await asked_with(home, second, "POST", "mcp") != 401
        home.kill()
        home.up()
        assert await asked_with(home, second, "POST", "mcp") == 401


async def asked_with(home: Home, bearer: str, method: str, path: str) -> int:
    listing: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Authorization": bearer, "Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(timeout=30) as http:
        return (await http.request(method, f"{home.url}/{path}", headers=headers, json=listing)).status_code


async def test_a_door_that_was_open_when_its_thread_was_deleted_calls_nothing_any_more(
    person: Person, workspace: Path, tmp_path: Path
) -> None:
    thread = await open_thread(person, workspace, agent="stdio")
    opened = reported_json(await thread.act({"tell_session": True}))
    server = opened["mcpServers"][0]
    environment = {each["name"]: each["value"] for each in server["env"]}
    program = StdioServerParameters(
        command=server["command"],
        args=server["args"],
        env={**person.home.environment, **environment},
        cwd=tmp_path,
    )
    async with stdio_client(program) as (read, write), ClientSession(read, write) as client:
        await client.initialize()
        assert not (await client.call_tool("list_files", {})).is_error
        (await person.ask("DELETE", thread.path)).raise_for_status()
        with pytest.raises(MCPError, match="credential"):
            await client.call_tool("list_files", {})


async def test_the_terminals_of_others_are_nobodys_to_read_or_end(person: Person, workspace: Path) -> None:
    mine, theirs = await open_thread(person, workspace), await open_thread(person, workspace)
    marker = "4343.25"
    prompted = await mine.prompt(
        {"terminal": {"command": "sleep", "args": [marker]}, "as": "t"}, {"tell": "t"}, {"hang": True}
    )
    await person.allow(marker)
    await mine.heard(prompted["operation"], "terminalId")
    terminal = reported_json((await mine.look())["said"][-1])["terminalId"]
    own = await person.post("terminals", {"cwd": str(workspace)})

    for named in (terminal, own["id"], "", "nothing", None, 7, {"a": 1}):
        steps = [
            step
            for verb in ("output", "kill", "release", "wait_for_exit")
            for step in ({verb: named, "as": verb}, {"tell": verb}, {"say": "\n"})
        ]
        for name in ("scripted", "other"):
            answer = text_of(await theirs.act(*steps, agent=name))
            answers = [json.loads(line) for line in answer.splitlines() if line]
            assert [each["error"]["code"] for each in answers] == [-32002] * 4, (named, name)

    assert find_processes(marker)
    assert (await person.get(f"terminals/{own['id']}"))["ended_at"] is None
    await person.post(f"operations/{prompted['operation']}/cancel")
    await mine.idle()
    assert not find_processes(marker)


async def test_a_session_of_another_agent_is_not_there(person: Person, workspace: Path) -> None:
    theirs = await open_thread(person, workspace)
    await theirs.act({"say": "mine"})
    mine = await open_thread(person, workspace, agent="other")
    for session in ("1", "s1", None, 7, ["s1"], {"id": "s1"}):
        params = {"sessionId": session, "path": str(workspace / "README")}
        answer = reported_json(
            await mine.act({"request": "fs/read_text_file", "params": params, "as": "x"}, {"tell": "x"})
        )
        assert "error" in answer, session
    said = (await theirs.look())["said"]
    assert [text_of(message) for message in said if message["role"] == "assistant"] == ["mine"]


async def test_files_behind_links_and_dots_are_asked_about_and_special_ones_refused(
    person: Person, workspace: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("heron\n")
    (workspace / "link").symlink_to(secret)
    (workspace / "up").symlink_to("..")
    thread = await open_thread(person, workspace)
    paths = (
        "link",
        "../secret",
        "up/secret",
        str(secret),
        f"{workspace}/x/../../secret",
        ".env",
        "~/.ssh/id_rsa",
    )
    for path in paths:
        prompted = await thread.prompt({"read": {"path": path}, "as": "x"}, {"tell": "x"})

        async def asked() -> Json | None:
            return next(iter(await waiting(person, thread)), None)

        (await person.answer(await eventually(asked), "deny")).raise_for_status()
        assert "error" in reported_json(await thread.ended(prompted["operation"])), path
    for path in ("/proc/self/environ", "/dev/zero", "a\0b", "x" * 5000, "", 7, None):
        prompted = await thread.prompt({"read": {"path": path}, "as": "x"}, {"tell": "x"})

        async def ends() -> Json | None:
            for question in await waiting(person, thread):
                await person.answer(question, "allow")
            return None if (await thread.look())["operation"] else await thread.look()

        seen = await eventually(ends)
        assert "error" in reported_json(seen["said"][-1]), path


def raw(session: str, *lines: bytes) -> Json:
    """Lines as they are, with the session's own id in place of SESSION."""
    joined = b"".join(line.replace(b"SESSION", session.encode()) + b"\n" for line in lines)
    return {"bytes": base64.b64encode(joined).decode()}


UPDATE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"SESSION","update":%s}}'


async def test_what_cannot_be_written_down_costs_no_record_and_no_conversation(
    home: Home, person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    await thread.act({"say": "hello"})
    session = await session_of(home, thread)
    message = await thread.act(
        raw(
            session,
            UPDATE
            % b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\xed\xa0\x80b"}}',
            UPDATE
            % b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud800 \\u0000"}}',
            UPDATE % b'{"sessionUpdate":"usage_update","used":1e999,"size":1,"cost":{"amount":1e999}}',
            UPDATE
            % b'{"sessionUpdate":"tool_call","toolCallId":"n","title":"N","rawInput":{"x":[1e999,NaN]}}',
            UPDATE
            % (b'{"sessionUpdate":"tool_call","toolCallId":"b","title":"B","rawInput":' + b"9" * 4000 + b"}"),
            UPDATE % (b'{"sessionUpdate":"odd","deep":' + b"[" * 90 + b"]" * 90 + b"}"),
            UPDATE % (b'{"sessionUpdate":"odd","deep":' + b"[" * 90_000 + b"]" * 90_000 + b"}"),
            b'{"jsonrpc":"2.0","id":[1],"method":"fs/read_text_file","params":{}}',
            b'{"jsonrpc":"2.0","id":true,"method":"fs/read_text_file","params":[1]}',
            b'{"jsonrpc":"2.0","method":7,"params":{}}',
            b'{"jsonrpc":"2.0","id":9999,"result":{"stopReason":"end_turn"}}',
        ),
        {"info": {"title": "T" * 50_000 + "\u202e"}},
        {"tool_call": {"toolCallId": "t", "title": "\u202eT" * 10_000, "kind": ["edit"], "content": "x"}},
        {"ask": {"toolCall": {"toolCallId": "q", "title": "Q" * 50_000}}, "wait": False},
        {"say": "end"},
        {"sleep": 0.3},
    )
    assert text_of(message).endswith("end")
    assert [part["data"]["id"] for part in parts_of(message, "call")][:3] == ["n", "b", "t"]
    seen = await thread.look()
    assert len(seen["title"]) <= 200
    assert max(len(part["data"]["title"]) for part in parts_of(message, "call")) <= 2100
    await is_well(person, workspace)


async def test_an_agent_that_has_one_id_for_two_conversations_does_not_mix_them(
    person: Person, workspace: Path
) -> None:
    first, second = [await open_thread(person, workspace, agent="same") for _ in range(2)]
    setting = {"setting": "mode", "value": "x"}
    await person.ask("POST", f"{first.path}/setting", setting)
    failed = parts_of(await second.ended((await second.say("hello"))["operation"]), "error")
    assert "the id of another one that is open" in failed[0]["text"]


async def test_thousands_of_questions_and_calls_at_once_are_bounded_and_leave_the_others_alone(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    ask = {"ask": {"toolCall": {"toolCallId": "{n}", "title": "Flood"}}, "wait": False}
    call = {
        "tool_call": {"toolCallId": "{n}", "title": "Call", "rawInput": {"command": "x"}},
        "times": 10_000,
    }
    prompted = await thread.prompt(*[ask] * 1000, call, {"say": "end"}, {"hang": True})
    await thread.heard(prompted["operation"], "end")
    await is_well(person, workspace)
    assert len(await waiting(person, thread)) <= 256
    await person.post(f"operations/{prompted['operation']}/cancel")
    await thread.idle()
    assert await waiting(person, thread) == []


FORMS: list[Any] = [
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "$defs": {"x": {"$ref": "#/$defs/x"}}},
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": int("9" * 400)}}},
    {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(a+)+$", "default": "a" * 40 + "!"}},
    },
    {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [{"x": 1}, 7]}}}},
    {"type": "object", "properties": {"a": {"type": ["string", "null"], "enum": "abc", "oneOf": 7}}},
    {"type": "object", "properties": {str(n): {"type": "string"} for n in range(3000)}},
    {"type": "object", "properties": {"a": 7}, "required": [7, {"x": 1}, "b"]},
]


async def test_a_hostile_form_is_asked_once_and_answered_without_harm(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    for n, form in enumerate(FORMS):
        elicit = {"message": f"Form {n}", "requestedSchema": form}
        prompted = await thread.prompt({"elicit": elicit, "as": "x"}, {"tell": "x"})
        question = await person.question(f"Form {n}")
        tried = await person.ask(
            "POST",
            f"approvals/{question['id']}/edit",
            {"input": {"message": f"Form {n}", "form": form, "values": {"a": 10**400}}},
        )
        assert tried.status_code < 500, (n, tried.text)
        answered = await person.answer(question, "allow")
        assert answered.status_code < 500, (n, answered.text)
        if (await waiting(person, thread)) and answered.status_code != 200:
            await person.deny(f"Form {n}")
        answer = reported_json(await thread.ended(prompted["operation"]))
        assert answer.get("action") in ("accept", "cancel", "decline"), (n, answer)
    nonsenses: list[Any] = [None, 7, [], {"properties": []}, "x"]
    for nonsense in nonsenses:
        elicit = {"message": "No form", "requestedSchema": nonsense}
        assert "error" in reported_json(await thread.act({"elicit": elicit, "as": "x"}, {"tell": "x"})), (
            nonsense
        )


async def test_a_prompt_that_is_answered_twice_ends_once(home: Home, person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    await thread.act({"say": "hello"})
    twice = b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"refusal"}}'
    lines = [twice % n for n in range(300) for _ in range(2)]  # it knows our ids: they count
    message = await thread.act(raw("", *lines), {"say": "late"}, {"sleep": 0.2})
    assert message["stop"] == "refusal"
    await thread.idle()
    assert text_of(await thread.act({"say": "again"})).endswith("again")
    await is_well(person, workspace)
