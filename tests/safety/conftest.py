"""What the tests of safety share: an installation for an ordinary user, and accounts that use it."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.safety import stage
from tests.safety.account import FIRST_UID, Account

_uids = count(FIRST_UID)


@pytest.fixture(scope="session")
def python() -> Iterator[str]:
    """An interpreter with Handrail that whoever runs the daemon can use."""
    if os.getuid() != 0:
        yield sys.executable
        return
    place = Path(tempfile.mkdtemp(prefix="hr-stage-", dir="/tmp"))
    place.chmod(0o755)
    yield stage.build(place / "v")
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def new_account(python: str) -> Iterator[Callable[..., Account]]:
    """Makes accounts, each with a user of its own where the tests may choose one."""
    made: list[Account] = []

    def make(**options: object) -> Account:
        uid = next(_uids) if os.getuid() == 0 else os.getuid()
        made.append(Account(python, uid, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for account in made:
        account.down()
