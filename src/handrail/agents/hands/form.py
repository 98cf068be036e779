"""An agent's form for a person, in our words and back: `elicitation/create`.

Owns the translation, both ways. What is filled in is checked where the question is answered (tools/forms.py).
"""

from handrail.agents.hands.refusal import BAD_PARAMS, error
from handrail.agents.loose import text
from handrail.gate.call import Outcome
from handrail.store.value import Json


def asked(params: Json) -> Json:
    """The input of `agent_form`. Raises RequestError for what is no form."""
    mode, form = params.get("mode", "form"), params.get("requestedSchema")
    if mode != "form":
        raise error(BAD_PARAMS, f"Handrail shows forms to a person, and no elicitation of mode {mode}.")
    if not isinstance(form, dict) or not isinstance(form.get("properties", {}), dict):
        raise error(
            BAD_PARAMS, "A form needs a `requestedSchema`: an object whose `properties` are its fields."
        )
    return {"message": text(params.get("message")), "form": form}


def answer(outcome: Outcome | None) -> Json:
    """What the person gave, or that they would not, or that nobody answered."""
    if outcome is not None and outcome.ending == "done" and outcome.result is not None:
        return {"action": "accept", "content": outcome.result.data.get("values", {})}
    return {"action": "decline" if outcome is not None and outcome.ending == "denied" else "cancel"}
