"""Handlers for agents' requests: each becomes a call through the gate, or a question to the person.

Maps `fs/*`, `terminal/*`, `session/request_permission` and `elicitation/create` to calls. It runs nothing and
decides nothing; `acp/` receives the requests.
"""

import math
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio.to_thread

from handrail.agents.lenient_json import name, number, record, text
from handrail.agents.requests._own_tools import configures_own_name, find_own_tool
from handrail.agents.requests._permission import permission_answer, permission_input
from handrail.agents.requests.agent_terminals import AgentTerminals
from handrail.agents.requests.request_context import (
    BAD_PARAMS,
    FAILED,
    NO_METHOD,
    NOT_FOUND,
    RequestContext,
    error,
    error_from_outcome,
)
from handrail.errors import Unwritable
from handrail.gate.call import Outcome
from handrail.gate.gate import Gate, Request
from handrail.store.actor import HANDRAIL
from handrail.store.values import Caller, Ending, Json
from handrail.terminal.terminals import Terminals

__all__ = ["RequestContext", "RequestHandlers"]


OWN_CALL_ASKS = Outcome(ending="done", by=HANDRAIL, message="The call itself asks when it is made.")


class RequestHandlers:
    """Serves the requests of all hosted agents."""

    def __init__(self, gate: Gate, terminals: Terminals) -> None:
        self._gate = gate
        self._terminals = agent_terminals = AgentTerminals(gate, terminals)
        self._methods: dict[str, Callable[[Json, RequestContext], Awaitable[Json | None]]] = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "terminal/create": agent_terminals.create,
            "terminal/output": agent_terminals.output,
            "terminal/wait_for_exit": agent_terminals.wait_for_exit,
            "terminal/kill": agent_terminals.kill,
            "terminal/release": agent_terminals.release,
            "session/request_permission": self._ask_permission,
            "elicitation/create": self._ask_form,
        }

    async def serve(self, method: str, params: Json, context: RequestContext) -> Json | None:
        """Serve a request, however long an approval takes. Raises the SDK's RequestError with the reason for
        the agent."""
        do = self._methods.get(method)
        if do is None:
            raise error(NO_METHOD, f"Handrail has no method {method}.", {"method": method})
        try:
            return await do(params, context)
        except Unwritable as problem:
            raise error(FAILED, str(problem)) from None

    def forget(self, caller: Caller) -> None:
        """The agent's session is over: drop its terminals."""
        self._terminals.forget(caller)

    async def record_unasked(
        self, tool_call: str, work: Json, ending: Ending, context: RequestContext
    ) -> None:
        """Record work that the agent did without asking; `work` holds its updates about it, merged. Work of our own
        tools is left out: it has its own call."""
        if context.has_own_tools and find_own_tool(self._gate, {"toolCall": work}, {}) is not None:
            return
        arguments = permission_input({"toolCall": work}, work, context.cwd, context.quirks)
        arguments.pop("explanation", None)  # the texts of work that was done are its output
        request = Request(tool="agent_work", input=arguments, caller=context.caller, patience=math.inf)
        await self._gate.record(request, ending, lambda call: context.on_asked(tool_call, call.id))

    async def _read(self, params: Json, context: RequestContext) -> Json:
        path, limit = _path(params, context), number(params.get("limit"))
        arguments: Json = {"path": path, "line": max(1, number(params.get("line")) or 1)}
        if limit is not None:
            arguments["limit"] = max(0, limit)
        outcome = (await context.submit(self._gate, "read_text_file", arguments)).outcome
        data = outcome.result.data if outcome is not None and outcome.result is not None else {}
        if data.get("missing"):
            if context.quirks.missing_file_is_empty:
                return {"content": ""}
            raise error(NOT_FOUND, f"Resource not found: {path} does not exist.", {"uri": path})
        # A person who completes a call supplies its result under `output`.
        content = data.get("content", data.get("output"))
        if outcome is None or outcome.ending not in ("done", "completed") or not isinstance(content, str):
            raise error_from_outcome(outcome)
        return {"content": content}

    async def _write(self, params: Json, context: RequestContext) -> Json:
        content = params.get("content")
        if not isinstance(content, str):
            raise error(BAD_PARAMS, "`content` is required: the whole text of the file.")
        arguments: Json = {"path": _path(params, context), "content": content}
        if context.quirks.writes_itself:  # it writes the file itself; an approval would have no effect
            return {}
        outcome = (await context.submit(self._gate, "write_file", arguments)).outcome
        if outcome is None or outcome.ending not in ("done", "completed"):
            raise error_from_outcome(outcome)
        result = outcome.result
        if result is not None and ("edited" in result.data or record(result.data.get("review")).get("patch")):
            # ACP has no other answer for this, and an uninformed agent would undo the person's changes.
            raise error(FAILED, f"It was written, but not as asked. {result.text}", {"status": "changed"})
        return {}

    async def _ask_permission(self, params: Json, context: RequestContext) -> Json:
        tool_call = name(record(params.get("toolCall")).get("toolCallId"))
        known = context.known(tool_call) if tool_call else {}
        if await self._is_about_own_tool(params, known, context):
            return permission_answer(params, OWN_CALL_ASKS)
        work = permission_input(params, known, context.cwd, context.quirks)
        reply = await context.ask(self._gate, "agent_work", work, tool_call)
        return permission_answer(params, reply.outcome)

    async def _is_about_own_tool(self, params: Json, known: Json, context: RequestContext) -> bool:
        """Whether the work is a call of our own tools, which asks when it arrives over MCP."""
        if not context.has_own_tools or find_own_tool(self._gate, params, known) is None:
            return False
        return not await anyio.to_thread.run_sync(configures_own_name, context.cwd)

    async def _ask_form(self, params: Json, context: RequestContext) -> Json:
        form, tool_call = form_input(params), name(params.get("toolCallId"))
        return form_answer((await context.ask(self._gate, "agent_form", form, tool_call)).outcome)


def _path(params: Json, context: RequestContext) -> str:
    """The requested path. It is absolute by the specification; a relative one is resolved in the session's
    folder."""
    path = text(params.get("path"))
    if not path:
        raise error(BAD_PARAMS, "`path` is required: the absolute path of a file.")
    return str(Path(context.cwd, path))


def form_input(params: Json) -> Json:
    """The input of `agent_form`. Raises RequestError if the request is not a form."""
    mode, form = params.get("mode", "form"), params.get("requestedSchema")
    if mode != "form":
        raise error(BAD_PARAMS, f"Handrail shows forms to a person, and no elicitation of mode {mode}.")
    if not isinstance(form, dict) or not isinstance(form.get("properties", {}), dict):
        raise error(
            BAD_PARAMS, "A form needs a `requestedSchema`: an object whose `properties` are its fields."
        )
    return {"message": text(params.get("message")), "form": form}


def form_answer(outcome: Outcome | None) -> Json:
    """The person's values; else `decline` if they refused, or `cancel` without an answer."""
    if outcome is not None and outcome.ending == "done" and outcome.result is not None:
        return {"action": "accept", "content": outcome.result.data.get("values", {})}
    return {"action": "decline" if outcome is not None and outcome.ending == "denied" else "cancel"}
