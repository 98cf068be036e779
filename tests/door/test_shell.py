"""`handrail shell` against a keeper that the test speaks for: what is shown, what is typed, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.pty_session import HANDRAIL, PtySession
from tests.support.scripted_daemon import BOUND, SRC, TERMINAL, ScriptedKeeper

from handrail.door import attach_client
from handrail.door.shell import LINE
from handrail.door.window import LAG_MAX
from handrail.keeper.protocol import PROTOCOL, Failed, Input, Resize, Unrecorded
from handrail.paths import Places


@pytest.fixture
def keeping(places: Places) -> Iterator[ScriptedKeeper]:
    with ScriptedKeeper(places) as made:
        yield made


def environ(home: Path, **more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "HANDRAIL_HOME": str(home), "SHELL": "/bin/sh", **more}


def sit(home: Path, *arguments: str, **more: str) -> PtySession:
    return PtySession(
        [*HANDRAIL, "shell", *arguments], environ(home, **more), home if home.is_dir() else None
    )


def test_the_protocol_is_the_keepers() -> None:
    assert attach_client.PROTOCOL == PROTOCOL


def test_what_the_program_prints_is_shown_and_what_is_typed_reaches_it(
    home: Path, keeping: ScriptedKeeper
) -> None:
    with sit(home) as person:
        hello = keeping.welcome()
        assert (hello.want, hello.terminal, hello.ends) == ("attach", TERMINAL, True)
        keeping.prints(b"\x1b[31mred\x1b[0m $ ")
        person.sees(b"\x1b[31mred\x1b[0m $ ")
        person.type(b"ls\r")
        assert keeping.typed() == b"ls\r"
        keeping.prints(b"more\r\n")
        keeping.exits(7)
        assert person.ends() == 7
        assert person.seen.endswith(b"more\r\n")
        assert person.modes() == person.usual


def test_the_daemon_is_asked_for_a_shell_like_the_callers(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home, "--keep", "--name", "mine", "--", "sh", "-c", "exit 0", COLOUR="blue\ngreen") as person:
        assert keeping.welcome().ends is False
        keeping.exits()
        assert person.ends() == 0
        assert f"`handrail terminal read {TERMINAL}`".encode() in person.seen
    asked = keeping.asked
    assert b"authorization: bearer b" in asked["head"]
    assert (asked["of"], asked["name"], asked["keep"]) == ("shell", "mine", True)
    assert asked["command"] == ["sh", "-c", "exit 0"]
    assert (asked["cols"], asked["rows"], asked["cwd"]) == (100, 30, str(home))
    assert asked["env"]["COLOUR"] == "blue\ngreen"
    assert asked["env"]["TERM"] == "xterm"


def test_every_key_goes_to_the_program(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        for key in (b"\x03", b"\x1a", b"\x1c", b"\x04", b"\x00", b"\x1b[A", b"\x11\x13", b"\xff\xfe", b"\r"):
            person.type(key)
            assert keeping.typed() == key
        keeping.exits()
        assert person.ends() == 0


def test_a_new_size_is_told(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        person.resize(91, 17)
        while (told := keeping.told(Resize)).cols != 91:
            assert told.cols == 100
        assert told.rows == 17
        keeping.exits()
        assert person.ends() == 0


def test_what_is_typed_while_the_program_does_not_read_is_offered_again(
    home: Path, keeping: ScriptedKeeper
) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        person.type(b"first")
        refused = keeping.told(Input)
        keeping.say(Failed(refused.id, "It is not reading."))
        assert keeping.typed() == refused.data
        person.type(b"second")
        assert keeping.typed() == b"second"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV])
def test_a_program_that_a_signal_ended_takes_us_along(
    home: Path, keeping: ScriptedKeeper, number: signal.Signals
) -> None:
    with sit(home) as person:
        keeping.welcome()
        keeping.prints(b"last")
        keeping.exits(None, number.name)
        assert person.ends() == -number
        assert person.seen.endswith(b"last")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_window_ends_it_with_its_terminal_as_it_was(
    home: Path, keeping: ScriptedKeeper, number: signal.Signals
) -> None:
    with sit(home, "--keep") as person:
        keeping.welcome()
        person.becomes_raw()
        person.kill(number)
        assert person.ends() == -number
        assert person.modes() == person.usual
        assert keeping.hung_up()
        assert b"goes on." in person.seen


def test_a_closed_window_ends_the_connection(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        person.close()
        assert keeping.hung_up()
        assert person.process.wait(BOUND) == -signal.SIGHUP


def test_a_keeper_that_ends_is_told(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        keeping.welcome()
        keeping.prints(b"last words")
        keeping.dies()
        assert person.ends() == 1
        assert b"last words" in person.seen
        assert b"keeper has ended" in person.seen
        assert person.modes() == person.usual


def test_a_window_that_shows_nothing_holds_up_no_key_and_holds_no_output(
    home: Path, keeping: ScriptedKeeper
) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        keeping.prints(b"x" * 900_000)  # far more than a terminal holds
        person.type(b"k")
        assert keeping.typed() == b"k"
        keeping.prints(b"y" * 3_000_000)
        person.type(b"l")
        assert keeping.typed() == b"l"
        keeping.exits()
        shown = person.rest()
    assert shown.endswith(b"y" * 100_000)
    assert b"came faster than this window shows them]" in shown
    # It may fall behind more than once; each time is told where it happened.
    told = re.compile(rb"\[Handrail: ([\d,]+) bytes came faster than this window shows them\]")
    lost = sum(int(count.replace(b",", b"")) for count in told.findall(shown))
    rest = told.sub(b"", shown)
    assert rest.count(b"x") + rest.count(b"y") + lost == 3_900_000


def test_an_interrupt_passes_over_what_the_window_lags_behind(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        keeping.prints(b"x" * (LAG_MAX + 500_000))
        person.type(b"a")
        assert keeping.typed() == b"a"
        person.type(b"\x03")
        assert keeping.typed() == b"\x03"
        keeping.prints(b"$ ")
        keeping.exits()
        shown = person.rest()
    assert shown.endswith(b"x$ ")
    assert b"[Handrail: interrupted; " in shown
    assert len(shown) < 200_000


def test_output_that_is_no_longer_kept_is_told_once(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        keeping.welcome()
        keeping.prints(b"before")
        keeping.say(Unrecorded(TERMINAL, keeping.output.size, "The disk is full."))
        person.sees(b"[Handrail: The disk is full. What is printed from here on is not shown.]")
        keeping.exits()
        assert person.ends() == 0
        assert b"disk" not in person.seen


def test_in_a_terminal_of_handrail_the_shell_is_a_plain_one(home: Path) -> None:
    with sit(home, "--", "sh", "-c", "echo in $HANDRAIL_TERMINAL; exit 4", HANDRAIL_TERMINAL="t9") as person:
        assert person.ends() == 4
        assert b"This is terminal t9 of Handrail already" in person.seen
        assert b"in t9\r\n" in person.seen


def test_without_a_terminal_a_shell_is_a_plain_one(home: Path) -> None:
    done = piped(home, b"echo $((20 + 1)); exit 5\n", "shell")
    assert (done.returncode, done.stdout) == (5, b"21\n")
    assert b"The input is no terminal" in done.stderr


def test_what_is_piped_in_is_typed_with_an_end(home: Path, keeping: ScriptedKeeper) -> None:
    with subprocess.Popen(
        [*HANDRAIL, "shell", "--", "cat"],
        env={**environ(home), "PYTHONPATH": str(SRC)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as door:
        keeping.welcome()
        assert door.stdin
        assert door.stdout
        door.stdin.write(b"no newline")
        door.stdin.close()
        assert keeping.typed() == b"no newline"
        assert keeping.typed() == b"\x04\x04"
        keeping.prints(b"no newline")
        keeping.exits()
        assert door.stdout.read() == b"no newline"
        assert door.wait(BOUND) == 0
    assert keeping.asked["command"] == ["cat"]


def test_a_reader_that_leaves_ends_it(home: Path, keeping: ScriptedKeeper) -> None:
    with subprocess.Popen(
        [*HANDRAIL, "shell", "--", "yes"],
        env={**environ(home), "PYTHONPATH": str(SRC)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as door:
        keeping.welcome()
        assert door.stdout
        door.stdout.close()
        # It may read the output, and be gone, before it is told of it.
        with contextlib.suppress(BrokenPipeError):
            keeping.prints(b"y\n" * 100)
        assert door.wait(BOUND) == -signal.SIGPIPE
        assert keeping.hung_up()


def test_a_command_that_is_not_there_is_told_as_a_shell_would(home: Path) -> None:
    done = piped(home, b"", "shell", "--", "no-such-program")
    assert (done.returncode, done.stderr) == (127, b"handrail shell: no-such-program: command not found\n")


def test_a_refusal_is_a_sentence_and_with_or_plain_a_shell_nevertheless(home: Path, places: Places) -> None:
    with ScriptedKeeper(places, (403, {"detail": "Only a person may do this."})):
        with sit(home) as person:
            assert person.ends() == 1
            assert person.seen == b"Only a person may do this.\r\n"
        with sit(home, "--or-plain", "--", "sh", "-c", "echo here; exit 6") as person:
            assert person.ends() == 6
            assert person.seen == b"Not kept by Handrail: Only a person may do this.\r\nhere\r\n"


def test_no_daemon_is_3_and_with_or_plain_a_shell_nevertheless(home: Path) -> None:
    blocked = home / "blocked"
    blocked.write_text("no folder can be made here")
    with sit(blocked) as person:
        assert person.ends() == 3
        assert b"The Handrail daemon is not running" in person.seen
    with sit(blocked, "--or-plain") as person:
        person.sees(b"Not kept by Handrail: ")
        person.type(b"echo $((4 + 4))0; exit 9\n")
        assert person.ends() == 9
        assert b"80\r\n" in person.seen


def test_the_profile_is_offered_once_and_only_in_vs_code(home: Path, keeping: ScriptedKeeper) -> None:
    for more, offered in (
        ({}, False),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"TERM_PROGRAM": "vscode"}, False),
    ):
        with sit(home, **more) as person:
            keeping.welcome()
            keeping.exits()
            assert person.ends() == 0
            assert (LINE.encode() in person.seen) is offered


def test_the_modes_of_the_window_are_as_before_also_when_the_program_left_them(
    home: Path, keeping: ScriptedKeeper
) -> None:
    with sit(home) as person:
        keeping.welcome()
        person.becomes_raw()
        assert not person.modes()[3] & (termios.ECHO | termios.ISIG)
        keeping.exits()
        assert person.ends() == 0
        assert person.modes() == person.usual


def piped(home: Path, typed: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*HANDRAIL, *arguments],
        input=typed,
        env={**environ(home), "PYTHONPATH": str(SRC)},
        capture_output=True,
        timeout=BOUND,
        check=False,
    )


def test_an_interrupt_before_there_is_anything_to_show_ends_it_with_the_window_as_it_was(
    home: Path, places: Places
) -> None:
    places.make()
    with socket.socket(socket.AF_UNIX) as silent:  # a daemon that never answers
        silent.bind(str(places.daemon_socket))
        silent.listen()
        with sit(home) as person:
            person.becomes_quiet()
            person.type(b"\x03")
            assert person.ends() == -signal.SIGINT
            assert person.modes() == person.usual
        with sit(home) as person:
            person.becomes_quiet()
            person.kill(signal.SIGTERM)
            assert person.ends() == -signal.SIGTERM
            assert person.modes() == person.usual


def test_what_is_typed_before_it_is_shown_is_typed_as_it_is(home: Path, keeping: ScriptedKeeper) -> None:
    with sit(home) as person:
        person.becomes_quiet()
        person.type(b"ls\r\x7f\x1b[A")
        keeping.welcome()
        typed = b""
        while typed != b"ls\r\x7f\x1b[A":
            typed += keeping.typed()
        keeping.exits()
        assert person.ends() == 0
        assert person.seen == b""
