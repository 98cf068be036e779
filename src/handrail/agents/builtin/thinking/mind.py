"""A mind: everything the loop thinks with, for one prompt of a session or one task of a sub-agent.

Owns nothing but the grouping.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from handrail.agents.builtin.model.model import Model
from handrail.agents.builtin.thinking.budget import Budget, Costs
from handrail.agents.builtin.thinking.history import History
from handrail.agents.builtin.thinking.voice import Voice
from handrail.agents.builtin.tools.tool import Tool


@dataclass(slots=True, kw_only=True)
class Mind:
    """Made anew for each prompt, whose budget it has."""

    model: Model
    tools: Mapping[str, Tool]
    history: History
    voice: Voice
    budget: Budget
    instructions: str = ""
    compact_at: float = 0.8
    """The share of the context that may fill up before older parts of the conversation are summed up."""
    context: int = 0
    """Tokens that fit, where the model does not say; 0 is unknown."""
    costs: Costs = field(default_factory=Costs)
    """Of the conversation, its sub-agents included."""
    tried: int = field(default=0, init=False)
    """The size of the conversation when summing it up was last tried, so as not to try at every step."""

    @property
    def window(self) -> int | None:
        return self.model.window or self.context or None
