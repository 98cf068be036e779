"""Routes by which people share a terminal: type, size, take over, release."""

from fastapi import APIRouter, HTTPException, Request

from handrail.errors import Conflict
from handrail.server.rooms import Rooms
from handrail.server.routes.named import fresh_view, running
from handrail.server.routes.person import by
from handrail.server.terminal_wire import InputBody, SizeBody, TerminalView
from handrail.terminal.input.keys import UnknownKey, encode
from handrail.terminal.output.screen import render
from handrail.terminal.terminal import Terminal, TypingRefused, Typist
from handrail.terminal.thread_pool import PEOPLE


def routes(rooms: Rooms) -> APIRouter:
    router = APIRouter()

    @router.post("/terminals/{id}/input")
    async def type_input(id: str, body: InputBody, request: Request) -> TerminalView:
        live = await running(rooms, id)
        try:
            await live.type(await _bytes(live, body), Typist(person=True, name=str(by(request))))
        except TypingRefused as problem:
            raise Conflict(str(problem)) from None
        return await fresh_view(rooms, id)

    @router.post("/terminals/{id}/size")
    async def size(id: str, body: SizeBody) -> TerminalView:
        live = await running(rooms, id)
        if live.attached or not rooms.holders.may_size(id, None):
            owner = "The window that is open on it" if live.attached else "The page it was typed in last"
            raise Conflict(f"{owner} owns the size of terminal {id}.")
        await live.resize(body.cols, body.rows)
        return await fresh_view(rooms, id)

    @router.post("/terminals/{id}/take")
    async def take(id: str, request: Request) -> TerminalView:
        live = await running(rooms, id)
        rooms.holders.let_go(id)  # whoever takes it over says next how large it is
        live.take(str(by(request)), holds=True)
        return await fresh_view(rooms, id)

    @router.post("/terminals/{id}/release")
    async def release(id: str, request: Request) -> TerminalView:
        (await running(rooms, id)).release(str(by(request)))
        return await fresh_view(rooms, id)

    return router


async def _bytes(live: Terminal, body: InputBody) -> bytes:
    """What to type. Which bytes a cursor key sends depends on what the program has asked the screen for."""
    text = (body.text or "") + ("\r" if body.newline and body.text is not None else "")
    try:
        keys = encode(body.keys)
        if keys:
            shown = await PEOPLE.run(render, live.tail, *live.size)
            keys = encode(body.keys, shown.application_keys)
    except UnknownKey as problem:
        raise HTTPException(422, str(problem)) from None
    if not text and not keys:
        raise HTTPException(422, "There is nothing to type. Give a text, or keys.")
    return text.encode() + keys
