"""Handlers for agents' requests: each becomes a call through the gate, or a question to the person.

Maps `fs/*`, `terminal/*`, `session/request_permission` and `elicitation/create` to calls. It runs nothing and
decides nothing; `acp/` receives the requests.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from handrail.agents.lenient_json import bounded, cut, name, number, record, records, text
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
from handrail.gate.gate import Gate
from handrail.store.values import Caller, Json
from handrail.terminal.terminals import Terminals

__all__ = ["RequestContext", "RequestHandlers"]


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
            raise error(NOT_FOUND, f"There is no file {path}.", {"uri": path})
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
        work = permission_input(params, known, context.cwd)
        return permission_answer(
            params, (await context.ask(self._gate, "agent_work", work, tool_call)).outcome
        )

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


MOST = 200
"""Locations or diffs of one question; more cannot be reviewed."""
_TITLE = 1000


def permission_input(params: Json, known: Json, cwd: str) -> Json:
    """The input of `agent_work`; `known` holds the earlier updates about that tool call.

    The request may omit or contradict them, so differing earlier values are shown as `before`.
    """
    update = record(params.get("toolCall"))
    merged: Json = {**known, **{name: value for name, value in update.items() if value is not None}}
    work, before = _describe_work(merged), _describe_work(known)
    arguments: Json = {**work, "title": text(merged.get("title"))[:_TITLE], "cwd": cwd}
    if any(before[name] not in (work[name], _NO_WORK[name]) for name in _NO_WORK):
        arguments["before"] = before
    if not _is_complete(merged) or not _is_complete(known):
        arguments["partly"] = True
    return arguments


def _describe_work(tool_call: Json) -> Json:
    diffs = [each for each in records(tool_call.get("content")) if each.get("type") == "diff"]
    return {
        "sort": text(tool_call.get("kind")) or "other",
        "input": bounded(tool_call.get("rawInput")),
        "locations": [_location(each) for each in records(tool_call.get("locations"))[:MOST]],
        "diffs": [_diff(each) for each in diffs[:MOST]],
    }


_NO_WORK: Json = {"sort": "other", "input": None, "locations": [], "diffs": []}


def _is_complete(tool_call: Json) -> bool:
    """Whether the input holds everything: no list was cut, and no entry was malformed."""
    diffs = [each for each in records(tool_call.get("content")) if each.get("type") == "diff"]
    return (
        len(diffs) <= MOST
        and all(isinstance(each.get("path"), str) for each in diffs)
        and _all_records(tool_call.get("content"))
        and _all_records(tool_call.get("locations"))
        and len(records(tool_call.get("locations"))) <= MOST
    )


def _all_records(value: object) -> bool:
    entries = cast("list[object]", value) if isinstance(value, list) else None
    return value is None or (entries is not None and len(records(entries)) == len(entries))


def permission_answer(params: Json, outcome: Outcome | None) -> Json:
    """The option that matches the outcome; `cancelled` if the agent offered none."""
    options = [each for each in records(params.get("options")) if each.get("optionId") is not None]
    match outcome and outcome.ending:
        case "done":
            chosen = _find_option(options, "allow")
        case "denied" | "failed":
            chosen = _find_option(options, "reject")
            if chosen is not None and _is_ambiguous(options, chosen):
                chosen = None
        case _:
            chosen = None
    answer: Json = {"outcome": {"outcome": "cancelled"}}
    if chosen is not None:
        answer = {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}}
    if outcome is not None and outcome.ending != "done" and outcome.message:
        answer["_meta"] = {"handrail": {"reason": outcome.message, "by": str(outcome.by)}}
    return answer


def _find_option(options: list[Json], verb: str) -> Json | None:
    """Prefer `_once` to `_always`; also accept unknown kinds with the same prefix."""
    for kind in (f"{verb}_once", f"{verb}_always", verb):
        for option in options:
            if option.get("kind") == kind or (kind == verb and text(option.get("kind")).startswith(verb)):
                return option
    return None


def _is_ambiguous(options: list[Json], chosen: Json) -> bool:
    """Whether the chosen id also stands for an option that does not reject."""
    alike = [each for each in options if each.get("optionId") == chosen.get("optionId")]
    return not all(text(each.get("kind")).startswith("reject") for each in alike)


def _location(location: Json) -> Json:
    return {"path": text(location.get("path")), "line": number(location.get("line"))}


def _diff(diff: Json) -> Json:
    old = diff.get("oldText")
    return {
        "path": text(diff.get("path")),
        "old": cut(old) if isinstance(old, str) else None,
        "new": cut(text(diff.get("newText"))),
    }


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
