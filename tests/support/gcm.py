"""Google Cloud Messaging on loopback: Chromium gets real push subscriptions from it, and real messages.

Speaks what the browser needs of checkin and registration (HTTP) and of MCS, the connection over which messages arrive
(TLS, version 41), and takes messages as a push service does. It cannot decrypt them.
"""

import secrets
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.support.daemon_home import BOUND
from tests.support.push_service import check_vapid

MCS_VERSION = b"\x29"
PING, PONG, LOGIN_RESPONSE, DATA_MESSAGE = 0, 1, 3, 8
"""Tags of MCS frames."""


def encode_varint(value: int) -> bytes:
    head, rest = value & 0x7F, value >> 7
    return bytes([head | 0x80]) + encode_varint(rest) if rest else bytes([head])


def encode_field(number: int, value: int | bytes | str) -> bytes:
    """A field of a protobuf message: an integer, or bytes with their length."""
    if isinstance(value, int):
        return encode_varint(number << 3) + encode_varint(value)
    data = value.encode() if isinstance(value, str) else value
    return encode_varint(number << 3 | 2) + encode_varint(len(data)) + data


def encode_fixed64(number: int, value: int) -> bytes:
    return encode_varint(number << 3 | 1) + value.to_bytes(8, "little")


@dataclass
class GcmServer:
    """What browsers registered, and their open MCS connections."""

    url: str = ""
    mcs: str = ""
    bodies: list[bytes] = field(default_factory=list[bytes])
    """The messages that were sent, encrypted."""
    _registered: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _connections: list[ssl.SSLSocket] = field(default_factory=list[ssl.SSLSocket])
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _logged_in: threading.Event = field(default_factory=threading.Event)

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of Chromium, which then knows no other server."""
        return (
            f"--gcm-checkin-url={self.url}/checkin",
            f"--gcm-registration-url={self.url}/register",
            f"--gcm-mcs-endpoint={self.mcs}",
        )

    def post(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """The status and the body of a response."""
        if path == "/checkin":
            fields = (encode_field(1, 1), encode_fixed64(7, 73310), encode_fixed64(8, 4711))
            return 200, b"".join(fields)
        if path == "/register":
            token = secrets.token_urlsafe(40)
            self._registered[token] = dict(parse_qsl(body.decode()))
            return 200, f"token={token}".encode()
        check_vapid(headers["authorization"], self.url)
        assert headers["content-encoding"] == "aes128gcm"
        self.bodies.append(body)
        self._deliver(self._registered[path.rpartition("/")[2]], body)
        return 201, b""

    def _deliver(self, registered: dict[str, str], body: bytes) -> None:
        data = {"subtype": registered["X-subtype"], "content-encoding": "aes128gcm"}
        message = b"".join(
            (
                encode_field(2, f"m{len(self.bodies)}"),
                encode_field(3, registered["sender"]),
                encode_field(5, registered["app"]),
                *(
                    encode_field(7, encode_field(1, key) + encode_field(2, text))
                    for key, text in data.items()
                ),
                encode_field(9, f"p{len(self.bodies)}"),
                encode_field(21, body),
            )
        )
        assert self._logged_in.wait(BOUND), "no browser has connected"
        _send(self._connections[-1], DATA_MESSAGE, message)

    def serve_mcs(self, listener: socket.socket, context: ssl.SSLContext) -> None:
        """Accept connections until the listener is closed."""
        while True:
            try:
                plain, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._talk, args=(plain, context))
            thread.start()
            self._threads.append(thread)

    def _talk(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        with (
            suppress(OSError, EOFError),
            plain,
            context.wrap_socket(plain, server_side=True) as connection,
            connection.makefile("rb") as stream,
        ):
            version = stream.read(1)
            if not version:
                return  # Chromium opens connections that it does not use
            assert version == MCS_VERSION
            _read_frame(stream)  # the login
            connection.sendall(MCS_VERSION)
            _send(connection, LOGIN_RESPONSE, encode_field(1, "login"))
            self._connections.append(connection)
            self._logged_in.set()
            while True:
                if _read_frame(stream) == PING:
                    _send(connection, PONG, b"")

    def close(self) -> None:
        """End the connections that are still open."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(BOUND)


def _send(connection: ssl.SSLSocket, tag: int, message: bytes) -> None:
    connection.sendall(bytes([tag]) + encode_varint(len(message)) + message)


def _read_frame(stream: BinaryIO) -> int:
    """Read one frame; its tag. Raises EOFError."""
    tag, size, shift = stream.read(1), 0, 0
    if not tag:
        raise EOFError
    while True:
        (byte,) = stream.read(1)
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    stream.read(size)
    return tag[0]


def _write_certificate(folder: Path) -> ssl.SSLContext:
    """A certificate that nobody signed: the browser is told to accept it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1)
    )
    signed = built.sign(key, hashes.SHA256())
    file = folder / "mcs.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(pem + signed.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@contextmanager
def gcm_server(folder: Path) -> Generator[GcmServer]:
    """A server of its own; its certificate is written to the folder."""
    gcm = GcmServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, answer = gcm.post(
                self.path, {name.lower(): text for name, text in self.headers.items()}, body
            )
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    context = _write_certificate(folder)
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gcm.url = f"http://127.0.0.1:{web.server_port}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gcm.mcs = f"https://localhost:{listener.getsockname()[1]}"
        threads = [
            threading.Thread(target=web.serve_forever, daemon=True),
            threading.Thread(target=gcm.serve_mcs, args=(listener, context), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield gcm
        finally:
            web.shutdown()
            web.server_close()
            gcm.close()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(BOUND)
