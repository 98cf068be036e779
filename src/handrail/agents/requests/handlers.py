"""The hands of hosted agents: what an agent asks its host for becomes a call through the gate, or a question.

Owns which call each of the protocol's requests is. It runs nothing itself, decides nothing, and does not know how a
request came (peer.py) or where it is told of (talk.py).

An agent's request for permission, in our words and back: `session/request_permission`.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

from handrail.agents.lenient_json import bounded, cut, name, number, record, records, text
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
from handrail.gate.call import Outcome
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
        work = permission_input(params, known, who.cwd)
        return permission_answer(params, (await who.ask(self._gate, "agent_work", work, tool_call)).outcome)

    async def _ask_form(self, params: Json, who: Who) -> Json:
        form, tool_call = form_input(params), name(params.get("toolCallId"))
        return form_answer((await who.ask(self._gate, "agent_form", form, tool_call)).outcome)


def _path(params: Json, who: Who) -> str:
    """Absolute by the specification; one that is not is in the session's folder."""
    path = text(params.get("path"))
    if not path:
        raise error(BAD_PARAMS, "`path` is required: the absolute path of a file.")
    return str(Path(who.cwd, path))


MOST = 200
"""Places or diffs of one question; nobody reads more."""
_TITLE = 1000


def permission_input(params: Json, known: Json, cwd: str) -> Json:
    """The input of `agent_work`; `known` is what the agent has said of that call before, which it need not repeat.

    What it says now does not take back what it said before: both count.
    """
    told = record(params.get("toolCall"))
    said: Json = {**known, **{name: value for name, value in told.items() if value is not None}}
    work, before = _work(said), _work(known)
    found: Json = {**work, "title": text(said.get("title"))[:_TITLE], "cwd": cwd}
    if any(before[name] not in (work[name], _NOTHING[name]) for name in _NOTHING):
        found["before"] = before
    if not _is_whole(said) or not _is_whole(known):
        found["partly"] = True
    return found


def _work(said: Json) -> Json:
    diffs = [each for each in records(said.get("content")) if each.get("type") == "diff"]
    return {
        "sort": text(said.get("kind")) or "other",
        "input": bounded(said.get("rawInput")),
        "locations": [_location(each) for each in records(said.get("locations"))[:MOST]],
        "diffs": [_diff(each) for each in diffs[:MOST]],
    }


_NOTHING: Json = {"sort": "other", "input": None, "locations": [], "diffs": []}


def _is_whole(said: Json) -> bool:
    """Nothing that it says is left out here, because it is too much or not as the protocol has it."""
    diffs = [each for each in records(said.get("content")) if each.get("type") == "diff"]
    return (
        len(diffs) <= MOST
        and all(isinstance(each.get("path"), str) for each in diffs)
        and _all_records(said.get("content"))
        and _all_records(said.get("locations"))
        and len(records(said.get("locations"))) <= MOST
    )


def _all_records(value: object) -> bool:
    told = cast("list[object]", value) if isinstance(value, list) else None
    return value is None or (told is not None and len(records(told)) == len(told))


def permission_answer(params: Json, outcome: Outcome | None) -> Json:
    """The option that says what became of the question; `cancelled` where none of those offered does."""
    options = [each for each in records(params.get("options")) if each.get("optionId") is not None]
    match outcome and outcome.ending:
        case "done":
            chosen = _first(options, "allow")
        case "denied" | "failed":
            chosen = _first(options, "reject")
            if chosen is not None and _is_ambiguous(options, chosen):
                chosen = None
        case _:
            chosen = None
    told: Json = {"outcome": {"outcome": "cancelled"}}
    if chosen is not None:
        told = {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}}
    if outcome is not None and outcome.ending != "done" and outcome.message:
        told["_meta"] = {"handrail": {"reason": outcome.message, "by": str(outcome.by)}}
    return told


def _first(options: list[Json], verb: str) -> Json | None:
    """Once rather than always; kinds of the future may have other names."""
    for kind in (f"{verb}_once", f"{verb}_always", verb):
        for option in options:
            if option.get("kind") == kind or (kind == verb and text(option.get("kind")).startswith(verb)):
                return option
    return None


def _is_ambiguous(options: list[Json], chosen: Json) -> bool:
    """An id that also says something else than no is no way to say no."""
    alike = [each for each in options if each.get("optionId") == chosen.get("optionId")]
    return not all(text(each.get("kind")).startswith("reject") for each in alike)


def _location(told: Json) -> Json:
    return {"path": text(told.get("path")), "line": number(told.get("line"))}


def _diff(told: Json) -> Json:
    old = told.get("oldText")
    return {
        "path": text(told.get("path")),
        "old": cut(old) if isinstance(old, str) else None,
        "new": cut(text(told.get("newText"))),
    }


def form_input(params: Json) -> Json:
    """The input of `agent_form`. Raises RequestError for what is no form."""
    mode, form = params.get("mode", "form"), params.get("requestedSchema")
    if mode != "form":
        raise error(BAD_PARAMS, f"Handrail shows forms to a person, and no elicitation of mode {mode}.")
    if not isinstance(form, dict) or not isinstance(form.get("properties", {}), dict):
        raise error(
            BAD_PARAMS, "A form needs a `requestedSchema`: an object whose `properties` are its fields."
        )
    return {"message": text(params.get("message")), "form": form}


def form_answer(outcome: Outcome | None) -> Json:
    """What the person gave, or that they would not, or that nobody answered."""
    if outcome is not None and outcome.ending == "done" and outcome.result is not None:
        return {"action": "accept", "content": outcome.result.data.get("values", {})}
    return {"action": "decline" if outcome is not None and outcome.ending == "denied" else "cancel"}
