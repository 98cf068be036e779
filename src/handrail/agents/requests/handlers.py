"""The hands of hosted agents: what an agent asks its host for becomes a call through the gate, or a question.

Owns which call each of the protocol's requests is. It runs nothing itself, decides nothing, and does not know how a
request came (peer.py) or where it is told of (talk.py).
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

from handrail.agents.lenient_json import name, number, record, text
from handrail.agents.requests import permission
from handrail.agents.requests import permission as form
from handrail.agents.requests.agent_terminals import Lending
from handrail.agents.requests.request_context import (
    BAD_PARAMS,
    FAILED,
    NO_METHOD,
    NOT_FOUND,
    Who,
    error,
    not_done,
)
from handrail.errors import Unwritable
from handrail.gate.gate import Gate
from handrail.store.values import Caller, Json
from handrail.terminal.terminals import Terminals

__all__ = ["Hands", "Who"]


class Hands:
    """Does what agents ask for."""

    def __init__(self, gate: Gate, terminals: Terminals) -> None:
        self._gate = gate
        self._lending = lending = Lending(gate, terminals)
        self._methods: dict[str, Callable[[Json, Who], Awaitable[Json | None]]] = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": lending.create,
            "terminal/output": lending.output,
            "terminal/wait_for_exit": lending.wait_for_exit,
            "terminal/kill": lending.kill,
            "terminal/release": lending.release,
            "session/request_permission": self._ask_permission,
            "elicitation/create": self._ask_form,
        }

    async def serve(self, method: str, params: Json, who: Who) -> Json | None:
        """Do it, however long a person takes to allow it. Raises acp's RequestError with what the agent is told."""
        do = self._methods.get(method)
        if do is None:
            raise error(NO_METHOD, f"Handrail has no method {method}.", {"method": method})
        try:
            return await do(params, who)
        except Unwritable as problem:
            raise error(FAILED, str(problem)) from None

    def forget(self, caller: Caller) -> None:
        """The agent's session is over: it can name its terminals no more."""
        self._lending.forget(caller)

    async def _read(self, params: Json, who: Who) -> Json:
        path, limit = _path(params, who), number(params.get("limit"))
        given: Json = {"path": path, "line": max(1, number(params.get("line")) or 1)}
        if limit is not None:
            given["limit"] = max(0, limit)
        outcome = (await who.submit(self._gate, "read_text_file", given)).outcome
        data = outcome.result.data if outcome is not None and outcome.result is not None else {}
        if data.get("missing"):
            if who.quirks.missing_file_is_empty:
                return {"content": ""}
            raise error(NOT_FOUND, f"There is no file {path}.", {"uri": path})
        # What a person gave in its place stands under the name that all their words have.
        found = data.get("content", data.get("output"))
        if outcome is None or outcome.ending not in ("done", "completed") or not isinstance(found, str):
            raise not_done(outcome)
        return {"content": found}

    async def _write(self, params: Json, who: Who) -> Json:
        content = params.get("content")
        if not isinstance(content, str):
            raise error(BAD_PARAMS, "`content` is required: the whole text of the file.")
        given: Json = {"path": _path(params, who), "content": content}
        if who.quirks.writes_itself:  # an editor would show it; a question about it would decide nothing
            return {}
        outcome = (await who.submit(self._gate, "write_file", given)).outcome
        if outcome is None or outcome.ending not in ("done", "completed"):
            raise not_done(outcome)
        result = outcome.result
        if result is not None and ("edited" in result.data or record(result.data.get("review")).get("patch")):
            # The protocol has no other word for it, and an agent that knows nothing would undo the person's changes.
            raise error(FAILED, f"It was written, but not as asked. {result.text}", {"status": "changed"})
        return {}

    async def _ask_permission(self, params: Json, who: Who) -> Json:
        tool_call = name(record(params.get("toolCall")).get("toolCallId"))
        known = who.known(tool_call) if tool_call else {}
        asked = permission.asked(params, known, who.cwd)
        return permission.answer(params, (await who.ask(self._gate, "agent_work", asked, tool_call)).outcome)

    async def _ask_form(self, params: Json, who: Who) -> Json:
        asked, tool_call = form.form_asked(params), name(params.get("toolCallId"))
        return form.form_answer((await who.ask(self._gate, "agent_form", asked, tool_call)).outcome)


def _path(params: Json, who: Who) -> str:
    """Absolute by the specification; one that is not is in the session's folder."""
    path = text(params.get("path"))
    if not path:
        raise error(BAD_PARAMS, "`path` is required: the absolute path of a file.")
    return str(Path(who.cwd, path))
