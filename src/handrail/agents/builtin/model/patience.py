"""How long a model is waited for, and how often it is asked again. Knows nothing of models."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds, and counts."""

    connect: float = 10.0
    stall: float = 120.0
    """Without a byte of an answer, after which it counts as broken."""
    long_stall: float = 600.0
    """The same of those who give no sign of life while they think, load a model or read a long text: all but Anthropic."""
    first: float = 1.0
    """Before the second request; doubled each time."""
    longest: float = 30.0
    told: float = 300.0
    """The longest wait that a provider may ask for; beyond it, a person should decide."""
    tries: int = 8
    unreached: int = 3
    """Tries where nobody is there at all."""

    def wait(self, tried: int) -> float:
        """After so many tries. With a part of chance, so that not everybody comes back at once."""
        return min(self.first * 2 ** (tried - 1), self.longest) * random.uniform(0.5, 1.0)
