"""Routes of prompts: prompt an agent, manage its queue, change its settings; and of the images in threads."""

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Query, Request, Response

from handrail.agents.conversation import thread_prompts
from handrail.agents.conversation.send_prompt import PromptPart
from handrail.agents.conversation.session_modes import may_ask_less
from handrail.config import OWN_AGENT, PROVIDER_VARIABLES
from handrail.server.api import threads
from handrail.server.api._mention_search import search_mentions
from handrail.server.api.thread_models import ImageBody, PromptBody, Prompted, SettingBody, speaker_of
from handrail.server.context import ServerContext, actor_of, person_of
from handrail.server.device_guard import HIGH_RISK
from handrail.store.blobs import BlobUnavailable, image_mime
from handrail.store.threads.thread_records import ThreadRecord

LONGEST_KEY = 4096
"""Characters in one provider variable. Bounds the environment passed to the agent."""


def routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/threads/{id}/prompt")
    async def prompt(id: str, body: PromptBody, request: Request) -> Prompted:
        record = await threads.get_record(context, id)
        agent = threads.require_agent(context, body.agent) if body.agent else None
        env = _provider_variables(body, agent or record.agent)
        pieces = await _pieces(context, record, body)
        prompted = await context.prompts.prompt(
            id, pieces, by=actor_of(request), agent=agent, queue=body.queue, steer=body.steer, env=env
        )
        await context.threads.written()  # the prompt is on disk before it is acknowledged
        return _prompted_view(id, prompted)

    @router.get("/threads/{id}/files")
    async def files(
        id: str,
        q: Annotated[str, Query(max_length=200)] = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 20,
    ) -> list[str]:
        record = await threads.get_record(context, id)
        return await search_mentions(record.workspace, q, limit) if record.workspace else []

    @router.post("/threads/{id}/queue/{message}/send")
    async def send_now(id: str, message: str, request: Request) -> Prompted:
        await threads.get_record(context, id)
        return _prompted_view(id, await context.prompts.send_now(id, message, by=actor_of(request)))

    @router.post("/threads/{id}/queue/{message}/steer")
    async def steer_now(id: str, message: str) -> Prompted:
        await threads.get_record(context, id)
        return _prompted_view(id, await context.prompts.steer_now(id, message))

    @router.delete("/threads/{id}/queue/{message}", status_code=204)
    async def drop(id: str, message: str, request: Request) -> Response:
        await threads.get_record(context, id)
        context.prompts.drop(id, message, by=actor_of(request))
        await context.threads.written()
        return Response(status_code=204)

    @router.post("/threads/{id}/setting", status_code=204)
    async def setting(id: str, body: SettingBody, request: Request) -> Response:
        record = await threads.get_record(context, id)
        if person_of(request).limited:
            state = (await context.threads.snapshot(id, 1)).state
            option = body.id if body.setting == "option" else ""
            if may_ask_less(speaker_of(state, record.agent), state, option, body.value):
                raise HTTPException(403, HIGH_RISK)
        await context.prompts.set(id, body.setting, body.value, id=body.id)
        return Response(status_code=204)

    return router


def _provider_variables(body: PromptBody, agent: str) -> dict[str, str]:
    """The provider variables of a prompt. Error messages never repeat a value: it is a secret."""
    env = body.env or {}
    if env and agent != OWN_AGENT:
        raise HTTPException(422, f"Keys go to Handrail's own agent alone, and this prompt is for {agent}.")
    if not set(env) <= set(PROVIDER_VARIABLES):
        raise HTTPException(422, f"A prompt may bring along nothing but {', '.join(PROVIDER_VARIABLES)}.")
    values = {name: value.get_secret_value() for name, value in env.items()}
    if any(len(value) > LONGEST_KEY or not value.isprintable() for value in values.values()):
        raise HTTPException(422, f"A key is one line of at most {LONGEST_KEY:,} characters.")
    return values


def _prompted_view(thread: str, prompted: thread_prompts.PromptReceipt) -> Prompted:
    return Prompted(
        thread=thread,
        message=prompted.message,
        operation=prompted.operation,
        replaced=prompted.replaced,
        steered=prompted.steered,
    )


async def _pieces(context: ServerContext, record: ThreadRecord, body: PromptBody) -> list[PromptPart]:
    """The pieces of a prompt. Stores its images first, so that a message never refers to a missing one."""
    files = await threads.resolve_files(body.files, record.workspace)
    images = await anyio.to_thread.run_sync(_store_images, context, body.images)
    text = [PromptPart(kind="text", text=body.text)] if body.text.strip() else []
    pieces = [
        *text,
        *(PromptPart(kind="file", data={"uri": file.as_uri(), "name": file.name}) for file in files),
        *images,
    ]
    if not pieces:
        raise HTTPException(422, "There is nothing in this prompt. Give a text, a file or a picture.")
    return pieces


def _store_images(context: ServerContext, images: Sequence[ImageBody]) -> list[PromptPart]:
    decoded = [decode_image(image.data, place) for place, image in enumerate(images, 1)]
    return [
        PromptPart(kind="image", data={"image": context.images.put(content), "mime": mime})
        for content, mime in decoded
    ]


def image_routes(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/images/{sha}")
    async def image(sha: str) -> Response:
        try:
            content = await anyio.to_thread.run_sync(context.images.get, sha)
        except BlobUnavailable:
            raise HTTPException(404, f"There is no picture {sha[:100]}.") from None
        mime = image_mime(content)
        if mime is None:
            raise HTTPException(404, f"What is kept as {sha} is no picture that a page shows.")
        return Response(content, media_type=mime)

    return router


class BadImage(Exception):
    """An image in a prompt cannot be decoded, or has an unsupported type."""

    def __init__(self, place: int) -> None:
        self.place = place
        super().__init__(f"Picture {place} is no PNG, JPEG, GIF or WebP in Base64.")


def decode_image(data: str, place: int) -> tuple[bytes, str]:
    """Decode a Base64 image. Returns its bytes and MIME type. `place` is for the message of NoPicture."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BadImage(place) from None
    mime = image_mime(content)
    if mime is None:
        raise BadImage(place)
    return content, mime
