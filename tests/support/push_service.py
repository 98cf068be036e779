"""A push service on loopback: takes messages as a browser vendor's does, and decrypts them as the browser would."""

import base64
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.daemon_home import BOUND


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class PushService:
    """One subscription, its private key, and the messages that came for it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = b"sixteen bytes ok"
        self.messages: Queue[str] = Queue()
        self.status = 201
        self.url = ""

    @property
    def subscription(self) -> dict[str, Any]:
        """As the browser's `PushSubscription.toJSON()`."""
        return {
            "endpoint": f"{self.url}/push/1",
            "keys": {"p256dh": encode(self._point), "auth": encode(self._auth)},
        }

    @property
    def _point(self) -> bytes:
        return self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    def wait(self) -> str:
        """The next message, decrypted. Raises queue.Empty."""
        return self.messages.get(timeout=BOUND)

    def take(self, headers: dict[str, str], body: bytes) -> None:
        check_vapid(headers["authorization"], self.url)
        assert (headers["content-encoding"], int(headers["ttl"]) > 0) == ("aes128gcm", True)
        self.messages.put(self.decrypt(body).decode())

    def decrypt(self, body: bytes) -> bytes:
        """RFC 8291: one record, for this key."""
        salt, length = body[:16], body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self._key.exchange(ec.ECDH(), theirs)
        secret = _derive(self._auth, b"WebPush: info\0" + self._point + sender, 32, shared)
        key = _derive(salt, b"Content-Encoding: aes128gcm\0", 16, secret)
        nonce = _derive(salt, b"Content-Encoding: nonce\0", 12, secret)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert padded.endswith(b"\2"), "the last record"
        return padded[:-1]


def check_vapid(authorization: str, audience: str) -> None:
    """Verify the signature of the server's token, as a push service does."""
    parts = dict(part.strip().split("=", 1) for part in authorization.removeprefix("vapid ").split(","))
    signed, _, signature = parts["t"].rpartition(".")
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decode(parts["k"]))
    raw = decode(signature)
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
    assert json.loads(decode(signed.split(".")[1]))["aud"] == audience


def _derive(salt: bytes, info: bytes, length: int, secret: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


@contextmanager
def push_service() -> Generator[PushService]:
    service = PushService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            service.take({name.lower(): text for name, text in self.headers.items()}, body)
            self.send_response(service.status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join(BOUND)
