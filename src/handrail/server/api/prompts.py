"""Routes by which people talk with an agent: prompt it, see to what is queued, choose its settings.

The route to pictures that conversations point to.

Pictures, as people send and look at them.
"""

import base64
import binascii
from collections.abc import Sequence

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Request, Response

from handrail.agents.conversation import thread_prompts
from handrail.agents.conversation.send_prompt import Piece
from handrail.config import OWN_AGENT, PROVIDER_VARIABLES
from handrail.server.api import threads
from handrail.server.api.thread_models import ImageBody, PromptBody, Prompted, SettingBody
from handrail.server.context import Rooms, by
from handrail.store.blobs import NotKept
from handrail.store.threads.thread_records import ThreadRecord

LONGEST_KEY = 4096


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.post("/threads/{id}/prompt")
    async def prompt(id: str, body: PromptBody, request: Request) -> Prompted:
        record = await threads.found(rooms, id)
        agent = threads.known_agent(rooms, body.agent) if body.agent else None
        env = _keys(body, agent or record.agent)
        pieces = await _pieces(rooms, record, body)
        became = await rooms.prompts.prompt(
            id, pieces, by=by(request), agent=agent, queue=body.queue, env=env
        )
        await rooms.threads.written()  # what a person said is not lost, whatever becomes of the answer
        return _view(id, became)

    @router.post("/threads/{id}/queue/{message}/send")
    async def send_now(id: str, message: str, request: Request) -> Prompted:
        await threads.found(rooms, id)
        return _view(id, await rooms.prompts.send_now(id, message, by=by(request)))

    @router.delete("/threads/{id}/queue/{message}", status_code=204)
    async def drop(id: str, message: str, request: Request) -> Response:
        await threads.found(rooms, id)
        rooms.prompts.drop(id, message, by=by(request))
        await rooms.threads.written()
        return Response(status_code=204)

    @router.post("/threads/{id}/setting", status_code=204)
    async def setting(id: str, body: SettingBody) -> Response:
        await threads.found(rooms, id)
        await rooms.prompts.set(id, body.setting, body.value, id=body.id)
        return Response(status_code=204)

    return router


def _keys(body: PromptBody, agent: str) -> dict[str, str]:
    """What a prompt brings along for its agent. What was given is not repeated in what goes wrong."""
    env = body.env or {}
    if env and agent != OWN_AGENT:
        raise HTTPException(422, f"Keys go to Handrail's own agent alone, and this prompt is for {agent}.")
    if not set(env) <= set(PROVIDER_VARIABLES):
        raise HTTPException(422, f"A prompt may bring along nothing but {', '.join(PROVIDER_VARIABLES)}.")
    found = {name: value.get_secret_value() for name, value in env.items()}
    if any(len(value) > LONGEST_KEY or not value.isprintable() for value in found.values()):
        raise HTTPException(422, f"A key is one line of at most {LONGEST_KEY:,} characters.")
    return found


def _view(thread: str, became: thread_prompts.Prompted) -> Prompted:
    return Prompted(
        thread=thread, message=became.message, operation=became.operation, replaced=became.replaced
    )


async def _pieces(rooms: Rooms, record: ThreadRecord, body: PromptBody) -> list[Piece]:
    """What a prompt is made of; its pictures are kept before anybody is told of them."""
    files = await threads.files(body.files, record.workspace)
    images = await anyio.to_thread.run_sync(_keep, rooms, body.images)
    text = [Piece(kind="text", text=body.text)] if body.text.strip() else []
    pieces = [
        *text,
        *(Piece(kind="file", data={"uri": file.as_uri(), "name": file.name}) for file in files),
        *images,
    ]
    if not pieces:
        raise HTTPException(422, "There is nothing in this prompt. Give a text, a file or a picture.")
    return pieces


def _keep(rooms: Rooms, sent: Sequence[ImageBody]) -> list[Piece]:
    found = [picture(image.data, place) for place, image in enumerate(sent, 1)]
    return [
        Piece(kind="image", data={"image": rooms.images.put(content), "mime": mime})
        for content, mime in found
    ]


def image_routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.get("/images/{sha}")
    async def image(sha: str) -> Response:
        try:
            content = await anyio.to_thread.run_sync(rooms.images.get, sha)
        except NotKept:
            raise HTTPException(404, f"There is no picture {sha[:100]}.") from None
        mime = mime_of(content)
        if mime is None:
            raise HTTPException(404, f"What is kept as {sha} is no picture that a page shows.")
        return Response(content, media_type=mime)

    return router


_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class NoPicture(Exception):
    """What was sent as a picture is none."""

    def __init__(self, place: int) -> None:
        self.place = place
        super().__init__(f"Picture {place} is no PNG, JPEG, GIF or WebP in Base64.")


def mime_of(content: bytes) -> str | None:
    """What kind of picture it is; None when it is none that a page shows."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for begin, mime in _BEGINNINGS.items() if content.startswith(begin)), None)


def picture(data: str, place: int) -> tuple[bytes, str]:
    """The bytes of a picture in Base64, and what kind it is. Raises NoPicture, which names its `place`."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise NoPicture(place) from None
    mime = mime_of(content)
    if mime is None:
        raise NoPicture(place)
    return content, mime
