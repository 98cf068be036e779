"""The daemon's usual command line, which is parsed without the command-line package."""

import pytest

from handrail.daemon.start import ARGUMENTS, parse_port


@pytest.mark.parametrize(
    ("options", "port"),
    [
        ((), 0),
        (("--port", "8000"), 8000),
        (("--port", "65535"), 65535),
    ],
)
def test_the_usual_command_line_is_parsed(options: tuple[str, ...], port: int) -> None:
    assert parse_port((*ARGUMENTS, *options)) == port


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("up",),
        ("up", "--foreground"),
        ("up", "--no-open", "--foreground"),
        (*ARGUMENTS, "--help"),
        (*ARGUMENTS, "--port"),
        (*ARGUMENTS, "--port", "0"),
        (*ARGUMENTS, "--port", "65536"),
        (*ARGUMENTS, "--port", "9" * 5000),
        (*ARGUMENTS, "--port", "-1"),
        (*ARGUMENTS, "--port", "²"),
        (*ARGUMENTS, "--port", "80", "--port", "81"),
    ],
)
def test_any_other_one_is_left_to_the_command_line(arguments: tuple[str, ...]) -> None:
    assert parse_port(arguments) is None
