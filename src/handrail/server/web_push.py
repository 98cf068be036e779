"""Web Push: messages encrypted for one browser (RFC 8291, aes128gcm), signed with VAPID (RFC 8292), sent to its service.

Knows nothing of approvals: `daemon.push_notifications` decides what is sent and when.
"""

import base64
import http.client
import json
import os
import time
from pathlib import Path
from urllib.parse import urlsplit

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from handrail.regular_file import read_regular_file
from handrail.store.values import PushSubscription

RECORD_BYTES = 4096
TTL_SECONDS = 3600
"""How long the push service keeps a message for a phone that is off. An older question is rarely still open."""
TOKEN_SECONDS = 12 * 3600
SEND_SECONDS = 10.0
"""Bounds the wait for a push service."""
CONTACT = "mailto:handrail@localhost"


def encode_base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class PushSender:
    """Sends messages, signed with a key that is created once."""

    def __init__(self, key_file: Path) -> None:
        self._key = _load_key(key_file)

    @property
    def public_key(self) -> str:
        """The key by which a browser subscribes."""
        return encode_base64(_encode_point(self._key.public_key()))

    def send(self, subscription: PushSubscription, text: str) -> int:
        """Send one message; returns the service's status. Raises OSError or HTTPException. Blocks."""
        target = urlsplit(subscription.endpoint)
        kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
        connection = kind(target.netloc, timeout=SEND_SECONDS)
        headers = {
            "Authorization": self._sign(f"{target.scheme}://{target.netloc}"),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_SECONDS),
            "Urgency": "high",
        }
        path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"
        try:
            connection.request("POST", path, encrypt(subscription, text.encode()), headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def _sign(self, audience: str) -> str:
        claims = {"aud": audience, "exp": int(time.time()) + TOKEN_SECONDS, "sub": CONTACT}
        parts = [json.dumps(part).encode() for part in ({"typ": "JWT", "alg": "ES256"}, claims)]
        signed = ".".join(map(encode_base64, parts))
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = encode_base64(r.to_bytes(32) + s.to_bytes(32))
        return f"vapid t={signed}.{signature}, k={self.public_key}"


def encrypt(subscription: PushSubscription, message: bytes) -> bytes:
    """The body of a push message: one record, for this browser only. Raises ValueError for a bad key."""
    receiver = decode_base64(subscription.p256dh)
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver)
    own = ec.generate_private_key(ec.SECP256R1())
    sender, salt = _encode_point(own.public_key()), os.urandom(16)
    shared = own.exchange(ec.ECDH(), theirs)
    secret = _derive(decode_base64(subscription.auth), b"WebPush: info\0" + receiver + sender, 32, shared)
    key = _derive(salt, b"Content-Encoding: aes128gcm\0", 16, secret)
    nonce = _derive(salt, b"Content-Encoding: nonce\0", 12, secret)
    record = AESGCM(key).encrypt(nonce, message + b"\2", None)  # 2 ends the last record
    return salt + RECORD_BYTES.to_bytes(4) + bytes([len(sender)]) + sender + record


def _derive(salt: bytes, info: bytes, length: int, secret: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


def _encode_point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    if path.exists():
        key = load_pem_private_key(read_regular_file(path), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{path} is no key of Handrail's. Remove it to create a new one.")
        return key
    key = ec.generate_private_key(ec.SECP256R1())
    path.parent.mkdir(mode=0o700, exist_ok=True)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(pem)
    return key
