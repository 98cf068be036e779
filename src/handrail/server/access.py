"""Access: who may do what. Two credentials, call (agents) and approve (people); neither does the other's work.

Owns codes, sign-ins, grants and call credentials, all as hashes. It does not know routes or sockets (guard.py,
local.py), nor process trees: who asks from where is judged before anything here is called.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import anyio

from handrail.gate.call import new_id
from handrail.store.events import CredentialIssued, PersonSignedIn, SignInRevoked
from handrail.store.journal import Journal

CODE_SECONDS = 60.0
"""A sign-in link on a screen or in a shell's history is worth nothing after this."""
MOST_CODES = 100
"""Codes known at once, and sign-ins kept: bounds what somebody who keeps asking can make us hold."""
MOST_LENT = 8
"""Credentials lent to one agent for one thread that are good at once: for what it opened anew. Older ones are void."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who watches, and when `approves` also decides."""

    place: str
    approves: bool
    ends: bool = False
    """May at least end this daemon: the way out of one that is sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An agent's line, made for one workspace; one that Handrail started itself has it for one thread."""

    credential: str
    name: str
    workspace: str | None
    thread: str | None = None


@dataclass(slots=True)
class _Code:
    until: float
    sign_in: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SignIn:
    id: str
    place: str


Refused = Literal["unknown", "expired", "used"]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Access:
    """Every credential there is, by its hash."""

    def __init__(self, journal: Journal, clients: Iterable[tuple[str, Client]], sign_ins: bytes) -> None:
        self._journal = journal
        self._clients = dict(clients)
        self._codes: dict[str, _Code] = {}
        self._sign_ins: dict[str, _SignIn] = _restored(sign_ins)
        self._grants: dict[str, Person] = {}
        self.sealed: str | None = None
        """Why no code is given out and no command line decides; None when all is well."""
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Where sign-ins are kept over a restart: with the keeper, in memory, out of reach of every file."""

    def person(self, bearer: str) -> Person | None:
        """Who holds this bearer, if it is a person's."""
        hashed = _hash(bearer)
        if (grant := self._grants.get(hashed)) is not None:
            return grant
        signed = self._sign_ins.get(hashed)
        return Person(place=signed.place, approves=True) if signed else None

    def client(self, bearer: str) -> Client | None:
        """Which agent's line holds this bearer."""
        return self._clients.get(_hash(bearer))

    def issue_code(self) -> str:
        """A one-time code for a page. The caller has judged that a person asks."""
        now = anyio.current_time()
        self._codes = {key: code for key, code in self._codes.items() if code.until > now or code.sign_in}
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = _Code(until=now + CODE_SECONDS)
        return code

    def redeem(self, secret: str) -> str | Refused:
        """A code for a bearer, once. A second use ends the sign-in that the first one made."""
        code = self._codes.get(_hash(secret))
        if code is None:
            return "unknown"
        if code.sign_in is not None:
            self._revoke(code.sign_in, "its code was used twice")
            return "used"
        if code.until < anyio.current_time():
            return "expired"
        return self._sign_in(code)

    def grant(self, person: Person) -> str:
        """A bearer for as long as its holder's connection lasts; see `withdraw`."""
        bearer = secrets.token_urlsafe(32)
        self._grants[_hash(bearer)] = person
        return bearer

    def withdraw(self, bearer: str) -> None:
        self._grants.pop(_hash(bearer), None)

    def issue_client(self, name: str, workspace: str) -> tuple[Client, str, int]:
        """A new line for an agent; its bearer is shown once. The number is the fact's, to await."""
        bearer = secrets.token_urlsafe(32)
        client = Client(credential=new_id("k"), name=name, workspace=workspace)
        self._clients[_hash(bearer)] = client
        fact = CredentialIssued(
            credential=client.credential, name=name, workspace=workspace, sha256=_hash(bearer)
        )
        return client, bearer, self._journal.append(fact)

    def lend(self, thread: str, workspace: str | None, name: str) -> str:
        """A bearer by which an agent that we started calls for a thread. It is nowhere on disk and ends with us."""
        bearer = secrets.token_urlsafe(32)
        lent = [key for key, item in self._clients.items() if (item.thread, item.name) == (thread, name)]
        for key in lent[: -(MOST_LENT - 1)]:
            del self._clients[key]
        self._clients[_hash(bearer)] = Client(
            credential=new_id("k"), name=name, workspace=workspace, thread=thread
        )
        return bearer

    def take_back(self, thread: str) -> None:
        """Nobody calls for this thread any more."""
        self._clients = {key: item for key, item in self._clients.items() if item.thread != thread}

    def forget_client(self, credential: str) -> None:
        self._clients = {key: item for key, item in self._clients.items() if item.credential != credential}

    def seal(self, why: str) -> None:
        """Give out no code from now on and take no command line for a person; void what is out.

        A page that signed in before stays signed in: it proved itself when all was well.
        """
        self.sealed = why
        self._codes.clear()
        self._grants.clear()

    def _sign_in(self, code: _Code) -> str:
        bearer = secrets.token_urlsafe(32)
        signed = _SignIn(id=new_id("s"), place="page")
        code.sign_in = signed.id
        self._sign_ins[_hash(bearer)] = signed
        self._journal.append(PersonSignedIn(sign_in=signed.id, place=signed.place))
        self._keep()
        return bearer

    def _revoke(self, sign_in: str, why: str) -> None:
        left = {key: item for key, item in self._sign_ins.items() if item.id != sign_in}
        if len(left) < len(self._sign_ins):
            self._sign_ins = left
            self._journal.append(SignInRevoked(sign_in=sign_in, why=why))
            self._keep()

    def _keep(self) -> None:
        kept = {key: [item.id, item.place] for key, item in list(self._sign_ins.items())[-MOST_CODES:]}
        self.keep(json.dumps(kept).encode())


def _restored(blob: bytes) -> dict[str, _SignIn]:
    if not blob:
        return {}
    kept: dict[str, list[str]] = json.loads(blob)
    return {key: _SignIn(id=name, place=place) for key, (name, place) in kept.items()}
