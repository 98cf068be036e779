"""`handrail pair`: let a phone connect, by a QR code; and stop that."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.failure import Failure
from handrail.cli.render.output import note, print_json, say

if TYPE_CHECKING:
    from handrail.cli.wire import ListenBody, PairCode

LOOK_SECONDS = 1.0
"""Interval at which the command looks for the device that it waits for."""


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "pair",
        "handrail pair",
        "handrail pair --name box.local",
        "handrail pair --behind-proxy --name box.example.ts.net",
        "handrail pair --stop",
    )(pair)


def pair(
    address: Annotated[
        str | None, typer.Option(metavar="IP", help="Address of this machine to listen on.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port to listen on.")] = None,
    name: Annotated[str | None, typer.Option(help="Host name for the link, instead of the address.")] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy on this machine (Tailscale, Caddy) has the TLS.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop listening for devices.")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Let a phone or another computer connect, by a QR code."""
    with reach("person") as link:
        if stop:
            link.delete("devices", "listener")
            say(
                "Nothing listens for devices any more. They stay paired; `handrail sign-ins revoke ID` ends that."
            )
            return
        body: ListenBody = {
            "address": address,
            "port": port,
            "name": name,
            "behind_proxy": behind_proxy or None,
        }
        paired = _list_devices(link)
        code = link.post("devices", "listener", body=body)
        if as_json_:
            print_json(code)
            return
        _show(code)
        if sys.stdout.isatty():
            _wait(link, code["seconds"], set(paired))


def _show(code: PairCode) -> None:
    devices = code["devices"]
    if sys.stdout.isatty():
        import segno  # noqa: PLC0415 - only this command draws

        segno.make(code["url"], error="l", micro=False).terminal(compact=True, border=2)
    say(
        "Scan it with the camera of your phone, or open ",
        (devices["url"] or "", "bold"),
        " there and enter the code:",
    )
    say("  ", (code["code"], "bold"))
    say((f"It works once, for {code['seconds'] / 60:.0f} minutes. {code['url']}", "dim"))
    if devices["ca_file"]:
        say(f"The first time, install Handrail's certificate on the phone: {devices['url']}/handrail-ca.crt")
        say((f"  or copy {devices['ca_file']}; SHA-256 {devices['ca_fingerprint']}", "dim"))
    if devices["limited"]:
        say("Devices may not allow high risk: that is done at your desk.")


def _wait(link: Link, seconds: float, before: set[str]) -> None:
    """Wait for the device, as long as its code is valid. Raises Failure then. Ctrl-C leaves the code valid."""
    note(("Waiting for the device … Ctrl-C to leave; the code stays valid.", "dim"))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for device, name in _list_devices(link).items():
            if device not in before:
                say(("✓ paired", "green"), f"  {name} ({device})")
                return
        time.sleep(LOOK_SECONDS)
    raise Failure("No device used the code in time. Run `handrail pair` again for a new one.")


def _list_devices(link: Link) -> dict[str, str]:
    return {row["id"]: row["name"] or "a device" for row in link.get("sign-ins") if row["device"]}
