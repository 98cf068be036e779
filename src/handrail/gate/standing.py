"""What a person's own config.toml says about deciding, as rules."""

from dataclasses import dataclass
from pathlib import Path

from handrail.config import Config, at_fault
from handrail.gate.example import Ground
from handrail.gate.making import BadRule, from_file
from handrail.store.value import Effect, Rule


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
