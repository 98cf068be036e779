"""Routes by which people talk with an agent: prompt it, see to what is queued, choose its settings."""

from collections.abc import Sequence

import anyio.to_thread
from fastapi import APIRouter, HTTPException, Request, Response

from handrail.agents.talk import prompt as agents
from handrail.agents.talk.blocks import Piece
from handrail.config import OWN_AGENT, PROVIDER_VARIABLES
from handrail.server.pictures import picture
from handrail.server.rooms import Rooms
from handrail.server.routes import conversations
from handrail.server.routes.person import by
from handrail.server.thread_wire import ImageBody, PromptBody, Prompted, SettingBody
from handrail.store.thread.record import ThreadRecord

LONGEST_KEY = 4096


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.post("/threads/{id}/prompt")
    async def prompt(id: str, body: PromptBody, request: Request) -> Prompted:
        record = await conversations.found(rooms, id)
        agent = conversations.known_agent(rooms, body.agent) if body.agent else None
        env = _keys(body, agent or record.agent)
        pieces = await _pieces(rooms, record, body)
        became = await rooms.prompts.prompt(
            id, pieces, by=by(request), agent=agent, queue=body.queue, env=env
        )
        await rooms.threads.written()  # what a person said is not lost, whatever becomes of the answer
        return _view(id, became)

    @router.post("/threads/{id}/queue/{message}/send")
    async def send_now(id: str, message: str, request: Request) -> Prompted:
        await conversations.found(rooms, id)
        return _view(id, await rooms.prompts.send_now(id, message, by=by(request)))

    @router.delete("/threads/{id}/queue/{message}", status_code=204)
    async def drop(id: str, message: str, request: Request) -> Response:
        await conversations.found(rooms, id)
        rooms.prompts.drop(id, message, by=by(request))
        await rooms.threads.written()
        return Response(status_code=204)

    @router.post("/threads/{id}/setting", status_code=204)
    async def setting(id: str, body: SettingBody) -> Response:
        await conversations.found(rooms, id)
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


def _view(thread: str, became: agents.Prompted) -> Prompted:
    return Prompted(
        thread=thread, message=became.message, operation=became.operation, replaced=became.replaced
    )


async def _pieces(rooms: Rooms, record: ThreadRecord, body: PromptBody) -> list[Piece]:
    """What a prompt is made of; its pictures are kept before anybody is told of them."""
    files = await conversations.files(body.files, record.workspace)
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
