"""A draft: what a call would do if it were allowed now, as it was asked or as a person changed it.

Owns working that out, as often as it is needed and without any effect: parse, plan, review, decide. It asks nobody,
runs nothing (path.py), and does not know who answers (verbs.py).

The digest of what a person is asked about: equal digests mean the same thing would be done.

Input, as a client sent it, into what a tool takes; and what is wrong with it, as a sentence.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic import BaseModel, JsonValue, ValidationError

from handrail.gate.rules.policy import Decision
from handrail.gate.tool import Plan, Proposal, Refusal, Tool, Toolbox
from handrail.store.values import Caller, Comment, Json

if TYPE_CHECKING:
    from handrail.gate.rules.rules import Rules


MOST_PROBLEMS = 5
"""Problems told at once: enough to mend the input, too few to flood a model's context."""
LONGEST_NAME = 100
"""Characters of a name that is told back to whoever made it up."""
DEEPEST = 64
"""Levels of lists and objects in an input: far below the 200 that a reader of the journal can take."""
LARGEST = 16 * 1024 * 1024
"""Characters and values in an input: one call must not fill the memory that waits for the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A tool with an input it takes."""

    tool: Tool[Any, Any]
    input: BaseModel


def parse(toolbox: Toolbox, name: str, input: Json) -> Parsed | str:
    """The tool and its input, or a sentence that says what is wrong."""
    tool = toolbox.get(name)
    if tool is None:
        return unknown(toolbox, name)
    try:
        return Parsed(tool=tool, input=tool.input.model_validate(input))
    except ValidationError as error:
        return _sentence(name, error)


def unknown(toolbox: Toolbox, name: str) -> str:
    """That there is no such tool, and which there are."""
    known = sorted(key for key, tool in toolbox.items() if tool.listed)
    return f"There is no tool named {cut(name)!r}. Use one of: {', '.join(known)}."


def too_much(input: Json) -> str | None:
    """Why this input cannot even be kept, as a sentence; None when it can."""
    size = 0
    level: list[JsonValue] = [input]
    for _ in range(DEEPEST + 1):
        size += sum(_weight(value) for value in level)
        if size > LARGEST:
            return f"The input is larger than {LARGEST:,} characters. Nothing was done; send less at a time."
        level = [child for value in level for child in _children(value)]
        if not level:
            return None
    return f"The input is nested deeper than {DEEPEST} levels. Nothing was done; send it again, flatter."


def _weight(value: JsonValue) -> int:
    """Its own characters, and one for each value directly in it: a huge list is seen before it is walked."""
    if isinstance(value, dict):
        return len(value) + sum(len(key) for key in value)
    return len(value) if isinstance(value, str | list) else 0


def _children(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def cut(name: str) -> str:
    """A name short enough to be kept and told back; those of our tools are."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _sentence(name: str, error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    told = "; ".join(_problem(item["type"], item["loc"], item["msg"]) for item in problems[:MOST_PROBLEMS])
    more = f"; and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
    return f"{name} cannot take this input: {told}{more}. Nothing was done; send it again, corrected."


def _problem(kind: str, where: tuple[int | str, ...], message: str) -> str:
    name = cut(".".join(str(part) for part in where) or "input")
    match kind:
        case "missing":
            return f"`{name}` is required"
        case "extra_forbidden":
            return f"`{name}` is not an input of this tool"
        case _:
            return f"`{name}`: {message[:1].lower()}{message[1:]}"


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


def canonical(value: Json) -> str:
    """One spelling for equal JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(tool: str, input: Json, plan: Plan, basis: str) -> str:
    """Of the call as it would run, and of `basis`: the rules that had a say in it."""
    return sealed(substance(tool, input, plan), basis)


def substance(tool: str, input: Json, plan: Plan) -> str:
    """What would be done, whatever the rules say of it. Takes a while for a large input."""
    claims: list[JsonValue] = [asdict(claim) for claim in plan.claims]
    return _hash({"tool": tool, "input": input, "bound": plan.bound, "claims": claims})


def sealed(substance: str, basis: str) -> str:
    """The digest of a substance under the rules of one moment."""
    return _hash({"substance": substance, "policy": basis})


def _hash(value: Json) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
