"""Moments at which an operation is cancelled: chosen at random, relative to something that happens in it.

Owns the operation that is played for it, where a cancel is aimed at, and what it hit. It does not know how anything is
sent or checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from tests.e2e.own_agent.stage import ASKED
from tests.e2e.person import Json
from tests.model.script import Call, Turn

Part = Literal["model", "tool", "approval", "join"]
PARTS: tuple[Part, ...] = ("model", "tool", "approval", "join")


def _said(words: str, *lines: str) -> Turn:
    calls = tuple(Call("execute_command", {"command": line}) for line in lines)
    return Turn(f"{words} I will now do some of this.", think="Hm.", calls=calls, pace=0.01)


RUNNING = _said("Running.", "sleep 0.2", "sleep 0.25 | sleep 0.2")
JOINING = _said("Joining.", "echo one", "sleep 0.06", "sleep 0.12")
ASKING = _said("Asking.", f"{ASKED} asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """So many seconds after the nth fact of a kind."""

    aim: Part
    turns: tuple[Turn, ...]
    nth: int
    after: float

    def is_begun_by(self, fact: Json) -> bool:
        """Whether this is such a fact."""
        match self.aim, fact["kind"], fact.get("sort"):
            case ("model", "ActivityStarted", "model") | ("tool", "ActivityStarted", "call"):
                return True
            case ("join", "ActivityEnded", "call") | ("approval", "ApprovalOpened", _):
                return True
            case _:
                return False


def moment(aim: Part, random: Random) -> Moment:
    """Mostly where its aim is; now and then anywhere."""
    turns = [RUNNING, JOINING, ASKING]
    random.shuffle(turns)

    def before(turn: Turn) -> int:
        return sum(len(each.calls) for each in turns[: turns.index(turn)])

    nth, within = {
        "model": (random.randint(1, 4), 0.08),
        "tool": (before(RUNNING) + random.randint(1, 2), 0.1),
        "approval": (1, 0.15),
        "join": (before(JOINING) + random.randint(1, 2), 0.06),
    }[aim]
    if aim != "approval" and random.random() < 0.2:
        nth = random.randint(1, 4)
    return Moment(aim=aim, turns=(*turns, _said("Over.")), nth=nth, after=random.uniform(0.0, within))


def hit(activities: Sequence[Json], withdrawn: bool) -> Part:
    """What was under way when it was cancelled, by what came to an end with it."""
    cut = [each for each in activities if each["how"] == "cancelled"]
    if any(each["sort"] in ("model", "thinking") for each in cut):
        return "model"
    steps = {each["id"] for each in cut if each["sort"] == "step"}
    calls = [each for each in activities if each["sort"] == "call" and each["parent"] in steps]
    if not calls:
        return "model"  # the first step is about to ask
    if any(each["how"] != "cancelled" for each in calls):
        return "join"  # some results are in
    return "approval" if withdrawn else "tool"
