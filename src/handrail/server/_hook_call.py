"""One tool call of a client, from its hook to its end: our call about it, and who waits for the decision."""

import json
from collections.abc import Mapping

import anyio
from pydantic import JsonValue

from handrail.clients.hook_event import HookDialect, HookEvent, Verdict, Work
from handrail.clients.open_work import OpenWork
from handrail.gate.call import Call, Outcome
from handrail.gate.feedback import describe_allow
from handrail.store.values import Json


class HookCall:
    """A tool call of a client: our call about it, and who waits for the decision."""

    def __init__(self, client: str, work: OpenWork) -> None:
        self.client = client
        self.work = work
        self.call: Call | None = None
        self.waiters = 0
        self.delivered = False
        """The client was told that it may begin."""
        self.granted = False
        """A permission request of the client was granted by it."""
        self.is_restored = False
        """An earlier daemon let it begin. It answers no further hook; only the report of its end is awaited."""
        self.is_over = False
        self.problem = ""
        """Why nothing could be decided, as a sentence."""
        self.scope = anyio.CancelScope()

    def opened(self, call: Call) -> None:
        self.call = call

    @property
    def event(self) -> HookEvent:
        """The client's last hook about it."""
        return self.work.event

    @property
    def is_kept(self) -> bool:
        """Whether the client must repeat it, and has not been answered since."""
        return self._is_handed_back and not self.work.begun

    @property
    def is_missed(self) -> bool:
        """Whether it was let begin while its last hook ended: the client must repeat it, and a lot may have changed."""
        return self._is_handed_back and self.work.begun and not self.waiters

    @property
    def _is_handed_back(self) -> bool:
        return self.call is not None and self.call.handed_back and not self.delivered

    @property
    def inputs(self) -> list[str]:
        """The client's input, and as a person edited it."""
        edited = self.call.edited if self.call is not None else None
        inputs: list[JsonValue] = [self.event.input, *([edited["input"]] if edited else [])]
        return [_canonical(each) for each in inputs]

    def has_same_call(self, event: HookEvent) -> bool:
        """Whether an event is about the very same tool call, by the client's id of it.

        A permission prompt tool does not know the client's session.
        """
        same_place = event.kind == "permission" or event.session == self.event.session
        same_id = bool(event.call) and event.call == self.event.call
        return same_place and same_id and self.has_same_input(event)

    def has_same_input(self, event: HookEvent) -> bool:
        return self.event.tool == event.tool and _canonical(event.input) in self.inputs

    def does_same(self, event: HookEvent) -> bool:
        """Whether a permission request is about this: some clients change the input, but not what it does."""
        same_work = event.work is not None and event.work == self.event.work and event.work.sort != "other"
        return self.event.tool == event.tool and (self.has_same_input(event) or same_work)

    @property
    def can_grant(self) -> bool:
        """Whether a permission request of the client can be granted by it: one can."""
        return not self.granted and not self.is_over


def _canonical(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def read_edited(
    dialect: HookDialect, payload: Json, original: Json, environment: Mapping[str, str], edited: Json
) -> Work:
    """The work of an edited input: the dialect reads the same payload with this input. Raises ValueError."""
    event = dialect.read(_substitute(payload, original, edited), environment)
    if event.work is None or event.input != edited:
        raise ValueError("An edited input does not fit into its payload.")
    return event.work


def _substitute(payload: Json, original: Json, edited: Json) -> Json:
    return {
        name: edited if value == original else _within(value, original, edited)
        for name, value in payload.items()
    }


def _within(value: JsonValue, original: Json, edited: Json) -> JsonValue:
    if isinstance(value, dict):
        return _substitute(value, original, edited)
    # Some clients send the input as JSON text.
    return json.dumps(edited) if isinstance(value, str) and _is_text_of(value, original) else value


def _is_text_of(text: str, original: Json) -> bool:
    try:
        return text.startswith("{") and json.loads(text) == original
    except (ValueError, RecursionError):
        return False


def build_allow(call: Call) -> Verdict:
    """The allow of a call, with what a person changed in it and said."""
    edited = None if call.edited is None else call.edited.get("input")
    return Verdict(
        effect="allow",
        input=edited if isinstance(edited, dict) else None,
        feedback="\n".join(describe_allow(call.input, call.edited, call.said)),
    )


def describe_waiting(call: Call | None) -> str:
    """What a model is told if its client cannot wait for the person."""
    name = f" (call {call.id})" if call is not None else ""
    return f"Waiting for a person{name}. Do not try another way; repeat exactly this call in a while."


def describe_denial(outcome: Outcome) -> str:
    """The reason for the model."""
    text = outcome.result.text if outcome.result is not None and outcome.ending == "completed" else ""
    reason = " ".join(filter(None, (outcome.message, text)))
    match outcome.ending:
        case "denied":
            return f"Denied by {outcome.by} in Handrail. {f'Reason: {reason}' if reason else 'No reason was given.'}"
        case _:
            return f"Handrail did not allow this. {reason or f'It is {outcome.ending}.'}"
