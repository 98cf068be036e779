"""The key of a browser, as WebCrypto has it: for tests that sign in without a browser."""

import base64

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from handrail.server.sign_ins import challenge_text


class BrowserKey:
    """A new ECDSA key on P-256."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    @property
    def public(self) -> str:
        """As the page sends it."""
        spki = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(spki).decode()

    @property
    def pem(self) -> str:
        """The private key, as somebody may find it in a browser's profile."""
        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()

    def sign(self, sign_in: str, nonce: str) -> bytes:
        """As WebCrypto does: r and s, 32 bytes each."""
        r, s = decode_dss_signature(self._key.sign(challenge_text(sign_in, nonce), ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)
