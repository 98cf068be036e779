"""Our own agent: whether what it is made of is installed, and where it would find a key for a model.

Only looks: no value is kept, and none is part of a sentence. Of the environment of a daemon that runs it knows nothing,
nor whether a key is any good.
"""

from collections.abc import Mapping
from importlib.util import find_spec

from handrail.config import OWN_AGENT, PROVIDER_VARIABLES, BadConfig, load
from handrail.doctor.finding import Finding
from handrail.keys import kept
from handrail.places import Places

MADE_OF = ("acp", "anthropic", "mcp", "openai", "pydantic_ai")
SECRETS = tuple(name for name in PROVIDER_VARIABLES if name.endswith(("_KEY", "_TOKEN")))
"""Those that a keyring keeps; the others are addresses, and a model's name."""


def check_own_agent(places: Places, environ: Mapping[str, str]) -> Finding:
    missing = [name for name in MADE_OF if find_spec(name) is None]
    if missing:
        says = f"Our own agent cannot run: {', '.join(missing)} cannot be imported."
        return Finding(name="agent", level="bad", says=says, fix="Install Handrail again.")
    found = {name: where for name, where in sources(places, environ).items() if where}
    told = "; ".join(f"{name} ({', '.join(where)})" for name, where in found.items())
    says = (
        f"Our own agent has {told}."
        if found
        else "Our own agent has no key here, and needs one unless Ollama runs: `handrail keys set anthropic`."
    )
    return Finding(name="agent", level="ok", says=says)


def sources(places: Places, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each of the variables where it is found, in the order in which they count."""
    configured, secret = _configured(places), kept(*SECRETS)
    return {
        name: (
            *(["environment"] if environ.get(name, "").strip() else []),
            *(["config"] if name in configured else []),
            *(["keyring"] if name in secret else []),
        )
        for name in PROVIDER_VARIABLES
    }


def _configured(places: Places) -> set[str]:
    """What `[[agents]]` sets for it."""
    try:
        sections = load(places.config).agents
    except BadConfig:
        return set()  # a finding of its own
    return {name for section in sections if section.name == OWN_AGENT for name in section.env}
