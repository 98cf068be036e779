"""Credentials: events, records, queries and SQL for signed-in pages and HTTP clients."""

import sqlite3
from typing import Literal

from handrail.lazy_dataclass import dataclass
from handrail.store.database import Statement
from handrail.store.query import Queries, column_names, columns_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSignedIn:
    """A page exchanged a one-time code for its bearer."""

    kind: Literal["PersonSignedIn"] = "PersonSignedIn"
    sign_in: str
    place: str
    name: str = ""
    """What the browser calls itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRevoked:
    """A sign-in is no longer valid."""

    kind: Literal["SignInRevoked"] = "SignInRevoked"
    sign_in: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialIssued:
    """A client may make calls over HTTP, in one workspace."""

    kind: Literal["CredentialIssued"] = "CredentialIssued"
    credential: str
    name: str
    workspace: str
    sha256: str
    """Hash of the bearer token. The token is shown once and never stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRevoked:
    """A client may no longer make calls."""

    kind: Literal["CredentialRevoked"] = "CredentialRevoked"
    credential: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRecord:
    """A client's HTTP credential, valid until `revoked_at`."""

    id: str
    name: str
    workspace: str
    sha256: str
    issued_at: int
    revoked_at: int | None


class CredentialQueries(Queries):
    """Queries for credentials."""

    async def all(self) -> list[CredentialRecord]:
        """Return all credentials, revoked ones included, oldest first."""
        return await self._all(credential_of, "SELECT * FROM credentials ORDER BY issued_at, id")


def credential_of(row: sqlite3.Row) -> CredentialRecord:
    return CredentialRecord(**columns_of(row, _CREDENTIAL_COLUMNS))


_CREDENTIAL_COLUMNS = column_names(CredentialRecord)


def statement(at: int, event: CredentialIssued | CredentialRevoked) -> Statement:
    match event:
        case CredentialIssued(credential=id, name=name, workspace=workspace, sha256=sha256):
            return (_ISSUED, (id, name, workspace, sha256, at))
        case CredentialRevoked(credential=id):
            return (_REVOKED, (at, id))


_ISSUED = """
INSERT INTO credentials (id, name, workspace, sha256, issued_at)
VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_REVOKED = "UPDATE credentials SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
