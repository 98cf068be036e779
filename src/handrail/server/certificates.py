"""TLS certificates for paired devices: a CA that is created once, and a server certificate for one address.

A person installs the CA on a phone. It is limited to private addresses and local names, so that its key, if somebody
copies it, is of no use against other sites.
"""

import ipaddress
import os
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from handrail.regular_file import read_regular_file

CA_DAYS = 3650
SERVER_DAYS = 397
"""Longest lifetime that Apple's systems accept for a server certificate of any CA."""
RENEW_DAYS = 30
PRIVATE_RANGES = (
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16", "127.0.0.0/8"),
    *("fc00::/7", "fe80::/10", "::1/128"),
)
LOCAL_DOMAINS = ("local", "lan", "internal", "home.arpa", "localhost", "ts.net")


class BadName(ValueError):
    """A name or address for which the CA signs nothing; the message is a sentence."""


class Certificates:
    """The files of the CA and of the server certificate, in a folder that is private to the user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def ca_file(self) -> Path:
        return self._folder / "ca.crt"

    @property
    def ca_fingerprint(self) -> str:
        """SHA-256 of the CA's certificate, as phones show it."""
        digest = x509.load_pem_x509_certificate(read_regular_file(self.ca_file)).fingerprint(hashes.SHA256())
        return digest.hex(":").upper()

    def build_context(self, name: str) -> ssl.SSLContext:
        """The server's side of TLS for this name or address. Creates or renews what is missing. Raises BadName."""
        check_name(name)
        self._folder.mkdir(mode=0o700, exist_ok=True)
        key, certificate = self._get_ca()
        chain, server_key = self._folder / "server.crt", self._folder / "server.key"
        if not _is_good(chain, name, certificate):
            new = ec.generate_private_key(ec.SECP256R1())
            _write_private(server_key, _encode_key(new))
            _write_private(chain, _sign_server(name, new, key, certificate).public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain, server_key)
        return context

    def _get_ca(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key_file = self._folder / "ca.key"
        if key_file.exists() and self.ca_file.exists():
            key = load_pem_private_key(read_regular_file(key_file), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{key_file} is no key of Handrail's")
            return key, x509.load_pem_x509_certificate(read_regular_file(self.ca_file))
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _sign_ca(key)
        _write_private(key_file, _encode_key(key))
        _write_private(self.ca_file, certificate.public_bytes(Encoding.PEM))
        return key, certificate


def check_name(name: str) -> None:
    """Raise BadName unless the CA may sign for this name or address."""
    address = parse_address(name)
    if address is not None:
        ranges = [ipaddress.ip_network(each) for each in PRIVATE_RANGES]
        if not any(address in each for each in ranges if each.version == address.version):
            raise BadName(
                f"{name} is no private address. Handrail listens on private networks only; for others use Tailscale, or Caddy "
                "with --behind-proxy."
            )
    elif name != _own_name() and not name.endswith(tuple(f".{domain}" for domain in LOCAL_DOMAINS)):
        domains = ", ".join(f".{domain}" for domain in LOCAL_DOMAINS)
        raise BadName(
            f"The CA signs only for local names ({domains}), not for {name}. For another name use --behind-proxy."
        )


def parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _own_name() -> str:
    return socket.gethostname().lower()


def _sign_ca(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    names = [x509.IPAddress(ipaddress.ip_network(each)) for each in PRIVATE_RANGES]
    domains = [x509.DNSName(domain) for domain in dict.fromkeys((*LOCAL_DOMAINS, _own_name()))]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Handrail on {_own_name()}"[:64])])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    return (
        _begin(subject, subject, key, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.NameConstraints([*names, *domains], None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _sign_server(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    ca_key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
) -> x509.Certificate:
    address = parse_address(name)
    alternative = x509.DNSName(name) if address is None else x509.IPAddress(address)
    # Not the name: OpenSSL would take an address here for a host name, which the CA may not sign.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Handrail server")])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _begin(subject, ca.subject, key, SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(ca_key, hashes.SHA256())
    )


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # the phone's clock may be behind
        .not_valid_after(now + timedelta(days=days - 1))
    )


def _is_good(chain: Path, name: str, ca: x509.Certificate) -> bool:
    """Whether the stored certificate is for this name, by this CA, and does not end soon."""
    if not chain.exists():
        return False
    certificate = x509.load_pem_x509_certificate(read_regular_file(chain))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    shown = [str(each.value) for each in names]
    lasts = certificate.not_valid_after_utc - datetime.now(UTC) > timedelta(days=RENEW_DAYS)
    try:
        certificate.verify_directly_issued_by(ca)
    except Exception:
        return False
    return shown == [name] and lasts


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_private(path: Path, content: bytes) -> None:
    """Replace a file by one that only this user can read."""
    new = path.with_suffix(f"{path.suffix}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
    new.replace(path)
