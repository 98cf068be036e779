"""JSON models of sign-ins, and the conversion to them."""

from typing import Annotated

from pydantic import Field

from handrail.server.api.models import Wire
from handrail.server.sign_ins import SignIn
from handrail.store.threads.message import clean

Id = Annotated[str, Field(min_length=1, max_length=40)]


class SignInBody(Wire):
    """A one-time sign-in code, and the key by which this browser signs in again."""

    code: Annotated[str, Field(min_length=1, max_length=200)]
    key: Annotated[str, Field(max_length=400)] = ""
    """The public key: ECDSA on P-256, SubjectPublicKeyInfo in base64. Without it, a reload signs the page out."""
    name: Annotated[str, Field(max_length=80)] = ""
    """What the browser calls itself, for the list of sign-ins."""


class SignedIn(Wire):
    """The page's bearer. The page keeps it in memory only."""

    bearer: str
    sign_in: str


class ChallengeBody(Wire):
    """The sign-in of a browser that wants another bearer."""

    sign_in: Id


class Challenge(Wire):
    """What the browser signs, once."""

    nonce: str


class KeySignInBody(Wire):
    """A signed challenge."""

    sign_in: Id
    nonce: Annotated[str, Field(min_length=1, max_length=100)]
    signature: Annotated[str, Field(min_length=1, max_length=200)]
    """Over `handrail sign-in`, the sign-in and the nonce, each on a line: r and s in base64, as WebCrypto makes it."""


class SignInView(Wire):
    """A browser that is signed in."""

    id: str
    name: str
    at: int
    """When it signed in by a link."""
    seen_at: int
    """When it last signed in, by the link or by its key."""
    lasts: bool
    """Whether it stays signed in over a reload."""
    current: bool
    """Whether it is the one that asks."""


def build_sign_in_view(signed: SignIn, asking: str | None) -> SignInView:
    return SignInView(
        id=signed.id,
        name=clean(signed.name),
        at=signed.at,
        seen_at=signed.seen_at,
        lasts=bool(signed.key),
        current=signed.id == asking,
    )
