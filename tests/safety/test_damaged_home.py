"""A home with damaged files: `handrail up` ends in time with one sentence, as does the doctor. As an ordinary user."""

import os
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.user_account import Account

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

BOUND = 20.0
"""Seconds for a command on an idle machine, where it takes two. A hang takes at least the 15 of a start."""
START_SECONDS = 15.0
"""For so long, `up` waits for a daemon in the background."""
BUSY_SECONDS = 5.0
"""A foreground start that takes so long shows a busy machine."""


@pytest.fixture(scope="module")
def sound(new_account: Callable[..., Account]) -> Account:
    """An account whose daemon has run and ended; a copy of its home is kept."""
    account = new_account()
    account.start()
    assert account.handrail("down").returncode == 0
    shutil.copytree(account.home, account.root / "copy", ignore=shutil.ignore_patterns("*.sock"))
    return account


@pytest.fixture
def account(sound: Account) -> Generator[Account]:
    yield sound
    sound.kill()
    shutil.rmtree(sound.home)
    shutil.copytree(sound.root / "copy", sound.home)
    for path in (sound.home, *sound.home.rglob("*")):
        os.chown(path, sound.uid, sound.uid)


def database(account: Account) -> Path:
    return account.home / "handrail.db"


def empty(account: Account) -> None:
    database(account).write_bytes(b"")


def remove(account: Account) -> None:
    database(account).unlink()


def make_read_only(account: Account) -> None:
    for path in account.home.glob("handrail.db*"):
        path.chmod(0o400)


def make_folder_read_only(account: Account) -> None:
    account.home.chmod(0o500)


def overwrite(account: Account) -> None:
    database(account).write_bytes(os.urandom(50_000))


def spoil_rule(account: Account) -> None:
    with closing(sqlite3.connect(database(account))) as connection:
        (last,) = connection.execute("SELECT max(seq) FROM events").fetchone()
        row = ("r-bad", "{nonsense", "person", None, 1, None, None, last)
        connection.execute("INSERT INTO rules VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        connection.commit()


def replace_by_fifo(name: str) -> Callable[[Account], None]:
    def damage(account: Account) -> None:
        path = account.home / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        os.chown(path, account.uid, account.uid)

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(empty, "is empty, but the journal had", id="empty database"),
        pytest.param(remove, "is empty, but the journal had", id="no database"),
        pytest.param(make_read_only, "The journal could not be written", id="read-only database"),
        pytest.param(
            make_folder_read_only, "ermission denied|The journal could not be written", id="read-only folder"
        ),
        pytest.param(overwrite, "file is not a database", id="random bytes"),
        pytest.param(
            replace_by_fifo("config.toml"), "config.toml is not a regular file", id="FIFO as config"
        ),
        pytest.param(
            replace_by_fifo("handrail.db"), "handrail.db is not a regular file", id="FIFO as database"
        ),
        pytest.param(
            replace_by_fifo("handrail.head"), "handrail.head is not a regular file", id="FIFO as head"
        ),
        pytest.param(
            replace_by_fifo("daemon.json"), "daemon.json is not a regular file", id="FIFO as daemon.json"
        ),
        pytest.param(replace_by_fifo("port"), "port is not a regular file", id="FIFO as port"),
        pytest.param(
            replace_by_fifo("logs/daemon.log"), "daemon.log is not a regular file", id="FIFO as log"
        ),
    ],
)
def test_a_damaged_home_gives_one_sentence_in_time(
    account: Account, damage: Callable[[Account], None], words: str
) -> None:
    damage(account)
    began = time.monotonic()
    check_refusal(account.handrail("up", "--foreground", "--no-open"), words)
    took = time.monotonic() - began

    began = time.monotonic()
    done = account.handrail("up", "--no-open")
    assert time.monotonic() - began < max(BOUND, START_SECONDS + 4 * took)
    is_busy = took > BUSY_SECONDS and "nobody came to its socket in time" in done.stderr
    check_refusal(done, "nobody came to its socket in time" if is_busy else words)
    checked = account.handrail("doctor")
    assert "Traceback" not in checked.stderr
    assert checked.stdout


def check_refusal(done: "subprocess.CompletedProcess[str]", words: str) -> None:
    assert done.returncode in (1, 3)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert re.search(words, done.stderr), done.stderr
    assert "+--" not in done.stderr


def test_a_row_that_cannot_be_read_is_named_and_not_used(account: Account) -> None:
    spoil_rule(account)
    assert "a rule r-bad that no event added" in account.handrail("doctor").stdout
    started = account.handrail("up", "--no-open")
    assert started.returncode == 0
    assert "a rule r-bad that no event added" in started.stdout
    assert "r-bad" not in account.handrail("rules", "--all").stdout
