"""`handrail shell` with a real daemon and a real keeper: as transparent as `script`."""

from __future__ import annotations

import hashlib
import os
import secrets
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli_home import BOUND, Home, Json, wait_for
from tests.support.pty_session import PtySession

pytestmark = pytest.mark.e2e


SIZES = """
import os, time
shown = None
while True:
    size = os.get_terminal_size(0)
    if size != shown:
        print(size.lines, size.columns, flush=True)
    shown = size
    time.sleep(0.005)
"""


def sit(home: Home, *arguments: str, size: tuple[int, int] = (100, 30), **more: str) -> PtySession:
    (home.workspace / ".bashrc").write_text("PS1='ready> '")
    env = {**home.env, "SHELL": "/bin/bash", "TERM": "xterm-256color", "HOME": str(home.workspace), **more}
    return PtySession(home.argv("shell", *arguments), env, home.workspace, size)


def terminals(home: Home) -> list[Json]:
    """Those of this test, newest first."""
    found: list[Json] = home.ok("terminals", "--all", "--json").json
    return [row for row in found if row["cwd"].startswith(str(home.workspace))]


def ended(pid: int) -> bool:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], BOUND)[0])
    finally:
        os.close(fd)


def kill_daemon(home: Home) -> None:
    daemon = home.ok("status", "--json").json["pid"]
    fd = os.pidfd_open(daemon)
    os.kill(daemon, signal.SIGKILL)
    assert home.ended(fd)


def test_a_shell_is_typed_into_and_ends_with_its_status(handrail: Home) -> None:
    with sit(handrail, "--name", "mine") as person:
        person.sees(b"ready> ")
        person.type(b"echo $((40 + 2)) answers\r")
        person.sees(b"42 answers\r\n")
        person.type(b"false; exit 5\r")
        assert person.ends() == 5
        assert person.modes() == person.usual
    row = terminals(handrail)[0]
    assert (row["of"], row["name"], row["exit_code"], row["running"]) == ("shell", "mine", 5, False)
    assert "\n42 answers\n" in handrail.ok("terminal", "read", row["id"]).out


def test_what_is_typed_before_the_shell_is_there_is_typed_into_it_and_shown_once(handrail: Home) -> None:
    # One that leaves it to the terminal to show what is typed; bash shows again what came before its first prompt.
    with sit(handrail, SHELL="/bin/dash") as person:
        person.becomes_quiet()
        person.type(b"echo $((40 + 2)) ahead; exit 0\r")
        shown = person.sees(b"42 ahead\r\n")
        assert shown.count(b"+ 2)) ahead; exit 0\r\n") == 1
        assert person.ends() == 0


def test_the_environment_and_the_directory_are_the_callers(handrail: Home) -> None:
    odd = "a b\n'\"\\\x7fü$x"
    names = 'printf \'<%s>\' "$MY_ODD" "$TERM" "$PWD" "$HANDRAIL_TERMINAL" "$SHELL"; pwd'
    with sit(handrail, "--", "bash", "-c", names, MY_ODD=odd) as person:
        assert person.ends() == 0
    name = terminals(handrail)[0]["id"]
    here = handrail.workspace
    told = f"<{odd}><xterm-256color><{here}><{name}></bin/bash>{here}\n".encode().replace(b"\n", b"\r\n")
    assert person.seen == told


def test_the_size_is_the_windows_at_the_start_and_ever_after(handrail: Home) -> None:
    with sit(handrail, "--", sys.executable, "-c", SIZES) as person:
        person.sees(b"30 100\r\n")
        person.resize(71, 23)
        person.sees(b"23 71\r\n")
        person.resize(120, 50)
        person.sees(b"50 120\r\n")


def test_control_keys_reach_the_program(handrail: Home) -> None:
    with sit(handrail, "--", "sh", "-c", "echo one; cat; echo not reached") as person:
        person.sees(b"one\r\n")
        person.type(b"line\r")
        person.sees(b"line\r\nline\r\n")  # a shell that is about to start cat may miss the key
        person.type(b"\x03")
        assert person.ends() == -signal.SIGINT
    with sit(handrail) as person:
        person.sees(b"ready> ")
        person.type(b"echo begun; cat\r")
        person.sees(b"begun\r\n")
        person.type(b"line\r")
        person.sees(b"line\r\nline\r\n")
        person.type(b"\x1a")
        person.sees(b"Stopped")
        person.sees(b"ready> ")
        person.type(b"fg\r")
        person.sees(b"cat\r\n")
        person.type(b"\x04")
        person.sees(b"ready> ")
        person.type(b"exit 0\r")
        assert person.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_a_program_that_dies_by_a_signal_is_seen_to_do_so(handrail: Home, number: signal.Signals) -> None:
    with sit(handrail, "--", "sh", "-c", f"kill -{int(number)} $$") as person:
        assert person.ends() == -number
    assert not list(handrail.workspace.glob("core*"))


def test_closing_the_window_ends_all_of_it(handrail: Home) -> None:
    script = "setsid sleep 600 & echo pids $$ $!; exec sleep 601"
    with sit(handrail, "--", "bash", "-c", script) as person:
        pids = [int(word) for word in person.sees(b"\r\n").split()[1:]]
        person.close()
        assert person.process.wait(BOUND) == -signal.SIGHUP
        assert all(ended(pid) for pid in pids)


def test_a_killed_window_ends_all_of_it(handrail: Home) -> None:
    with sit(handrail, "--", "bash", "-c", "echo pid $$; exec sleep 601") as person:
        pid = int(person.sees(b"\r\n").split()[1])
        person.kill(signal.SIGKILL)
        assert ended(pid)


def test_a_kept_one_goes_on_without_its_window(handrail: Home) -> None:
    with sit(handrail, "--keep", "--", "sh", "-c", "read -r line; echo heard $line; read -r line") as person:
        name = person.sees(b"; it goes on").split()[-4].rstrip(b";").decode()
        person.becomes_raw()
        person.kill(signal.SIGTERM)
        assert person.ends() == -signal.SIGTERM
        assert b"goes on." in person.seen
    handrail.ok("terminal", "send", name, "nobody")
    wait_for(lambda: "heard nobody" in handrail.ok("terminal", "read", name).out or None, "what it printed")
    assert "Stopped sh" in handrail.ok("terminal", "close", name).out


def test_a_killed_daemon_is_not_noticed_and_no_byte_is_lost_or_doubled(alone: Home) -> None:
    alone.up()
    stream = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo $i; done; read -r line; echo got $line"
    with sit(alone, "--", "bash", "-c", stream) as person:
        shown = person.sees(b"\r\n1000\r\n")
        kill_daemon(alone)
        alone.up()
        shown += person.sees(b"\r\n30000\r\n")
        person.type(b"more\r")
        shown += person.sees(b"got more\r\n")
        assert person.ends() == 0
    told = [str(number).encode() for number in range(1, 30_001)] + [b"more", b"got more", b""]
    assert shown == b"\r\n".join(told)
    row = terminals(alone)[0]
    assert (row["exit_code"], row["bytes"]) == (0, len(shown))


def test_it_opens_also_when_the_daemon_was_down(alone: Home) -> None:
    with sit(alone, "--", "echo", "here") as person:
        assert person.ends() == 0
        assert person.seen == b"here\r\n"


def test_a_shell_in_a_shell_is_a_plain_one(handrail: Home) -> None:
    with sit(
        handrail, "--", *handrail.argv("shell", "--", "sh", "-c", "echo in $HANDRAIL_TERMINAL; exit 3")
    ) as person:
        assert person.ends() == 3
        name = terminals(handrail)[0]["id"]
        assert f"This is terminal {name} of Handrail already".encode() in person.seen
        assert f"in {name}\r\n".encode() in person.seen


def test_a_persons_verbs_are_refused_inside(handrail: Home) -> None:
    with sit(handrail, "--", *handrail.argv("terminal", "read", "t1")) as person:
        assert person.ends() == 1
        assert b"Do it on the page" in person.seen


def test_a_typed_secret_is_found_nowhere(alone: Home) -> None:
    alone.up()
    secret = secrets.token_hex(16).encode()
    script = "read -rsp 'Password: ' word; echo; read -r line; [ ${#word} = 32 ] && echo right $line"
    with sit(alone, "--", "bash", "-c", script) as person:
        person.sees(b"Password: ")
        person.type(secret + b"\r")
        person.sees(b"\r\n")
        person.type(b"shown\r")
        person.sees(b"right shown")
        assert person.ends() == 0
    alone.ok("down")
    found = [path for path in alone.path.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert found == []
    kept = [path for path in alone.path.rglob("*") if path.is_file() and b"right shown" in path.read_bytes()]
    assert kept, "what was shown is kept"


CORPUS = {
    "binary": "head -c 100000 data.bin",
    "burst": "head -c 1000000 data.bin | base64",
    "without a newline": "printf 'no newline at the end'",
    "nothing": "true",
    "colours": r"printf '\033[1;31mred\033[0m\033]0;title\007\n\t\b\r\a'",
    "one long line": "head -c 1000000 /dev/zero | tr '\\0' x",
    "raw": "stty raw; printf 'a\\nb\\rc'; stty sane",
    "error": "ls --color=always /nonexistent; exit 2",
}


@pytest.mark.skipif(not shutil.which("script"), reason="there is nothing to compare with")
@pytest.mark.parametrize("name", CORPUS)
def test_every_byte_is_shown_as_script_shows_it(handrail: Home, name: str) -> None:
    (handrail.workspace / "data.bin").write_bytes(bytes((i * i * 7 + i // 256) % 256 for i in range(1 << 20)))
    command, env = CORPUS[name], {**handrail.env, "SHELL": "/bin/sh"}
    with PtySession(["script", "-qec", command, "/dev/null"], env, handrail.workspace) as theirs:
        expected = theirs.rest()
    with sit(handrail, "--", "sh", "-c", command, SHELL="/bin/sh") as ours:
        shown = ours.rest()
        assert ours.process.returncode == theirs.process.returncode
    assert shown == expected


@pytest.mark.skipif(not shutil.which("script"), reason="there is nothing to compare with")
def test_what_is_piped_through_is_as_with_script(handrail: Home) -> None:
    typed = b"a line\nand more\n"
    theirs = _piped(handrail, ["script", "-qec", "cat", "/dev/null"], typed)
    ours = _piped(handrail, handrail.argv("shell", "--", "cat"), typed)
    assert (ours.returncode, ours.stderr) == (0, b"")
    assert sorted(ours.stdout.split()) == sorted(theirs.stdout.split())


@pytest.mark.parametrize(("typed", "told"), [(b"", b""), (b"no newline", b"no newline")])
def test_the_end_of_what_is_piped_in_is_the_end_for_the_program(
    handrail: Home, typed: bytes, told: bytes
) -> None:
    done = _piped(handrail, handrail.argv("shell", "--", "sh", "-c", "cat > heard"), typed)
    assert done.returncode == 0
    assert (handrail.workspace / "heard").read_bytes() == told


def test_a_large_file_can_be_piped_through(alone: Home) -> None:
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    done = _piped(alone, alone.argv("shell", "--", "sh", "-c", "sleep 0.2; sha256sum"), lines)
    assert done.returncode == 0

    assert done.stdout.split()[-2].decode() == hashlib.sha256(lines).hexdigest()


def test_the_output_may_go_to_a_pipe_while_a_person_types(handrail: Home, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        env = {**handrail.env, "SHELL": "/bin/sh"}
        argv = handrail.argv("shell", "--", "sh", "-c", "read -r line; echo got $line")
        with PtySession(argv, env, handrail.workspace, stdout=file.fileno()) as person:
            person.becomes_raw()
            person.type(b"it\r")
            assert person.ends() == 0
    assert (tmp_path / "out").read_bytes() == b"it\r\ngot it\r\n"


def _piped(home: Home, argv: list[str], typed: bytes) -> subprocess.CompletedProcess[bytes]:
    env = {**home.env, "SHELL": "/bin/sh"}
    return subprocess.run(
        argv, input=typed, env=env, cwd=home.workspace, capture_output=True, timeout=BOUND, check=False
    )
