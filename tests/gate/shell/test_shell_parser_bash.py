"""What a plain line is read as is what bash runs: each program gets the very words.

The real bash reads each line with a function in place of every command, its own ones included, that notes its words.
A line with `||` is run twice, every command succeeding and every command failing, so that each of them is seen.
Patterns are left as they are written; wrappers are left out, since their inside is read by another program.
"""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.support.shell_corpus import WRITTEN

from handrail.gate.shell.bash_reader import read
from handrail.gate.shell.shell_parser import Line, parse

BASH = shutil.which("bash") or "/bin/bash"
NOTE = r"""
note() { builtin printf '%s\0' "$@" $'\1' >> "$NOTES/$BASHPID"; return "$STATUS"; }
command_not_found_handle() { note "$@"; }
builtin set -f
"""
KEPT = ("builtin", "return", "[")
"""Of bash's own commands: what `note` needs, and what is never plain."""


@cache
def prelude() -> str:
    listed = subprocess.run(
        [BASH, "-c", "compgen -b"], capture_output=True, text=True, check=True, timeout=60
    )
    return NOTE + "".join(shim(name) for name in listed.stdout.split() if name not in KEPT)


def shim(name: str) -> str:
    return f'function {name} {{ note {name} "$@"; }}\n'


pytestmark = pytest.mark.skipif(not Path(BASH).exists(), reason="there is no bash")


def is_plain(line: Line, text: str) -> bool:
    """Read without trouble, and without anything to look into."""
    words = [tuple(word.text for word in command.words) for command in read(text).commands]
    return line.plain and [part.words for part in line.parts] == words


def ran(text: str, names: set[str], folder: Path) -> set[tuple[str, ...]]:
    """The words of every command that bash ran. Each process has a file: those of a pipeline write at the same time."""
    begin, notes = folder / "begin", folder / "notes"
    begin.write_text(prelude() + "".join(shim(name) for name in names if "/" in name))
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    for status in ("0", "1") if "||" in text else ("0",):
        env = {
            "PATH": "/nowhere",
            "BASH_ENV": str(begin),
            "NOTES": str(notes),
            "STATUS": status,
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            [BASH, "-c", "--", text],
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert b"syntax error" not in done.stderr, (text, done.stderr)
    records = [record for file in notes.iterdir() for record in file.read_bytes().split(b"\x01\0")[:-1]]
    return {tuple(word.decode() for word in record.split(b"\0")[:-1]) for record in records}


def agrees(text: str, folder: Path) -> bool:
    line = parse(text)
    words = {part.words for part in line.parts}
    return ran(text, {part.words[0] for part in line.parts}, folder) == words


EVERYDAY = [line for line, _ in WRITTEN if is_plain(parse(line), line)]


def test_bash_runs_the_lines_of_the_corpus_as_they_are_read(tmp_path: Path) -> None:
    assert len(EVERYDAY) > 250
    assert [line for line in EVERYDAY if not agrees(line, tmp_path)] == []


def test_a_wrong_reading_would_be_seen(tmp_path: Path) -> None:
    assert ran("ls 'a b' | wc", set(), tmp_path) == {("ls", "a b"), ("wc",)}
    assert ran("ls && wc || pwd", set(), tmp_path) == {("ls",), ("wc",), ("pwd",)}
    assert ran("ls > x; A=1 wc", set(), tmp_path) == {("ls",), ("wc",)}


# fmt: off
PIECES = st.sampled_from(
    [
        *("a", "b", "git", "ls", "x=y", "-n", "--f=g", "1", "{}", "{a}", "a#b", "%h", "@", "^", "+", "!", "!x", "a!"),
        *("'c d'", "''", "'\"'", "'$x'", "'`'", "'\\'", "'\n'", "'#'", "'a'b", '"c d"', '""', '"\'"', '"#"', '"*"'),
        *('"$"', '"a$"', '"a$ b"', '"$|"', '"$)"', '"\\$x"', '"\\`"', '"\\""', '"\\\\"', '"\\a"', '"!"', '"\n"'),
        *("\\ ", "\\'", '\\"', "\\$", "\\;", "\\|", "\\&", "\\#", "\\a", "\\\\", "\\*", "é", "\\é", "日本", "~a", "a~"),
        *("]", "a]", "}", "a}", ",", "..", "a..b", "a,b", ":", "a:b", "=", "==", "%", "%1", "*", "?", "[a]", "in", "do"),
        *("a", "b", "c", "d", "~", "#", "{a,b}", "if", "\\\n", "=a"),
    ]
)
# fmt: on
SPACES = st.sampled_from([" ", " ", " ", "  ", "\t", "", "", " \\\n "])
SIGNS = st.sampled_from([" && ", " || ", "; ", " | ", "\n", ";", "&&", "|", " &&\n", "\n\n"])
COMMANDS = st.lists(st.tuples(PIECES, SPACES), min_size=1, max_size=5).map(
    lambda items: "x " + "".join(piece + space for piece, space in items)
)
BARE = st.lists(st.tuples(PIECES, SPACES), min_size=1, max_size=4).map(
    lambda items: "".join(piece + space for piece, space in items)
)
TEXTS = st.lists(st.tuples(st.one_of(COMMANDS, BARE), SIGNS), min_size=1, max_size=3).map(
    lambda items: "".join(command + sign for command, sign in items)
)


@given(TEXTS)
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[
        HealthCheck.filter_too_much,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)
def test_bash_runs_any_plain_line_as_it_is_read(tmp_path: Path, text: str) -> None:
    assume(is_plain(parse(text), text))
    line = parse(text)
    words = {part.words for part in line.parts}
    assert ran(text, {part.words[0] for part in line.parts}, tmp_path) == words
