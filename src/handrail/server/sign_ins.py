"""Sign-ins of the page: one-time codes, the bearers of a browser, and the key by which it signs in again.

A browser registers a public key with its first sign-in and keeps the private key where no script can read it. After a
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
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import anyio

from handrail.gate.call import new_id
from handrail.store.events import PersonSignedIn, SignInRevoked
from handrail.store.journal import Journal

CODE_SECONDS = 60.0
"""Lifetime of a sign-in code. Bounds how long a link on a screen or in a shell's history can be misused."""
CHALLENGE_SECONDS = 30.0
"""Lifetime of a challenge. Bounds how long a signature can be used."""
MOST_CODES = 100
"""Codes, challenges and sign-ins that are held. Bounds memory if a program requests them in a loop."""
MOST_BEARERS = 16
"""Valid bearers of one browser, one for each tab that signed in by itself. One more ends the oldest."""

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


@dataclass(slots=True)
class _Code:
    expires: float
    sign_in: str | None = None


def _now_ms() -> int:
    return int(time.time() * 1000)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def challenge_text(sign_in: str, nonce: str) -> bytes:
    """What a browser signs. It names its purpose, so that no other signature can be used for it."""
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

    def issue_code(self) -> str:
        """Create a one-time sign-in code for the page. The caller has checked that a person asks."""
        now = anyio.current_time()
        self._codes = {key: code for key, code in self._codes.items() if code.expires > now or code.sign_in}
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[hash_secret(code)] = _Code(expires=now + CODE_SECONDS)
        return code

    def drop_codes(self) -> None:
        self._codes.clear()

    def redeem(self, secret: str, key: bytes = b"", name: str = "") -> tuple[SignIn, str] | RedeemError:
        """Exchange a code for a sign-in and its bearer, once. A second use revokes what the first use created."""
        code = self._codes.get(hash_secret(secret))
        if code is None:
            return "unknown"
        if code.sign_in is not None:
            self.revoke(code.sign_in, "its code was used twice")
            return "used"
        if code.expires < anyio.current_time():
            return "expired"
        signed = SignIn(id=new_id("s"), place="page", name=name, at=_now_ms(), key=key)
        code.sign_in = signed.id
        self._journal.append(PersonSignedIn(sign_in=signed.id, place=signed.place, name=name))
        return self._issue_bearer(signed)

    def challenge(self, sign_in: str) -> str | None:
        """A nonce for this browser to sign; None if it is not signed in, or has no key."""
        known = self._all.get(sign_in)
        return self._challenges.issue(sign_in) if known is not None and known.key else None

    def answer(self, sign_in: str, nonce: str, signature: bytes) -> tuple[SignIn, str] | AnswerError:
        """Exchange a signed challenge for another bearer of the same sign-in. A challenge can be used once."""
        known = self._all.get(sign_in)
        if known is None or not known.key:
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
    return SignIn(**fields)
