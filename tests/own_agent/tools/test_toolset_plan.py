"""update_plan."""

from typing import Any

import pytest
from tests.support.agent_toolset import ToolHost, run_tool

from handrail.own_agent.tools.agent_tool import PlanEntry
from handrail.own_agent.tools.toolset import MOST_ENTRIES, UpdatePlan


async def test_a_plan_is_shown_whole() -> None:
    listener = ToolHost()

    result = await run_tool(
        UpdatePlan(),
        listener,
        entries=[
            {"content": "Look", "status": "completed"},
            {"content": "Leap", "status": "in_progress", "priority": "high"},
        ],
    )

    assert listener.plans == [
        [
            PlanEntry(content="Look", status="completed"),
            PlanEntry(content="Leap", status="in_progress", priority="high"),
        ]
    ]
    assert (result.text, result.failed) == ("The plan is shown: 1 of 2 done.", False)


@pytest.mark.parametrize(
    ("input", "sentence"),
    [
        ({}, "`entries`"),
        ({"entries": "all of it"}, "`entries`"),
        ({"entries": [{"content": "Look", "status": "maybe"}]}, "`entries.0.status`"),
        ({"entries": [{"content": " ", "status": "pending"}]}, "between 1 and"),
        ({"entries": [{"content": "a", "status": "pending"}] * (MOST_ENTRIES + 1)}, "at most"),
    ],
)
async def test_what_is_no_plan_is_refused_with_the_reason(input: dict[str, Any], sentence: str) -> None:
    listener = ToolHost()

    result = await run_tool(UpdatePlan(), listener, **input)

    assert result.failed
    assert sentence in result.text
    assert listener.plans == []
