"""What a person's environment has for our own agent: keys of models' providers, their addresses, a model's name.

Owns who our own agent is, and that nothing else of the environment is meant. Does not know where it goes.
"""

from collections.abc import Mapping

OWN = "handrail"
"""Our own agent, by its name."""


def provided(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set, by their names."""
    from handrail.config import PROVIDER_VARIABLES  # noqa: PLC0415 - pydantic, which most commands do without

    return {name: environ[name] for name in PROVIDER_VARIABLES if environ.get(name, "").strip()}
