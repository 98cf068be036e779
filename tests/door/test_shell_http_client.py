"""One request as a person, and the sentences when it fails."""

import threading

import pytest
from tests.support.scripted_daemon import ScriptedDaemon, ScriptedKeeper

from handrail.door.shell import Refused, post
from handrail.paths import Places


def test_what_the_daemon_answers_is_given_back(places: Places) -> None:
    with ScriptedKeeper(places, (200, {"a": [1, "ü"]})) as keeping:
        assert post(places, "/api/terminals", {"x": "ü"}) == {"a": [1, "ü"]}
        assert keeping.asked["x"] == "ü"
        assert keeping.asked["head"][0] == b"post /api/terminals http/1.1"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((422, {"detail": "There is no folder."}), "There is no folder."),
        ((500, None), "The daemon refused this .500. without a reason."),
    ],
)
def test_a_refusal_is_the_daemons_sentence(places: Places, answer: tuple[int, object], sentence: str) -> None:
    with ScriptedKeeper(places, answer), pytest.raises(Refused, match=sentence) as refused:
        post(places, "/api/terminals", {})
    assert refused.value.is_gone is False


def test_a_daemon_that_hangs_up_is_gone(places: Places, peer: ScriptedDaemon) -> None:

    threading.Thread(target=lambda: peer.accept().die(), daemon=True).start()
    with pytest.raises(Refused) as refused:
        post(places, "/api/terminals", {})
    assert refused.value.is_gone is True
