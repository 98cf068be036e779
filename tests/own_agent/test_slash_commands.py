import pytest

from handrail.own_agent.slash_commands import Command, help_text, list_commands, parse_command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", Command("help", "")),
        (" /model  openai:gpt ", Command("model", "openai:gpt")),
        ("/compact keep the names", Command("compact", "keep the names")),
        ("/etc/hosts is wrong", None),
        ("/helpful", None),
        ("help", None),
        ("", None),
    ],
)
def test_a_command_is_one_of_ours_at_the_very_beginning(text: str, command: Command | None) -> None:
    assert parse_command(text) == command


def test_help_names_every_command_that_is_listed() -> None:
    told = help_text("openai:some", "high", 3)
    assert all(f"`/{each['name']}" in told for each in list_commands())
