"""Certificates for paired devices: created once, private, limited to local names, renewed for another address."""

import os
import socket
import ssl
import threading
from pathlib import Path

import pytest

from handrail.server.certificates import BadName, Certificates, check_name

BOUND = 20


def shake_hands(server: ssl.SSLContext, ca: Path, name: str) -> str | None:
    """The TLS version that a client which trusts this CA gets, for this name."""
    client = ssl.create_default_context(cafile=str(ca))
    here, there = socket.socketpair()
    for end in (here, there):
        end.settimeout(BOUND)

    def serve() -> None:
        with there, server.wrap_socket(there, server_side=True) as wrapped:
            wrapped.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with here, client.wrap_socket(here, server_hostname=name) as wrapped:
            wrapped.sendall(b"x")
            return wrapped.version()
    finally:
        thread.join(BOUND)


@pytest.mark.parametrize("name", ["192.168.1.20", "127.0.0.1", "fd00::1", "box.local"])
def test_a_client_that_trusts_the_ca_connects_under_the_signed_name(tmp_path: Path, name: str) -> None:
    certificates = Certificates(tmp_path / "tls")
    assert shake_hands(certificates.build_context(name), certificates.ca_file, name) == "TLSv1.3"


def test_files_are_private_and_the_ca_stays_when_the_address_changes(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "tls")
    certificates.build_context("192.168.1.20")
    first = {path.name: path.read_bytes() for path in (tmp_path / "tls").iterdir()}
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "tls").iterdir()} == dict.fromkeys(
        ("ca.crt", "ca.key", "server.crt", "server.key"), 0o600
    )
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    certificates.build_context("192.168.1.20")
    assert first == {path.name: path.read_bytes() for path in (tmp_path / "tls").iterdir()}
    context = certificates.build_context("192.168.1.21")
    assert certificates.ca_file.read_bytes() == first["ca.crt"]
    assert shake_hands(context, certificates.ca_file, "192.168.1.21") == "TLSv1.3"


@pytest.mark.parametrize("name", ["8.8.8.8", "2001:db8::1", "example.org", "local", "evil.example.local.org"])
def test_nothing_is_signed_outside_private_networks(name: str) -> None:
    with pytest.raises(BadName):
        check_name(name)


@pytest.mark.parametrize("name", ["ca.key", "ca.crt", "server.crt"])
def test_a_file_that_was_replaced_by_a_fifo_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    certificates = Certificates(tmp_path / "tls")
    certificates.build_context("127.0.0.1")
    (tmp_path / "tls" / name).unlink()
    os.mkfifo(tmp_path / "tls" / name)
    with pytest.raises(OSError, match="not a regular file"):
        certificates.build_context("127.0.0.1")
