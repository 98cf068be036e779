"""What a person's environment has for our own agent: keys of models' providers, their addresses, a model's name.

Owns that nothing else of the environment is meant, and nobody else. Does not know where it goes.
"""

from collections.abc import Mapping

from handrail.config import OWN_AGENT, PROVIDER_VARIABLES


def provided(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set, by their names."""
    return {name: environ[name] for name in PROVIDER_VARIABLES if environ.get(name, "").strip()}


def provided_for(agent: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The same, for this agent: nothing, unless it is our own."""
    return provided(environ) if agent == OWN_AGENT else {}
