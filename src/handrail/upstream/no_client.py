"""In place of a client that is gone, or that cannot be asked: it has no abilities, and refuses every question."""

from collections.abc import Mapping, Sequence

from handrail.store.values import Caller, Json
from handrail.upstream.jsonrpc_connection import METHOD_NOT_FOUND, RpcError


class NoClient:
    """Implements `ClientLink`. A server that is started for it ends with its last request."""

    def __init__(self, caller: Caller) -> None:
        self.info: Json = {"name": caller.client, "version": ""}
        self.capabilities: Json = {}
        self.workspace = caller.workspace
        self.log_level = ""
        self.is_legacy = True
        self.has_left = True

    async def request(self, server: str, method: str, params: Json, origins: Sequence[object]) -> Json:
        raise RpcError(METHOD_NOT_FOUND, f"Nobody can answer {method} for this call.")

    async def request_all(
        self, server: str, questions: Mapping[str, tuple[str, Json]], origins: Sequence[object]
    ) -> Json:
        raise RpcError(METHOD_NOT_FOUND, "Nobody can answer the questions of this call.")

    async def notify(self, method: str, params: Json) -> None:
        return
