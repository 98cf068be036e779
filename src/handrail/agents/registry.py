"""Which agents there are: configured, found installed, built in, and how to install the rest.

Which agents there are: those of the configuration, our own, those that we know and find installed, and the
demo.

Our own agent among all others: how it is started, what of the daemon's environment it gets, and what it
lacks.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import anyio
import anyio.to_thread

from handrail import __version__
from handrail.agents.installed import COMMON, Known, Located, Machine, known_agents
from handrail.config import OWN_AGENT, OWN_COMMAND, PROVIDER_VARIABLES, AgentSection

FRESH_SECONDS = 5.0
"""For so long what was found is believed: who has just installed an agent wants to see it."""
LOOK_SECONDS = 5.0
"""For looking at everything: a folder on a network that is gone must not hold up the rest."""

# -P: what an agent works on must not be taken for us.
DEMO = AgentSection(
    name="demo", title="Demo agent", command=(sys.executable, "-P", "-m", "handrail.demo.acp_agent")
)

Source = Literal["config", "known", "built in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An agent: how it is started, or what is missing."""

    name: str
    title: str
    found: bool
    version: str | None
    command: tuple[str, ...]
    source: Source
    why: str = ""
    """What is missing; empty when nothing is. Our own agent is there even so."""
    install: str | None = None
    """The command that installs it."""


class Registry:
    """Every agent by its name. One of the configuration takes the place of another of its name."""

    def __init__(
        self,
        named: Sequence[AgentSection],
        environment: Mapping[str, str],
        common: Sequence[str] = COMMON,
        *,
        own: AgentSection | None = None,
        keyed: bool = False,
    ) -> None:
        """`environment` is what agents find around them; where they are looked for follows from it. `own` is how our own
        agent is started, and `keyed` that it then finds a key."""
        self._named = {section.name: section for section in named if not is_own(section)}
        self._own = own or own_agent(named, {})
        self._keyed = keyed
        self._known = {known.id: known for known in known_agents() if known.id not in self._named}
        self._machine = Machine(environment, common)
        self._looked: dict[str, tuple[float, Located | None]] = {}
        self._listed: tuple[float, list[Found]] | None = None

    def spec(self, name: str) -> AgentSection | None:
        """How an agent is started; None for one that nobody knows. One that is not installed fails when it is started."""
        if name in self._named:
            return self._named[name]
        if name in self._known:
            return self._spec(self._known[name])
        return {self._own.name: self._own, DEMO.name: DEMO}.get(name)

    async def listing(self) -> list[Found]:
        """All of them: the configured ones first, ours, those that are installed, the demo, and what could be installed."""
        if self._listed is None or time.monotonic() - self._listed[0] > FRESH_SECONDS:
            with anyio.move_on_after(LOOK_SECONDS):
                found = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
                self._listed = time.monotonic(), found
        return list(self._listed[1]) if self._listed else self._unlooked()

    def _look(self) -> list[Found]:
        configured = [self._configured(section) for section in self._named.values()]
        known = [self._of_known(known) for known in self._known.values()]
        there, missing = [one for one in known if one.found], [one for one in known if not one.found]
        return [*configured, *self._ours(), *there, *self._demo(), *missing]

    def _unlooked(self) -> list[Found]:
        """What can be said when looking took too long."""
        why = "Looking for it took too long."
        configured = [_listed(section, "config", None, why) for section in self._named.values()]
        return [*configured, *self._ours(), *self._demo()]

    def _configured(self, section: AgentSection) -> Found:
        program = section.command[0]
        located = self._machine.program(program, beside=False)  # as it will be started
        why = "" if located else f"There is no program {program}, which the configuration names."
        return _listed(section, "config", located, why)

    def _of_known(self, known: Known) -> Found:
        located = self._locate(known)
        why = "" if located else self._missing(known)
        return _listed(self._spec(known), "known", located, why, known.install)

    def _ours(self) -> list[Found]:
        if self._own.name in self._named:
            return []
        located = Located(self._own.command, __version__)
        return [_listed(self._own, "built in", located, "" if self._keyed else NO_KEY)]

    def _demo(self) -> list[Found]:
        if DEMO.name in self._named:
            return []
        return [_listed(DEMO, "built in", Located(DEMO.command, None), "")]

    def _missing(self, known: Known) -> str:
        why = f"{known.handrail.program} is not installed."
        if known.handrail.adapts and self._machine.program(known.handrail.adapts):
            why = f"{known.name} is installed, but not {known.handrail.program}, its adapter."
        if known.manager and self._machine.program(known.manager) is None:
            why += f" Nor is {known.manager}, which would install it."
        return why

    def _spec(self, known: Known) -> AgentSection:
        located = self._locate(known)
        command = located.command if located else (known.handrail.program,)
        return AgentSection(
            name=known.id,
            title=known.name,
            command=(*command, *known.args),
            one_per_thread=known.handrail.one_per_thread,
            missing_file_is_empty=known.handrail.missing_file_is_empty,
            writes_itself=known.handrail.writes_itself,
        )

    def _locate(self, known: Known) -> Located | None:
        """A few looks at the disk, no more often than every few seconds."""
        at, located = self._looked.get(known.id, (-FRESH_SECONDS, None))
        if time.monotonic() - at > FRESH_SECONDS:
            located = _located(self._machine, known)
            self._looked[known.id] = time.monotonic(), located
        return located


def _located(machine: Machine, known: Known) -> Located | None:
    program, package = known.handrail.program, known.package
    located = machine.program(program, package)
    if located is None and package is not None:
        off_path = machine.npm_package if known.manager == "npm" else machine.python_package
        located = off_path(package, program)
    return located


def _listed(
    section: AgentSection, source: Source, located: Located | None, why: str, install: str | None = None
) -> Found:
    return Found(
        name=section.name,
        title=section.title or section.name,
        found=located is not None,
        version=located.version if located else None,
        command=section.command,
        source=source,
        why=why,
        install=None if located else install,
    )


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
