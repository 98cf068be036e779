"""Credentials: sign-ins and grants for people, call credentials for agents. Neither works in place of the other.

Stores every secret as a SHA-256 hash. Callers check first that a person asks (`guard`, `mcp.local_socket`).
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
from handrail.store.values import Caller

CODE_SECONDS = 60.0
"""Lifetime of a sign-in code. Bounds how long a link on a screen or in a shell's history can be misused."""
MOST_CODES = 100
"""Codes held in memory, and sign-ins kept across a restart. Bounds memory if a program requests codes in a loop."""
MOST_LENT = 8
"""Valid credentials per agent and thread. An agent may open several sessions; issuing one more revokes the oldest."""

CREDENTIAL_REVOKED = (
    "The credential in HANDRAIL_CREDENTIAL is no longer good: its thread, or the daemon that lent it, is gone. "
    "Prompt the agent again from its thread."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """The holder of a person's bearer. Everyone may watch; only with `approves` may they decide."""

    place: str
    approves: bool
    ends: bool = False
    """May stop the daemon even without `approves`, so that a sealed daemon can be stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The holder of a call credential: for one workspace, or for one thread if Handrail started the agent."""

    credential: str
    name: str
    workspace: str | None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Callers:
    """Builds the caller of a call credential."""

    running: Callable[[str], str | None]
    """The id of the running operation of a thread, or None."""

    def caller_of(self, client: Client, door: Literal["http", "stdio"], name: str) -> Caller:
        """The caller with this credential; `name` is the name that the client reports.

        A hosted agent is recorded under its configured name and the running operation of its thread. Its key is the
        thread, so all its calls share one key over every transport.
        """
        if client.thread is None:
            return Caller(door=door, client=name, key=client.credential, workspace=client.workspace)
        return Caller(
            door=door,
            client=client.name,
            key=client.thread,
            workspace=client.workspace,
            thread=client.thread,
            operation=self.running(client.thread),
        )


@dataclass(slots=True)
class _Code:
    expires: float
    sign_in: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SignIn:
    id: str
    place: str


RedeemError = Literal["unknown", "expired", "used"]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class Access:
    """All valid credentials, keyed by hash."""

    def __init__(self, journal: Journal, clients: Iterable[tuple[str, Client]], sign_ins: bytes) -> None:
        self._journal = journal
        self._clients = dict(clients)
        self._codes: dict[str, _Code] = {}
        self._sign_ins: dict[str, _SignIn] = _load_sign_ins(sign_ins)
        self._grants: dict[str, Person] = {}
        self._revocations: dict[str, anyio.Event] = {}
        self.sealed: str | None = None
        """The reason why no code is issued and no command line may approve. None in normal operation."""
        self.keep: Callable[[bytes], None] = lambda _blob: None
        """Called with the serialised sign-ins after each change. The keeper holds them in memory, never on disk."""

    def person(self, bearer: str) -> Person | None:
        """The person with this bearer, or None."""
        hashed = _hash(bearer)
        if (grant := self._grants.get(hashed)) is not None:
            return grant
        signed = self._sign_ins.get(hashed)
        return Person(place=signed.place, approves=True) if signed else None

    def revocation(self, bearer: str) -> anyio.Event:
        """An event that is set when this person's bearer becomes invalid: live sockets must then close."""
        event = self._revocations.setdefault(_hash(bearer), anyio.Event())
        self._announce_revoked()
        return event

    def client(self, bearer: str) -> Client | None:
        """The client with this call credential, or None."""
        return self._clients.get(_hash(bearer))

    def issue_code(self) -> str:
        """Create a one-time sign-in code for the page. The caller has checked that a person asks."""
        now = anyio.current_time()
        self._codes = {key: code for key, code in self._codes.items() if code.expires > now or code.sign_in}
        while len(self._codes) >= MOST_CODES:
            del self._codes[next(iter(self._codes))]
        code = secrets.token_urlsafe(24)
        self._codes[_hash(code)] = _Code(expires=now + CODE_SECONDS)
        return code

    def redeem(self, secret: str) -> str | RedeemError:
        """Exchange a code for a bearer, once. A second use revokes the sign-in that the first use created."""
        code = self._codes.get(_hash(secret))
        if code is None:
            return "unknown"
        if code.sign_in is not None:
            self._revoke(code.sign_in, "its code was used twice")
            return "used"
        if code.expires < anyio.current_time():
            return "expired"
        return self._sign_in(code)

    def grant(self, person: Person) -> str:
        """Create a bearer for the lifetime of a connection. The caller ends it with `withdraw`."""
        bearer = secrets.token_urlsafe(32)
        self._grants[_hash(bearer)] = person
        return bearer

    def withdraw(self, bearer: str) -> None:
        self._grants.pop(_hash(bearer), None)
        self._announce_revoked()

    def issue_client(self, name: str, workspace: str) -> tuple[Client, str, int]:
        """Create a call credential. Returns the client, its bearer, and the journal position to await."""
        bearer = secrets.token_urlsafe(32)
        client = Client(credential=new_id("k"), name=name, workspace=workspace)
        self._clients[_hash(bearer)] = client
        fact = CredentialIssued(
            credential=client.credential, name=name, workspace=workspace, sha256=_hash(bearer)
        )
        return client, bearer, self._journal.append(fact)

    def lend(self, thread: str, workspace: str | None, name: str) -> str:
        """Create a call credential for a hosted agent on one thread. It is held in memory only."""
        bearer = secrets.token_urlsafe(32)
        lent = [key for key, item in self._clients.items() if (item.thread, item.name) == (thread, name)]
        for key in lent[: -(MOST_LENT - 1)]:
            del self._clients[key]
        self._clients[_hash(bearer)] = Client(
            credential=new_id("k"), name=name, workspace=workspace, thread=thread
        )
        return bearer

    def take_back(self, thread: str) -> None:
        """Revoke all credentials lent for this thread."""
        self._clients = {key: item for key, item in self._clients.items() if item.thread != thread}

    def forget_client(self, credential: str) -> None:
        self._clients = {key: item for key, item in self._clients.items() if item.credential != credential}

    def seal(self, why: str) -> None:
        """Issue no more codes, and revoke all codes and command-line grants.

        Pages that are signed in stay signed in: they signed in before the problem arose.
        """
        self.sealed = why
        self._codes.clear()
        self._grants.clear()
        self._announce_revoked()

    def _sign_in(self, code: _Code) -> str:
        bearer = secrets.token_urlsafe(32)
        signed = _SignIn(id=new_id("s"), place="page")
        code.sign_in = signed.id
        self._sign_ins[_hash(bearer)] = signed
        self._journal.append(PersonSignedIn(sign_in=signed.id, place=signed.place))
        self._save_sign_ins()
        return bearer

    def _revoke(self, sign_in: str, why: str) -> None:
        remaining = {key: item for key, item in self._sign_ins.items() if item.id != sign_in}
        if len(remaining) < len(self._sign_ins):
            self._sign_ins = remaining
            self._journal.append(SignInRevoked(sign_in=sign_in, why=why))
            self._save_sign_ins()
            self._announce_revoked()

    def _announce_revoked(self) -> None:
        """Set and drop the events of bearers that are no longer valid."""
        for key in [
            key for key in self._revocations if key not in self._grants and key not in self._sign_ins
        ]:
            self._revocations.pop(key).set()

    def _save_sign_ins(self) -> None:
        kept = {key: [item.id, item.place] for key, item in list(self._sign_ins.items())[-MOST_CODES:]}
        self.keep(json.dumps(kept).encode())


def _load_sign_ins(blob: bytes) -> dict[str, _SignIn]:
    if not blob:
        return {}
    kept: dict[str, list[str]] = json.loads(blob)
    return {key: _SignIn(id=name, place=place) for key, (name, place) in kept.items()}
