"""Public keys of browsers: ECDSA on P-256, and signatures as WebCrypto makes them."""

import base64
import binascii

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_der_public_key

KEY_MAX = 200
"""Longest public key, in bytes. A P-256 key has 91."""


class BadKey(ValueError):
    """A public key that cannot be used; the message is a sentence."""


def read_key(text: str) -> bytes:
    """The public key from base64. Raises BadKey unless it is an ECDSA P-256 key."""
    try:
        der = base64.b64decode(text, validate=True)
        key = load_der_public_key(der) if len(der) <= KEY_MAX else None
    except (ValueError, binascii.Error, TypeError) as problem:
        raise BadKey(f"The public key of this browser cannot be read: {problem}") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise BadKey("The public key of this browser is no ECDSA key on the curve P-256.")
    return der


def has_signed(key: bytes, text: bytes, signature: bytes) -> bool:
    """Whether a signature as WebCrypto makes it (r and s, 32 bytes each) is that of this key."""
    public = load_der_public_key(key)
    if len(signature) != 64 or not isinstance(public, ec.EllipticCurvePublicKey):
        return False
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    try:
        public.verify(encode_dss_signature(r, s), text, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True
