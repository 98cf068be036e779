"""Every reader of a command line takes linear time: twice the text costs about twice the time.

One word of 95,000 letters kept the daemon busy for 45 seconds, before any approval. Processor time of this thread is
measured, so that other work on the machine does not count.
"""

import gc
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.gate.risk import assess
from handrail.gate.rules.suggestions import suggest_pattern
from handrail.gate.shell.bash_reader import read
from handrail.gate.shell.shell_parser import find_hidden, parse
from handrail.gate.shell.wrappers import FLAGS, find_extra_effects
from handrail.store.values import Claim
from handrail.tools.commands.command_claims import command_claims, hosts, text_typed
from handrail.tools.results import printable_line
from handrail.tools.workspace import Workspace

SIZE = 40_000
SHORT = 0.01
"""Seconds for the whole size: what is done by then freezes nothing, and is too short to compare."""
MOST = 3.2
"""Times as long for twice the text. Linear is 2, quadratic 4."""
TRIES = 4

PIECES = [
    *(
        "a",
        "Z",
        "0",
        "-",
        ".",
        "/",
        ":",
        "@",
        "=",
        "~",
        "{",
        "}",
        "[",
        "]",
        "*",
        "?",
        "!",
        "#",
        "%",
        "+",
        ",",
        "_",
    ),
    *("\\", "'", '"', "$", "`", "(", ")", "<", ">", "&", "|", ";", " ", "\n", "\t", "\r", "é", "\u202e"),
    *(
        "a ",
        "a.",
        "a:",
        "a=",
        "-a ",
        "{,",
        "$(",
        "://",
        "a@",
        "a?",
        "<<E\n",
        "a\n",
        "* ",
        "-- ",
        "= ",
        "edit",
        "%output",
    ),
]
OPTIONS = ("a", "-", "- ", "a ", "= ", "-a ", "--a ", "-- ", "%", "+ ", ". ", "edit", "\\d")
PROGRAMS = (
    *(
        "apt",
        "awk",
        "cargo",
        "cmake",
        "ctags",
        "curl",
        "docker",
        "docker-compose",
        "emacs",
        "exit",
        "fd",
        "file",
        "find",
        "gcc",
        "gh",
        "git",
        "go",
    ),
    *(
        "gradle",
        "helm",
        "kubectl",
        "less",
        "make",
        "man",
        "mvn",
        "ninja",
        "npm",
        "openssl",
        "patch",
        "pip",
        "printf",
    ),
    *(
        "psql",
        "rg",
        "rsync",
        "rustc",
        "scp",
        "sed",
        "shuf",
        "sort",
        "split",
        "sqlite3",
        "ssh-keygen",
        "tar",
        "test",
    ),
    *(
        "bazel",
        "cpio",
        "diff3",
        "dpkg",
        "eslint",
        "exiftool",
        "javac",
        "ld",
        "mypy",
        "mysql",
        "nmap",
        "pandoc",
    ),
    *("prettier", "pylint", "rpm", "rubocop", "ss"),
    *("ag", "fzf", "nc", "tcpdump", "hg", "svn", "gpg", "ip", "uniq", "vim", "wget", "xxd", "yq", "zip"),
)


def text_of(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def seconds(work: Callable[[], object]) -> float:
    """Without garbage collections: in a process with much else in memory, the larger text would pay for more of them."""
    gc.disable()
    try:
        began = time.thread_time()
        work()
        return time.thread_time() - began
    finally:
        gc.enable()


def is_linear(work: Callable[[str], object], piece: str) -> bool:
    whole, half = text_of(piece, SIZE), text_of(piece, SIZE // 2)
    wholes: list[float] = []
    halves: list[float] = []
    for _ in range(TRIES):
        wholes.append(seconds(lambda: work(whole)))
        if wholes[-1] < SHORT:
            return True
        halves.append(seconds(lambda: work(half)))
        if wholes[-1] < MOST * halves[-1] or min(wholes) < MOST * min(halves):
            return True
    return False


def claim(words: tuple[str, ...]) -> Claim:
    return Claim(action="run", resource=" ".join(words), inside=True, words=words)


READERS: dict[str, Callable[[str], object]] = {
    "read": lambda text: read(f"ls {text}"),
    "parse": lambda text: parse.__wrapped__(f"ls {text}"),
    "hidden": lambda text: list(find_hidden(text)),
    "line": printable_line,
    "typed": lambda text: text_typed(Claim(action="type", resource="", inside=True), text),
    "risk": lambda text: assess([claim(("git", *text.split(" ")))]),
    "rule": lambda text: suggest_pattern(claim(("ls", *text.split(" ")))),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_of_a_line_takes_linear_time(reader: str) -> None:
    assert [piece for piece in PIECES if not is_linear(READERS[reader], piece)] == []


@pytest.mark.parametrize("program", ["ls", "grep -r"])
def test_claims_are_made_in_linear_time(tmp_path: Path, program: str) -> None:
    workspace = Workspace(str(tmp_path))

    def claims(text: str) -> object:
        line = parse(f"{program} {text}")
        return line.cut or command_claims(line, workspace.place("."), workspace, "/usr/bin:/bin")

    assert [piece for piece in PIECES if not is_linear(claims, piece)] == []


@pytest.mark.parametrize("program", ["curl", "git", "scp", "ssh", "ls"])
def test_hosts_are_found_in_linear_time(program: str) -> None:
    def find(text: str) -> list[str]:
        return list(hosts((program, *text.split(" "))))

    assert [piece for piece in PIECES if not is_linear(find, piece)] == []


def test_effects_of_options_are_found_in_linear_time() -> None:
    slow = [
        (program, piece)
        for program in PROGRAMS
        for piece in OPTIONS
        if not is_linear(lambda text, name=program: list(find_extra_effects((name, *text.split(" ")))), piece)
    ]
    assert slow == []


def test_every_row_of_the_table_is_measured() -> None:
    """A new row for a program that is not measured fails here."""
    rows = [key.split(" ", 1)[0] for key in FLAGS]
    assert [row for row in rows if not any(re.fullmatch(row, name) for name in PROGRAMS)] == []


def test_the_measure_notices_a_quadratic_reader() -> None:
    """Noise may hide it once: a half that is measured too long. It never hides it each time."""

    def compare_all(text: str) -> int:
        letters = text[::40]
        return sum(one == other for one in letters for other in letters)

    assert not all(is_linear(compare_all, "a") for _ in range(10))
