"""Our own agent among all others: how it is started, what of the daemon's environment it gets, and what it lacks.

Owns that description. It does not know the agent itself, which is a program like any other, nor any key's value.
"""

from collections.abc import Mapping, Sequence

from handrail.config import OWN_AGENT, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
PASSED = (
    *PROVIDER_VARIABLES,
    *("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),  # the way to the system's keyring
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    *PROXIES,
    *map(str.lower, PROXIES),
)
"""What it takes to reach a model. No command gets any of it."""
NO_KEY = (
    "Handrail's own environment has no key for a model. `handrail keys set anthropic` puts one into your keyring; "
    "`handrail chat` brings along those of your shell."
)


def own_agent(named: Sequence[AgentSection], places: Mapping[str, str]) -> AgentSection:
    """How it is started, changed by what the configuration says of it. `places` leads to the files of this Handrail."""
    own = AgentSection(
        name=OWN_AGENT,
        title="Handrail",
        command=OWN_COMMAND,
        env=dict(places),
        env_pass=PASSED,
        one_per_thread=True,
    )
    for section in named:
        if is_own(section):
            said = {name: getattr(section, name) for name in section.model_fields_set}
            own = own.model_copy(update={**said, "env": {**own.env, **section.env}})
    return own


def is_own(section: AgentSection) -> bool:
    """It changes how our agent is started; another program of that name takes its place instead."""
    return section.name == OWN_AGENT and section.command == OWN_COMMAND


def has_key(given: Mapping[str, str]) -> bool:
    """Whether some model can be asked with this; an address alone will do, where a model is served without a key."""
    return any(given.get(name) for name in PROVIDER_VARIABLES if name != "HANDRAIL_MODEL")
