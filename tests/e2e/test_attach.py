"""Sockets on terminals: bytes by offset without gap or repetition, states, keys, sizes, and what must not be kept."""

import hashlib
import re
import secrets
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import anyio.from_thread
import pytest
from tests.support.daemon_home import BOUND, Home, eventually, running_daemon
from tests.support.mcp_client import agent
from tests.support.person_client import Person, person_of, reader
from tests.support.terminal_socket import (
    TerminalSocket,
    attach_terminal,
    open_terminal,
    open_websocket,
    run_in_thread,
)
from websockets.exceptions import ConnectionClosed, InvalidStatus

RECONNECTS = 100
NUMBERED = 'i=0; until [ -e "$0" ]; do seq $((i*400)) $((i*400+399)); sleep 0.01; i=$((i+1)); done'
"""Numbers in blocks of 400, until the file exists."""
MUTE = "stty raw -echo; printf ready; sleep 1000"
ASKS_SECRET = 'stty -echo; printf "Password: "; read -r x; stty echo; echo "got ${#x}"; cat'


async def test_what_a_command_prints_is_attached_to_at_any_offset_and_ends_with_it(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace) as client:
        asked = client.ask("execute_command", command="seq 1 2000; sleep 0.5; echo the end")
        call = await shared_person.allow("the end")
        await shared_person.has_printed(call)
        terminal = (await shared_person.call(call))["terminal_id"]
        whole = await run_in_thread(lambda: all_of(shared_person, terminal, 0))
        rest = await run_in_thread(lambda: all_of(shared_person, terminal, 5000))
        told = await asked.told()

    assert whole.startswith(b"1\r\n2\r\n")
    assert whole.endswith(b"the end\r\n")
    assert rest == whole[5000:]
    assert told.data["output_bytes"] == len(whole)


def all_of(person: Person, terminal: str, after: int) -> bytes:
    with attach_terminal(person, terminal, f"after={after}") as page:
        shown = page.to_end()
    assert (page.closed, page.gap, page.state["running"]) == (1000, 0, False)
    assert page.state["ended_at"] >= page.state["started_at"]
    return shown


async def test_a_page_that_is_cut_off_a_hundred_times_misses_nothing_and_gets_nothing_twice(
    shared_person: Person, tmp_path: Path
) -> None:
    enough = tmp_path / "enough"
    terminal = await open_terminal(shared_person, "sh", "-c", NUMBERED, str(enough))

    def read() -> tuple[bytes, int]:
        found, cuts = b"", 0
        while True:
            with attach_terminal(shared_person, terminal, f"after={len(found)}") as page:
                assert page.begin == len(found)
                page.until(lambda page: page.shown or page.closed is not None)
                if cuts < RECONNECTS and page.closed is None:
                    cuts += 1
                    page.cut()
                    found += page.shown
                    continue
                enough.touch()
                return found + page.to_end(), cuts

    found, cuts = await run_in_thread(read)
    printed = range(found.count(b"\n"))
    assert hashlib.sha256(found).hexdigest() == sha256_of_numbers(printed)
    assert len(printed) % 400 == 0, "up to the end of the last block"
    assert cuts == RECONNECTS


def sha256_of_numbers(numbers: range) -> str:
    return hashlib.sha256("".join(f"{number}\r\n" for number in numbers).encode()).hexdigest()


async def test_keys_are_typed_in_order_by_the_person_on_the_page(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "cat")

    def type_lines() -> bytes:
        with attach_terminal(shared_person, terminal) as page:
            for number in range(200):
                page.type(f"line {number}\r".encode())
            page.type(b"\x04")
            return page.to_end()

    shown = await run_in_thread(type_lines)
    lines = [int(number) for number in re.findall(rb"line (\d+)\r\n", shown)]
    assert Counter(lines) == dict.fromkeys(range(200), 2), "each is echoed once and printed once"


async def test_a_page_that_wants_the_end_begins_at_a_line(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "seq", "1", "50000")
    whole = await run_in_thread(lambda: all_of(shared_person, terminal, 0))

    def read() -> TerminalSocket:
        with attach_terminal(shared_person, terminal, "tail=1000") as page:
            page.to_end()
        return page

    page = await run_in_thread(read)
    assert len(whole) - 1000 <= page.begin < len(whole) - 900
    assert whole[page.begin - 1 : page.begin] == b"\n"
    assert bytes(page.shown) == whole[page.begin :]
    assert page.alternate is False


async def test_a_page_is_told_that_it_begins_inside_a_full_screen_program(shared_person: Person) -> None:
    script = r"printf '\033[?1049h'; seq 1 20000; printf '\033[?1049l'; seq 1 100"
    terminal = await open_terminal(shared_person, "sh", "-c", script)
    end = len(await run_in_thread(lambda: all_of(shared_person, terminal, 0)))

    def alternate(query: str) -> bool:
        with attach_terminal(shared_person, terminal, query) as page:
            return page.alternate

    assert await run_in_thread(lambda: alternate(f"after={end - 100}")) is False
    assert await run_in_thread(lambda: alternate("after=60000")) is True
    assert await run_in_thread(lambda: alternate("after=0")) is False


async def test_a_page_that_comes_too_late_for_the_beginning_sees_how_much_is_missing() -> None:
    with running_daemon("[terminal]\nmax_bytes = 65536\n") as home:
        person = person_of(home)
        terminal = await open_terminal(person, "seq", "1", "100000")
        await ended(person, terminal)

        def read() -> TerminalSocket:
            with attach_terminal(person, terminal, "after=0") as page:
                page.to_end()
            return page

        page = await run_in_thread(read)
        view = await person.get(f"terminals/{terminal}")
    assert page.gap == view["first"] > 0
    assert page.at == view["bytes"] == sum(len(str(n)) + 2 for n in range(1, 100_001))
    assert bytes(page.shown).endswith(b"100000\r\n")


async def test_a_terminal_that_ended_long_ago_is_still_shown(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "sh", "-c", "echo was here; exit 3")
    await ended(shared_person, terminal)

    def read() -> TerminalSocket:
        with attach_terminal(shared_person, terminal) as page:
            page.to_end()
        return page

    page = await run_in_thread(read)
    assert bytes(page.shown) == b"was here\r\n"
    assert (page.state["running"], page.state["exit_code"], page.closed) == (False, 3, 1000)


async def ended(person: Person, terminal: str) -> None:
    async def look() -> bool:
        return not (await person.get(f"terminals/{terminal}"))["running"]

    await eventually(look)


async def test_a_program_that_does_not_read_is_said_to_and_nothing_is_lost_silently(
    shared_person: Person,
) -> None:
    terminal = await open_terminal(shared_person, "sh", "-c", MUTE)

    def paste() -> TerminalSocket:
        with attach_terminal(shared_person, terminal) as page:
            page.until_shown(b"ready")
            page.type(b"x" * 600_000)
            page.until(lambda page: page.refused)
        return page

    (refused,) = (await run_in_thread(paste)).refused
    assert refused["what"] == "input"
    assert "is not reading" in refused["refused"]
    (left,) = re.findall(r"([\d,]+) of 600,000 bytes were not typed", refused["refused"])
    assert 300_000 < int(left.replace(",", "")) < 400_000
    await shared_person.post(f"terminals/{terminal}/close")


async def test_a_program_that_is_slow_to_read_gets_every_key(shared_person: Person) -> None:
    script = "stty raw -echo; printf ready; sleep 0.5; head -c 900000 | sha256sum"
    terminal = await open_terminal(shared_person, "sh", "-c", script)
    pasted = secrets.token_hex(450_000).encode()

    def paste() -> TerminalSocket:
        with attach_terminal(shared_person, terminal) as page:
            page.until_shown(b"ready")
            for at in range(0, len(pasted), 100_000):
                page.type(pasted[at : at + 100_000])
            page.to_end()
        return page

    page = await run_in_thread(paste)
    assert hashlib.sha256(pasted).hexdigest().encode() in page.shown
    assert page.refused == []


async def test_a_secret_that_a_person_types_is_found_nowhere(home: Home, person: Person) -> None:
    secret = f"pw-{secrets.token_hex(16)}"
    terminal = await open_terminal(person, "sh", "-c", ASKS_SECRET)

    def answer() -> None:
        with attach_terminal(person, terminal) as page:
            page.until_shown(b"Password: ")
            for key in secret:
                page.type(key.encode())
            page.type(b"\r")
            page.until_shown(b"got %d" % len(secret))
            page.type(b"seen words\r")
            page.until(lambda page: page.shown.count(b"seen words") == 2)

    await run_in_thread(answer)
    typed = await eventually(lambda: shown_lines(person, terminal))
    assert typed == ["seen words"]
    events = (await person.get("events", after=0))["entries"]
    assert secret not in str(events)
    await person.post(f"terminals/{terminal}/close")
    assert files_with(home, secret) == []
    assert files_with(home, "seen words") != [], "the search would have found it"


async def shown_lines(person: Person, terminal: str) -> list[str] | None:
    typed = (await person.get(f"terminals/{terminal}"))["typed"]
    assert all(one["person"] and one["by"] == "a person on the page" for one in typed)
    return [one["text"].rstrip("\r\n") for one in typed if one["text"]] or None


def files_with(home: Home, words: str) -> list[str]:
    """Every file under the home, database and its log included, in which these words stand."""
    root = home.places.database.parent
    files = [path for path in root.rglob("*") if path.is_file()]
    assert any(path.name.endswith("-wal") for path in files)
    return [path.name for path in files if words.encode() in path.read_bytes()]


async def test_the_size_is_set_by_the_page_that_was_typed_in_last(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "cat")

    def share() -> None:
        with ExitStack() as stack:
            one, other = (stack.enter_context(attach_terminal(shared_person, terminal)) for _ in range(2))
            assert (one.sizes, other.sizes) == (True, True), "nobody was typed in yet"
            one.resize(100, 30)
            for page in (one, other):
                page.until(lambda page: page.state["size"] == [100, 30])

            one.type(b"x")
            other.until(lambda page: not page.sizes)
            other.resize(40, 10)
            other.until(lambda page: page.refused)
            assert other.refused[0]["what"] == "size"
            assert "typed in last" in other.refused[0]["refused"]

            other.type(b"y")
            one.until(lambda page: not page.sizes)
            other.resize(50, 20)
            one.until(lambda page: page.state["size"] == [50, 20])
            one.until_shown(b"xy")
            other.until_shown(b"xy")

    await run_in_thread(share)
    assert (await shared_person.get(f"terminals/{terminal}"))["size"] == [50, 20]
    resized = await shared_person.post(f"terminals/{terminal}/size", {"cols": 70, "rows": 25})
    assert resized["size"] == [70, 25], "both have left, so anybody may"
    await shared_person.post(f"terminals/{terminal}/close")


async def test_who_takes_over_a_terminal_may_size_it(shared_person: Person) -> None:
    terminal = await open_terminal(shared_person, "cat")

    def take_over() -> None:
        with ExitStack() as stack:
            one, other = (stack.enter_context(attach_terminal(shared_person, terminal)) for _ in range(2))
            one.type(b"x")
            other.until(lambda page: not page.sizes)
            anyio.from_thread.run(shared_person.post, f"terminals/{terminal}/take")
            other.until(lambda page: page.sizes and page.state["taken"])
            assert other.state["taken"] == {"by": "a person on the page", "holds": True}
            one.until(lambda page: page.state["taken"])

    await run_in_thread(take_over)
    await shared_person.post(f"terminals/{terminal}/close")


@pytest.mark.parametrize(
    "text", ["", "{}", '{"size": [0, 5]}', '{"size": [5]}', "x" * 10_000, '{"size": "no"}']
)
async def test_what_is_not_understood_is_said_so_and_harms_nothing(shared_person: Person, text: str) -> None:
    terminal = await open_terminal(shared_person, "cat")

    def send() -> TerminalSocket:
        with attach_terminal(shared_person, terminal) as page:
            page.say(text)
            page.until(lambda page: page.refused)
            page.type(b"still here\r")
            page.until_shown(b"still here")
        return page

    assert (await run_in_thread(send)).refused[0]["what"] == "message"
    await shared_person.post(f"terminals/{terminal}/close")


@pytest.mark.parametrize("id", ["nope", "..", "%2e%2e", "..%00", "t" * 3000, "%f0%9f%92%a5"])
async def test_a_terminal_that_is_not_there_cannot_be_attached_to(shared_person: Person, id: str) -> None:
    def attach() -> None:
        with open_websocket(shared_person, f"terminals/{id}/attach") as follower:
            follower.recv(timeout=BOUND)

    with pytest.raises((ConnectionClosed, InvalidStatus)) as refused:
        await run_in_thread(attach)
    if isinstance(refused.value, ConnectionClosed):
        assert refused.value.rcvd is not None
        assert refused.value.rcvd.code == 4404


async def test_who_only_watches_sees_nothing_of_what_a_terminal_shows(
    shared_home: Home, shared_person: Person
) -> None:
    terminal = await open_terminal(shared_person, "cat")

    def attach() -> None:
        with reader(shared_home) as bearer:
            watcher = Person(shared_home, bearer)
            with open_websocket(watcher, f"terminals/{terminal}/attach") as follower:
                follower.recv(timeout=BOUND)

    with pytest.raises(InvalidStatus):
        await run_in_thread(attach)
    await shared_person.post(f"terminals/{terminal}/close")
