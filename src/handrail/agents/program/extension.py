"""What our own agent and we tell each other beyond the protocol: what an operation is busy with, which any other that likes
to may tell too; and keys.

Owns the names of the methods, and the form in which what they tell reaches a desk. It does not know what is done with it.
"""

from collections.abc import Mapping

from handrail.agents.program.about import GREETING
from handrail.config import KEYS_OF, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection
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


def joined(standing: Mapping[str, str], brought: Mapping[str, str]) -> dict[str, str]:
    """What an agent has anyhow, and what a person brings along. An address that is brought gets no key that was not."""
    void = {key for address, keys in KEYS_OF.items() if brought.get(address) for key in keys}
    return {name: value for name, value in standing.items() if name not in void} | dict(brought)


def apart(spec: AgentSection, env: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """What a program finds around it, and the keys that it is told instead.

    Our own takes them on its line: its environment could be read by whatever this user runs, in the moment before it
    hides that.
    """
    told = {name: env[name] for name in PROVIDER_VARIABLES if name in env and spec.command == OWN_COMMAND}
    return {name: value for name, value in env.items() if name not in told}, told


def greeting(keys: Mapping[str, str]) -> Json:
    """What is said first, with the keys where there are any."""
    return {**GREETING, "_meta": {"handrail": {"keys": dict(keys)}}} if keys else GREETING
