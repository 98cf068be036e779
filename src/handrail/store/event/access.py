"""Who may come in: people who signed in, and clients over HTTP."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSignedIn:
    """A page exchanged a one-time code for its bearer."""

    kind: Literal["PersonSignedIn"] = "PersonSignedIn"
    sign_in: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInRevoked:
    """A sign-in is void from now on."""

    kind: Literal["SignInRevoked"] = "SignInRevoked"
    sign_in: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialIssued:
    """A client may call over HTTP, in one workspace."""

    kind: Literal["CredentialIssued"] = "CredentialIssued"
    credential: str
    name: str
    workspace: str
    sha256: str
    """Of the bearer; the bearer itself is shown once and kept nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialRevoked:
    """A client may call no longer."""

    kind: Literal["CredentialRevoked"] = "CredentialRevoked"
    credential: str
    by: str
