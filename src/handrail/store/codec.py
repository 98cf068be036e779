"""Events as text and back.

Owns the one form in which an event is stored. Does not know where.
"""

import json
from dataclasses import asdict

from pydantic_core import PydanticSerializationError

from handrail.store.event import Event, events


def encode(event: Event) -> tuple[Event, str]:
    """The event as JSON, and the event that this JSON reads back as.

    They differ only where a text cannot be stored: a file name that is not UTF-8 is kept with `?` in it.
    """
    try:
        return event, events.dump_json(event).decode()
    except PydanticSerializationError:
        payload = json.dumps(asdict(event), ensure_ascii=False).encode("utf-8", "replace")
        return decode(payload.decode()), payload.decode()


def decode(payload: str) -> Event:
    return events.validate_json(payload)
