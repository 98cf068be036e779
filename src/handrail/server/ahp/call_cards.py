"""Call cards: the facts about calls that a chat shows, and the question about a call that waits.

The digest of a question is sent with it, and the answer is given for that digest: what changed since is not approved.
"""

from collections.abc import Iterable
from contextlib import suppress

from pydantic import JsonValue

from handrail.errors import Unwritable
from handrail.gate.approval import Approval
from handrail.gate.call import Call
from handrail.gate.gate import Gate
from handrail.gate.result_review import is_review
from handrail.gate.rules.suggestions import SuggestedRule, suggest_rules
from handrail.hidden_text import spell_hidden
from handrail.server.ahp.ahp_wire import Obj
from handrail.server.ahp.contents import FileEdits
from handrail.server.ahp.forms import answers_of_values, form_request
from handrail.server.ahp.turns import FORM, INPUT_MAX, CallFacts, Question
from handrail.store.calls import CallHistory
from handrail.store.records import Records
from handrail.store.values import DiffPreview, FormPreview, Json, Preview, Rule, Scope
from handrail.terminal.terminals import Terminals

MOST_SUGGESTED = 4
"""Suggested rules on a card; a menu with more is not read."""
MOST_CACHED = 2000
"""Settled calls in memory."""

ONCE, THREAD, RULE, DENY = "once", "thread", "rule:", "deny"
"""Ids of the options of a question; a rule's number follows RULE."""
TOO_LONG = "It is too long to be shown here in full. Decide on Handrail's page."
RESULT = "A result waits for you, which is not shown here. Look at it on Handrail's page."


class CallCards:
    """Reads what chats show about calls."""

    def __init__(self, gate: Gate, records: Records, terminals: Terminals, edits: FileEdits) -> None:
        self._gate = gate
        self._records = records
        self._terminals = terminals
        self._edits = edits
        self._settled: dict[str, CallFacts] = {}
        self._questions: dict[str, Question] = {}

    async def load(self, calls: Iterable[str]) -> dict[str, CallFacts]:
        """The facts about these calls. Unknown ones are left out."""
        facts: dict[str, CallFacts] = {}
        for call in dict.fromkeys(calls):
            found = await self._load(call)
            if found is not None:
                facts[call] = found
        return facts

    async def _load(self, call: str) -> CallFacts | None:
        live = self._gate.open.get(call)
        if live is not None and live.outcome is None:
            return self._open_facts(live)
        if call not in self._settled:
            history = await self._read_ended(call)
            if history is None:
                return None
            self._remember(self._ended_facts(history))
        return self._settled[call]

    async def _read_ended(self, call: str) -> CallHistory | None:
        """The record of a settled call, also if its outcome is not written yet; None if it is unknown."""
        history = await self._records.calls.get(call)
        if history is None or history.call.ending is None:
            journal = self._gate.journal
            with suppress(Unwritable):
                await journal.committed(journal.head, sync=False)
            history = await self._records.calls.get(call)
        return None if history is None or history.call.ending is None else history

    def _remember(self, facts: CallFacts) -> None:
        self._settled[facts.id] = facts
        self._questions.pop(facts.id, None)
        if len(self._settled) > MOST_CACHED:
            del self._settled[next(iter(self._settled))]

    def _open_facts(self, call: Call) -> CallFacts:
        approval = call.approval
        is_asked = approval is not None and approval.open
        return CallFacts(
            id=call.id,
            tool=call.tool,
            title=spell_hidden(call.title),
            input=reveal_input(call.input),
            status=call.status if call.status in ("waiting", "running") else "running",
            terminal=self._terminal(call.terminal, call.title),
            question=self.question(call, approval) if approval is not None and is_asked else None,
        )

    def _ended_facts(self, history: CallHistory) -> CallFacts:
        call, result = history.call, history.result
        is_form = call.tool == FORM
        return CallFacts(
            id=call.id,
            tool=call.tool,
            title=spell_hidden(call.title),
            input=reveal_input(history.input or {}),
            status=call.ending or "interrupted",
            message=_denial(history) or call.message or "",
            text="" if result is None or is_form else result.text,
            terminal=self._terminal(call.terminal, call.title),
            edits=tuple(self._edits.of_change(change) for change in history.files),
            answered=_form_answers(history) if is_form else None,
        )

    def _terminal(self, terminal: str | None, title: str) -> Obj | None:
        if terminal is None or self._terminals.get(terminal) is None:
            return None
        resource = f"ahp-terminal:/{terminal}"
        return {"type": "terminal", "resource": resource, "title": spell_hidden(title), "isPty": True}

    def question(self, call: Call, approval: Approval) -> Question:
        """The question about a waiting call."""
        known = self._questions.get(call.id)
        if known is None or known.digest != approval.digest:
            known = self._questions[call.id] = self._build_question(call, approval)
        return known

    def _build_question(self, call: Call, approval: Approval) -> Question:
        preview, tool = approval.asked.preview, self._gate.toolbox.get(call.tool)
        form = form_request(call.id, preview) if isinstance(preview, FormPreview) else None
        return Question(
            digest=approval.digest,
            title=f"{tool.title if tool else call.tool} (risk: {approval.asked.risk})",
            options=tuple(self._options(call, approval)),
            edits=tuple(self._proposed_edits(call, approval, preview)),
            form=form,
        )

    def _options(self, call: Call, approval: Approval) -> Iterable[Obj]:
        if is_review(approval):
            yield {
                "id": DENY,
                "label": "Withhold the result",
                "kind": "deny",
                "group": 3,
                "description": RESULT,
            }
            return
        has_diff = approval.draft is not None and approval.draft.planned.proposal is not None
        if not has_diff and is_too_long(call.input):
            yield {"id": DENY, "label": "Deny", "kind": "deny", "group": 3, "description": TOO_LONG}
            return
        yield {"id": ONCE, "label": "Allow once", "kind": "approve"}
        suggested = self.suggest(call, approval)
        if suggested:
            yield {"id": THREAD, "label": "Allow for this thread", "kind": "approve", "group": 1}
        for number, suggestion in enumerate(suggested):
            label = f"Always allow {spell_hidden(suggestion.words)}"
            yield {"id": f"{RULE}{number}", "label": label, "kind": "approve", "group": 2}
        yield {"id": DENY, "label": "Deny", "kind": "deny", "group": 3}

    def suggest(self, call: Call, approval: Approval) -> list[SuggestedRule]:
        policy = self._gate.rules.policy(call.caller)
        return suggest_rules(call.tool, approval.asked.claims, call.caller, policy)[:MOST_SUGGESTED]

    def rules_of_option(self, call: Call, approval: Approval, option: str) -> tuple[Rule, ...]:
        """The rules that an option adds."""
        suggested = self.suggest(call, approval)
        if option == THREAD:
            return tuple(self._build_rule(call, each, "session") for each in suggested)
        number = option.removeprefix(RULE)
        if option.startswith(RULE) and number.isdigit() and int(number) < len(suggested):
            return (self._build_rule(call, suggested[int(number)], "project"),)
        return ()

    def _build_rule(self, call: Call, suggested: SuggestedRule, scope: Scope) -> Rule:
        rule = suggested.rule
        return self._gate.rules.build_rule(
            tool=rule.tool,
            command=rule.command,
            path=rule.path,
            host=rule.host,
            scope=scope,
            workspace=call.caller.workspace,
            session=call.caller.key,
        )

    def _proposed_edits(self, call: Call, approval: Approval, preview: Preview | None) -> Iterable[Obj]:
        proposal = None if approval.draft is None else approval.draft.planned.proposal
        if proposal is None:
            return
        edit: Obj = self._edits.of_proposal(call.id, proposal.path, proposal.before, proposal.after)
        if isinstance(preview, DiffPreview):
            edit["diff"] = {"added": preview.added, "removed": preview.removed}
        yield edit


def _denial(history: CallHistory) -> str:
    approval = history.approval
    return (approval.reason or "") if approval is not None and history.call.ending == "denied" else ""


def _form_answers(history: CallHistory) -> Obj:
    values = history.result.data.get("values") if history.result else None
    return answers_of_values(values) if isinstance(values, dict) else {}


def reveal_input(input: Json) -> Json:
    """The input with the invisible characters of all its texts spelled out."""
    return {spell_hidden(name): _reveal(value) for name, value in input.items()}


def _reveal(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return spell_hidden(value)
        case list():
            return [_reveal(each) for each in value]
        case dict():
            return reveal_input(value)
        case _:
            return value


def is_too_long(input: Json) -> bool:
    """Whether a card cannot show the whole input."""
    return sum(len(name) + len(spell_hidden(str(value))) + 3 for name, value in input.items()) > INPUT_MAX
