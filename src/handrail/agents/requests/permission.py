"""An agent's request for permission, in our words and back: `session/request_permission`.

Owns the translation, both ways. It decides nothing: rules and people do (gate/). Which option an agent is told is
chosen so that what holds from now on is a rule of ours, which a person can see and take back, and never the agent's.

An agent's form for a person, in our words and back: `elicitation/create`.
"""

from typing import cast

from handrail.agents.lenient_json import bounded, cut, number, record, records, text
from handrail.agents.requests.request_context import BAD_PARAMS, error
from handrail.gate.call import Outcome
from handrail.store.values import Json

MOST = 200
"""Places or diffs of one question; nobody reads more."""
_TITLE = 1000


def asked(params: Json, known: Json, cwd: str) -> Json:
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


def answer(params: Json, outcome: Outcome | None) -> Json:
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


def form_asked(params: Json) -> Json:
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
