"""What an agent says, as the terminal gets it."""

from typing import Any

import pytest

from handrail.cli.render._markdown_lines import MarkdownLines
from handrail.cli.render.chat_output import AnswerPrinter, show_stop_reason


def grown(kind: str, text: str = "", data: Any = None, n: int = 0) -> Any:
    return {"message": "m1", "n": n, "kind": kind, "at": 0, "text": text, "data": data}


def call(status: str) -> dict[str, Any]:
    return {"title": "Look\naround", "tool": "", "status": status, "call": "c1"}


def test_words_follow_each_other_and_a_new_part_begins_a_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    speech = AnswerPrinter(thoughts=True)
    for part in (
        grown("thought", "hm"),
        grown("thought", "m"),
        grown("text", "a ", n=1),
        grown("text", "b", n=1),
    ):
        speech.show(part)
    speech.end_line()
    speech.end_line()
    assert capsys.readouterr().out == "hmm\na b\n"


def test_thoughts_are_shown_only_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    AnswerPrinter(thoughts=False).show(grown("thought", "hm"))
    assert capsys.readouterr().out == ""


def test_a_call_is_told_once_for_each_state_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    speech = AnswerPrinter(thoughts=False)
    for status in ("pending", "in_progress", "in_progress", "completed"):
        speech.show(grown("call", data=call(status)))
    assert capsys.readouterr().out == "◐ Look\\naround  (c1)\n✓ Look\\naround  (c1)\n"


def test_a_call_whose_id_becomes_known_while_it_runs_is_not_told_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    speech = AnswerPrinter(thoughts=False)
    speech.show(grown("call", data=call("in_progress") | {"call": None}))
    speech.show(grown("call", data=call("in_progress")))
    speech.show(grown("call", data=call("completed")))
    assert capsys.readouterr().out == "◐ Look\\naround\n✓ Look\\naround  (c1)\n"


def test_a_note_stands_on_lines_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    speech = AnswerPrinter(thoughts=False)
    for part in (grown("text", "Hm"), grown("note", "\nAsked\nagain.\n\n", n=1), grown("text", "Yes.", n=2)):
        speech.show(part)
    assert capsys.readouterr().out == "Hm\nAsked\nagain.\nYes."


def test_nothing_that_is_said_can_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    speech = AnswerPrinter(thoughts=True)
    evil = "\x1b]0;owned\x07"
    data = {"said": [evil], "logins": [{"name": evil, "command": "", "id": "1", "description": ""}]}
    entries = {"entries": [{"content": evil, "status": "pending", "priority": "low"}]}
    speech.show(grown("text", evil))
    speech.show(grown("error", evil, data, n=1))
    speech.show(grown("plan", data=entries, n=2))
    speech.show(grown("note", evil, n=3))
    speech.show(grown("raw", evil, n=4))
    shown = capsys.readouterr().out
    assert shown.count("\\e]0;owned") == 6
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("stop", "told"), [("end_turn", ""), ("cancelled", "Stopped.\n"), ("failed", "It failed.\n")]
)
def test_only_an_unusual_end_is_told(stop: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_stop_reason(stop)
    assert capsys.readouterr().err == told


def test_markdown_is_styled_line_by_line_and_its_words_stay() -> None:
    lines = MarkdownLines()
    text = "# Plan\n- **first** `ls -l`\n- [x] done\n```sh\n# no heading\n```\n> said\n2 * 3 * 4 and a_b_c\n\x1b[31mred"
    shown = [lines.render(line) for line in text.split("\n")]
    assert shown == [
        [("Plan", "bold")],
        ["• ", ("first", "bold"), (" ", ""), ("ls -l", "cyan")],
        ["☑ ", ("done", "")],
        [],
        [("    # no heading", "cyan")],
        [],
        [("│ ", "dim"), ("said", "italic")],
        [("2 * 3 * 4 and a_b_c", "")],
        [("\\e[31mred", "")],
    ]
