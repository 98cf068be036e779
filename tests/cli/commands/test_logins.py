"""`handrail servers login` prints a link, waits for the browser, and says how it ended; `logout` deletes the tokens."""

from collections.abc import Iterator

import httpx
import pytest
from tests.support.cli_home import BOUND, Home, Screen
from tests.support.mcp_servers.over_http import Web, http_servers

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with http_servers() as web:
        yield web


@pytest.fixture
def private(handrail: Home, web: Web) -> Iterator[Home]:
    handrail.ok("servers", "add", "private", "--url", web.url("private"))
    yield handrail
    handrail.ok("servers", "remove", "private")


def link_of(screen: Screen) -> str:
    shown = screen.shows("Waiting for up to 10 minutes")
    return next(word for word in shown.split() if word.startswith("http") and "ticket=" in word)


def browse(url: str, **changes: str) -> None:
    """Follow the link as a browser does, which may bring something else back."""
    server = httpx.get(url, timeout=BOUND).headers["location"]
    back = httpx.get(server, timeout=BOUND).headers["location"]
    httpx.get(str(httpx.URL(back).copy_merge_params(changes)), timeout=BOUND)


def test_a_person_signs_in_and_out(private: Home, web: Web) -> None:
    assert "needs sign-in" in private.run("servers", "test", "private").out
    assert "! needs sign-in" in private.ok("servers").out
    assert "`handrail servers login private`" in private.ok("servers").err

    private.env["COLUMNS"] = "1000"
    with Screen(private, "servers", "login", "private", "--print") as screen:
        browse(link_of(screen))
        screen.shows("✓ signed in")
        assert screen.ends() == 0
    private.env["COLUMNS"] = "200"
    assert "✓ works" in private.ok("servers", "test", "private").out

    assert "tokens are deleted" in private.ok("servers", "logout", "private").out
    assert private.run("servers", "logout", "private").code == 1
    assert "needs sign-in" in private.run("servers", "test", "private").out


def test_a_sign_in_that_was_refused_says_why(private: Home) -> None:
    private.env["COLUMNS"] = "1000"
    with Screen(private, "servers", "login", "private", "--print") as screen:
        browse(link_of(screen), error="access_denied", code="")
        screen.shows(
            "Nobody is signed in to private. The authorization server of private says: access_denied"
        )
        assert screen.ends() == 1
    private.env["COLUMNS"] = "200"


def test_a_server_with_a_command_has_nothing_to_sign_in_to(handrail: Home) -> None:
    handrail.ok("servers", "add", "local", "--", "true")
    assert "nothing to sign in to" in handrail.run("servers", "login", "local").err
    assert "There is no server over HTTP nobody" in handrail.run("servers", "login", "nobody").err
    handrail.ok("servers", "remove", "local")
