"""A tool of an MCP server, as the loop knows tools.

Owns how it is described to the model, and what people hear while it runs. It does not know how its server is reached
(server.py), what the answer means (answer.py), or who allows it (permission.py; for our own server, its gate).
"""

import json
from dataclasses import dataclass, replace

import mcp_types as types
from pydantic_ai.tools import ToolDefinition

from handrail.agents.builtin.tools.answer import result_of
from handrail.agents.builtin.tools.long import Outputs
from handrail.agents.builtin.tools.permission import Permission
from handrail.agents.builtin.tools.server import Server, Unanswered
from handrail.agents.builtin.tools.titles import foreign, shown
from handrail.agents.builtin.tools.tool import Json, Result, Running, Shown

MOST_SCHEMA = 50_000
"""Characters of what is said of a tool's input; of one that says more, nothing is said, and it can be called all the same."""
MOST_DESCRIPTION = 8_000
"""Characters: they stand in every request."""
_WHERE = "Answer on Handrail's page (`handrail open`), or with `handrail approvals` and `handrail approve`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """One tool of one server."""

    name: str
    """As the model knows it."""
    server: Server
    spec: types.Tool
    permission: Permission | None
    """Whom to ask first; None where its server asks for itself."""
    outputs: Outputs
    cwd: str

    @property
    def definition(self) -> ToolDefinition:
        described = self.spec.description or self.spec.title or ""
        return ToolDefinition(
            name=self.name,
            description=described[:MOST_DESCRIPTION],
            parameters_json_schema={"type": "object", **_schema(self.spec.input_schema)},
        )

    def shown(self, input: Json) -> Shown:
        if self.server.is_ours:
            return shown(self.spec.name, input, self.cwd)
        return foreign(self.server.name, self.spec.title or self.spec.name)

    async def run(self, input: Json, call: Running) -> Result:
        if self.permission is not None:
            refusal = await self.permission.refusal(self.name, self.shown(input), input, call)
            if refusal is not None:
                return refusal
        hearing = _Hearing(call, ours=self.server.is_ours)
        try:
            answer = await self.server.call(self.spec.name, input, hearing.progress)
        except Unanswered as problem:
            return Result(text=str(problem), failed=True, ended="failed")
        finally:
            hearing.over = True
        result = result_of(answer, server=self.server.name, ours=self.server.is_ours)
        return replace(result, text=self.outputs.short(result.text))


def _schema(given: Json) -> Json:
    return given if len(json.dumps(given)) <= MOST_SCHEMA else {}


class _Hearing:
    """What a server says while its tool runs, told on."""

    def __init__(self, call: Running, *, ours: bool) -> None:
        self.over = False
        """The call has ended: what comes now, comes late."""
        self._call, self._ours = call, ours

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if not self.over:
            words = message or (f"{progress:g} of {total:g}" if total else f"{progress:g}")
            self._call.voice.call_heard(self._call.id, self._placed(words)[:500])

    def _placed(self, words: str) -> str:
        """With where to answer, when a person is waited for."""
        return f"{words}. {_WHERE}" if self._ours and words.startswith("waiting") else words
