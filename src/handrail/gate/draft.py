"""A draft: what a call would do if it were allowed now, as it was asked or as a person changed it.

Owns working that out, as often as it is needed and without any effect: parse, plan, review, decide. It asks nobody,
runs nothing (path.py), and does not know who answers (verbs.py).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from handrail.gate.digest import sealed, substance
from handrail.gate.parse import Parsed, parse, too_much
from handrail.gate.rules.rule import Decision
from handrail.gate.tool import Plan, Proposal, Refusal, Tool, Toolbox
from handrail.store.value import Caller, Comment, Json

if TYPE_CHECKING:
    from handrail.gate.rules.rules import Rules


@dataclass(frozen=True, kw_only=True)
class Deed:
    """What a call would do, whatever the rules say of it."""

    tool: Tool[Any, Any]
    input: Json
    base: Plan
    """As the tool makes it of the input."""
    content: str | None
    """What a person made of the proposed file; None where they left it."""
    plan: Plan
    """As it would run: the base, with that content."""

    @cached_property
    def substance(self) -> str:
        return substance(self.tool.name, self.input, self.plan)

    @cached_property
    def footing(self) -> str:
        """What a review starts from."""
        return self.substance if self.plan is self.base else substance(self.tool.name, self.input, self.base)

    @property
    def proposal(self) -> Proposal | None:
        return self.tool.proposal(self.plan)

    async def commented(self, comments: tuple[Comment, ...]) -> Plan:
        """The plan that tells the agent of these comments too. Raises Refusal."""
        content = self.content
        if comments and content is None and self.proposal is not None:
            content = self.proposal.after
        if not comments or content is None:
            return self.plan
        return await anyio.to_thread.run_sync(self.tool.review, self.base, content, comments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a call would do, and what the rules of one moment say of it."""

    deed: Deed
    decision: Decision

    @property
    def plan(self) -> Plan:
        return self.deed.plan

    @property
    def digest(self) -> str:
        return sealed(self.deed.substance, self.decision.basis)


class Drafts:
    """Works out calls with these tools, under these rules."""

    def __init__(self, rules: "Rules", toolbox: Toolbox) -> None:
        self._rules = rules
        self._toolbox = toolbox

    async def first(self, parsed: Parsed, input: Json, caller: Caller) -> Draft:
        """Of a call that has just been parsed. Raises Refusal."""
        return await self._made(parsed, input, None, caller)

    async def fresh(self, tool: str, input: Json, caller: Caller, content: str | None = None) -> Draft:
        """Of any input, from the beginning; with `content` in place of what it proposes. Raises Refusal."""
        parsed = too_much(input) or parse(self._toolbox, tool, input)
        if isinstance(parsed, str):
            raise Refusal(parsed)
        return await self._made(parsed, input, content, caller)

    def again(self, draft: Draft, caller: Caller) -> Draft:
        """The same plan, under the rules of now."""
        return replace(draft, decision=self._decision(draft.deed, caller))

    async def _made(self, parsed: Parsed, input: Json, content: str | None, caller: Caller) -> Draft:
        tool = parsed.tool
        base = plan = await tool.plan(parsed.input, caller)
        if content is not None:  # comparing large files takes a while
            plan = await anyio.to_thread.run_sync(tool.review, base, content, ())
        deed = Deed(tool=tool, input=input, base=base, content=content, plan=plan)
        return Draft(deed=deed, decision=self._decision(deed, caller))

    def _decision(self, deed: Deed, caller: Caller) -> Decision:
        if deed.plan.asks:
            return Decision(effect="ask", rule="asks a person", why=deed.plan.asks)
        return self._rules.policy(caller).decide(deed.tool.name, deed.plan.claims, caller)
