"""What every JSON shape of `/api` has in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Position = Annotated[int, Field(ge=0, le=(1 << 63) - 1)]
"""A place in the journal or in an output; the database and the file system count no further."""


class Wire(BaseModel):
    """A frozen message; unknown fields in what people send are refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
