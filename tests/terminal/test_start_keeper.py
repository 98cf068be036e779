"""How a keeper is started: with little of our environment, and found again by the next who looks."""

import os
from pathlib import Path

import anyio
import pytest
from tests.support.keeper_terminals import BOUND, running_keeper, until
from tests.support.processes import cwd_of, is_alive

from handrail.paths import Places
from handrail.terminal.start_keeper import KeeperLauncher, NoKeeperError, clean_environment
from handrail.terminal.terminal import Terminal


def test_a_clean_environment_holds_no_secret_and_leads_to_the_same_places(tmp_path: Path) -> None:
    places = Places.under(tmp_path)
    dirty = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "XDG_DATA_HOME": "/d",
        "AWS_SECRET_ACCESS_KEY": "x",
        "LD_PRELOAD": "y",
    }
    clean = clean_environment(dirty, places)
    assert clean == {"PATH": "/bin", "LC_ALL": "C", "XDG_DATA_HOME": "/d", "HANDRAIL_HOME": str(tmp_path)}


async def test_where_no_keeper_lives_nothing_is_found(home: Path) -> None:
    assert await KeeperLauncher(Places.under(home), 1.0).connect() is None


async def test_a_keeper_that_cannot_start_is_said_to_have_left_a_log(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.terminal.start_keeper.START_SECONDS", 0.3)
    places = Places.under(home)
    places.make()
    places.keeper_socket.mkdir()
    with anyio.fail_after(BOUND), pytest.raises(NoKeeperError, match=r"keeper\.log"):
        await KeeperLauncher(places, 1.0).start()


async def test_a_keeper_is_a_session_of_its_own_at_the_root(home: Path) -> None:
    async with running_keeper(home) as scene:
        pid = scene.keeper.pid
        assert os.getsid(pid) == pid
        if os.getuid() == 0:
            assert cwd_of(pid) == "/"
        terminal = await scene.open("sleep", "1000")
        assert isinstance(terminal, Terminal)
        assert os.getsid(terminal.pid) == terminal.pid
    await until(lambda: not is_alive(pid))
