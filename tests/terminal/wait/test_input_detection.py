"""When a look at a terminal means a question, and what its prompt is."""

import pytest

from handrail.keeper.protocol import Process, Seen
from handrail.store.values import Certainty, TerminalKind
from handrail.terminal.output.screen import RenderedScreen
from handrail.terminal.wait.input_detection import PROMPT_MAX, prompt, rests_behind_text, sureness


def seen(name: str, reading: str = "tty", *, raw: bool = False, echo: bool = True, busy: bool = True) -> Seen:
    return Seen(
        foreground=Process(7, name), busy=busy, cwd="/", echo=echo, canonical=not raw, reading=reading
    )


def screen(*lines: str, col: int, row: int) -> RenderedScreen:
    return RenderedScreen(
        lines=lines,
        cursor=(col, row),
        alternate=False,
        application_keys=False,
        bracketed_paste=False,
        title="",
    )


@pytest.mark.parametrize(
    ("look", "sure"),
    [
        (seen("python3"), "certain"),
        (seen("python3", "poll"), None),
        (seen("python3", "other"), None),
        (seen("sudo", "hidden"), None),
        (seen("ssh", echo=False), "certain"),
        (seen("su", "hidden", echo=False), "likely"),
        (seen("sleep", "other", echo=False), None),
        (seen("node", "poll", raw=True, echo=False), "likely"),
        (seen("less", raw=True, echo=False), "likely"),
        (seen("make", "other", raw=True), None),
    ],
)
def test_a_read_line_by_line_is_certain_and_in_raw_mode_nothing_is(
    look: Seen, sure: Certainty | None
) -> None:
    kinds: tuple[TerminalKind, ...] = ("command", "tracked", "shell")
    assert [sureness(look, of, None) for of in kinds] == [sure] * 3


@pytest.mark.parametrize(
    ("look", "at_prompt", "sure"),
    [
        (seen("bash", raw=True, echo=False, busy=False), None, None),
        (seen("bash", raw=True, echo=False, busy=False), True, None),
        (seen("bash", busy=False), None, "certain"),
        (seen("bash", busy=False), False, "certain"),
        (seen("bash", raw=True, busy=False), None, "likely"),
        (seen("sh", busy=False), None, None),
        (seen("sh", busy=False), False, "certain"),
        (seen("sh"), None, "certain"),
        (seen("zsh", raw=True, echo=False), None, None),
        (seen("bash", echo=False, busy=False), None, "certain"),
        (seen("python3", raw=True, echo=False, busy=False), None, "likely"),
    ],
)
def test_a_shell_at_its_own_prompt_asks_nothing(
    look: Seen, at_prompt: bool | None, sure: Certainty | None
) -> None:
    assert sureness(look, "tracked", at_prompt) == sure


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("sh", True),
        ("/bin/sh -i", True),
        ("-sh -l", True),
        ("sh -o vi", True),
        ("sh -eo pipefail", True),
        ("sh -s one two", True),
        ("sh --", True),
        ("sh --rcfile /w/rc -i", True),
        ("sh --init-command x", True),
        ("fish -C x -l", True),
        ("sh -C script", False),
        ("sh -c x", False),
        ("sh -ec x", False),
        ("sh -o vi -c x", False),
        ("sh --command=x", False),
        ("sh -Command x", False),
        ("sh script one", False),
        ("sh -e script", False),
        ("sh -- script", False),
    ],
)
def test_a_shell_that_was_started_to_run_something_is_at_no_prompt_of_its_own(line: str, reads: bool) -> None:
    name = "fish" if line.startswith("fish") else "sh"
    for_line, by_key = seen(name, busy=False), seen(name, raw=True, echo=False, busy=False)
    if name == "sh":
        assert sureness(for_line, "tracked", None, line.split()) == (None if reads else "certain")
    assert sureness(by_key, "tracked", None, line.split()) == (None if reads else "likely")
    assert sureness(for_line, "tracked", True, line.split()) is None, "its marks know better"


def test_a_shell_that_another_program_became_is_at_its_prompt() -> None:
    assert sureness(seen("sh", busy=False), "tracked", None, ("env", "-i", "sh")) is None
    assert (
        sureness(seen("zsh", raw=True, echo=False, busy=False), "tracked", None, ("sh", "-c", "exec zsh"))
        is None
    )
    assert sureness(seen("zsh", raw=True, echo=False), "tracked", None, ("zsh", "-c", "zsh; true")) is None


def test_a_shell_that_a_command_waits_in_asks() -> None:
    assert sureness(seen("bash", raw=True, echo=False, busy=False), "command", None) == "likely"


def test_nobody_in_the_foreground_asks_nothing() -> None:
    nobody = Seen(foreground=None, busy=False, cwd=None, echo=True, canonical=True, reading="hidden")
    assert sureness(nobody, "command", None) is None


@pytest.mark.parametrize(
    ("shown", "rests"),
    [
        (screen("? name: ", col=8, row=0), True),
        (screen("? name:", col=8, row=0), True),
        (screen("~", "", col=0, row=1), False),
        (screen("some text", col=4, row=0), False),
        (screen("日本語", col=6, row=0), True),
        (screen(col=0, row=5), False),
    ],
)
def test_a_cursor_behind_text_at_its_lines_end_rests_there(shown: RenderedScreen, rests: bool) -> None:
    assert rests_behind_text(shown) == rests


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (screen("old", "Password: ", col=10, row=1), "Password:"),
        (screen("What now:", "", col=0, row=1), "What now:"),
        (screen("Some output.", "", col=0, row=1), ""),
        (screen("", col=0, row=0), ""),
        (screen("x" * 500, col=500, row=0), "x" * PROMPT_MAX),
    ],
)
def test_a_prompt_is_what_stands_before_the_cursor(shown: RenderedScreen, text: str) -> None:
    assert prompt(shown) == text
