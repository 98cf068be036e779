"""What a prompt may use, and what is said when that is used up."""

from decimal import Decimal

import anyio
import pytest

from handrail.own_agent.budget import Budget, Costs


def test_a_budget_without_limits_is_never_over() -> None:
    budget = Budget()
    for _ in range(1000):
        budget.step()
        budget.spend(10**6)
    assert budget.over() is None


def test_steps_are_counted_and_end() -> None:
    budget = Budget(steps=2)
    assert [budget.step(), budget.over(), budget.step()] == [1, None, 2]
    over = budget.over()
    assert over is not None
    assert (over.stop, over.sentence) == (
        "max_turn_requests",
        "Stopped after 2 steps, the most there may be.",
    )


def test_what_a_sub_agent_spends_counts_above_however_deep_it_is() -> None:
    budget = Budget(steps=2, tokens=100)
    below = budget.below().below()
    below.step()
    below.spend(99)
    assert (budget.used, budget.taken, below.over(), budget.over()) == (99, 0, None, None)
    below.spend(1)
    for each in (below, budget):
        over = each.over()
        assert over is not None
        assert over.stop == "max_tokens"


def test_a_sub_agent_has_steps_of_its_own() -> None:
    budget = Budget(steps=1)
    budget.step()
    assert budget.below().over() is None


@pytest.mark.anyio
async def test_the_time_of_a_prompt_is_its_sub_agents_too() -> None:
    budget = Budget(seconds=0.01)
    below = budget.below()
    assert (below.late, below.why) == (False, "the person cancelled it.")
    with anyio.fail_after(5), budget.clock(), below.clock():
        await anyio.sleep_forever()
    assert (below.late, below.why) == (True, "the time for it was over.")
    over = below.over()
    assert over is not None
    assert over.stop == "max_turn_requests"


def test_costs_are_unknown_until_one_is_known() -> None:
    costs = Costs()
    costs.add(None)
    assert costs.total is None
    costs.add(Decimal("0.1"))
    costs.add(None)
    costs.add(Decimal("0.2"))
    assert costs.total == Decimal("0.3")
