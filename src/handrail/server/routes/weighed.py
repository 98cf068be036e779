"""Rules held against the past: what one would have done, and which ones repeated answers suggest.

Owns fetching that past, and keeping the deciding, which takes a while, off the loop.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import anyio.to_thread

from handrail.gate.rules.policy import Policy
from handrail.gate.rules.suggestions import Judged, Suggested, judge, repeated
from handrail.server.rooms import Rooms
from handrail.store.records import CallDetail
from handrail.store.value import Caller, Claim, Rule

PROMPTS = 500
CALLS = 100
"""Of the past that is looked at: enough to tell what is usual, few enough to be told at once."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the past."""

    tool: str
    title: str
    caller: Caller
    claims: tuple[Claim, ...]


async def judged(rooms: Rooms, rule: Rule) -> Judged:
    """What a rule would have done, had it been there."""
    prompts, calls = await rooms.records.prompts(PROMPTS), await _calls(rooms)
    policies = _policies(rooms, (each.caller for each in (*prompts, *calls)), rule)

    def policy_with(caller: Caller, _rule: Rule) -> Policy:
        return policies[caller.workspace]

    return await anyio.to_thread.run_sync(judge, rule, prompts, calls, policy_with)


async def repeatedly(rooms: Rooms) -> list[Suggested]:
    """Rules for what a person keeps answering alike."""
    prompts = await rooms.records.prompts(PROMPTS)
    policies = _policies(rooms, (each.caller for each in prompts))

    def policy_of(caller: Caller) -> Policy:
        return policies[caller.workspace]

    return await anyio.to_thread.run_sync(repeated, prompts, policy_of)


def _policies(rooms: Rooms, callers: Iterable[Caller], extra: Rule | None = None) -> dict[str | None, Policy]:
    """What holds in each of their folders now; the rules themselves belong to the loop."""
    found = {caller.workspace: caller for caller in callers}
    return {folder: rooms.gate.rules.policy(caller, extra) for folder, caller in found.items()}


async def _calls(rooms: Rooms) -> list[_Call]:
    found = [await rooms.records.call(call.id) for call in await rooms.records.calls(limit=CALLS)]
    return [_past(each) for each in found if each is not None]


def _past(detail: CallDetail) -> _Call:
    call = detail.call
    return _Call(tool=call.tool, title=call.title, caller=call.caller, claims=detail.claims)
