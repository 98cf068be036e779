"""The JSON of an exported conversation, version 1: what is written, and what is taken back in.

Owns its fields, and the sentence for what cannot be read. It does not know where a conversation comes from.
"""

from typing import Annotated, Literal, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from handrail.store.part import CallData, ErrorData, FileData, ImageData, PlanData, RawData
from handrail.store.value import Json, PartKind, Role, Stop

VERSION = 1
_SHOWN = 3
"""Problems named in one sentence."""

Time = Annotated[int, Field(ge=0, le=2**53)]
Name = Annotated[str, Field(max_length=200)]
"""Of an agent."""


class NotImportable(ValueError):
    """A file that is no conversation we can take in."""


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ExportedPart(_Shape):
    """A piece of a message. Its data has the fields of its kind (part.py)."""

    kind: PartKind
    text: str = ""
    data: Annotated[Json, Field(validate_default=True)] = {}

    @field_validator("data")
    @classmethod
    def _as_its_kind_has_it(cls, data: Json, known: ValidationInfo) -> Json:
        kind: PartKind | None = known.data.get("kind")
        if kind is None or kind not in _DATA:
            return data
        try:
            return cast("Json", _DATA[kind].validate_python({**_ABSENT.get(kind, {}), **data}))
        except ValidationError as error:
            one = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, one['loc']))}: {one['msg']}") from None


class ExportedMessage(_Shape):
    """Something that was said."""

    role: Role
    agent: Name = ""
    opened_at: Time
    ended_at: Time | None = None
    stop: Stop | None = None
    parts: Annotated[tuple[ExportedPart, ...], Field(max_length=10_000)]


class ExportedThread(_Shape):
    """What is said of it as a whole. Where it was is told, and never used."""

    title: Annotated[str, Field(max_length=200)]
    agent: Name
    workspace: str | None = None
    created_at: Time
    updated_at: Time


class Export(_Shape):
    """A conversation in a file."""

    handrail: Literal[1] = 1
    thread: ExportedThread
    messages: Annotated[tuple[ExportedMessage, ...], Field(max_length=100_000)]


def parse(raw: str | bytes) -> Export:
    """A conversation out of a file. Raises `NotImportable`."""
    try:
        return Export.model_validate_json(raw)
    except ValidationError as error:
        raise NotImportable(_sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    found = error.errors(include_url=False)
    for one in found:
        if one["type"] == "json_invalid":
            return f"This is not JSON: {one['msg']}."
        if one["loc"] == ("handrail",) and one["type"] == "literal_error":
            return f"This is an export of version {one['input']}, and this Handrail reads version {VERSION} only."
    places = "; ".join(
        f"{'.'.join(map(str, one['loc'])) or 'the file'}: {one['msg']}" for one in found[:_SHOWN]
    )
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"This is not a conversation as Handrail exports it. {places}{more}."


_DATA: dict[PartKind, TypeAdapter[object]] = {
    "call": TypeAdapter(CallData),
    "plan": TypeAdapter(PlanData),
    "image": TypeAdapter(ImageData),
    "file": TypeAdapter(FileData),
    "error": TypeAdapter(ErrorData),
    "raw": TypeAdapter(RawData),
}
_ABSENT: dict[PartKind, Json] = {
    "call": {
        "id": "",
        "sort": "other",
        "call": None,
        "tool": "",
        "locations": [],
        "content": [],
        "input": None,
        "output": None,
    },
    "error": {"said": [], "logins": []},
}
"""What may be left out."""
