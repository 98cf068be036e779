"""What changed between the question and now: a sentence, and the difference where it is a file's.

Owns the comparison of two drafts of one call. It does not know when they are made, nor what comes of it; how a file
differs is said by the tool that would write it.
"""

from dataclasses import dataclass

import anyio.to_thread

from handrail.gate.draft import Draft
from handrail.store.value import Json

_SINCE = "changed since the question was asked"
_ADVICE = "Nothing was done; look at it as it is now, and ask again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How what would run differs from what was asked about."""

    sentence: str
    difference: str = ""
    """Of the file on disk, as a unified diff, for a person's eyes."""


async def drift(asked: Draft | None, now: Draft | str) -> Drift:
    """What is different; `asked` is None where it is not known any more, `now` a sentence where it cannot be done."""
    if asked is not None:
        found = await anyio.to_thread.run_sync(asked.deed.tool.changed_since, asked.deed.base)
        if found is not None:
            return Drift(sentence=found[0], difference=found[1])
    if isinstance(now, str):
        return Drift(sentence=now)
    if asked is None or asked.digest == now.digest:  # what is asked about now was looked at after a restart
        return Drift(sentence=f"It {_SINCE}, while Handrail was not running. {_ADVICE}")
    return Drift(sentence=f"{_what(asked, now)} {_SINCE}. {_ADVICE}")


def _what(asked: Draft, now: Draft) -> str:
    if asked.plan.bound != now.plan.bound:
        return f"What it depends on ({_names(asked.plan.bound, now.plan.bound)})"
    return "What it would touch" if asked.plan.claims != now.plan.claims else "What the rules say about it"


def _names(asked: Json, now: Json) -> str:
    """Of what is bound and differs."""
    return ", ".join(name for name in {**asked, **now} if asked.get(name) != now.get(name))
