"""What a daemon leaves on disk so that it is found."""

import json
import os
import stat
from pathlib import Path

from handrail.daemon.state_files import DaemonFile
from handrail.paths import Places


def plate(home: Path, wished: int = 7433) -> DaemonFile:
    places = Places.under(home)
    places.make()
    return DaemonFile(places, wished)


def test_the_port_that_was_had_is_tried_first_where_the_wish_is_the_same(home: Path) -> None:
    assert plate(home).ports == (7433,)
    plate(home).note_port(7440)
    assert plate(home).ports == (7440, 7433)
    assert plate(home, 8000).ports == (8000,)


def test_a_note_that_makes_no_sense_is_none(home: Path) -> None:
    plate(home)
    (home / "port").write_text("seven\n")
    assert plate(home).ports == (7433,)


def test_it_hangs_from_when_it_is_put_up_until_it_is_taken_down_and_is_the_persons_own(home: Path) -> None:
    hung = plate(home)
    assert not hung.hangs
    hung.put_up("http://127.0.0.1:7440")
    assert plate(home).hangs
    about = json.loads((home / "daemon.json").read_text())
    assert (about["pid"], about["url"]) == (os.getpid(), "http://127.0.0.1:7440")
    assert stat.S_IMODE((home / "daemon.json").stat().st_mode) == 0o600
    hung.take_down()
    hung.take_down()
    assert not plate(home).hangs
