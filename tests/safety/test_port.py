"""The port on which people come in belongs to Handrail for as long as anybody is signed in, daemon or no daemon."""

import socket
from collections.abc import Callable

import pytest
from tests.support.user_account import Account, Attacker, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

New = Callable[..., Account]


def test_a_command_that_kills_the_daemon_cannot_take_its_port_and_wait_for_the_page(new_account: New) -> None:
    hostile = Attacker(new_account())
    where = hostile.account.where
    hostile.order("directly", ["waits for the page on its port"])
    until((hostile.account.workspace / "port").exists, "the attack tries the port")
    if (hostile.account.workspace / "port").read_text() == "had":
        show_the_bearer(where, hostile.person)  # as a page does that comes back
    got = hostile.loot().of("waits for the page on its port")
    assert got.code != 0, got.said
    assert "not to be had" in got.said


def show_the_bearer(where: str, bearer: str) -> None:
    host, _, port = where.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as page:
        page.sendall(
            f"GET /api/state HTTP/1.1\r\nHost: {where}\r\nAuthorization: Bearer {bearer}\r\n\r\n".encode()
        )
