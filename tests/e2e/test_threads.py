"""Conversations over HTTP, with a real daemon and a scripted agent behind it."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.support.daemon_home import Home, eventually, running_daemon, until
from tests.support.person_client import Json, Person, person_of, reader
from tests.support.scripted_agent import command
from tests.support.thread_client import (
    Conversation,
    agents_config,
    open_thread,
    parts_of,
    reported_json,
    text_of,
)

pytestmark = pytest.mark.anyio

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MODES = {
    "currentModeId": "ask",
    "availableModes": [
        {"id": "ask", "name": "Ask"},
        {"id": "code", "name": "Code"},
        {"id": "yolo", "name": "Yolo"},
    ],
}
OPTIONS = [
    {
        "id": "model",
        "name": "Model",
        "type": "select",
        "currentValue": "small",
        "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
    }
]
LOGINS = [{"id": "key", "name": "With a key", "description": "Set KEY first."}]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """A daemon with agents that do as they are told, for tests that leave it as it is."""
    named = agents_config(
        scripted=command(modes=MODES, options=OPTIONS, strict=True),
        other=command(),
        locked=command(logins=LOGINS, login_needed=True, strict=True),
        broken=("/nowhere/at/all",),
    )
    with running_daemon(named) as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


# Begin, list, look


async def test_a_thread_is_begun_in_a_folder_and_listed_newest_first(person: Person, workspace: Path) -> None:
    first = await person.post("threads", {"workspace": str(workspace), "agent": "scripted", "title": "One"})
    second = await person.post("threads", {"workspace": str(workspace), "agent": "scripted"})
    assert (first["workspace"], first["title"], first["agent"]) == (str(workspace), "One", "scripted")
    assert (first["messages"], first["operation"], first["stop"]) == (0, None, None)
    assert [each["id"] for each in await person.get("threads", workspace=workspace)] == [
        second["id"],
        first["id"],
    ]

    await Conversation(person, first["id"]).act({"say": "hello"})

    listed = await person.get("threads", workspace=workspace)
    assert [each["id"] for each in listed] == [first["id"], second["id"]]
    assert (listed[0]["messages"], listed[0]["stop"], listed[0]["operation"]) == (2, "end_turn", None)


async def test_who_just_wants_to_talk_finds_a_thread_or_goes_on_with_the_last_one(
    home: Home, person: Person, workspace: Path
) -> None:
    async def first() -> Json | None:
        return next((each for each in await person.get("threads") if each["title"] == "Default"), None)

    assert (await eventually(first))["workspace"] is None

    made = await person.post("threads/default", {"workspace": str(workspace), "agent": "other"})
    assert (made["title"], made["agent"], made["workspace"]) == ("Default", "other", str(workspace))
    again = await person.post("threads/default", {"workspace": str(workspace)})
    assert again["id"] == made["id"]
    newer = await open_thread(person, workspace)
    assert (await person.post("threads/default", {"workspace": str(workspace)}))["id"] == newer.id


async def test_a_thread_whose_agent_is_not_named_gets_the_one_used_last(
    person: Person, workspace: Path
) -> None:
    await open_thread(person, workspace, agent="other")
    assert (await person.post("threads", {"workspace": str(workspace)}))["agent"] == "other"


async def test_a_list_goes_on_where_it_ended(person: Person, workspace: Path) -> None:
    made = [(await open_thread(person, workspace)).id for _ in range(5)]
    first = await person.get("threads", workspace=workspace, limit=2)
    then = await person.get("threads", workspace=workspace, limit=10, before=first[-1]["updated_at"])
    assert {each["id"] for each in (*first, *then)} == set(made)


async def test_a_thread_is_opened_with_its_newest_messages_and_older_ones_are_asked_for(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    for word in ("one", "two", "three"):
        await thread.act({"say": word})

    seen = await thread.look(limit=2)
    assert [(m["role"], text_of(m)) for m in seen["said"]][1] == ("assistant", "three")
    assert seen["more"]
    older = await person.get(f"{thread.path}/messages", before=seen["said"][0]["n"], limit=3)
    assert [text_of(m) for m in older["said"] if m["role"] == "assistant"] == ["one", "two"]
    assert older["more"]
    oldest = await person.get(f"{thread.path}/messages", before=older["said"][0]["n"])
    assert [m["role"] for m in oldest["said"]] == ["user"]
    assert not oldest["more"]


async def test_a_thread_without_a_title_is_named_after_its_first_prompt(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    await thread.ended((await thread.say("Mend the gate\nand oil it"))["operation"])
    assert (await thread.look())["title"] == "Mend the gate"


async def test_a_thread_is_renamed(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    renamed = (await person.ask("PATCH", thread.path, {"title": "Better"})).raise_for_status().json()
    assert renamed["title"] == "Better"
    assert (await thread.look())["title"] == "Better"


# Prompt and stream


async def test_an_answer_holds_text_thoughts_calls_and_plans_as_the_agent_said_them(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    answer = await thread.act(
        {"think": "hm"},
        {"say": "I will "},
        {"say": "look."},
        {"tool_call": {"toolCallId": "1", "title": "Look", "kind": "read", "status": "pending"}},
        {"tool_call_update": {"toolCallId": "1", "status": "completed"}},
        {"plan": ["first", "second"]},
        {"update": {"sessionUpdate": "of_no_known_kind", "x": 1}},
        {"say": "Done."},
    )
    assert [part["kind"] for part in answer["parts"]] == [
        "thought", "text", "call", "plan", "raw", "text",
    ]  # fmt: skip
    assert text_of(answer) == "I will look.Done."
    assert parts_of(answer, "call")[0]["data"]["status"] == "completed"
    assert [entry["content"] for entry in parts_of(answer, "plan")[0]["data"]["entries"]] == [
        "first",
        "second",
    ]
    assert (answer["agent"], answer["stop"]) == ("scripted", "end_turn")
    (user, _) = (await thread.look())["said"]
    assert (user["role"], user["stop"]) == ("user", "end_turn") or user["ended_at"] is not None


async def test_an_agent_that_fails_leaves_its_reason_and_a_thread_that_goes_on(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    answer = await thread.act({"say": "half"}, {"crash": 3, "stderr": ["out of luck"]})
    assert answer["stop"] == "failed"
    (error,) = parts_of(answer, "error")
    assert error["text"]
    assert "out of luck" in error["data"]["said"]

    again = await thread.act({"say": "back"})
    assert (text_of(again), again["stop"]) == ("back", "end_turn")


async def test_work_for_a_prompt_is_cancelled_and_the_thread_goes_on(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    prompted = await thread.prompt({"say": "begun"}, {"hang": True})
    await thread.heard(prompted["operation"], "begun")
    assert (await thread.look())["operation"] == prompted["operation"]

    assert (await person.post(f"operations/{prompted['operation']}/cancel"))["won"]

    assert (await thread.ended(prompted["operation"]))["stop"] == "cancelled"
    assert text_of(await thread.act({"say": "next"})) == "next"


async def test_a_second_prompt_replaces_the_first_and_they_never_mix(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    first = await thread.prompt({"say": "first {n} ", "times": 10_000, "every": 0.005})
    await thread.heard(first["operation"], "first 3")

    second = await thread.prompt({"say": "second"})

    assert second["replaced"] == first["operation"]
    answer = await thread.ended(second["operation"])
    assert text_of(answer) == "second"
    said = (await thread.look())["said"]
    assert [m["role"] for m in said] == ["user", "assistant", "user", "assistant"]
    assert said[1]["stop"] == "cancelled"
    assert "second" not in text_of(said[1])


async def test_a_queued_prompt_waits_its_turn(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    asks = {"toolCall": {"toolCallId": "1", "title": "Go on?", "kind": "other"}}
    first = await thread.prompt({"say": "begun"}, {"ask": asks}, {"say": " ended"})
    question = await person.question("Go on?")

    second = await thread.prompt({"say": "after"}, queue=True)
    assert (second["operation"], second["replaced"]) == (None, None)
    seen = await thread.look()
    assert (seen["queued"], seen["operation"]) == (1, first["operation"])

    (await person.answer(question, "allow")).raise_for_status()
    assert (await thread.ended(first["operation"]))["stop"] == "end_turn"

    async def answered() -> Json | None:
        found = [m for m in (await thread.look())["said"] if text_of(m) == "after" and m["ended_at"]]
        return found[0] if found else None

    await eventually(answered)
    assert (await thread.idle())["queued"] == 0


async def test_a_queued_prompt_is_taken_back_or_sent_at_once(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    first = await thread.prompt({"say": "begun"}, {"hang": True})
    await thread.heard(first["operation"], "begun")
    dropped = await thread.prompt({"say": "never"}, queue=True)
    wanted = await thread.prompt({"say": "now"}, queue=True)

    response = await person.ask("DELETE", f"{thread.path}/queue/{dropped['message']}")
    assert response.status_code == 204
    sent = await person.post(f"{thread.path}/queue/{wanted['message']}/send")

    assert sent["replaced"] == first["operation"]
    assert text_of(await thread.ended(sent["operation"])) == "now"
    seen = await thread.idle()
    assert (seen["queued"], "never" in json.dumps(seen["said"])) == (0, False)
    again = await person.ask("POST", f"{thread.path}/queue/{wanted['message']}/send")
    assert again.status_code in (404, 409)


async def test_another_agent_answers_on_the_same_thread_and_it_is_said_what_it_knows(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    await thread.act({"say": "The word is heron."})

    answer = await thread.act({"tell_prompt": True}, agent="other")

    assert answer["agent"] == "other"
    assert "heron" in text_of(answer)
    said = (await thread.look())["said"]
    assert any("other" in part["text"] for m in said for part in m["parts"] if part["kind"] == "note")


# Pictures and files


async def test_a_picture_goes_with_a_prompt_is_kept_by_its_hash_and_can_be_looked_at(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    images = [{"mime": "image/png", "data": base64.b64encode(DOT).decode()}]

    answer = await thread.act({"tell_prompt": True}, images=images)

    sent = [block for block in reported_json(answer) if block["type"] == "image"]
    assert [(block["mimeType"], base64.b64decode(block["data"])) for block in sent] == [("image/png", DOT)]
    sha = hashlib.sha256(DOT).hexdigest()
    user = (await thread.look())["said"][0]
    assert [part["data"] for part in parts_of(user, "image")] == [{"image": sha, "mime": "image/png"}]
    response = await person.ask("GET", f"images/{sha}")
    assert (response.status_code, response.headers["content-type"]) == (200, "image/png")
    assert response.content == DOT


async def test_a_picture_that_the_agent_sends_can_be_looked_at(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    answer = await thread.act({"image": base64.b64encode(DOT).decode(), "mime": "image/png"})
    (image,) = parts_of(answer, "image")
    assert (await person.ask("GET", f"images/{image['data']['image']}")).content == DOT


async def test_a_picture_goes_with_the_last_thread_that_shows_it(
    home: Home, person: Person, workspace: Path
) -> None:
    content = DOT + b"another"
    sha = hashlib.sha256(content).hexdigest()
    thread = await open_thread(person, workspace)
    await thread.act({"say": "x"}, images=[{"mime": "image/png", "data": base64.b64encode(content).decode()}])
    path = home.places.images / sha[:2] / sha[2:]
    os.utime(path, (1, 1))  # long ago

    assert (await person.ask("DELETE", thread.path)).status_code == 204

    await until(lambda: not path.exists())
    assert (await person.ask("GET", f"images/{sha}")).status_code == 404


async def test_what_is_kept_and_no_picture_is_not_shown_as_one(home: Home, person: Person) -> None:
    for sha in ("0" * 64, "nothing", "../../../etc/passwd", "%2e%2e"):
        response = await person.ask("GET", f"images/{sha}")
        assert response.status_code == 404, sha
    # A picture's route reaches pictures alone, not what files held before they were changed.
    (folder := home.places.blobs / "ab").mkdir(exist_ok=True)
    content = b"secret"
    sha = hashlib.sha256(content).hexdigest()
    (folder / sha[2:]).write_bytes(content)
    assert (await person.ask("GET", f"images/{sha}")).status_code == 404


async def test_files_are_pointed_to(person: Person, workspace: Path) -> None:
    (workspace / "a b.txt").write_text("x")
    thread = await open_thread(person, workspace)
    answer = await thread.act({"tell_prompt": True}, files=["a b.txt"])
    links = [block for block in reported_json(answer) if block["type"] == "resource_link"]
    assert [link["uri"] for link in links] == [(workspace / "a b.txt").as_uri()]


# Settings, login


async def test_modes_and_options_are_told_and_chosen(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    await thread.act({"say": "hello"})
    state = (await thread.look())["state"]
    assert (state["modes"]["current"], state["modes"]["modes"][1]["name"]) == ("ask", "Code")
    assert [option["id"] for option in state["options"]["options"]] == ["model"]

    await _set(thread, setting="mode", value="code")
    await _set(thread, setting="option", id="model", value="large")

    async def chosen() -> bool:
        state = (await thread.look())["state"]
        return (state["modes"]["current"], state["options"]["options"][0]["value"]) == ("code", "large")

    await eventually(chosen)


async def test_an_agent_that_asks_nobody_is_shown_as_such_and_so_is_what_it_did(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace)
    await thread.act({"say": "hello"})
    assert (await thread.look())["asks"] == "everything"
    await _set(thread, setting="mode", value="yolo")

    async def is_told() -> bool:
        return (await thread.look())["asks"] == "nobody"

    await eventually(is_told)
    switch = {"setting": "mode", "id": "", "value": "ask", "name": "Ask"}
    assert (await thread.look())["state"]["asking"] == {"asks": "nobody", "mode": "Yolo", "switch": switch}
    listed = (await person.ask("GET", "threads")).json()
    assert [each["asks"] for each in listed if each["id"] == thread.id] == ["nobody"]

    diff = {"type": "diff", "path": str(workspace / "a.txt"), "oldText": "old\n", "newText": "new\n"}
    edit = {"toolCallId": "e", "title": "Edit", "kind": "edit", "status": "completed", "content": [diff]}
    await thread.act({"tool_call": edit})
    found: list[Json] = []

    async def is_recorded() -> bool:
        rows = await person.get("calls", unasked=True)
        found[:] = [each for each in rows if each["thread"] == thread.id]
        return bool(found)

    await eventually(is_recorded)
    [call] = found
    assert (call["tool"], call["status"], call["allowed_by"]) == ("agent_work", "done", "nobody")
    preview = (await person.ask("GET", f"calls/{call['id']}")).json()["preview"]
    assert preview["kind"] == "diff"
    assert "-old" in preview["diff"]
    assert "+new" in preview["diff"]


async def _set(thread: Conversation, **body: object) -> None:
    response = await thread.person.ask("POST", f"{thread.path}/setting", body)
    assert response.status_code == 204, response.text


async def test_an_agent_that_wants_a_login_says_how_and_goes_on_after_it(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace, agent="locked")
    answer = await thread.act({"say": "hello"})
    assert answer["stop"] == "failed"
    (error,) = parts_of(answer, "error")
    assert [login["id"] for login in error["data"]["logins"]] == ["key"]
    (listed,) = [agent for agent in await person.get("agents") if agent["name"] == "locked"]
    assert [login["name"] for login in listed["logins"]] == ["With a key"]

    assert (await person.ask("POST", "agents/locked/login", {"method": "key"})).status_code == 204

    assert text_of(await thread.act({"say": "in"})) == "in"


async def test_agents_are_listed_with_what_is_missing(home: Home, person: Person, workspace: Path) -> None:
    await (await open_thread(person, workspace)).act({"say": "hello"})
    listed = {agent["name"]: agent for agent in await person.get("agents")}
    assert (listed["scripted"]["found"], listed["scripted"]["source"]) == (True, "config")
    assert (listed["scripted"]["running"], listed["scripted"]["why"]) == (True, "")
    assert not listed["broken"]["found"]
    assert "/nowhere/at/all" in listed["broken"]["why"]
    with reader(home) as bearer:
        watched = {agent["name"]: agent for agent in await Person(home, bearer).get("agents")}
    assert (watched["scripted"]["command"], listed["scripted"]["command"] != []) == ([], True)


# Branch off, delete, take along, find


async def test_a_thread_branches_off_at_a_message(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace, title="Trunk")
    await thread.act({"say": "one"})
    await thread.act({"say": "two"})
    said = (await thread.look())["said"]

    upto = await person.post(f"{thread.path}/fork", {"message": said[1]["id"]})
    before = await person.post(
        f"{thread.path}/fork", {"message": said[2]["id"], "before": True, "title": "B"}
    )

    for made in (upto, before):
        assert made["forked_from"] == thread.id
        copied = (await Conversation(person, made["id"]).look())["said"]
        assert [text_of(m) for m in copied if m["role"] == "assistant"] == ["one"]
    assert before["title"] == "B"
    branch = Conversation(person, before["id"])
    await branch.act({"say": "three"})
    assert [text_of(m) for m in (await thread.look())["said"] if m["role"] == "assistant"] == ["one", "two"]


async def test_a_deleted_thread_is_gone_with_every_word_and_its_work(
    home: Home, person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace, title="Kookaburra title")
    prompted = await thread.prompt({"say": "kookaburra"}, {"hang": True})
    await thread.heard(prompted["operation"], "kookaburra")

    assert (await person.ask("DELETE", thread.path)).status_code == 204

    assert (await person.ask("GET", thread.path)).status_code == 404
    assert thread.id not in [each["id"] for each in await person.get("threads")]
    assert prompted["operation"] not in [each["id"] for each in await person.get("operations")]
    events = json.dumps(await person.get("events", after=0))
    assert "ookaburra" not in events

    async def found() -> list[Json]:
        return (await person.get("search", q="kookaburra"))["hits"]

    assert await found() == []
    assert (await person.ask("DELETE", thread.path)).status_code == 404


async def test_a_thread_is_taken_along_as_text_and_as_json_and_brought_back(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace, title="Trip")
    await thread.act({"think": "hm"}, {"say": "**Bold** words."})

    text = await person.ask("GET", f"{thread.path}/export", format="md")
    assert text.headers["content-type"].startswith("text/markdown")
    assert "attachment" in text.headers["content-disposition"]
    assert "# Trip" in text.text
    assert "**Bold** words." in text.text

    taken = (await person.ask("GET", f"{thread.path}/export", format="json")).raise_for_status().json()
    assert taken["handrail"] == 1
    brought = await person.post("threads/import", taken)
    assert brought["id"] != thread.id
    assert brought["title"] == "Trip"
    said = (await Conversation(person, brought["id"]).look())["said"]
    assert [text_of(m) for m in said] == [text_of(m) for m in (await thread.look())["said"]]
    assert text_of(await Conversation(person, brought["id"]).act({"say": "on"}, agent="scripted")) == "on"


@pytest.mark.parametrize("body", [{}, {"handrail": 99}, {"handrail": 1, "messages": "no"}, []])
async def test_what_is_no_exported_thread_is_not_brought_in(person: Person, body: object) -> None:
    before = len(await person.get("threads"))
    response = await person.ask("POST", "threads/import", body)
    assert response.status_code == 422
    assert response.json()["detail"]
    assert len(await person.get("threads")) == before


async def test_words_are_found_where_they_were_said(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace, title="Birds")
    await thread.act({"say": "The cassowary runs."})

    async def found() -> Json | None:
        hits: list[Json] = (await person.get("search", q="cassow", workspace=workspace))["hits"]
        return next((hit for hit in hits if hit["role"] == "assistant"), None)

    hit = await eventually(found)
    assert (hit["kind"], hit["thread"], hit["title"]) == ("message", thread.id, "Birds")
    begin, end = hit["marks"][0]
    assert hit["snippet"][begin:end].lower().startswith("cassow")
    assert (await person.get("search", q="cassow", workspace="/elsewhere"))["hits"] == []
    for strange in ('"', "NEAR(", "a AND", "*", "   ", ""):
        assert isinstance((await person.get("search", q=strange))["hits"], list)


# What cannot be


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "threads/h0", None),
        ("GET", "threads/h0/messages", None),
        ("PATCH", "threads/h0", {"title": "x"}),
        ("DELETE", "threads/h0", None),
        ("POST", "threads/h0/prompt", {"text": "hi"}),
        ("POST", "threads/h0/fork", {"message": "m0"}),
        ("POST", "threads/h0/setting", {"setting": "mode", "value": "x"}),
        ("POST", "threads/h0/queue/u0/send", None),
        ("DELETE", "threads/h0/queue/u0", None),
        ("GET", "threads/h0/export", None),
    ],
)
async def test_a_thread_that_there_is_not_is_said_to_be_none(
    person: Person, method: str, path: str, body: object
) -> None:
    response = await person.ask(method, path, body, **({"before": 5} if "messages" in path else {}))
    assert response.status_code == 404
    assert "There is no thread h0" in response.json()["detail"]


async def test_what_cannot_be_is_answered_with_a_sentence(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)

    async def refused(status: int, method: str, path: str, body: object, words: str) -> None:
        response = await person.ask(method, path, body)
        assert (response.status_code, words in response.json()["detail"]) == (status, True), response.text

    await refused(422, "POST", "threads", {"workspace": "/nowhere"}, "/nowhere")
    await refused(422, "POST", "threads", {"workspace": "relative"}, "whole path")
    await refused(422, "POST", "threads", {"workspace": "/etc/passwd"}, "/etc/passwd")
    await refused(422, "POST", "threads", {"agent": "nobody"}, "There is no agent nobody")
    await refused(422, "POST", f"{thread.path}/prompt", {"text": "hi", "agent": "nobody"}, "no agent nobody")
    await refused(422, "POST", f"{thread.path}/prompt", {"text": "  "}, "nothing")
    await refused(422, "POST", f"{thread.path}/prompt", {"text": "x", "files": ["gone.txt"]}, "gone.txt")
    bad = {"mime": "image/png", "data": "%%%"}
    await refused(422, "POST", f"{thread.path}/prompt", {"text": "x", "images": [bad]}, "Picture 1")
    html = {"mime": "image/png", "data": base64.b64encode(b"<script>").decode()}
    await refused(422, "POST", f"{thread.path}/prompt", {"text": "x", "images": [html]}, "Picture 1")
    await refused(404, "POST", f"{thread.path}/fork", {"message": "m0"}, "no message m0")
    await refused(404, "POST", f"{thread.path}/queue/m0/send", None, "m0")
    await refused(404, "DELETE", f"{thread.path}/queue/m0", None, "m0")
    await refused(404, "POST", "agents/nobody/login", {"method": "x"}, "There is no agent nobody")
    await refused(422, "PATCH", thread.path, {"title": ""}, "title")
    assert (await thread.look())["messages"] == 0


async def test_an_agent_that_is_not_installed_fails_its_prompt_with_the_reason(
    person: Person, workspace: Path
) -> None:
    thread = await open_thread(person, workspace, agent="broken")
    answer = await thread.act({"say": "x"})
    assert answer["stop"] == "failed"
    assert "/nowhere/at/all" in json.dumps(parts_of(answer, "error"))


async def test_rapid_prompts_never_interleave_and_the_newest_wins(person: Person, workspace: Path) -> None:
    thread = await open_thread(person, workspace)
    answers: list[Json] = []

    async def prompt(number: int) -> None:
        answers.append(
            await thread.prompt({"say": f"answer {number} "}, {"sleep": 0.02}, {"say": f"end {number}"})
        )

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(prompt, number)

    seen = await thread.idle()
    for message in seen["said"]:
        words = text_of(message).split()
        if message["role"] == "assistant" and words:
            assert set(words[1::2]) == {words[1]}, "one answer holds the words of one prompt"
    assert sum(m["stop"] == "end_turn" for m in seen["said"] if m["role"] == "assistant") >= 1
    assert len([m for m in seen["said"] if m["role"] == "user"]) == 8
