"""What every JSON shape of `/api` has in common."""

from pydantic import BaseModel, ConfigDict

from handrail.store.value import Position

__all__ = ["Position", "Wire"]


class Wire(BaseModel):
    """A frozen message; unknown fields in what people send are refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
