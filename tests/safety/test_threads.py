"""Conversations under attack and in a hurry: hostile files, odd searches, and verbs that race; nothing hangs, leaks or
is lost.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.person_client import Json, Person, person_of
from tests.support.scripted_agent import OPTIONS, command, script
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


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with running_daemon(agents_config(scripted=command())) as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


async def waiting(person: Person, about: str) -> list[Json]:
    asked: list[Json] = await person.get("approvals", open=True)
    return [each for each in asked if about in each["title"]]


async def test_nothing_of_a_deleted_thread_waits_for_a_person_any_more(
    home: Home, person: Person, workspace: Path
) -> None:
    thread, other = await open_thread(person, workspace), await open_thread(person, workspace)
    await thread.act({"say": "done"})
    session = await session_of(
        home, thread
    )  # the same program speaks for both, and so after the prompt has ended
    write = {"sessionId": session, "path": str(workspace / "late.txt"), "content": "late"}
    work = {"sessionId": session, "toolCall": {"toolCallId": "1", "title": "Late work"}, "options": OPTIONS}
    await other.prompt(
        {"request": "fs/write_text_file", "params": write, "as": "w", "wait": False},
        {"request": "session/request_permission", "params": work, "as": "p", "wait": False},
        {"join": "w"},
        {"join": "p"},
        {"tell": "w"},
        {"say": "\n"},
        {"tell": "p"},
    )
    await person.question("Write late.txt")
    await person.question("Late work")
    (await person.ask("DELETE", thread.path)).raise_for_status()
    assert not await waiting(person, "Write late.txt")
    assert not await waiting(person, "Late work")
    written, worked = text_of((await other.idle())["said"][-1]).splitlines()
    assert "error" in json.loads(written)
    assert json.loads(worked)["outcome"] == {"outcome": "cancelled"}
    assert not (workspace / "late.txt").exists()


HOSTILE: list[Any] = [
    "",
    "null",
    "[]",
    "{",
    "NaN",
    '{"handrail":1,"thread":NaN,"messages":[]}',
    '{"handrail":2,"thread":{},"messages":[]}',
    "[" * 100_000,
    '{"a":' * 50_000,
    "\x00",
    b"\xff\xfe\x00",
]


def exported(**more: Any) -> Json:
    thread = {"title": "T", "agent": "scripted", "created_at": 1, "updated_at": 1, **more.pop("thread", {})}
    return {"handrail": 1, "thread": thread, "messages": [], **more}


def said(*parts: Json) -> list[Json]:
    return [{"role": "assistant", "opened_at": 1, "parts": list(parts)}]


async def test_a_hostile_file_is_refused_in_words_and_one_that_is_taken_in_does_nothing(
    person: Person, workspace: Path
) -> None:
    before = len(await person.get("threads", limit=1000))
    for body in (
        *HOSTILE,
        json.dumps(exported(thread={"title": "x" * 201})),
        json.dumps(exported(thread={"created_at": 10**40})),
        json.dumps(exported(thread={"created_at": -1})),
        json.dumps(exported(messages=said({"kind": "script", "text": "x"}))),
        json.dumps(exported(messages=said({"kind": "call", "data": {"title": 7}}))),
        json.dumps(exported(messages=said({"kind": "error", "text": "x", "data": {"said": [{"a": 1}]}}))),
    ):
        response = await brought(person, body)
        assert response.status_code in (413, 422), (response.status_code, str(body)[:60])
    assert len(await person.get("threads", limit=1000)) == before

    script_ = "<script>document.title='owned'</script>\u202e\u0000"
    call = {
        "id": "1",
        "title": script_,
        "status": "completed",
        "call": "c0000000000",
        "input": {"x": script_},
    }
    parts = said(
        {"kind": "text", "text": script_},
        {"kind": "call", "data": call},
        {"kind": "raw", "data": {"update": {"deep": [[[[]]]], "n": 1e308}}},
        {"kind": "image", "data": {"image": "../../etc/passwd", "mime": "text/html"}},
        {"kind": "file", "data": {"uri": "javascript:alert(1)", "name": script_}},
    )
    made = await brought(
        person, json.dumps(exported(thread={"title": script_, "workspace": "/"}, messages=parts))
    )
    view = made.raise_for_status().json()
    assert (view["workspace"], view["operation"]) == (None, None)
    detail = await person.get(f"threads/{view['id']}")
    assert parts_of(detail["said"][0], "call")[0]["data"]["call"] is None
    for kind in ("md", "json"):
        again = await person.ask("GET", f"threads/{view['id']}/export", format=kind)
        assert again.raise_for_status().headers["content-disposition"].startswith("attachment")
    assert (await person.ask("GET", "images/../../etc/passwd")).status_code in (404, 422)
    assert (await person.ask("GET", "images/..%2F..%2Fetc%2Fpasswd")).status_code in (404, 422)


async def brought(person: Person, body: Any) -> httpx.Response:
    headers = {**person.headers, "Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=30) as http:
        return await http.post(f"{person.home.url}/api/threads/import", content=body, headers=headers)


@pytest.mark.parametrize(
    "q",
    [
        '"', "''", "*", "a*", "a OR b", "a NOT", "NEAR(a b)", "title:x", "-a", "^a", "(", ")", "a AND (", "{x}: y",
        "a\0b", "\u202e", "x" * 10_000, " ".join(["a"] * 5000), "%", "_", "\\", "; DROP TABLE words;", "é", "🦉", "\ud800",
    ],
)  # fmt: skip
async def test_whatever_is_searched_for_is_words(person: Person, q: str) -> None:
    raw = q.encode("utf-8", "surrogatepass")
    async with httpx.AsyncClient(timeout=30, headers=person.headers) as http:
        url = f"{person.home.url}/api/search?q=" + "".join(f"%{byte:02x}" for byte in raw)
        assert (await http.get(url)).status_code in (200, 422, 414, 431, 400), q


async def storm(thread: Conversation, rounds: int) -> None:
    """Prompts, cancels, forks, settings and looks, all at once, and a deletion in their midst."""
    person = thread.person
    statuses: list[int] = []

    async def ask(method: str, path: str, body: object = None) -> None:
        statuses.append((await person.ask(method, path, body)).status_code)

    async def cancel() -> None:
        seen = await person.ask("GET", thread.path)
        if seen.status_code == 200 and (operation := seen.json()["operation"]):
            await ask("POST", f"operations/{operation}/cancel")

    async def fork() -> None:
        seen = await person.ask("GET", thread.path)
        if seen.status_code == 200 and (said := seen.json()["said"]):
            await ask("POST", f"{thread.path}/fork", {"message": said[-1]["id"]})

    text = script({"say": "word {n} ", "times": 50, "every": 0.005}, {"say": "end"})
    async with anyio.create_task_group() as group:
        for n in range(rounds):
            body = {"text": text, "queue": n % 3 == 0}
            group.start_soon(ask, "POST", f"{thread.path}/prompt", body)
            group.start_soon(cancel)
            group.start_soon(fork)
            group.start_soon(ask, "POST", f"{thread.path}/setting", {"setting": "mode", "value": "x"})
            if n == rounds // 2:
                group.start_soon(ask, "DELETE", thread.path)
                group.start_soon(ask, "DELETE", thread.path)
            await anyio.sleep(0.01)
    assert all(status < 500 or status == 502 for status in statuses), statuses


async def test_prompts_cancels_forks_settings_and_a_deletion_at_once_hang_nothing_and_leave_nothing(
    home: Home, person: Person, workspace: Path
) -> None:
    threads = [await open_thread(person, workspace) for _ in range(3)]
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for thread in threads:
                group.start_soon(storm, thread, 8)

    async def idle() -> bool:
        return not any(each["operation"] for each in await person.get("threads", limit=1000))

    await eventually(idle)
    left = {each["id"] for each in await person.get("threads", limit=1000)}
    assert not left & {thread.id for thread in threads}
    assert not [each for each in await person.get("operations") if each.get("ended_at") is None]
    other = await open_thread(person, workspace)
    assert text_of(await other.act({"say": "well"})) == "well"


async def test_a_setting_that_races_with_a_deletion_leaves_no_session_behind(workspace: Path) -> None:
    with running_daemon(agents_config(scripted=command())) as home:
        person, statuses = person_of(home), list[int]()

        async def ask(method: str, path: str, body: object = None) -> None:
            statuses.append((await person.ask(method, path, body)).status_code)

        for n in range(6):
            thread = await open_thread(person, workspace)
            async with anyio.create_task_group() as group:
                setting = {"setting": "mode", "value": "x"}
                group.start_soon(ask, "POST", f"{thread.path}/setting", setting)
                await anyio.sleep(0.01 * n)
                group.start_soon(ask, "DELETE", thread.path)
        other = await open_thread(person, workspace)
        heard: list[str] = reported_json(await other.act({"tell_heard": True}))
        assert statuses.count(204) >= 6
        assert all(status in (204, 404, 409, 502) for status in statuses), statuses
        assert heard.count("session/new") - 1 == heard.count("session/delete")


async def test_queued_prompts_survive_a_kill_and_each_is_said_once(workspace: Path) -> None:
    with running_daemon(agents_config(scripted=command())) as home:
        person = person_of(home)
        thread = await open_thread(person, workspace)
        running = await thread.prompt({"say": "one"}, {"hang": True})
        await thread.heard(running["operation"], "one")
        queued = [(await thread.say(f"later {n}", queue=True))["message"] for n in range(3)]
        home.kill()
        home.up()
        seen = await thread.look()
        assert ([m["id"] for m in seen["said"] if m["queued"]], seen["operation"]) == (queued, None)
        assert [m["stop"] for m in seen["said"] if m["role"] == "assistant"] == ["interrupted"]
        await person.post(f"{thread.path}/queue/{queued[0]}/send")

        async def all_said() -> Json | None:
            seen = await thread.look()
            done = seen["operation"] is None and not any(m["queued"] for m in seen["said"])
            return seen if done else None

        seen = await eventually(all_said)
        prompts = [text_of(m) for m in seen["said"] if m["role"] == "user"][1:]
        answers = [text_of(m) for m in seen["said"] if m["role"] == "assistant"][1:]
        assert prompts == ["later 0", "later 1", "later 2"]
        assert answers == [f"You said: {text}" for text in prompts]


async def test_what_is_said_while_the_record_cannot_be_written_is_there_afterwards(workspace: Path) -> None:
    with running_daemon(agents_config(scripted=command())) as home:
        person = person_of(home)
        thread = await open_thread(person, workspace)
        prompted = await thread.prompt({"say": "word {n} ", "times": 300, "every": 0.01}, {"say": "end"})
        await thread.heard(prompted["operation"], "word 5 ")
        with closing(sqlite3.connect(home.places.database, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")  # nobody else writes meanwhile
            await thread.heard(prompted["operation"], "word 200 ")
            holder.execute("ROLLBACK")
        message = await thread.ended(prompted["operation"])
        await person.post(f"{thread.path}/prompt", {"text": "on"})  # answered once all before it is on disk
        home.kill()
        home.up()
        kept = next(m for m in (await thread.look())["said"] if m["id"] == message["id"])
        assert text_of(kept).split() == [word for n in range(300) for word in ("word", str(n))] + ["end"]
