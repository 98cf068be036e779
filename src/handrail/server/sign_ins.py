"""Sign-ins of the page: one-time codes, the bearers of a browser, and the key by which it signs in again.

A device (a phone) signs in by a short code of its own sort, on the listener for devices only, and its bearers are good
only there. A browser registers a public key with its first sign-in and keeps the private key where no script can read it. After a
reload it signs a challenge and gets another bearer. All of this is held in memory, and by the keeper for the next daemon,
never on disk. The key alone is not enough: `api.sign_in` also checks the process that signs in, because other processes
of the user can read the browser's profile.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, field, replace
from typing import Any, Literal

import anyio

from handrail.gate.call import new_id
from handrail.lazy_dataclass import dataclass
from handrail.store.events import PersonSignedIn, SignInRevoked
from handrail.store.journal import Journal
from handrail.store.values import PushSubscription

CODE_SECONDS = 60.0
"""Lifetime of a sign-in code. Bounds how long a link on a screen or in a shell's history can be misused."""
CHALLENGE_SECONDS = 30.0
"""Lifetime of a challenge. Bounds how long a signature can be used."""
PAIR_SECONDS = 300.0
"""Lifetime of a pairing code. Longer than that of a link: a person scans it, or types it on a phone."""
MOST_MISSES = 20
"""Wrong codes of devices after which the pairing codes are dropped. Bounds guessing: a code has 60 bits."""
PAIR_LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ0123456789"
"""Letters and digits of pairing codes, 5 bits each. O is read as 0, I and L as 1."""
MOST_CODES = 100
"""Codes, challenges and sign-ins that are held. Bounds memory if a program requests them in a loop."""
MOST_BEARERS = 16
"""Valid bearers of one browser, one for each tab that signed in by itself. One more ends the oldest."""

DEVICE_PLACE = "phone"
"""Where the person of a paired device acts, for the record."""

RedeemError = Literal["unknown", "expired", "used"]
AnswerError = Literal["signed out", "unsigned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One browser that is signed in."""

    id: str
    place: str
    name: str = ""
    """What the browser calls itself."""
    at: int = 0
    """When it signed in by a code, in milliseconds since 1970."""
    seen_at: int = 0
    """When it last got a bearer."""
    key: bytes = b""
    """The public key (SubjectPublicKeyInfo, DER); empty if it has none."""
    bearers: tuple[str, ...] = ()
    """Hashes of its valid bearers, oldest first."""
    device: bool = False
    """Paired by `handrail pair`: signs in on the listener for devices, and nowhere else."""
    push: PushSubscription | None = None
    """Where push messages for this browser are sent."""


@dataclass(slots=True)
class _Code:
    expires: float
    sign_in: str | None = None
    device: bool = False
    local: bool = False


def normalize_pair_code(text: str) -> str:
    """A pairing code as it was issued, however a person typed it."""
    letters = "".join(each for each in text.upper() if each.isalnum())
    return letters.translate(str.maketrans("OIL", "011"))


def _now_ms() -> int:
    return int(time.time() * 1000)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def challenge_text(sign_in: str, nonce: str) -> bytes:
    """The text that a browser signs. It names its purpose, so that no other signature can be used for it."""
    return f"handrail sign-in\n{sign_in}\n{nonce}".encode()


@dataclass(slots=True)
class _Challenges:
    """Nonces that were issued, each for one use."""

    issued: dict[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def issue(self, sign_in: str) -> str:
        now = anyio.current_time()
        self.issued = {nonce: each for nonce, each in self.issued.items() if each[1] > now}
        while len(self.issued) >= MOST_CODES:
            del self.issued[next(iter(self.issued))]
        nonce = secrets.token_urlsafe(24)
        self.issued[nonce] = sign_in, now + CHALLENGE_SECONDS
        return nonce

    def use(self, nonce: str, sign_in: str) -> bool:
        known, expires = self.issued.pop(nonce, ("", 0.0))
        return known == sign_in and expires >= anyio.current_time()


class SignIns:
    """The browsers that are signed in, and the codes and challenges by which they do so."""

    def __init__(self, journal: Journal, kept: bytes = b"") -> None:
        """`kept` is what `keep` was called with before a restart."""
        self._journal = journal
        self._all: dict[str, SignIn] = {each.id: each for each in _load(kept)}
        self._by_bearer = {bearer: each.id for each in self._all.values() for bearer in each.bearers}
        self._codes: dict[str, _Code] = {}
        self._challenges = _Challenges()
        self._misses = 0
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Called with the serialised sign-ins after each change. The keeper holds them in memory, never on disk."""
        self.on_end: Callable[[], None] = lambda: None
        """Called after bearers became invalid."""

    @property
    def current(self) -> list[SignIn]:
        """The browsers that are signed in, oldest first."""
        return list(self._all.values())

    def of_bearer(self, hashed: str) -> SignIn | None:
        return self._all.get(self._by_bearer.get(hashed, ""))

    def get(self, sign_in: str) -> SignIn | None:
        return self._all.get(sign_in)

    def set_push(self, sign_in: str, subscription: PushSubscription | None) -> bool:
        """Set where push messages of a browser are sent; False if it is not signed in."""
        known = self._all.get(sign_in)
        if known is None:
            return False
        self._all[sign_in] = replace(known, push=subscription)
        self._save()
        return True

    def rename(self, sign_in: str, name: str) -> bool:
        """Change the name shown for a browser; False if it is not signed in."""
        known = self._all.get(sign_in)
        if known is None:
            return False
        self._all[sign_in] = replace(known, name=name)
        self._save()
        return True

    def issue_code(self, *, local: bool = False) -> str:
        """Create a one-time sign-in code for the page. The caller has checked that a person asks.

        `local`: a program on this machine gets it in its arguments, which other processes can read.
        """
        return self._add_code(secrets.token_urlsafe(24), CODE_SECONDS, local=local)

    def is_local(self, secret: str) -> bool:
        """Whether this is a code for a program on this machine, used or not."""
        code = self._codes.get(hash_secret(secret))
        return code is not None and code.local

    def issue_pair_code(self) -> str:
        """Create a one-time code that pairs a device, and drop the earlier ones. The caller has checked as above."""
        self.drop_pair_codes()
        letters = "".join(secrets.choice(PAIR_LETTERS) for _ in range(12))
        self._add_code(letters, PAIR_SECONDS, device=True)
        return "-".join((letters[:4], letters[4:8], letters[8:]))

    def drop_pair_codes(self) -> None:
        """Drop the pairing codes that were not used; a used one is kept, so that a second use is noticed."""
        self._misses = 0
        self._codes = {key: code for key, code in self._codes.items() if not code.device or code.sign_in}

    def _add_code(self, code: str, seconds: float, *, device: bool = False, local: bool = False) -> str:
        now = anyio.current_time()
        self._codes = {key: code for key, code in self._codes.items() if code.expires > now or code.sign_in}
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        self._codes[hash_secret(code)] = _Code(expires=now + seconds, device=device, local=local)
        return code

    def drop_codes(self) -> None:
        self._codes.clear()

    def redeem(
        self, secret: str, key: bytes = b"", name: str = "", *, device: bool = False
    ) -> tuple[SignIn, str] | RedeemError:
        """Exchange a code for a sign-in and its bearer, once. A second use revokes what the first use created.

        A code is good only for the listener that it was issued for: `device` says which one was used.
        """
        code = self._codes.get(hash_secret(normalize_pair_code(secret) if device else secret))
        if code is None or code.device != device:
            self._count_miss(device)
            return "unknown"
        if code.sign_in is not None:
            self.revoke(code.sign_in, "its code was used twice")
            return "used"
        if code.expires < anyio.current_time():
            return "expired"
        place = DEVICE_PLACE if device else "page"
        signed = SignIn(id=new_id("s"), place=place, name=name, at=_now_ms(), key=key, device=device)
        code.sign_in = signed.id
        self._journal.append(PersonSignedIn(sign_in=signed.id, place=signed.place, name=name))
        return self._issue_bearer(signed)

    def _count_miss(self, device: bool) -> None:
        self._misses += device
        if self._misses >= MOST_MISSES:
            self.drop_pair_codes()

    def challenge(self, sign_in: str, *, device: bool = False) -> str | None:
        """A nonce for this browser to sign; None if it is not signed in there, or has no key."""
        known = self._all.get(sign_in)
        if known is None or not known.key or known.device != device:
            return None
        return self._challenges.issue(sign_in)

    def answer(
        self, sign_in: str, nonce: str, signature: bytes, *, device: bool = False
    ) -> tuple[SignIn, str] | AnswerError:
        """Exchange a signed challenge for another bearer of the same sign-in. A challenge can be used once."""
        known = self._all.get(sign_in)
        if known is None or not known.key or known.device != device:
            return "signed out"
        if not self._challenges.use(nonce, sign_in):
            return "unsigned"
        from handrail.server.browser_key import has_signed  # noqa: PLC0415 - cryptography takes 6 MB; most days need none

        if not has_signed(known.key, challenge_text(sign_in, nonce), signature):
            return "unsigned"
        return self._issue_bearer(known)

    def revoke(self, sign_in: str, why: str) -> int | None:
        """End a sign-in with all its bearers; returns the journal position to await, or None if there is no such one."""
        known = self._all.pop(sign_in, None)
        if known is None:
            return None
        seq = self._journal.append(SignInRevoked(sign_in=sign_in, why=why))
        self._save()
        self.on_end()
        return seq

    def _issue_bearer(self, signed: SignIn) -> tuple[SignIn, str]:
        bearer = secrets.token_urlsafe(32)
        bearers = (*signed.bearers, hash_secret(bearer))[-MOST_BEARERS:]
        signed = replace(signed, bearers=bearers, seen_at=_now_ms())
        self._all[signed.id] = signed
        while len(self._all) > MOST_CODES:
            del self._all[next(iter(self._all))]
        self._save()
        self.on_end()
        return signed, bearer

    def _save(self) -> None:
        self._by_bearer = {bearer: each.id for each in self._all.values() for bearer in each.bearers}
        self.keep(json.dumps([_to_json(each) for each in self._all.values()]).encode())


def _to_json(signed: SignIn) -> dict[str, Any]:
    return {
        "id": signed.id,
        "place": signed.place,
        "name": signed.name,
        "at": signed.at,
        "seen_at": signed.seen_at,
        "key": base64.b64encode(signed.key).decode(),
        "bearers": signed.bearers,
        "device": signed.device,
        "push": signed.push and asdict(signed.push),
    }


def _load(kept: bytes) -> list[SignIn]:
    """The sign-ins of the previous daemon. One of an older version kept a dictionary: bearers without a key."""
    entries: list[dict[str, Any]] | dict[str, list[str]] = json.loads(kept or b"[]")
    if isinstance(entries, dict):
        return [SignIn(id=name, place=place, bearers=(bearer,)) for bearer, (name, place) in entries.items()]
    return [_from_json(entry) for entry in entries]


def _from_json(entry: dict[str, Any]) -> SignIn:
    fields: dict[str, Any] = {
        **entry,
        "key": base64.b64decode(entry["key"]),
        "bearers": tuple(entry["bearers"]),
    }
    if fields.get("push"):
        fields["push"] = PushSubscription(**fields["push"])
    return SignIn(**fields)
