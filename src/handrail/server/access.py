"""Credentials: sign-ins (`sign_ins`) and grants for people, call credentials for agents. Neither replaces the other.

Stores every secret as a SHA-256 hash. Callers check first that a person asks (`guard`, `mcp.local_socket`).
"""

import secrets
from collections.abc import Callable, Iterable
from typing import Literal

import anyio

from handrail.gate.call import new_id
from handrail.lazy_dataclass import dataclass
from handrail.server.sign_ins import SignIns, hash_secret
from handrail.store.events import CredentialIssued
from handrail.store.journal import Journal
from handrail.store.values import Caller

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
    sign_in: str | None = None
    """The page's sign-in; None for a command line or an editor."""
    device: bool = False
    """A paired device. Its bearer is good on the listener for devices only."""
    limited: bool = False
    """May not do what high risk needs: such work is done at the desk."""
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


class Access:
    """All valid credentials, keyed by hash."""

    def __init__(self, journal: Journal, clients: Iterable[tuple[str, Client]], sign_ins: bytes) -> None:
        """`sign_ins` is what `SignIns.keep` was called with before a restart."""
        self._journal = journal
        self._clients = dict(clients)
        self._grants: dict[str, Person] = {}
        self._revocations: dict[str, anyio.Event] = {}
        self.sign_ins = SignIns(journal, sign_ins)
        self.sign_ins.on_end = self._announce_revoked
        self.sealed: str | None = None
        """The reason why no code is issued and no command line may approve. None in normal operation."""

    def person(self, bearer: str) -> Person | None:
        """The person with this bearer, or None."""
        hashed = hash_secret(bearer)
        if (grant := self._grants.get(hashed)) is not None:
            return grant
        signed = self.sign_ins.of_bearer(hashed)
        if signed is None:
            return None
        return Person(place=signed.place, approves=True, sign_in=signed.id, device=signed.device)

    def revocation(self, bearer: str) -> anyio.Event:
        """An event that is set when this person's bearer becomes invalid: live sockets must then close."""
        event = self._revocations.setdefault(hash_secret(bearer), anyio.Event())
        self._announce_revoked()
        return event

    def client(self, bearer: str) -> Client | None:
        """The client with this call credential, or None."""
        return self._clients.get(hash_secret(bearer))

    def grant(self, person: Person) -> str:
        """Create a bearer for the lifetime of a connection. The caller ends it with `withdraw`."""
        bearer = secrets.token_urlsafe(32)
        self._grants[hash_secret(bearer)] = person
        return bearer

    def withdraw(self, bearer: str) -> None:
        self._grants.pop(hash_secret(bearer), None)
        self._announce_revoked()

    def issue_client(self, name: str, workspace: str) -> tuple[Client, str, int]:
        """Create a call credential. Returns the client, its bearer, and the journal position to await."""
        bearer = secrets.token_urlsafe(32)
        client = Client(credential=new_id("k"), name=name, workspace=workspace)
        self._clients[hash_secret(bearer)] = client
        fact = CredentialIssued(
            credential=client.credential, name=name, workspace=workspace, sha256=hash_secret(bearer)
        )
        return client, bearer, self._journal.append(fact)

    def lend(self, thread: str, workspace: str | None, name: str) -> str:
        """Create a call credential for a hosted agent on one thread. It is held in memory only."""
        bearer = secrets.token_urlsafe(32)
        lent = [key for key, item in self._clients.items() if (item.thread, item.name) == (thread, name)]
        for key in lent[: -(MOST_LENT - 1)]:
            del self._clients[key]
        self._clients[hash_secret(bearer)] = Client(
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
        self.sign_ins.drop_codes()
        self._grants.clear()
        self._announce_revoked()

    def _announce_revoked(self) -> None:
        """Set and drop the events of bearers that are no longer valid."""
        for key in [key for key in self._revocations if not self._is_valid(key)]:
            self._revocations.pop(key).set()

    def _is_valid(self, hashed: str) -> bool:
        return hashed in self._grants or self.sign_ins.of_bearer(hashed) is not None
