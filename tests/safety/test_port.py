"""The port on which people come in belongs to Handrail for as long as anybody is signed in, daemon or no daemon."""

import socket
from collections.abc import Callable

import pytest
from tests.support.user_account import Account, Attacker, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

New = Callable[..., Account]


@pytest.mark.parametrize("address", ["its port", "the other address"])
def test_a_command_that_kills_the_daemon_cannot_take_its_port_and_wait_for_the_page(
    new_account: New, address: str
) -> None:
    if address == "the other address" and not has_ipv6():
        pytest.skip("needs IPv6 on loopback")
    hostile = Attacker(new_account())
    where = hostile.account.where
    hostile.order("directly", [f"waits for the page on {address}"])
    until((hostile.account.workspace / "port").exists, "the attack tries the port")
    if (hostile.account.workspace / "port").read_text() == "had":
        show_the_bearer(where, hostile.person, address)  # as a page does that comes back
    got = hostile.loot().of(f"waits for the page on {address}")
    assert got.code != 0, got.said
    assert "not to be had" in got.said


@pytest.mark.parametrize("name", ["localhost", "[::1]"])
def test_a_page_opened_by_another_name_is_sent_to_the_address_and_signed_in_by_no_other(
    new_account: New, name: str
) -> None:
    """So that no bearer exists for a name that leads elsewhere, as where the port is forwarded."""
    account = new_account()
    account.start()
    port = account.where.partition(":")[2]
    bearer, host = account.sign_in(), {"host": f"{name}:{port}"}
    page = account.http("GET", "/t/1?a=b", headers=host)
    assert (page.status, page.headers["location"]) == (307, f"http://127.0.0.1:{port}/t/1?a=b")
    assert account.http("GET", "/api/state", bearer, headers=host).status == 421
    code = account.link().partition("#code=")[2]
    assert account.http("POST", "/api/sign-in", body={"code": code}, headers=host).status == 421
    assert account.http("POST", "/api/sign-in", body={"code": code}).status == 200


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def show_the_bearer(where: str, bearer: str, address: str) -> None:
    host, _, port = where.partition(":")
    host = "::1" if address == "the other address" else host
    with socket.create_connection((host, int(port)), timeout=60) as page:
        page.sendall(
            f"GET /api/state HTTP/1.1\r\nHost: {where}\r\nAuthorization: Bearer {bearer}\r\n\r\n".encode()
        )
