"""What changed between the question and now: a sentence, and the difference where it is a file's.

Owns the comparison of two drafts of one call. It does not know when they are made, nor what comes of it.
"""

import difflib
from dataclasses import dataclass

from handrail.gate.draft import Draft
from handrail.store.value import Json

LARGEST = 200_000
"""Lines compared on both sides together: a difference nobody can read must not cost minutes."""
_SINCE = "changed since the question was asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How what would run differs from what was asked about."""

    sentence: str
    difference: str = ""
    """Of the file on disk, as a unified diff."""


def drift(asked: Draft | None, now: Draft) -> Drift:
    """What is different; `asked` is None where it is not known any more. Takes a while for large files."""
    if asked is None or asked.digest == now.digest:
        return Drift(sentence=f"It {_SINCE}, while Handrail was not running.")
    before, after = asked.tool.proposal(asked.base), now.tool.proposal(now.base)
    if (
        before is not None
        and after is not None
        and (before.path, before.before) != (after.path, after.before)
    ):
        return Drift(
            sentence=_of_file(after.path, after.before), difference=_difference(before.before, after.before)
        )
    if asked.plan.bound != now.plan.bound:
        return Drift(sentence=f"{_named(asked.plan.bound, now.plan.bound)} {_SINCE}.")
    if asked.plan.claims != now.plan.claims:
        return Drift(sentence=f"What it would touch {_SINCE}.")
    return Drift(sentence=f"The rules that it falls under {_SINCE}.")


def _of_file(path: str, now: str | None) -> str:
    return f"{path} was deleted since the question was asked." if now is None else f"{path} {_SINCE}."


def _named(asked: Json, now: Json) -> str:
    """The names of what is bound and differs."""
    names = [name for name in {**asked, **now} if asked.get(name) != now.get(name)]
    return f"What it depends on ({', '.join(names)})"


def _difference(asked: str | None, now: str | None) -> str:
    left, right = (asked or "").splitlines(), (now or "").splitlines()
    if len(left) + len(right) > LARGEST:
        return "(too large to be shown)"
    return "\n".join(difflib.unified_diff(left, right, "when it was asked", "now", lineterm=""))
