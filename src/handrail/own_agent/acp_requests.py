"""The parameters of the ACP requests that our agent serves, and the content blocks of a prompt.

Only the fields that are read; others are ignored. The ACP SDK has models of the whole protocol, but importing them takes
half a second. The tests speak to the agent through the SDK's client.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class NamedValue(_Wire):
    """An environment variable or an HTTP header."""

    name: str
    value: str


class StdioServer(_Wire):
    """An MCP server that is a program."""

    name: str
    command: str
    args: list[str]
    env: list[NamedValue]


class HttpServer(_Wire):
    """An MCP server with a URL."""

    type: Literal["http"]
    name: str
    url: str
    headers: list[NamedValue]


class UnsupportedServer(_Wire):
    """An MCP server on a transport that our agent does not speak."""

    type: Literal["sse", "acp"]
    name: str


HostServer = HttpServer | UnsupportedServer | StdioServer


def _skip_invalid(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Leave out the items that are invalid, as the protocol wants for lists of servers."""
    if not isinstance(value, list):
        return validate(value)
    kept: list[Any] = []
    for item in value:  # pyright: ignore[reportUnknownVariableType] - JSON
        try:
            kept += validate([item])
        except ValidationError:
            continue
    return kept


_Servers = Annotated[list[HostServer], WrapValidator(_skip_invalid)]


class TextBlock(_Wire):
    type: Literal["text"]
    text: str


class ImageBlock(_Wire):
    type: Literal["image"]
    data: str
    mime_type: str


class AudioBlock(_Wire):
    type: Literal["audio"]
    data: str
    mime_type: str


class LinkBlock(_Wire):
    """A resource that the agent may read."""

    type: Literal["resource_link"]
    uri: str
    name: str


class TextResource(_Wire):
    uri: str
    text: str
    mime_type: str | None = None


class BlobResource(_Wire):
    uri: str
    blob: str
    mime_type: str | None = None


class ResourceBlock(_Wire):
    """A resource with its content."""

    type: Literal["resource"]
    resource: TextResource | BlobResource


Block = TextBlock | ImageBlock | AudioBlock | LinkBlock | ResourceBlock


class InitializeRequest(_Wire):
    protocol_version: Annotated[int, Field(ge=0, le=65535)]
    client_capabilities: Any = None
    meta: Any = Field(default=None, alias="_meta")


class NewSessionRequest(_Wire):
    cwd: str
    mcp_servers: _Servers


class LoadSessionRequest(NewSessionRequest):
    session_id: str


class ResumeSessionRequest(_Wire):
    """Also of a fork."""

    session_id: str
    cwd: str
    mcp_servers: _Servers | None = None


class ListSessionsRequest(_Wire):
    cwd: str | None = None
    cursor: str | None = None


class SessionRequest(_Wire):
    """A request with no other parameter: to close, delete or cancel."""

    session_id: str


class PromptRequest(_Wire):
    session_id: str
    prompt: list[Annotated[Block, Field(discriminator="type")]]


class SetConfigOptionRequest(_Wire):
    session_id: str
    config_id: str
    value: str | bool
