"""Operations over HTTP: what one is busy with, the cancelling of any of it, and the keys that a prompt brings along."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.daemon_home import Home, eventually, running_daemon
from tests.support.person_client import Json, Person, person_of, reader
from tests.support.scripted_agent import ACTIVITY_CAPABILITIES, command
from tests.support.thread_client import Conversation, agents_config, open_thread, reported_json, text_of

from handrail.config import PROVIDER_VARIABLES

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

KEY = "ANTHROPIC_API_KEY"
ROOT = {"begin": "a0", "sort": "operation", "title": "Do it"}
STEP = {"begin": "a1", "in": "a0", "sort": "step", "title": "Step 1"}
CALL = {"begin": "a2", "in": "a1", "sort": "call", "title": "Run pytest"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon whose own agent is a scripted one, which keeps its sessions."""
    shelf = tmp_path_factory.mktemp("shelf")
    own = command(sessions=str(shelf), capabilities=ACTIVITY_CAPABILITIES)
    with running_daemon(agents_config(handrail=own, scripted=command())) as home:
        yield home


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


async def conversation(person: Person, agent: str = "handrail") -> Conversation:
    return await open_thread(person, agent=agent)


async def doing(person: Person, operation: str, id: str) -> Json:
    """The operation, once it is busy with this."""

    async def look() -> Json | None:
        found = await person.get(f"operations/{operation}")
        return found if any(each["id"] == id for each in found["activities"]) else None

    return await eventually(look)


async def test_an_operation_shows_what_it_is_busy_with_and_what_it_was(person: Person) -> None:
    thread = await conversation(person)
    prompted = await thread.prompt(
        ROOT, STEP, CALL, {"busy": "a2", "then": [{"say": "on"}, {"finish": "a1"}]}
    )
    operation = prompted["operation"]
    found = await doing(person, operation, "a2")
    assert (found["operation"], found["thread"], found["agent"]) == (operation, thread.id, "handrail")
    assert (found["ended_at"], found["stop"], found["cancelled_by"]) == (None, None, None)
    assert [(each["id"], each["parent"], each["sort"], each["title"]) for each in found["activities"]] == [
        ("a0", None, "operation", "Do it"),
        ("a1", "a0", "step", "Step 1"),
        ("a2", "a1", "call", "Run pytest"),
    ]
    assert {each["how"] for each in found["activities"]} == {None}

    assert await person.post(f"operations/{operation}/activities/a2/cancel") == {"won": True}

    assert text_of(await thread.ended(operation)) == "on"
    await thread.idle()
    found = await doing(person, operation, "a2")
    assert found["stop"] == "end_turn"
    assert [each["how"] for each in found["activities"]] == ["interrupted", "done", "cancelled"]
    assert found["activities"][2]["by"].startswith("a person on the ")


async def test_an_operation_that_was_cancelled_says_what_was_cut_off(person: Person) -> None:
    thread = await conversation(person)
    operation = (await thread.prompt(ROOT, STEP, CALL, {"hang": True}))["operation"]
    await doing(person, operation, "a2")
    assert await person.post(f"operations/{operation}/cancel") == {"won": True}
    await thread.idle()
    found = await person.get(f"operations/{operation}")
    assert (found["stop"], found["cancelled_activities"], found["cancelled_calls"]) == (
        "cancelled",
        ["Run pytest"],
        [],
    )
    assert {each["how"] for each in found["activities"]} == {"cancelled"}
    assert found["cancelled_by"].startswith("a person on the ")


async def test_what_is_not_there_or_over_is_refused_with_a_sentence(person: Person) -> None:
    async def refused(path: str) -> tuple[int, str]:
        answer = await person.ask("POST", path)
        return answer.status_code, answer.json()["detail"]

    assert (await person.ask("GET", "operations/o1")).status_code == 404
    assert await refused("operations/o1/activities/a1/cancel") == (404, "There is no operation o1.")
    thread = await conversation(person)
    operation = (await thread.prompt(STEP, {"finish": "a1"}, {"say": "x"}, {"hang": True}))["operation"]
    await thread.heard(operation, "x")
    path = f"operations/{operation}/activities"
    assert await refused(f"{path}/a9/cancel") == (404, "There is no activity a9 in this operation.")
    assert await refused(f"{path}/a1/cancel") == (409, "The activity a1 had ended before.")
    await person.post(f"operations/{operation}/cancel")
    await thread.idle()
    assert await refused(f"{path}/a1/cancel") == (
        409,
        f"The operation {operation} has ended, and all that it was busy with.",
    )


async def test_who_only_watches_reads_no_titles_and_cancels_nothing(home: Home, person: Person) -> None:
    thread = await conversation(person)
    operation = (await thread.prompt(STEP, CALL, {"say": "x"}, {"hang": True}))["operation"]
    await doing(person, operation, "a2")
    with reader(home) as bearer:
        watcher = Person(home, bearer)
        assert (await watcher.ask("GET", f"operations/{operation}")).status_code == 403
        cancel = await watcher.ask("POST", f"operations/{operation}/activities/a2/cancel")
        assert cancel.status_code == 403
        seen = [entry["event"] for entry in (await watcher.get("events", after=0))["entries"]]
    begun = [each for each in seen if each["kind"] == "ActivityStarted" and each["operation"] == operation]
    assert [each["title"] for each in begun] == ["", ""]
    await person.post(f"operations/{operation}/cancel")


# Keys that a prompt brings along


async def test_keys_reach_our_own_agent_on_that_thread_alone(person: Person) -> None:
    thread, other = await conversation(person), await conversation(person)
    assert reported_json(await thread.act({"tell_env": [KEY]}, env={KEY: "sk-one"})) == {KEY: "sk-one"}
    assert reported_json(await thread.act({"tell_env": [KEY]})) == {KEY: "sk-one"}, (
        "they stay, unsaid, for the thread"
    )
    assert reported_json(await other.act({"tell_env": [KEY]})) == {KEY: None}
    guest = await conversation(person, "scripted")
    assert reported_json(await guest.act({"tell_env": [KEY]})) == {KEY: None}
    assert reported_json(await thread.act({"tell_env": [KEY]}, agent="scripted")) == {KEY: None}


async def test_other_keys_start_the_agent_anew_and_it_takes_the_conversation_up(person: Person) -> None:
    thread = await conversation(person)
    first = reported_json(await thread.act({"tell_pid": True}, env={KEY: "sk-one"}))
    assert reported_json(await thread.act({"tell_pid": True}, env={KEY: "sk-one"})) == first, (
        "the same keys, the same program"
    )
    asked = await thread.act({"tell_env": [KEY, "OPENAI_API_KEY"]}, env={"OPENAI_API_KEY": "sk-two"})
    assert reported_json(asked) == {KEY: None, "OPENAI_API_KEY": "sk-two"}
    assert [part["text"] for part in asked["parts"] if part["kind"] == "note"] == [
        "handrail resumed its own record."
    ]
    assert not lives(first)


@pytest.mark.parametrize(
    ("agent", "env", "says"),
    [
        ("scripted", {KEY: "sk-hidden"}, "Keys go to Handrail's own agent alone"),
        ("handrail", {"LD_PRELOAD": "sk-hidden"}, "nothing but ANTHROPIC_API_KEY"),
        ("handrail", {"PATH": "sk-hidden", KEY: "sk-hidden"}, "nothing but ANTHROPIC_API_KEY"),
        ("handrail", {KEY: "sk-hidden" * 1000}, "one line of at most 4,096 characters"),
        ("handrail", {KEY: "sk-hidden\0"}, "one line"),
        ("handrail", {KEY: "sk-hidden\n"}, "one line"),
        ("handrail", {KEY: ["sk-hidden"]}, "string"),
        (
            "handrail",
            {f"{name}{n}": "x" for n in range(2) for name in PROVIDER_VARIABLES},
            "at most 20 items",
        ),
    ],
)
async def test_what_is_no_key_for_our_agent_is_refused_and_not_repeated(
    person: Person, agent: str, env: dict[str, Any], says: str
) -> None:
    thread = await conversation(person, agent)
    answer = await person.ask("POST", f"{thread.path}/prompt", {"text": "hello", "env": env})
    assert answer.status_code == 422
    assert says in answer.json()["detail"]
    assert "sk-hidden" not in answer.text
    assert (await thread.look())["said"] == []


async def test_keys_do_not_outlive_the_daemon_nor_the_thread() -> None:
    value = f"sk-{os.urandom(16).hex()}"
    with running_daemon(agents_config(handrail=command())) as home:
        person = person_of(home)
        thread = await conversation(person)
        expected = {KEY: hashlib.sha256(value.encode()).hexdigest()}
        assert reported_json(await thread.act({"hash_env": [KEY]}, env={KEY: value})) == expected
        pid = reported_json(await thread.act({"tell_pid": True}))
        assert (await person.ask("DELETE", thread.path)).status_code == 204
        assert not lives(pid)
        again = await conversation(person)
        assert reported_json(await again.act({"hash_env": [KEY]}, env={KEY: value})) == expected
        home.kill()
        home.up()
        assert reported_json(await again.act({"hash_env": [KEY]})) == {KEY: None}
        assert [path for path in home.places.data.rglob("*") if holds(path, value.encode())] == []


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def holds(path: Path, value: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and value in path.read_bytes()
