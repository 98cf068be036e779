"""`handrail editors`: an editor that asks is listed with its number, paired by that number, and refused."""

from collections.abc import Iterator

import pytest
from tests.support.cli_home import Home
from tests.support.editor_process import EditorTree

from handrail.paths import Places

pytestmark = pytest.mark.e2e


@pytest.fixture
def editor(handrail: Home) -> Iterator[EditorTree]:
    with EditorTree(str(Places.under(handrail.path).daemon_socket)) as tree:
        yield tree


def test_without_an_editor_the_list_says_how_to_get_one(handrail: Home) -> None:
    assert "handrail connect vscode" in handrail.ok("editors").err


def test_an_editor_is_paired_by_its_number_and_the_pairing_is_taken_back(
    handrail: Home, editor: EditorTree
) -> None:
    editor.connect("host")
    asked = editor.read_reply()
    assert str(asked["number"]) in handrail.ok("editors").out
    assert "asks to be paired" in handrail.ok("editors").out

    wrong = handrail.run("editors", "pair", asked["editor"], "--number", str(asked["number"] % 899 + 100))
    assert wrong.code == 1
    assert "Compare the number" in wrong.err
    unseen = handrail.run("editors", "pair", asked["editor"])
    assert "add --number" in unseen.err

    handrail.ok("editors", "pair", asked["editor"][:6], "--number", str(asked["number"]))
    assert editor.read_reply()["approves"] is True
    assert "decides" in handrail.ok("editors").out

    handrail.ok("editors", "refuse", asked["editor"])
    assert editor.read_reply()["approves"] is False
