"""Finding the daemon: the one that lives, or one that is started, however many look at once."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from tests.support.scripted_daemon import STANDIN_DAEMON, DaemonFinder, ScriptedDaemon, started_daemons

from handrail.door.connect import DaemonNotRunning, connect, dial_path
from handrail.paths import Places


def test_a_living_daemon_is_connected_to_and_none_is_started(peer: ScriptedDaemon, places: Places) -> None:
    with connect(places, argv=["/nowhere"]):
        peer.accept()


def test_the_socket_that_daemon_json_names_is_found(places: Places, home: Path) -> None:
    elsewhere = Places.under(home / "elsewhere")
    places.make()
    places.daemon_json.write_text(json.dumps({"socket": str(elsewhere.daemon_socket)}))
    with ScriptedDaemon(elsewhere) as peer, connect(places, start=False):
        peer.accept()


@pytest.mark.parametrize("content", ["", "[]", '{"socket": 5}', '{"socket": "/nowhere"}', "\udcff"])
def test_a_spoiled_daemon_json_is_as_good_as_none(places: Places, content: str) -> None:
    places.make()
    places.daemon_json.write_text(content, errors="surrogateescape")
    with pytest.raises(DaemonNotRunning):
        connect(places, start=False)


def test_without_starting_the_absence_is_a_sentence_with_the_command_to_try(places: Places) -> None:
    with pytest.raises(DaemonNotRunning) as caught:
        connect(places, start=False)
    assert str(caught.value) == (
        f"The Handrail daemon is not running: nobody listens on {places.daemon_socket}. "
        "Start it with `handrail up`."
    )
    assert not places.logs.exists()


def test_a_socket_nobody_listens_on_any_more_is_no_daemon(places: Places) -> None:
    ScriptedDaemon(places).__exit__()
    assert places.daemon_socket.exists()
    with pytest.raises(DaemonNotRunning):
        connect(places, start=False)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can listen as another user")
def test_another_users_listener_is_not_trusted(places: Places) -> None:
    places.make()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(places.daemon_socket))
        os.seteuid(65534)
        try:
            listener.listen()
        finally:
            os.seteuid(0)
        assert dial_path(str(places.daemon_socket)) is None


def test_many_who_look_at_once_get_the_same_one_daemon(home: Path) -> None:
    lookers = [DaemonFinder(home, *STANDIN_DAEMON) for _ in range(16)]
    pids = {looker.found() for looker in lookers}
    assert pids == {about["pid"] for about in started_daemons(home)}
    assert len(started_daemons(home)) == 1
    assert (home / "attempts").read_text() == "x"  # nor did any other have to give way


def test_a_look_that_is_no_longer_wanted_starts_nothing(places: Places, home: Path) -> None:
    with pytest.raises(DaemonNotRunning):
        connect(places, argv=STANDIN_DAEMON, abandon=lambda: True)
    assert started_daemons(home) == []
