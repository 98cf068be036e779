"""A home that an older Handrail wrote opens unharmed: everything in it is there, and work goes on."""

import json
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio.to_thread
import pytest
from hatch_build import STATIC
from tests.house.source import ROOT
from tests.support.daemon_home import BOUND, Home, eventually
from tests.support.home_folder import make_home_folder
from tests.support.mcp_client import agent
from tests.support.person_client import Json, Person, person_of
from tests.support.thread_client import Conversation, parts_of, text_of

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

ARCHIVE = Path(__file__).parent / "old_home" / "home.tar.gz"
WORKSPACE = "/tmp/orchard"
OPEN = "cp apples.txt later.txt"
"""The command whose approval was left open."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """The present daemon, on a copy of the old home."""
    path = make_home_folder()
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(path, filter="data")
    home = Home(path, (path / "config.toml").read_text())
    Path(WORKSPACE).mkdir(exist_ok=True)  # the rules and paths of the old home name it
    try:
        home.up()
        yield home
    finally:
        home.end()
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def person(home: Home) -> Person:
    return person_of(home)


async def counting(person: Person) -> Conversation:
    """The old conversation."""
    (found,) = [each for each in await person.get("threads") if each["title"] == "Counting apples"]
    return Conversation(person, found["id"])


async def call_of(person: Person, words: str) -> Json:
    (found,) = await person.get("calls", q=words)
    return await person.call(found["id"])


async def test_old_calls_have_their_outcomes_and_their_output(person: Person) -> None:
    calls = await person.get("calls", limit=200, agent="orchard-agent")
    endings = Counter(call["status"] for call in calls if OPEN not in call["title"])
    once = dict.fromkeys(("failed", "completed", "interrupted"), 1)
    assert endings == {"done": 8, "denied": 2, "cancelled": 2, **once}
    denied = await call_of(person, "rm -r trees")
    assert (denied["status"], denied["message"]) == ("denied", "The trees stay")
    counted = await call_of(person, "wc -l")
    (terminal,) = [one["id"] for one in await person.get("terminals") if one["call_id"] == counted["id"]]
    output = await person.get(f"terminals/{terminal}/output")
    assert "2 apples.txt" in output["text"]


async def test_old_approvals_are_answered_and_the_open_one_still_can_be(person: Person) -> None:
    approvals = await person.get("approvals", limit=200)
    statuses = Counter(each["status"] for each in approvals if OPEN not in each["title"])
    assert statuses == {"allowed": 9, "denied": 1, "withdrawn": 1}
    call = await person.deny(OPEN, "Not any more")
    settled = await person.settled(call)
    assert (settled["status"], settled["message"]) == ("denied", "Not any more")


async def test_old_rules_decide_and_old_trust_holds(person: Person) -> None:
    rules = (await person.get("rules", workspace=WORKSPACE))["rules"]
    made = {each["rule"]["command"]: each["rule"]["effect"] for each in rules if each["removable"]}
    assert made == {"curl": "deny", "wc": "allow", "touch": "allow"}
    decided = {
        command: (await person.post("rules/test", {"command": command, "workspace": WORKSPACE}))["effect"]
        for command in ("curl x", "wc -l", "touch a", "git status", "git push --force", "rm a")
    }
    assert decided == {
        "curl x": "deny",
        "wc -l": "allow",
        "touch a": "allow",
        "git status": "allow",
        "git push --force": "deny",
        "rm a": "ask",
    }
    folders = await person.get("folders")
    assert [each["folder"] for each in folders if each["trusted"]] == [WORKSPACE]


async def test_an_old_conversation_has_its_messages_activities_and_picture(person: Person) -> None:
    thread = await counting(person)
    asked, answered, again, cut = (await thread.look())["said"]
    assert [each["role"] for each in (asked, answered, again, cut)] == ["user", "assistant"] * 2
    assert text_of(answered) == "There are nineteen apples in the persimmon orchard."
    assert text_of(answered, "thought") == "There are two trees."
    assert text_of(cut) == "I wait."
    assert len(parts_of(answered, "plan")) == 1
    (picture,) = parts_of(asked, "image")
    image = await person.ask("GET", f"images/{picture['data']['image']}")
    assert (image.status_code, image.headers["content-type"]) == (200, "image/png")
    operation = await person.get(f"operations/{answered['operation']}")
    assert [each["how"] for each in operation["activities"]] == ["done"] * 3
    assert (await person.get(f"operations/{cut['operation']}"))["stop"] == "cancelled"
    titles = {each["title"] for each in await person.get("threads")}
    assert titles == {"A branch", "Counting apples", "Default"}


async def test_an_old_message_is_found_by_its_words(person: Person) -> None:
    thread = await counting(person)

    async def look() -> Json | None:
        hits = (await person.get("search", q="persimmon orchard"))["hits"]
        return next((hit for hit in hits if hit["thread"] == thread.id), None)

    hit = await eventually(look)
    assert (hit["kind"], hit["role"], hit["title"]) == ("message", "assistant", "Counting apples")


async def test_an_old_change_of_a_file_is_shown_for_undo(person: Person) -> None:
    calls = await person.get("calls", tool="write_file")
    shown = [await person.get(f"undo/{call['id']}") for call in calls]
    paths = [one["path"] for view in shown for one in view["files"]]
    assert sorted(paths) == [f"{WORKSPACE}/apples.txt", f"{WORKSPACE}/notes.txt"]


async def test_the_journal_is_whole_and_a_new_call_works(home: Home, person: Person, tmp_path: Path) -> None:
    async with agent(home, tmp_path, person) as client:
        asked = client.ask("execute_command", command="echo new")
        await person.allow("echo new")
        told = await asked.told()
    assert (told.status, "new" in told.text) == ("done", True)
    findings = await anyio.to_thread.run_sync(examine, home)
    page = "ok" if (ROOT / STATIC / "index.html").is_file() else "bad"
    assert [findings[name] for name in ("journal", "config", "page")] == ["ok", "ok", page]


def examine(home: Home) -> dict[str, str]:
    """What `handrail doctor` finds: a level for each thing that it looks at."""
    command = [sys.executable, "-m", "handrail", "doctor", "--json"]
    ended = subprocess.run(
        command, env=home.environment, capture_output=True, text=True, timeout=BOUND, check=False
    )
    return {each["name"]: each["level"] for each in json.loads(ended.stdout)["findings"]}


def test_the_greeting_is_answered_with_the_known_fields(home: Home) -> None:
    assert home.about().keys() == {"handrail", "version", "pid", "url", "ok", "bearer"}
