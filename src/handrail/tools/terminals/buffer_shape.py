"""What get_terminal_buffer is asked and what it tells."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from handrail.tools.answer import Format, Input

LINES = 200
"""Told when nothing is said about which."""


class GetTerminalBufferInput(Input):
    terminalId: Annotated[str, Field(description="As list_tracked_terminals names it.")]  # noqa: N815
    after: Annotated[
        int | None,
        Field(
            ge=0,
            description="A byte offset: only what came after it, oldest first. `next` is the one to go on from.",
        ),
    ] = None
    lastN: Annotated[  # noqa: N815
        int | None, Field(ge=1, le=10_000, description="Only the last N chunks, as the program wrote them.")
    ] = None
    lines: Annotated[
        int | None,
        Field(ge=1, le=10_000, description=f"Only the last lines; {LINES} when nothing else is said."),
    ] = None
    mode: Annotated[
        Literal["text", "raw", "screen"],
        Field(
            description="`text`: escapes and overwritten progress lines resolved. `raw`: every byte as written. `screen`: "
            "the screen as a person sees it now, for full-screen programs."
        ),
    ] = "text"
    asString: Annotated[  # noqa: N815
        bool, Field(description="False gives `chunks`, a list with the time of each, instead of `output`.")
    ] = True
    includeMetadata: Annotated[  # noqa: N815
        bool, Field(description="Add `terminal`: the facts that list_tracked_terminals tells.")
    ] = False
    response_format: Format = "text"


class GetTerminalBufferOutput(BaseModel):
    terminal_id: str | None = None
    output: str | None = Field(None, description="What it printed.")
    output_base64: str | None = Field(
        None,
        description="Mode raw, when the bytes are not valid UTF-8: exactly these bytes; `output` shows them replaced.",
    )
    chunks: list[dict[str, Any]] | None = Field(
        None,
        description="With asString false. Each: offset, at (milliseconds since 1970), text, base64 if it is no text.",
    )
    start: int | None = Field(None, description="The offset of the first byte told.")
    next: int | None = Field(None, description="Give this as `after` to go on exactly where this ends.")
    end: int | None = Field(
        None, description="All that was printed so far, in bytes; `next` < `end` means there is more."
    )
    dropped_bytes: int | None = Field(None, description="Bytes at the start that are no longer kept.")
    dropped_lines: int | None = Field(None, description="Lines among them.")
    left_out: int | None = Field(None, description="Bytes that were asked for and are not told here.")
    input_history: list[dict[str, Any]] | None = Field(
        None,
        description="What was typed into it (after `after`, else the last ones). Each: at, by, person, text (null when it "
        "was hidden), offset.",
    )
    running: bool | None = None
    exit_code: int | None = None
    signal: str | None = None
    cursor: list[int] | None = Field(None, description="Mode screen: column and row, from zero.")
    alternate_screen: bool | None = Field(None, description="Mode screen: a full-screen program has it.")
    window_title: str | None = None
    size: list[int] | None = Field(None, description="Mode screen: columns and rows.")
    forgotten: bool | None = Field(
        None, description="Its output was deleted, as configured, because of its age or size."
    )
    terminal: dict[str, Any] | None = Field(None, description="With includeMetadata.")
