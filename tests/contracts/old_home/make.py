"""Makes `home.tar.gz`: the home of a real daemon after a short story. See README.md in this folder before running it."""

import json
import shutil
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import anyio
from tests.support import scripted_agent
from tests.support.daemon_home import Home, eventually
from tests.support.mcp_client import Agent, agent
from tests.support.person_client import Json, Person, person_of
from tests.support.thread_client import Conversation, agents_config, open_thread

HERE = Path(__file__).parent
HOME, WORKSPACE, AGENT = Path("/tmp/orchard-home"), Path("/tmp/orchard"), Path("/tmp/orchard-agent")
PROGRAM = Path("tests/support/scripted_agent/__main__.py")
SHED = WORKSPACE / "shed"
KEPT = ("config.toml", "handrail.db", "handrail.head", "words.db", "blobs", "images", "spool")
"""The files that a home consists of while no daemon runs. Logs, sockets and the port are left out."""
SETTINGS = """\
human_in_the_loop = true
default_policy = "ask"

[notify]
desktop = false

[undo]
keep_days = 20000

[terminal]
keep_days = 20000

[[rules]]
effect = "deny"
command = "git push --force"
note = "Never over the work of others"

[[rules]]
effect = "allow"
command = "git status"

"""
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
ACTIVITIES: tuple[Json, ...] = (
    {"begin": "a0", "sort": "operation", "title": "Count the apples"},
    {"begin": "a1", "in": "a0", "sort": "step", "title": "Step 1"},
    {"begin": "a2", "in": "a1", "sort": "model", "title": "Ask the model"},
    {"think": "There are two trees."},
    {"finish": "a2", "how": "done", "detail": "done"},
    {"plan": ["Count", {"content": "Tell", "status": "completed", "priority": "high"}]},
    {"ask": {"toolCall": {"toolCallId": "1", "title": "Pick an apple", "kind": "other"}}, "as": "x"},
    {"say": "There are nineteen apples in the persimmon orchard."},
    {"finish": "a1", "how": "done"},
    {"finish": "a0", "how": "done"},
)


async def main() -> None:
    prepare()
    home = Home(
        HOME, SETTINGS + agents_config(scripted=(sys.executable, "-P", str(AGENT / PROGRAM), manners()))
    )
    home.up()
    try:
        person = person_of(home)
        await settings(person)
        async with agent(home, WORKSPACE, person, name="orchard-agent") as client:
            await commands(client, person)
            await files(client, person)
            await terminals(client, person)
            await interrupted(client, person, home)
        await talk(person)
    finally:
        home.end()
    pack(home)


def prepare() -> None:
    for folder in (HOME, WORKSPACE):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    SHED.mkdir()
    shutil.copytree(Path(scripted_agent.__file__).parent, AGENT / PROGRAM.parent, dirs_exist_ok=True)
    (WORKSPACE / "apples.txt").write_text("north 12\nsouth 7\n")


def manners() -> str:
    return json.dumps({"capabilities": scripted_agent.ACTIVITY_CAPABILITIES})


async def settings(person: Person) -> None:
    """Trust, rules of each scope, one removed again, and credentials."""
    where = str(WORKSPACE)
    await person.post("folders/trust", {"folder": where})
    await person.post("folders/trust", {"folder": str(SHED)})
    await person.post("folders/distrust", {"folder": str(SHED)})
    await person.post("rules", {"effect": "deny", "command": "curl", "scope": "user", "note": "No network"})
    await person.post("rules", {"command": "wc", "workspace": where, "match": ["wc -l apples.txt"]})
    removed = await person.post("rules", {"effect": "ask", "path": "secret/**", "workspace": where})
    (await person.ask("DELETE", f"rules/{removed['rule']['id']}")).raise_for_status()
    await person.credential(where, "kept")
    revoked = await person.credential(where, "revoked")
    (await person.ask("DELETE", f"credentials/{revoked['id']}")).raise_for_status()


async def commands(client: Agent, person: Person) -> None:
    """Every outcome that a person or a rule can give a command."""
    await client.use("read_file", path="apples.txt")
    await client.use("read_file", path="missing.txt")
    await client.use("execute_command", command="wc -l apples.txt")
    await client.use("execute_command", command="curl example.invalid")
    ruled = client.ask("execute_command", command="touch ruled")
    asked = await person.question("touch ruled")
    body = {"answer": "allow", "digest": asked["digest"], "rule": {"command": "touch", "scope": "project"}}
    (await person.ask("POST", f"approvals/{asked['id']}/answer", body)).raise_for_status()
    await ruled.told()
    denied = client.ask("execute_command", command="rm -r trees")
    await person.deny("rm -r trees", "The trees stay")
    await denied.told()
    await cancelled_and_completed(client, person)
    withdrawn = client.ask("execute_command", command="mv apples.txt gone.txt")
    await person.question("mv apples.txt")
    withdrawn.scope.cancel()
    await eventually(lambda: no_question(person))


async def no_question(person: Person) -> bool:
    return not await person.get("approvals", open=True)


async def cancelled_and_completed(client: Agent, person: Person) -> None:
    cancelled = client.ask("execute_command", command="echo begun; sleep 1001")
    call = await person.allow("sleep 1001")
    await person.has_printed(call)
    await person.cancel(call)
    await cancelled.told()
    await person.stopped(call)
    completed = client.ask("execute_command", command="echo halfway; sleep 1002")
    call = await person.allow("sleep 1002")
    await person.has_printed(call)
    await person.complete(call)
    await completed.told()
    (running,) = [one for one in await person.get("terminals", running=True) if one["call_id"] == call]
    await person.post(f"terminals/{running['id']}/close")
    await person.stopped(call)


async def files(client: Agent, person: Person) -> None:
    """A file written and undone, and one written that can still be undone."""
    undone = await written(client, person, "apples.txt", "north 0\nsouth 0\n")
    shown = await person.get(f"undo/{undone}")
    await person.post(f"undo/{undone}", {"digest": shown["digest"]})
    await written(client, person, "notes.txt", "Water the persimmon.\n")


async def written(client: Agent, person: Person, path: str, content: str) -> str:
    asked = client.ask("write_file", path=path, content=content)
    call = await person.allow(path)
    await asked.told()
    return call


async def terminals(client: Agent, person: Person) -> None:
    """An agent's terminal, typed into and closed."""
    opening = client.ask("create_tracked_terminal", name="orchard", shellPath="sh")
    with anyio.move_on_after(2):
        await person.allow()
    terminal = (await opening.told()).data["terminal_id"]
    typing = client.ask("send_to_terminal", terminalId=terminal, text="echo seven pears")
    with anyio.move_on_after(2):
        await person.allow()
    await typing.told()
    await client.use("wait_for_terminal", terminalId=terminal, until="pattern", value="^seven pears")
    await person.post(f"terminals/{terminal}/close")


async def interrupted(client: Agent, person: Person, home: Home) -> None:
    """A call that ran and one that waited when their daemon was killed, and a daemon that found them."""
    asked = client.ask("execute_command", command="echo cut; sleep 1003")
    call = await person.allow("sleep 1003")
    await person.has_printed(call)
    client.ask("execute_command", command="cp apples.txt later.txt")
    await person.question("cp apples.txt")
    home.kill()
    home.up()
    await asked.told()
    await person.question("cp apples.txt")
    for one in await person.get("terminals", running=True):
        await person.post(f"terminals/{one['id']}/close")


async def talk(person: Person) -> None:
    """A conversation with activities, an approval, a picture and a cancelled prompt; a branch; a deleted one."""
    thread = await open_thread(person, WORKSPACE, title="Counting")
    picture = {"mime": "image/png", "data": DOT}
    operation = (await thread.prompt(*ACTIVITIES, images=[picture]))["operation"]
    await person.allow("Pick an apple")
    answer = await thread.ended(operation)
    await thread.idle()
    cancelled = (await thread.prompt({"say": "I wait."}, {"hang": True}))["operation"]
    await thread.heard(cancelled, "I wait.")
    await person.post(f"operations/{cancelled}/cancel")
    await thread.idle()
    (await person.ask("PATCH", thread.path, {"title": "Counting apples"})).raise_for_status()
    await person.post(f"{thread.path}/fork", {"message": answer["id"], "title": "A branch"})
    deleted = await open_thread(person, WORKSPACE, title="Deleted")
    await deleted.act({"say": "Nobody will read this."})
    await delete(person, deleted)
    await eventually(lambda: found(person, "persimmon"))


async def delete(person: Person, thread: Conversation) -> None:
    await thread.idle()
    (await person.ask("DELETE", thread.path)).raise_for_status()


async def found(person: Person, words: str) -> bool:
    return bool((await person.get("search", q=words))["hits"])


def pack(home: Home) -> None:
    """The home without the port of its settings, under owner 0 and with all times alike."""
    config = home.places.config.read_text().partition("[server]")[0]
    home.places.config.write_text(config)
    for database in (home.places.database, home.places.words):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with tarfile.open(HERE / "home.tar.gz", "w:gz", compresslevel=9) as archive:
        for name in KEPT:
            archive.add(HOME / name, name, filter=_neutral)


def _neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    anyio.run(main)
