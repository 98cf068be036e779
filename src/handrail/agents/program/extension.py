"""What our own agent can tell beyond the protocol, and any other that likes to: what an operation is busy with.

Owns the names of the methods, and the form in which what they tell reaches a desk. It does not know what is done with it.
"""

from handrail.store.value import Json

ACTIVITY = "_handrail/activity"
"""Told by the agent: something began, or ended."""
CANCEL = "_handrail/cancel_activity"
"""Asked of the agent: end one of them."""
TOLD = "_activity"
"""The kind of update an activity reaches a desk as: so it keeps its place among what is said. No agent sends it."""


def update_of(params: Json) -> Json:
    """An activity as it came on the line, as an update."""
    told: Json = {"sessionUpdate": TOLD, "activity": params.get("activity")}
    return {"sessionId": params.get("sessionId"), "update": told}
