"""Tries: taking the daemon's port while it is down, to be given what a page brings when it comes back."""

import socket
from pathlib import Path

from .ground import Got, Order, Try, about, kill, where
from .postures import after_killing_the_daemon_which_a_door_starts_again
from .web import approve


def waits_for_the_page_on_its_port(order: Order) -> Got:
    """Kill the daemon, listen where it listened, and have a daemon again once a page has shown its bearer."""
    return _wait_for_page(order, where().partition(":")[0], socket.AF_INET)


def waits_for_the_page_on_the_other_loopback_address(order: Order) -> Got:
    """The same on [::1], which browsers try first for `localhost`."""
    return _wait_for_page(order, "::1", socket.AF_INET6)


def _wait_for_page(order: Order, host: str, family: socket.AddressFamily) -> Got:
    port = int(where().partition(":")[2])
    kill(about()["pid"])
    try:
        bearer = _listen(host, port, family)
    except OSError as error:
        Path("port").write_text("taken")
        return Got(1, f"the port is not to be had: {error}")
    after_killing_the_daemon_which_a_door_starts_again()
    return approve(order, bearer)


def _listen(host: str, port: int, family: socket.AddressFamily) -> str:
    with socket.socket(family) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
        Path("port").write_text("had")
        with listener.accept()[0] as page:
            said = page.recv(65536).decode()
    return said.partition("Bearer ")[2].split()[0]


TRIES: dict[str, Try] = {
    "waits for the page on its port": waits_for_the_page_on_its_port,
    "waits for the page on the other address": waits_for_the_page_on_the_other_loopback_address,
}
