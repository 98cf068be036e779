"""Ids as people type them: whole, or the first few letters.

Pure. Does not know what the ids are of.
"""

from collections.abc import Iterable

from handrail.cli.failure import Failure

MOST_SHOWN = 5


def by_prefix(typed: str, ids: Iterable[str], noun: str) -> str:
    """The one id that is `typed` or starts with it. Raises Failure when there is none, or more than one."""
    known = list(ids)
    if typed in known:
        return typed
    found = [each for each in known if typed and each.startswith(typed)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failure(f"There is no {noun} {typed}. `handrail {noun}s` lists what there is.")
    shown = ", ".join(found[:MOST_SHOWN]) + (" …" if len(found) > MOST_SHOWN else "")
    raise Failure(f"{typed} is the beginning of {len(found)} {noun}s: {shown}. Type more of it.")
