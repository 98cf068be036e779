"""What a person's own config.toml says about deciding, and what a project's file makes of that.

Owns these settings alone; which folder is trusted is folders.py's.
"""

from dataclasses import dataclass
from pathlib import Path

from handrail.config import Config, at_fault
from handrail.gate.rules.builtin import Standpoint
from handrail.gate.rules.example import Ground
from handrail.gate.rules.force import UNTRUSTED, Here
from handrail.gate.rules.making import BadRule, from_file
from handrail.gate.rules.project import Project
from handrail.store.value import Effect, Rule

_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The settings that hold in every folder."""

    rules: tuple[Rule, ...] = ()
    default: Effect = "ask"
    human_in_the_loop: bool = True

    @classmethod
    def of(cls, config: Config, path: Path, home: str) -> "Standing":
        """Of the configuration that was read from `path`. Raises BadConfig, also for an example that does not hold."""
        ground = Ground(root=None, home=home)
        rules: list[Rule] = []
        for section in config.rules:
            try:
                rules.append(from_file(section, f"{path.name}:{section.line}", ground, "user"))
            except BadRule as problem:
                raise at_fault(path, section.line, str(problem)) from None
        return cls(
            rules=tuple(rules), default=config.default_policy, human_in_the_loop=config.human_in_the_loop
        )


def standpoint(standing: Standing, here: Here, project: Project) -> Standpoint:
    """The settings in a folder; its own file may only tighten them, unless that very file is trusted."""
    default, careful = standing.default, standing.human_in_the_loop
    asked = project.config
    if asked.default_policy is not None and (
        here.file_trusted or _STRICTNESS[asked.default_policy] > _STRICTNESS[default]
    ):
        default = asked.default_policy
    if asked.human_in_the_loop is not None and (here.file_trusted or asked.human_in_the_loop):
        careful = asked.human_in_the_loop
    return Standpoint(
        default=default,
        human_in_the_loop=careful,
        trusted=here.trusted,
        distrust=f"This folder counts as untrusted: {project.problem}" if project.problem else UNTRUSTED,
    )
