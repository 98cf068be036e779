"""An agent's request for permission, in our words and back: `session/request_permission`.

Owns the translation, both ways. It decides nothing: rules and people do (gate/). Which option an agent is told is
chosen so that what holds from now on is a rule of ours, which a person can see and take back, and never the agent's.
"""

from handrail.agents.loose import bounded, cut, number, record, records, text
from handrail.gate.call import Outcome
from handrail.store.value import Json

MOST = 200
"""Places or diffs of one question; nobody reads more."""
_TITLE = 1000


def asked(params: Json, known: Json, cwd: str) -> Json:
    """The input of `agent_work`; `known` is what the agent has said of that call before, which it need not repeat."""
    told = record(params.get("toolCall"))
    said: Json = {**known, **{name: value for name, value in told.items() if value is not None}}
    content = records(said.get("content"))[:MOST]
    return {
        "sort": text(said.get("kind")) or "other",
        "title": text(said.get("title"))[:_TITLE],
        "input": bounded(said.get("rawInput")),
        "locations": [_location(each) for each in records(said.get("locations"))[:MOST]],
        "diffs": [_diff(each) for each in content if each.get("type") == "diff"],
        "cwd": cwd,
    }


def answer(params: Json, outcome: Outcome | None) -> Json:
    """The option that says what became of the question; `cancelled` where none of those offered does."""
    options = [each for each in records(params.get("options")) if each.get("optionId") is not None]
    match outcome and outcome.ending:
        case "done":
            chosen = _first(options, "allow")
        case "denied" | "failed":
            chosen = _first(options, "reject")
        case _:
            chosen = None
    told: Json = {"outcome": {"outcome": "cancelled"}}
    if chosen is not None:
        told = {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}}
    if outcome is not None and outcome.ending != "done" and outcome.message:
        told["_meta"] = {"handrail": {"reason": outcome.message, "by": outcome.by}}
    return told


def _first(options: list[Json], verb: str) -> Json | None:
    """Once rather than always; kinds of the future may have other names."""
    for kind in (f"{verb}_once", f"{verb}_always", verb):
        for option in options:
            if option.get("kind") == kind or (kind == verb and text(option.get("kind")).startswith(verb)):
                return option
    return None


def _location(told: Json) -> Json:
    return {"path": text(told.get("path")), "line": number(told.get("line"))}


def _diff(told: Json) -> Json:
    old = told.get("oldText")
    return {
        "path": text(told.get("path")),
        "old": cut(old) if isinstance(old, str) else None,
        "new": cut(text(told.get("newText"))),
    }
