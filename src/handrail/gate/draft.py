"""Drafts: the plan of a call and the policy's decision about it, computed without side effects.

Covers input validation, planning, a person's edits, the decision, and the digest that an approval binds: equal
digests mean that the same thing would be done under the same strict rules. Running a draft is pipeline.py's.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from pydantic import BaseModel, JsonValue, ValidationError

from handrail.gate.rules.policy import Decision, Policy
from handrail.gate.tool import Plan, Proposal, Refusal, Tool, Toolbox
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Comment, Json

if TYPE_CHECKING:
    from handrail.gate.rules.rules import Rules


HOSTED = "hosted agent"
"""Recorded in place of a rule for work that is not judged, because it is judged elsewhere."""
MOST_PROBLEMS = 5
"""Validation errors per message: enough to fix the input, too few to flood a model's context."""
LONGEST_NAME = 100
"""Characters of an unknown name that are kept in records and messages."""
DEEPEST = 64
"""Nesting levels of an input: far below the 200 that readers of the journal can parse."""
LARGEST = 16 * 1024 * 1024
"""Characters and values in an input: one call must not fill the journal's write buffer in memory."""


REMARKS = frozenset(
    {
        *(
            "comment",
            "description",
            "explanation",
            "intent",
            "justification",
            "purpose",
            "rationale",
            "reason",
        ),
        *("reasoning", "summary", "thought", "thoughts", "title", "tool_summary", "toolSummary"),
    }
)
"""Inputs in which models explain a call, as other tools have them. Recorded with the call, and otherwise ignored."""
FOREIGN_NAMES = {
    "cmd": "command",
    "dir": "cwd",
    "directory": "cwd",
    "filename": "path",
    "file_path": "path",
    "is_background": "background",
    "run_in_background": "background",
    "terminal": "terminal_id",
    "timeout": "timeout_seconds",
    "timeout_ms": "timeout_seconds",
    "workdir": "cwd",
    "working_directory": "cwd",
}
"""Names that other tools give to an input of ours: not accepted, as the unit or meaning may differ, but recognized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCall:
    """A tool and its validated input."""

    tool: Tool[Any, Any]
    input: BaseModel


def parse(toolbox: Toolbox, name: str, input: Json) -> ParsedCall | str:
    """Find the tool and validate its input; an error sentence for the model if either fails."""
    tool = toolbox.get(name)
    if tool is None:
        return describe_unknown_tool(toolbox, name)
    try:
        return ParsedCall(tool=tool, input=tool.input.model_validate(_without_remarks(tool, input)))
    except ValidationError as error:
        return _describe_errors(tool, error)


def _without_remarks(tool: Tool[Any, Any], input: Json) -> Json:
    remarks = _ignored_remarks(tool) & input.keys()
    return {name: value for name, value in input.items() if name not in remarks} if remarks else input


def _ignored_remarks(tool: Tool[Any, Any]) -> frozenset[str]:
    return REMARKS - tool.input.model_fields.keys() if tool.takes_remarks else frozenset()


def is_same_input(tool: Tool[Any, Any], first: Json, second: Json) -> bool:
    """Whether both inputs would do the same. How the client waits and how the answer is written may differ."""
    ignored = tool.answer_inputs | _ignored_remarks(tool)
    one, other = (
        {name: value for name, value in each.items() if name not in ignored} for each in (first, second)
    )
    return canonical_json(one) == canonical_json(other)


def describe_unknown_tool(toolbox: Toolbox, name: str) -> str:
    """Error sentence for an unknown tool, with the names of the listed tools."""
    known = sorted(key for key, tool in toolbox.items() if tool.listed)
    return f"There is no tool named {cut_name(name)!r}. Use one of: {', '.join(known)}."


def find_excess(input: Json) -> str | None:
    """Error sentence for an input that is too large or nested too deep to be journaled; None if it is neither."""
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
    """Its characters, plus one per direct child, so that a huge list is rejected before it is walked."""
    if isinstance(value, dict):
        return len(value) + sum(len(key) for key in value)
    return len(value) if isinstance(value, str | list) else 0


def _children(value: JsonValue) -> Iterable[JsonValue]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def cut_name(name: str) -> str:
    """Truncate a name to `LONGEST_NAME`; the names of our tools are shorter."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _describe_errors(tool: Tool[Any, Any], error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    listed = "; ".join(
        _describe_error(tool, item["type"], item["loc"], item["msg"]) for item in problems[:MOST_PROBLEMS]
    )
    more = f"; and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
    names = ", ".join(f"`{field}`" for field in tool.input.model_fields) or "no input"
    takes = f" It takes {names}." if any(item["type"] == "extra_forbidden" for item in problems) else ""
    return f"{tool.name} cannot take this input: {listed}{more}.{takes} Nothing was done; send it again, corrected."


def _describe_error(tool: Tool[Any, Any], kind: str, where: tuple[int | str, ...], message: str) -> str:
    name = cut_name(".".join(str(part) for part in where) or "input")
    match kind:
        case "missing":
            return f"`{name}` is required"
        case "extra_forbidden":
            return f"`{name}` is not an input of this tool{_suggest_name(tool, name)}"
        case _:
            return f"`{name}`: {message[:1].lower()}{message[1:]}"


def _suggest_name(tool: Tool[Any, Any], name: str) -> str:
    """A suggestion for a near miss; empty if no name is near."""
    known = sorted(tool.input.model_fields)
    lower = name.lower()
    near = [FOREIGN_NAMES[lower]] if FOREIGN_NAMES.get(lower) in known else get_close_matches(name, known, 1)
    return f" (did you mean `{near[0]}`?)" if near else ""


@dataclass(frozen=True, kw_only=True)
class PlannedCall:
    """A tool, its input and the plan made from it, independent of any rule."""

    tool: Tool[Any, Any]
    title: str
    input: Json
    base: Plan
    """The plan that the tool makes from the input."""
    content: str | None
    """The proposed file as a person edited it; None if they did not."""
    plan: Plan
    """The plan that would run: `base` with `content` applied."""

    @cached_property
    def substance(self) -> str:
        return substance(self.tool.name, self.input, self.plan)

    @cached_property
    def footing(self) -> str:
        """Digest of the base plan, from which a review starts."""
        return self.substance if self.plan is self.base else substance(self.tool.name, self.input, self.base)

    @property
    def proposal(self) -> Proposal | None:
        return self.tool.proposal(self.plan)

    @cached_property
    def has_proposal(self) -> bool:
        """Whether there is a proposal. Unlike the proposal itself, which holds the whole file twice, this is kept."""
        return self.proposal is not None

    async def commented(self, comments: tuple[Comment, ...]) -> Plan:
        """The plan with review comments for the agent added. Raises Refusal."""
        content = self.content
        if comments and content is None and self.proposal is not None:
            content = self.proposal.after
        if not comments or content is None:
            return self.plan
        return await anyio.to_thread.run_sync(self.tool.review, self.base, content, comments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A planned call, and the decision about it under the rules of one moment."""

    planned: PlannedCall
    decision: Decision
    ruled: Decision
    """What the rules alone decide, without a pause of all agents."""
    policy: Policy | None
    """The policy that decided; None if the plan itself says whether it asks."""

    @property
    def plan(self) -> Plan:
        return self.planned.plan

    @property
    def digest(self) -> str:
        return seal(self.planned.substance, self.decision.basis)


class Drafts:
    """Makes drafts from a toolbox and the current rules."""

    def __init__(self, rules: "Rules", toolbox: Toolbox) -> None:
        self._rules = rules
        self._toolbox = toolbox

    async def draft_parsed(self, parsed: ParsedCall, input: Json, caller: Caller) -> Draft:
        """Draft an already parsed call. Raises Refusal."""
        return await self._plan_and_decide(parsed, input, None, caller)

    async def draft(self, tool: str, input: Json, caller: Caller, content: str | None = None) -> Draft:
        """Parse, plan and decide from scratch; `content` replaces the proposed file content. Raises Refusal."""
        parsed = find_excess(input) or parse(self._toolbox, tool, input)
        if isinstance(parsed, str):
            raise Refusal(parsed)
        return await self._plan_and_decide(parsed, input, content, caller)

    async def is_denied(self, tool: str, input: Json, caller: Caller) -> bool:
        """Whether the rules deny a call as it is known now. Nothing is opened, and the answer may change."""
        try:
            draft = await self.draft(tool, input, caller)
        except Refusal:
            return False
        return draft.decision.effect == "deny"

    async def wait_ready(self, tool: str, input: Json, answered_ms: int) -> None:
        """Wait until work that was allowed `answered_ms` ago can begin. Raises UnknownEnd."""
        parsed = parse(self._toolbox, tool, input)
        if isinstance(parsed, ParsedCall):
            await parsed.tool.wait_ready(parsed.input, answered_ms)

    def decide_again(self, draft: Draft, caller: Caller) -> Draft:
        """The same plan with a decision under the current rules."""
        policy = self._find_policy(draft.plan, caller)
        ruled = draft.ruled if policy is draft.policy else _decide(draft.planned, caller, policy)
        return self._hold(draft.planned, ruled, policy)

    async def _plan_and_decide(
        self, parsed: ParsedCall, input: Json, content: str | None, caller: Caller
    ) -> Draft:
        tool = parsed.tool
        base = plan = await tool.plan(parsed.input, caller)
        if content is not None:  # diffing large files is slow
            plan = await anyio.to_thread.run_sync(tool.review, base, content, ())
        title = tool.title_for(parsed.input, caller)
        planned = PlannedCall(tool=tool, title=title, input=input, base=base, content=content, plan=plan)
        policy = self._find_policy(plan, caller)
        draft = self._hold(planned, _decide(planned, caller, policy), policy)
        if plan.refuses and draft.decision.effect != "deny":
            raise Refusal(plan.refuses)
        return draft

    def _find_policy(self, plan: Plan, caller: Caller) -> Policy | None:
        """The policy in force, the same object until it changes; None if the plan itself says whether it asks."""
        return None if plan.asks or plan.passes else self._rules.policy(caller)

    def _hold(self, planned: PlannedCall, ruled: Decision, policy: Policy | None) -> Draft:
        decision = self._rules.pause.hold(ruled, planned.plan.claims)
        return Draft(planned=planned, decision=decision, ruled=ruled, policy=policy)


def _decide(planned: PlannedCall, caller: Caller, policy: Policy | None) -> Decision:
    plan = planned.plan
    if plan.asks:
        return Decision(effect="ask", rule="asks a person", why=plan.asks)
    if policy is None:
        return Decision(effect="allow", rule=HOSTED, why=plan.passes)
    return policy.decide(planned.tool.name, plan.claims, caller, plan.server)


def canonical_json(value: Json) -> str:
    """Canonical JSON: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(tool: str, input: Json, plan: Plan, basis: str) -> str:
    """Digest of a plan and of `basis`, the strict rules that apply to it."""
    return seal(substance(tool, input, plan), basis)


def substance(tool: str, input: Json, plan: Plan) -> str:
    """Digest of a plan without the rules. Slow for a large input."""
    claims: list[JsonValue] = [asdict(claim) for claim in plan.claims]
    return _hash({"tool": tool, "input": input, "bound": plan.bound, "claims": claims})


def seal(substance: str, basis: str) -> str:
    """Digest of a substance together with the policy's basis."""
    return _hash({"substance": substance, "policy": basis})


def _hash(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
