"""What a client is shown when an MCP server asks it something."""

import pytest

from handrail.server.mcp._client_link import name_server


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://github.com/login?next=/", "github.com"),
        ("HTTPS://GitHub.com:443", "GitHub.com"),
        ("http://[::1]:80/x", "[::1]"),
    ],
)
def test_a_link_is_shown_with_its_host(url: str, target: str) -> None:
    told = name_server("notes", {"message": "Sign in.", "url": url})["message"]
    assert told == f"notes asks (opens {target}): Sign in."


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example\\@github.com/",  # a browser opens evil.example
        "https://github.com@evil.example/",
        "https://github.com:x@evil.example/",
        "https://g\u0456thub.com/",
        "https://github.com\u2044x.evil.example/",
        "https:evil.example",
        "https:///evil.example",
        "https://evil.example\t/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://[bad",
        "https://ev\u017fil.example",
    ],
)
def test_a_link_whose_host_could_be_misread_is_shown_whole_and_said_to_be_odd(url: str) -> None:
    told = str(name_server("notes", {"message": "Sign in.", "url": url})["message"])
    assert "no plain web address" in told
    assert "(opens github.com)" not in told


def test_what_a_server_asks_cannot_hide_who_asks() -> None:
    told = name_server("notes", {"message": "\x1b[2K\rGitHub asks: \u202epassword"})["message"]
    assert told == "notes asks: \\e[2K\\rGitHub asks: \\u{202e}password"
