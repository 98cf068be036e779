"""What a call would touch, part by part, and what was decided about each.

Owns how parts look: of a question, of an edit, of a tried call. Does not know how anything is decided.
"""

from handrail.cli.exact import flat
from handrail.cli.show import Piece
from handrail.cli.words import Row, effect

_VERBS = {
    "read": "reads",
    "write": "writes",
    "delete": "deletes",
    "run": "runs",
    "connect": "connects to",
    "type": "types",
    "stop": "ends",
    "recall": "recalls",
}
_PLACED = {"read", "write", "delete", "run"}


def parts(asked: Row) -> list[list[Piece]]:
    """A line for each part of a question, or of an edit of it; none where the question itself says it all."""
    claims: list[Row] = asked["claims"]
    if len(claims) < 2 and not any(claim["opaque"] or claim["protected"] for claim in claims):
        return []
    verdicts: dict[int, Row] = {verdict["claim"]: verdict for verdict in asked["verdicts"]}
    every_run = all(claim["action"] == "run" for claim in claims)
    return [
        _line(place, claim, verdicts.get(place), every_run, asked["why"])
        for place, claim in enumerate(claims)
    ]


def remarks(part: Row) -> list[str]:
    """What stands out of a part: where it leads, and that it is not understood."""
    outside = part["action"] in _PLACED and not part["inside"]
    return [
        *(["protected"] if part["protected"] else []),
        *(["outside the workspace"] if outside else []),
        *([f"not fully understood: {part['opaque']}"] if part["opaque"] else []),
    ]


def action_verb(action: str) -> str:
    return _VERBS.get(action, action)


def _line(place: int, claim: Row, verdict: Row | None, every_run: bool, asked_why: str) -> list[Piece]:
    does = "" if every_run else f"{action_verb(claim['action'])} "
    what: list[Piece] = [f"  {place + 1}  {does}", (flat(claim["resource"]), "bold")]
    told: list[Piece] = [(f"  · {flat(remark)}", "yellow") for remark in remarks(claim)]
    return [*what, *_decided(claim, verdict, asked_why), *told]


def _decided(claim: Row, verdict: Row | None, asked_why: str) -> list[Piece]:
    """By which rule; or why it asks, where the question has not said that already."""
    if verdict is None:
        return []
    word, style = effect(verdict["effect"])
    if verdict["effect"] != "ask":
        return [(f"  {word}", style), f" by {verdict['rule']}"]
    why = verdict["why"]
    said = bool(claim["opaque"]) or why == asked_why
    return [(f"  {word}", style), "" if said else f": {flat(why)}"]
