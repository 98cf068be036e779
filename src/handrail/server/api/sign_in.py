"""Routes of the page's sign-in (create a link, exchange its code or a signed challenge, list, revoke) and of call
credentials (list, issue, revoke)."""

import base64
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import Field

from handrail.server.api.call_models import Credential, CredentialBody, CredentialView
from handrail.server.api.calls import credential_view
from handrail.server.api.models import Wire, now_ms
from handrail.server.context import ServerContext, actor_of, is_from_device, person_of
from handrail.server.device_listener import is_own_address
from handrail.server.sign_ins import AnswerError, RedeemError, SignIn
from handrail.store.events import CredentialRevoked
from handrail.store.threads.message import clean
from handrail.terminal.loopback_peer import IS_SUPPORTED, find_refusal
from handrail.terminal.person_check import NO_PERSON

Id = Annotated[str, Field(min_length=1, max_length=40)]


class SignInBody(Wire):
    """A one-time sign-in code, and the key by which this browser signs in again."""

    code: Annotated[str, Field(min_length=1, max_length=200)]
    key: Annotated[str, Field(max_length=400)] = ""
    """The public key: ECDSA on P-256, SubjectPublicKeyInfo in base64. Without it, a reload signs the page out."""
    name: Annotated[str, Field(max_length=80)] = ""
    """What the browser calls itself, for the list of sign-ins."""


class CodeBody(Wire):
    """Who a sign-in link is for."""

    local: bool = False
    """A program on this machine is started with the link, where other programs can read it: only a process that is
    visible to Handrail may use it."""


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
    device: bool
    """A paired device: it signs in only where `handrail pair` listens."""
    lasts: bool
    """Whether it stays signed in over a reload."""
    current: bool
    """Whether it is the one that asks."""


class NameBody(Wire):
    """A new name for a browser or device."""

    name: Annotated[str, Field(min_length=1, max_length=80)]


def build_sign_in_view(signed: SignIn, asking: str | None) -> SignInView:
    return SignInView(
        id=signed.id,
        name=clean(signed.name),
        at=signed.at,
        seen_at=signed.seen_at,
        device=signed.device,
        lasts=bool(signed.key),
        current=signed.id == asking,
    )


UNKNOWN = "This browser is not signed in any more. Run `handrail open` for a fresh link."
USED = (
    "This link was used before, so the sign-in it made is revoked: somebody else may have seen it. Run `handrail open` for a "
    "fresh one."
)
REFUSALS: dict[RedeemError | AnswerError, tuple[int, str]] = {
    "unknown": (401, "This link is not valid. Run `handrail open` for a fresh one."),
    "expired": (401, "This link is older than a minute. Run `handrail open` for a fresh one."),
    "used": (401, USED),
    "signed out": (401, UNKNOWN),
    "unsigned": (403, "The signature is not that of this browser and this challenge. Load the page again."),
}
NO_KEY = (
    "This browser cannot keep a key, so it cannot be paired. Leave private browsing, or use another browser."
)
NOT_PAIRED = "This device is not paired any more. Run `handrail pair` at your desk for a new code."
PAIR_REFUSALS: dict[RedeemError, str] = {
    "unknown": "This code is not valid. Check it, or run `handrail pair` at your desk for a new one.",
    "expired": "This code is older than five minutes. Run `handrail pair` at your desk for a new one.",
    "used": "This code was used before, so the device that it paired is signed out: somebody else may have seen it. Run "
    "`handrail pair` at your desk for a new one.",
}
STARTED_OR_GONE = (
    "Handrail started the program that opened this link, for an agent or in `handrail shell`, or that program has ended, so it "
    "cannot sign in. Open the link in a browser that was started outside of these."
)
NO_LINK_PROCESS = "The program that opened this link could not be recognised. Run `handrail open --print`, and open that link."
NO_PROCESS = "The program that signs in could not be recognised, so its key is not enough. Run `handrail open` for a fresh link."


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/sign-in")
    async def sign_in(body: SignInBody, request: Request) -> SignedIn:
        key, device = await _read_key(body.key), is_from_device(request)
        if device and not key:
            raise HTTPException(422, NO_KEY)
        await _check_code_process(context, request, body.code)
        result = context.access.sign_ins.redeem(body.code, key, body.name, device=device)
        if device and isinstance(result, str):
            raise HTTPException(401, PAIR_REFUSALS[result])
        return _signed_in(result)

    @router.post("/sign-in/challenge")
    async def challenge(body: ChallengeBody, request: Request) -> Challenge:
        # Only so many are held: a process that may not answer one must not drop those of the person's browser.
        await _check_process(context, request)
        device = is_from_device(request)
        nonce = context.access.sign_ins.challenge(body.sign_in, device=device)
        if nonce is None:
            raise HTTPException(401, NOT_PAIRED if device else UNKNOWN)
        return Challenge(nonce=nonce)

    @router.post("/sign-in/key")
    async def sign_in_by_key(body: KeySignInBody, request: Request) -> SignedIn:
        """Sign in again by the browser's key. Refused for a process that an agent or Handrail started."""
        await _check_process(context, request)
        signature, device = _read_signature(body.signature), is_from_device(request)
        return _signed_in(context.access.sign_ins.answer(body.sign_in, body.nonce, signature, device=device))

    @router.post("/code")
    async def code(body: CodeBody | None = None) -> dict[str, str]:
        """A link that signs a browser in, once, within a minute."""
        if context.access.sealed is not None:
            raise HTTPException(403, context.access.sealed)
        code = context.access.sign_ins.issue_code(local=body is not None and body.local)
        return {"url": f"{context.url}/#code={code}"}

    return router


def list_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/sign-ins")
    async def list_sign_ins(request: Request) -> list[SignInView]:
        asking = person_of(request).sign_in
        return [build_sign_in_view(signed, asking) for signed in context.access.sign_ins.current]

    @router.patch("/sign-ins/{id}", status_code=204)
    async def rename_sign_in(id: str, body: NameBody) -> Response:
        if not context.access.sign_ins.rename(id, clean(body.name).strip()):
            raise HTTPException(404, f"There is no sign-in {id}. `handrail sign-ins` lists those there are.")
        return Response(status_code=204)

    @router.delete("/sign-ins/{id}", status_code=204)
    async def revoke_sign_in(id: str, request: Request) -> Response:
        """Sign a browser out immediately: its sockets close."""
        seq = context.access.sign_ins.revoke(id, f"revoked by {actor_of(request)}")
        if seq is None:
            raise HTTPException(404, f"There is no sign-in {id}. `handrail sign-ins` lists those there are.")
        await context.journal.committed(seq)
        return Response(status_code=204)

    return router


def _signed_in(result: tuple[SignIn, str] | RedeemError | AnswerError) -> SignedIn:
    if isinstance(result, str):
        raise HTTPException(*REFUSALS[result])
    signed, bearer = result
    return SignedIn(bearer=bearer, sign_in=signed.id)


async def _read_key(text: str) -> bytes:
    if not text:
        return b""
    from handrail.server.browser_key import BadKey, read_key  # noqa: PLC0415 - cryptography takes 6 MB

    try:
        return await to_thread.run_sync(read_key, text)
    except BadKey as problem:
        raise HTTPException(422, str(problem)) from None


def _read_signature(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""


async def _check_code_process(context: ServerContext, request: Request, code: str) -> None:
    """Refuse a link to what Handrail started: a command can read it in the arguments of the browser that opens it."""
    if is_from_device(request):
        await _check_process(context, request)
        return
    client, server = tuple(request.scope["client"]), tuple(request.scope["server"])
    is_strict = IS_SUPPORTED and context.access.sign_ins.is_local(code)
    unknown = NO_LINK_PROCESS if is_strict else None
    # A browser may have been started by an editor that is an agent too, so agents are not looked for.
    refusal = await to_thread.run_sync(
        partial(find_refusal, context.launchers, client, server, unknown, agents=False)
    )
    if refusal is not None:
        raise HTTPException(403, STARTED_OR_GONE if refusal == NO_PERSON else refusal)


async def _check_process(context: ServerContext, request: Request) -> None:
    """Refuse a key from a process that is no person's: a command of an agent can read the browser's files."""
    if context.access.sealed is not None:
        raise HTTPException(403, context.access.sealed)
    client, server = tuple(request.scope["client"]), tuple(request.scope["server"])
    if is_from_device(request) and not is_own_address(client[0]):
        return  # another machine, whose files no command here can read
    # The proxy may run as another user, whose processes are not visible.
    unknown = None if request.scope.get("handrail.device") == "proxied" else NO_PROCESS
    refusal = await to_thread.run_sync(find_refusal, context.launchers, client, server, unknown)
    if refusal is not None:
        raise HTTPException(403, refusal)


def credential_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/credentials")
    async def credentials() -> list[CredentialView]:
        records = await context.records.credentials.all()
        return [credential_view(record) for record in records if record.revoked_at is None]

    @router.post("/credentials")
    async def issue(body: CredentialBody) -> Credential:
        client, bearer, seq = context.access.issue_client(body.name, body.workspace)
        await context.journal.committed(seq)
        view = CredentialView(
            id=client.credential, name=client.name, workspace=body.workspace, issued_at=now_ms()
        )
        return Credential(**view.__dict__, bearer=bearer, url=f"{context.url}/mcp")

    @router.delete("/credentials/{id}", status_code=204)
    async def revoke(id: str, request: Request) -> Response:
        context.access.forget_client(id)
        await context.journal.committed(
            context.journal.append(CredentialRevoked(credential=id, by=str(actor_of(request))))
        )
        return Response(status_code=204)

    return router
