"""Where things lie, and that no one else can put them there."""

import os
import sys
from pathlib import Path

import pytest

import handrail
from handrail.paths import SOCKET_PATH_MAX, Places, own_python

LINUX = pytest.mark.skipif(os.uname().sysname != "Linux", reason="XDG directories are Linux's")


def test_a_named_home_holds_everything_directly(tmp_path: Path) -> None:
    places = Places.find(
        {"HANDRAIL_HOME": str(tmp_path), "HOME": "/elsewhere", "XDG_DATA_HOME": "/elsewhere"}
    )
    named = [places.config, places.database, places.spool, places.blobs, places.daemon_json, places.logs]
    assert [path.relative_to(tmp_path).name for path in named] == [
        *("config.toml", "handrail.db", "spool", "blobs", "daemon.json", "logs")
    ]
    assert Places.find(places.environment).keeper_socket == places.keeper_socket


@LINUX
def test_without_one_the_xdg_directories_hold_them() -> None:
    environ = {"HOME": "/home/a", "XDG_DATA_HOME": "/data", "XDG_STATE_HOME": "relative/is/ignored"}
    places = Places.find(environ)
    assert places.config == Path("/home/a/.config/handrail/config.toml")
    assert places.database == Path("/data/handrail/handrail.db")
    assert places.keeper_lock == Path("/home/a/.local/state/handrail/keeper.lock")
    again = Places.find(places.environment)
    assert (again.database, again.keeper_lock) == (places.database, places.keeper_lock)


def test_directories_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    places = Places.under(tmp_path / "home")
    places.make()
    places.make()
    for directory in (places.data, places.spool, places.blobs, places.images, places.logs):
        assert directory.stat().st_mode & 0o777 == 0o700


def test_a_socket_lies_in_its_home_or_else_where_its_path_fits(tmp_path: Path) -> None:
    short, long = Places.under(Path("/h")), Places.under(tmp_path / ("x" * SOCKET_PATH_MAX))
    assert short.keeper_socket == Path("/h/keeper.sock")
    assert len(os.fsencode(long.keeper_socket)) <= SOCKET_PATH_MAX
    assert long.keeper_socket != long.daemon_socket
    assert long.keeper_socket.parent != Places.under(tmp_path / ("y" * SOCKET_PATH_MAX)).keeper_socket.parent
    long.make()
    assert long.keeper_socket.parent.stat().st_mode & 0o777 == 0o700
    long.keeper_socket.parent.rmdir()


def test_a_socket_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    places = Places.under(tmp_path / ("z" * SOCKET_PATH_MAX))
    places.make()
    directory = places.keeper_socket.parent
    directory.chmod(0o777)
    with pytest.raises(PermissionError, match="not a private directory"):
        places.make()
    directory.rmdir()


def test_a_fifo_in_the_place_of_a_file_is_named_before_anything_opens_it(tmp_path: Path) -> None:
    places = Places.under(tmp_path)
    places.make()
    os.mkfifo(places.config)
    with pytest.raises(OSError, match=r"config\.toml is not a regular file"):
        places.make()


def test_a_module_of_ours_is_run_isolated_unless_a_variable_names_our_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert own_python() == (sys.executable, "-I")
    monkeypatch.setenv("PYTHONPATH", f"/somewhere:{Path(handrail.__file__).parents[1]}")
    assert own_python() == (sys.executable, "-P")
