"""Rules and folders as people write them, made into what the gate takes."""

from fastapi import HTTPException

from handrail.server.rooms import Rooms
from handrail.server.rule_wire import RuleBody
from handrail.store.value import Caller, Rule


def folder_of(text: str) -> str:
    """A folder's path, whole."""
    if not text.startswith("/") or "\0" in text:
        raise HTTPException(422, f"{text!r} names no folder. Give its whole path, from / on.")
    return text


def made(rooms: Rooms, body: RuleBody, caller: Caller | None = None) -> Rule:
    """A rule, not added yet; where it does not say for whom, it is for that caller. Raises BadRule."""
    workspace = None if body.workspace is None else folder_of(body.workspace)
    return rooms.gate.rules.make(
        **body.model_dump(exclude={"workspace"}),
        workspace=workspace or (caller and caller.workspace),
        session=caller and caller.key,
    )
