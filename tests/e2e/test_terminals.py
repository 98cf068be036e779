"""Terminals as an agent uses them: the official client, real shells, real programs, and everything that goes wrong."""

import base64
import hashlib
import re
import secrets
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, find_processes, running_daemon, until
from tests.support.mcp_client import Agent, ToolReply, agent
from tests.support.person_client import Person, allow_everything, person_of

SMALL_GRACE = "[command]\nstop_grace = 0.3\n"
SHELLS = ["bash", "zsh", "fish"]
NUMBERED = "i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo number $i; done; echo all told"


@pytest.fixture(scope="module")
def open_home() -> Iterator[Home]:
    with running_daemon(SMALL_GRACE) as home:
        yield home


@pytest.fixture(scope="module")
def watcher(open_home: Home) -> Iterator[Person]:
    """Allows whatever is asked: these tests are about terminals, and what is asked about is gate's and safety's."""
    person = person_of(open_home)
    with allow_everything(person):
        yield person


async def created(client: Agent, **input: Any) -> str:
    told = await client.use("create_tracked_terminal", **input)
    assert told.status == "done", told.text
    return told.data["terminal_id"]


async def ran(client: Agent, terminal: str, command: str) -> ToolReply:
    return await client.use("execute_command", command=command, terminal_id=terminal)


async def raw(client: Agent, terminal: str, after: int) -> tuple[bytes, int]:
    """The bytes from a cursor on, and the next cursor."""
    told = await client.use("get_terminal_buffer", terminalId=terminal, after=after, mode="raw")
    exact = told.data.get("output_base64")
    output: str = told.data["output"] or ""
    return base64.b64decode(exact) if exact else output.encode(), told.data["next"]


# Create, run, read, search, send, wait, close


@pytest.mark.usefixtures("watcher")
async def test_an_agent_opens_a_terminal_works_in_it_unseen_and_closes_it(
    open_home: Home, workspace: Path
) -> None:
    async with agent(open_home, workspace) as client:
        opened = await client.use("create_tracked_terminal", name="work", shellPath="bash", cols=100, rows=30)
        terminal = opened.data["terminal_id"]
        await ran(client, terminal, "mkdir sub && cd sub && export COLOUR=teal")
        stayed = await ran(client, terminal, 'echo "$COLOUR in ${PWD##*/}"; false')
        await client.use("send_to_terminal", terminalId=terminal, text="echo typed by hand")
        waited = await client.use(
            "wait_for_terminal", terminalId=terminal, until="pattern", value="^typed by hand"
        )
        read = await client.use("get_terminal_buffer", terminalId=terminal, includeMetadata=True)
        found = await client.use("search_terminal_buffer", terminalId=terminal, pattern="te[a]l in")
        listed = await client.use("list_tracked_terminals", runningOnly=True)
        closed = await client.use("close_terminal", terminalId=terminal)
        after = await client.use("get_terminal_buffer", terminalId=terminal, lines=50)

    assert opened.data["size"] == [100, 30]
    assert (stayed.data["output"], stayed.data["exit_code"]) == ("teal in sub\n", 1)
    assert stayed.data["cwd"] == str(workspace / "sub")
    assert waited.data["woke"] == "pattern"
    assert "typed by hand" in waited.data["output"]
    assert "teal in sub" in read.data["output"]
    assert [typed["text"] for typed in read.data["input_history"]][-1].strip() == "echo typed by hand"
    assert read.data["input_history"][-1]["by"] == "e2e"
    assert any(match["text"] == "teal in sub" for match in found.data["matches"])
    (row,) = [one for one in listed.data["terminals"] if one["id"] == terminal]
    assert (row["name"], row["running"], row["cwd"]) == ("work", True, str(workspace / "sub"))
    assert row["owner"]["name"] == "e2e"
    assert closed.data["was_running"] is True
    assert "teal in sub" in after.data["output"], "what it printed outlives it"


@pytest.mark.usefixtures("watcher")
async def test_every_condition_wakes_a_wait_and_the_wait_says_which(open_home: Home, workspace: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with agent(open_home, workspace) as client:
        terminal = await created(client, shellPath="bash")

        async def wait(until: str, **more: Any) -> ToolReply:
            return await client.use("wait_for_terminal", terminalId=terminal, until=until, **more)

        async def send(text: str) -> None:
            assert not (await client.use("send_to_terminal", terminalId=terminal, text=text)).is_error

        await send("sleep 0.2; echo done with $((6*7))")
        pattern = await wait("pattern", value=r"done with (\d+)")
        await send("for i in 1 2 3; do echo $i; sleep 0.1; done")
        idle = await wait("idle", value=1)
        await send("sh -c 'sleep 0.3; exit 9'")
        prompt = await wait("prompt")
        await send(f"{sys.executable} -m http.server --bind 127.0.0.1 {port}")
        opened = await wait("port", value=port)
        assert not (
            await client.use(
                "send_to_terminal", terminalId=terminal, text="", addNewline=False, keys=["ctrl-c"]
            )
        ).is_error
        await wait("prompt")
        await send("sleep 0.3; echo ready > flag")
        file = await wait("file", value="flag")
        await send("read -p 'Go on? ' answer")
        asked = await wait("pattern", value="never printed", timeout_seconds=20)
        await send("yes")
        slow = await wait("pattern", value="never printed", timeout_seconds=0.5)
        await send("exit 3")
        exited = await wait("exit")

    assert pattern.data["woke"] == "pattern"
    assert pattern.data["detail"]["matched"] == "done with 42"
    assert idle.data["woke"] == "idle"
    assert idle.data["output"].rstrip().splitlines()[-2:-1] or "3" in idle.data["output"]
    assert (prompt.data["woke"], prompt.data["detail"]["exit_code"]) == ("prompt", 9)
    assert (opened.data["woke"], opened.data["detail"]["port"]) == ("port", port)
    assert file.data["woke"] == "file"
    assert asked.data["woke"] == "waiting_for_input"
    assert asked.data["waiting_for_input"]["prompt"].endswith("Go on?")
    assert slow.data["woke"] == "timeout"
    assert (exited.data["woke"], exited.data["exit_code"]) == ("exit", 3)


# What the seed names as edge cases


@pytest.mark.usefixtures("watcher")
async def test_mistakes_get_a_sentence_that_says_what_to_do(open_home: Home, workspace: Path) -> None:
    async with agent(open_home, workspace) as client:
        bad_shell = await client.use("create_tracked_terminal", shellPath="/no/such/shell")
        bad_cwd = await client.use("create_tracked_terminal", cwd="missing")
        unknown = [
            await client.use("get_terminal_buffer", terminalId="t0"),
            await client.use("send_to_terminal", terminalId="t0", text="x"),
            await client.use("wait_for_terminal", terminalId="t0", until="exit"),
            await client.use("search_terminal_buffer", terminalId="t0", pattern="x"),
            await client.use("close_terminal", terminalId="t0"),
            await client.use("execute_command", command="true", terminal_id="t0"),
        ]
        terminal = await created(client, shellPath="bash")
        await client.use("send_to_terminal", terminalId=terminal, text="sleep 60.5151")
        await until(lambda: bool(find_processes("sleep\x0060.5151")))
        busy = await ran(client, terminal, "echo never")
        bad_key = await client.use("send_to_terminal", terminalId=terminal, text="", keys=["ctrl-banana"])
        bad_pattern = await client.use("search_terminal_buffer", terminalId=terminal, pattern="(")
        await client.use("close_terminal", terminalId=terminal)
        dead = await client.use("send_to_terminal", terminalId=terminal, text="x")

    assert bad_shell.is_error
    assert "/no/such/shell" in bad_shell.text
    assert "/bin/" in bad_shell.text, "it names shells that are there"
    assert bad_cwd.is_error
    assert all(told.is_error and "list_tracked_terminals" in told.text for told in unknown)
    assert busy.is_error
    assert "sleep" in busy.text
    assert bad_key.is_error
    assert "ctrl-banana" in bad_key.text
    assert bad_pattern.is_error
    assert dead.is_error
    assert "ended" in dead.text
    await until(lambda: not find_processes("sleep\x0060.5151"))


@pytest.mark.usefixtures("watcher")
async def test_a_shell_that_crashes_is_told_truthfully_and_stays_readable(
    open_home: Home, workspace: Path
) -> None:
    async with agent(open_home, workspace) as client:
        terminal = await created(client, shellPath="bash")
        await client.use("send_to_terminal", terminalId=terminal, text="echo last words; kill -SEGV $$")
        exited = await client.use("wait_for_terminal", terminalId=terminal, until="exit")
        read = await client.use("get_terminal_buffer", terminalId=terminal, includeMetadata=True)

    assert (exited.data["exit_code"], exited.data["signal"]) == (None, "SIGSEGV")
    assert "last words" in read.data["output"]
    assert read.data["terminal"]["signal"] == "SIGSEGV"


@pytest.mark.usefixtures("watcher")
async def test_more_than_a_megabyte_is_kept_whole_and_read_by_cursor(
    open_home: Home, workspace: Path
) -> None:
    async with agent(open_home, workspace) as client:
        terminal = await created(
            client, shellPath="/bin/sh", shellArgs=["-c", NUMBERED.format(count=120_000)]
        )
        await client.use("wait_for_terminal", terminalId=terminal, until="exit")
        pieces, after = b"", 0
        while True:
            data, following = await raw(client, terminal, after)
            if not data:
                break
            pieces, after = pieces + data, following
        found = await client.use("search_terminal_buffer", terminalId=terminal, pattern="number 77777$")

    assert len(pieces) > 1_000_000
    assert pieces == b"".join(b"number %d\r\n" % n for n in range(1, 120_001)) + b"all told\r\n"
    assert [match["line_number"] for match in found.data["matches"]] == [77_777]


@pytest.mark.usefixtures("watcher")
async def test_a_thousand_reads_by_cursor_during_output_give_every_byte_once(
    open_home: Home, workspace: Path
) -> None:
    program = (
        "import hashlib, os, random, sys, time, tty\n"
        "tty.setraw(1); hash = hashlib.sha256(); made = random.Random(7)\n"
        "for piece in range(4000):\n"
        "    data = made.randbytes(made.randrange(1, 900)); hash.update(data)\n"
        "    while data: data = data[os.write(1, data):]\n"
        "    time.sleep(0.002)\n"
        "open('told', 'w').write(hash.hexdigest())\n"
    )
    (workspace / "producer.py").write_text(program)
    heard, after, reads = hashlib.sha256(), 0, 0
    async with agent(open_home, workspace) as client:
        terminal = await created(client, shellPath=sys.executable, shellArgs=["producer.py"])
        while reads < 1000 or not (workspace / "told").exists():
            data, after = await raw(client, terminal, after)
            heard.update(data)
            reads += 1
        await client.use("wait_for_terminal", terminalId=terminal, until="exit")
        while True:
            data, after = await raw(client, terminal, after)
            if not data:
                break
            heard.update(data)

    assert reads >= 1000
    assert heard.hexdigest() == (workspace / "told").read_text()


@pytest.mark.usefixtures("watcher")
async def test_fifty_terminals_are_used_at_once(open_home: Home, workspace: Path) -> None:
    told: dict[int, str] = {}
    async with agent(open_home, workspace) as client:

        async def use(number: int) -> None:
            terminal = await created(
                client, shellPath="bash", name=f"one of fifty {number}", env={"HOME": str(workspace)}
            )
            await ran(client, terminal, f"MINE={number}")
            answered = await ran(client, terminal, "echo mine is $MINE")
            told[number] = answered.data.get("output", answered.text)
            await client.use("close_terminal", terminalId=terminal)

        with anyio.fail_after(3 * BOUND):
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(use, number)

    assert told == {number: f"mine is {number}\n" for number in range(50)}


# Real programs


@pytest.mark.usefixtures("watcher")
@pytest.mark.parametrize("shell", SHELLS)
async def test_each_shell_tells_the_exit_code_of_each_command(
    open_home: Home, workspace: Path, shell: str
) -> None:
    async with agent(open_home, workspace) as client:
        terminal = await created(client, shellPath=shell)
        codes = [
            (await ran(client, terminal, line)).data["exit_code"]
            for line in ("true", "false", "sh -c 'exit 7'", "echo fine")
        ]
        many = await ran(client, terminal, "echo one\necho two")
        listed = await client.use("list_tracked_terminals")

    assert codes == [0, 1, 7, 0]
    assert "one" in many.data["output"]
    assert "two" in many.data["output"]
    (row,) = [one for one in listed.data["terminals"] if one["id"] == terminal]
    assert [one["exit_code"] for one in row["commands"]][:4] == [0, 1, 7, 0]


@pytest.mark.usefixtures("watcher")
async def test_a_python_repl_is_driven_by_hand(open_home: Home, workspace: Path) -> None:
    async with agent(open_home, workspace) as client:
        terminal = await created(client, shellPath=sys.executable, shellArgs=["-q"])
        await client.use("wait_for_terminal", terminalId=terminal, until="pattern", value=">>> $")
        await client.use("send_to_terminal", terminalId=terminal, text="sum(range(1000))")
        answered = await client.use("wait_for_terminal", terminalId=terminal, until="pattern", value="499500")
        shown = await client.use("get_terminal_buffer", terminalId=terminal, mode="screen")
        await client.use("send_to_terminal", terminalId=terminal, text="", addNewline=False, keys=["ctrl-d"])
        left = await client.use("wait_for_terminal", terminalId=terminal, until="exit")

    assert answered.data["woke"] == "pattern"
    assert shown.data["output"].splitlines()[:3] == [">>> sum(range(1000))", "499500", ">>>"]
    assert left.data["exit_code"] == 0


@pytest.mark.usefixtures("watcher")
async def test_git_log_does_not_wait_in_a_pager(open_home: Home, workspace: Path) -> None:
    setup = (
        "git init -q . && git config user.email a@b && git config user.name a && "
        "for i in $(seq 120); do git commit -q --allow-empty -m change-$i; done"
    )
    async with agent(open_home, workspace) as client:
        alone = await client.use("execute_command", command=f"{setup} && git log --oneline")
        terminal = await created(client, shellPath="bash")
        shared = await ran(client, terminal, "git log --oneline")

    assert alone.data["exit_code"] == 0
    assert "change-1\n" in alone.data["output"]
    assert shared.data["exit_code"] == 0
    assert "change-1\n" in shared.data["output"]


@pytest.mark.usefixtures("watcher")
async def test_a_progress_bar_is_one_line_of_text(open_home: Home, workspace: Path) -> None:
    bar = r"for i in $(seq 0 5 100); do printf '\r\033[32m%3d%%\033[0m [%-20s]' $i $(printf '#%.0s' $(seq 0 5 $i)); done; echo; echo over"
    async with agent(open_home, workspace) as client:
        terminal = await created(client, shellPath="bash", shellArgs=["-c", bar])
        await client.use("wait_for_terminal", terminalId=terminal, until="exit")
        read = await client.use("get_terminal_buffer", terminalId=terminal, after=0)

    lines = read.data["output"].splitlines()
    assert len(lines) == 2
    assert re.fullmatch(r"100% \[#+\]", lines[0])
    assert lines[1] == "over"


# Waiting for input, and secrets


@pytest.mark.usefixtures("watcher")
async def test_a_command_that_asks_is_handed_back_and_answered(open_home: Home, workspace: Path) -> None:
    async with agent(open_home, workspace) as client:
        asked = await client.use("execute_command", command="read -p 'Your name? ' name; echo hello $name")
        await client.use("send_to_terminal", terminalId=asked.data["terminal_id"], text="Ada")
        outcome = await client.use("wait_for_call", call_id=asked.call)

    assert asked.status == "waiting_for_input"
    assert asked.data["waiting_for_input"]["prompt"] == "Your name?"
    assert asked.data["waiting_for_input"]["sure"] == "certain"
    assert asked.data["waiting_for_input"]["secret"] is False
    assert "hello Ada" in outcome.text


async def test_a_hidden_prompt_is_a_persons_alone_and_what_they_type_is_found_nowhere(
    home: Home, person: Person, workspace: Path
) -> None:
    secret = f"s3cret-{secrets.token_hex(12)}"
    program = (
        "import getpass, hashlib; "
        "print('was', hashlib.sha256(getpass.getpass('Passphrase: ').encode()).hexdigest())"
    )
    async with agent(home, workspace) as client:
        asking = client.ask("execute_command", command=f'{sys.executable} -c "{program}"')
        call = await person.allow("getpass")
        asked = await asking.told()
        terminal = asked.data["terminal_id"]
        tried = client.ask("send_to_terminal", terminalId=terminal, text="guessed")
        refused = await tried.told()
        await person.post(f"terminals/{terminal}/input", {"text": secret, "newline": True})
        outcome = await client.use("wait_for_call", call_id=call)
        history = await client.use("get_terminal_buffer", terminalId=terminal, after=0)

    assert asked.status == "waiting_for_input"
    assert asked.data["waiting_for_input"]["secret"] is True
    assert asked.data["waiting_for_input"]["prompt"] == "Passphrase:"
    assert refused.is_error
    assert "person" in refused.text
    assert f"was {hashlib.sha256(secret.encode()).hexdigest()}" in outcome.text
    assert [typed["text"] for typed in history.data["input_history"]] == [None]
    found = [
        path
        for path in home.places.data.rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert home.places.database.with_name(f"{home.places.database.name}-wal").exists()
    assert found == []


# Surviving


def numbers(data: bytes) -> list[int]:
    return [int(found) for found in re.findall(rb"^n (\d+)\r$", data, re.MULTILINE)]


async def test_three_terminals_outlive_a_killed_daemon_with_every_byte_and_stay_usable(
    home: Home, person: Person, workspace: Path
) -> None:
    stream = "i=0; while [ ! -e stop ]; do i=$((i+1)); echo n $i; sleep 0.003; done; echo; cat"
    opened: list[str] = []
    async with agent(home, workspace) as client:
        for number in range(3):
            asking = client.ask(
                "create_tracked_terminal", shellPath="/bin/sh", shellArgs=["-c", f": {number}; {stream}"]
            )
            await person.allow(f": {number}")
            opened.append((await asking.told()).data["terminal_id"])
        for _ in range(2):
            await _has_grown(client, opened)
            home.kill()
            await _has_grown(client, opened)
        (workspace / "stop").touch()
        listed = await person.get("terminals", running=True)
        for terminal in opened:
            typed = client.ask("send_to_terminal", terminalId=terminal, text=f"still {terminal}")
            await person.allow(f"still {terminal}")
            assert not (await typed.told()).is_error
            waited = await client.use(
                "wait_for_terminal", terminalId=terminal, until="pattern", value=f"still {terminal}\nstill"
            )
            assert waited.data["woke"] == "pattern", waited.text
        whole = [await _all(client, terminal) for terminal in opened]

    assert {one["id"] for one in listed} == set(opened)
    for data in whole:
        told = numbers(data)
        assert told == list(range(1, len(told) + 1))
        assert len(told) > 100


async def _all(client: Agent, terminal: str) -> bytes:
    pieces, after = b"", 0
    while True:
        data, after = await raw(client, terminal, after)
        if not data:
            return pieces
        pieces += data


async def _has_grown(client: Agent, terminals: list[str]) -> None:
    """Each has printed some more."""
    for terminal in terminals:
        before = (await client.use("get_terminal_buffer", terminalId=terminal, lines=1)).data["end"]

        async def look(terminal: str = terminal, before: int = before) -> bool:
            told = await client.use("get_terminal_buffer", terminalId=terminal, lines=1)
            return told.data["end"] > before + 200

        await eventually(look)
