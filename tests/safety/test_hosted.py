"""An agent that Handrail hosts is nobody to decide, and reads no conversation but its own part in one.

The agent is a real program of the daemon's: before it speaks, it tries what it must not be able to do.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.daemon_home import Home, running_daemon, until
from tests.support.person_client import person_of
from tests.support.scripted_agent import command
from tests.support.thread_client import agents_config, open_thread, reported_json

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

SECRET = "the password is heron"
TRIES = """
import json, os, sys, urllib.request, urllib.error
from contextlib import closing
from handrail.door.connect import connect
from handrail.door.connect import HelloRefused, say_hello
from handrail.paths import Places
from pathlib import Path

places = Places.under(Path(Path(sys.argv[1]).read_text()))
found = {"environment": sorted(os.environ)}
with closing(connect(places, start=False)) as sock:
    try:
        found["person"] = say_hello(sock, "person")
    except HelloRefused as refused:
        found["person"] = str(refused)

def status(url, bearer):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {bearer}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

with closing(connect(places, start=False)) as sock:
    reply = say_hello(sock, "read")
    for path in json.loads(sys.argv[2]):
        found[path] = status(f"{reply['url']}/api/{path}", reply["bearer"])
with open(sys.argv[3], "w") as file:
    json.dump(found, file)
os.execv(sys.argv[4], sys.argv[4:])
"""
CLOSED = ("threads", "search?q=heron", "images/0")
OPEN = ("state", "events", "agents", "operations")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def loot(tmp_path: Path) -> Path:
    return tmp_path / "loot.json"


@pytest.fixture
def home(loot: Path) -> Iterator[Home]:
    where, paths = loot.with_name("home"), json.dumps([*CLOSED, *OPEN])
    thief = (sys.executable, "-c", TRIES, str(where), paths, str(loot), *command())
    with running_daemon(agents_config(scripted=command(), thief=thief)) as home:
        where.write_text(str(home.places.data))
        yield home


def read(loot: Path) -> dict[str, Any]:
    return json.loads(loot.read_text())


async def test_a_hosted_agent_is_refused_a_persons_verbs_and_hears_nothing_of_other_conversations(
    home: Home, workspace: Path, loot: Path
) -> None:
    person = person_of(home)
    other = await open_thread(person, workspace, title=f"Title: {SECRET}")
    await other.act({"say": SECRET})

    thread = await open_thread(person, workspace, agent="thief")
    session = reported_json(await thread.act({"tell_session": True}, {"sleep": 0}))

    await until(loot.exists)
    found = read(loot)
    assert "did not let this program in" in found["person"]
    assert "HANDRAIL_CREDENTIAL" not in found["environment"]
    for path in CLOSED:
        assert found[path][0] == 403, path
    for path in OPEN:
        assert found[path][0] == 200, path
        assert SECRET not in found[path][1], path
    assert session["cwd"] == str(workspace)


async def test_a_credential_of_one_thread_is_no_credential_of_another(home: Home, workspace: Path) -> None:
    person = person_of(home)
    first, second = await open_thread(person, workspace), await open_thread(person, workspace)
    bearers = [
        reported_json(await thread.act({"tell_session": True}))["mcpServers"][0]["headers"][0]["value"]
        for thread in (first, second)
    ]
    assert bearers[0] != bearers[1]

    await first.act({"mcp": "list_files", "arguments": {}, "as": "m"})
    await second.act({"mcp": "list_files", "arguments": {}, "as": "m"})

    async def of(thread: str) -> list[str]:
        return [call["thread"] for call in await person.get("calls") if call["thread"] == thread]

    assert (len(await of(first.id)), len(await of(second.id))) == (1, 1)
    assert {call["thread"] for call in await person.get("calls")} == {first.id, second.id}
