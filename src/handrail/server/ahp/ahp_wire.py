"""The wire of the Agent Host Protocol 0.9: JSON-RPC messages, error codes, URIs and times.

Messages stay plain JSON: the client applies our actions itself, so unknown fields are kept as they came.
"""

import base64
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

Obj = dict[str, Any]

VERSIONS = ("0.9.0",)
"""Protocol versions that we speak, best first."""
ROOT = "ahp-root://"
"""The channel of the host as a whole."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
PROVIDER_NOT_FOUND = -32002
SESSION_EXISTS = -32003
UNSUPPORTED_VERSION = -32005
NOT_FOUND = -32008
NOT_PERMITTED = -32009

IDLE, ERROR, IN_PROGRESS, INPUT_NEEDED, IS_READ, IS_ARCHIVED = 1, 2, 8, 24, 32, 64
"""Bits of a status. Input needed includes in progress."""
ACTIVITY = 31
"""The bits of a status that exclude each other."""


class RpcError(Exception):
    """A request fails with this JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Obj | None = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(message)


class Rejected(Exception):
    """An action of a client is not applied; the message is shown to the person."""


def encode(message: Obj) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))


def result_message(id: object, result: object) -> str:
    return encode({"id": id, "result": result})


def error_message(id: object, problem: RpcError) -> str:
    error: Obj = {"code": problem.code, "message": problem.message}
    return encode({"id": id, "error": error if problem.data is None else {**error, "data": problem.data}})


def notification(method: str, params: Obj) -> str:
    return encode({"method": method, "params": params})


def choose_version(offered: Iterable[object]) -> str:
    """The best version that both sides speak. Raises RpcError."""
    known = [version for version in VERSIONS if version in [*offered]]
    if not known:
        data = {"supportedVersions": list(VERSIONS)}
        raise RpcError(UNSUPPORTED_VERSION, f"Handrail speaks version {', '.join(VERSIONS)}.", data)
    return known[0]


def text_field(source: Obj, name: str) -> str:
    """A field that must be text. Raises RpcError."""
    value = source.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"`{name}` must be text.")
    return value


def object_field(source: Obj, name: str) -> Obj:
    """A field that must be an object. Raises RpcError."""
    value = source.get(name)
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"`{name}` must be an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


def without_none(**fields: Any) -> Obj:
    """An object without the fields that are None: JSON has no `undefined`."""
    return {name: value for name, value in fields.items() if value is not None}


CHAT = "ahp-chat://default/"


def chat_of_session(session: str) -> str:
    """The URI of a session's only chat."""
    return CHAT + base64.urlsafe_b64encode(session.encode()).decode().rstrip("=")


def session_of_chat(chat: str) -> str | None:
    """The session of a chat's URI; None if it is no such URI."""
    code = chat.removeprefix(CHAT)
    if code == chat:
        return None
    try:
        return base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)).decode()
    except ValueError:
        return None


def file_uri(path: str) -> str:
    return f"file://{quote(path)}"


def path_of_uri(uri: str) -> str | None:
    """The absolute path of a `file:` URI, also of one that VS Code wrapped for its agent host; None for any other."""
    parts = urlsplit(uri)
    if parts.scheme not in ("file", "vscode-agent-host", "vscode-remote"):
        return None
    path = unquote(parts.path)
    return path if Path(path).is_absolute() and "\0" not in path else None


def iso_time(ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def ms_of_iso(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None
