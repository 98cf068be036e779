"""`handrail pair`: a QR code and a code to type, the device that uses it, the status, and the end of it."""

import json
import re
import ssl
import urllib.request

import pytest
from tests.support.browser_keys import BrowserKey
from tests.support.cli_home import BOUND, Home, Screen
from tests.support.daemon_home import free_port

pytestmark = pytest.mark.e2e


def test_a_phone_is_paired_by_the_code_on_the_screen_and_signed_out(handrail: Home) -> None:
    assert "devices" not in handrail.ok("status").out
    port = free_port()
    with Screen(handrail, "pair", "--address", "127.0.0.1", "--port", str(port)) as screen:
        drawn = screen.shows("enter the code:")
        assert drawn.count("█") > 100, "a QR code"
        shown = re.search(r"([0-9A-Z]{4}-){2}[0-9A-Z]{4}", screen.shows("It works once"))
        assert shown is not None
        screen.shows("Waiting for the device")
        pair(f"https://127.0.0.1:{port}", f"{handrail.path}/tls/ca.crt", shown[0])
        screen.shows("✓ paired  Firefox on Android")
        assert screen.ends() == 0
    assert f"1 device paired, listening at https://127.0.0.1:{port}" in handrail.ok("status").out
    (device,) = [row for row in handrail.ok("sign-ins", "--json").json if row["device"]]
    assert "Firefox on Android (paired)" in handrail.ok("sign-ins").out

    again = handrail.ok("pair").out
    assert (f"https://127.0.0.1:{port}" in again, "█" in again) == (True, False), "goes on where it listens"
    handrail.ok("sign-ins", "revoke", device["id"])
    assert "Nothing listens for devices any more" in handrail.ok("pair", "--stop").out
    assert handrail.run("pair", "--stop").code == 1
    assert "devices" not in handrail.ok("status").out


def test_an_address_that_is_not_this_machines_or_not_private_is_refused(handrail: Home) -> None:
    assert "Choose another" in handrail.run("pair", "--address", "192.168.255.254").err
    assert "no private address" in handrail.run("pair", "--address", "8.8.8.8").err
    assert "name of the proxy" in handrail.run("pair", "--behind-proxy").err


def pair(url: str, ca: str, code: str) -> None:
    body = {"code": code, "key": BrowserKey().public, "name": "Firefox on Android"}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/api/sign-in", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(
        request, timeout=BOUND, context=ssl.create_default_context(cafile=ca)
    ) as reply:
        assert reply.status == 200
