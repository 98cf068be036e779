"""What is different from when the question was asked, in a sentence that says what."""

from pathlib import Path

import pytest
from tests.support.actors import ANN
from tests.support.gate_world import ONE, gate_world, rule
from tests.support.sample_tools import Sheet, Write

from handrail.gate.pipeline import find_drift

pytestmark = pytest.mark.anyio


async def test_of_a_file_the_tool_says_how_it_differs(tmp_path: Path) -> None:
    tool = Sheet()
    async with gate_world(tmp_path, tool) as here:
        asked = await here.gate.drafts.draft("sheet", {"word": "new"}, ONE)
        tool.holds = "other"
        now = await here.gate.drafts.draft("sheet", {"word": "new"}, ONE)
        for found in (await find_drift(asked, now), await find_drift(asked, "It cannot be done.")):
            assert (found.sentence, found.difference) == ("The sheet changed on disk.", "-old\n+other")


async def test_of_anything_else_it_is_named(tmp_path: Path) -> None:
    tool = Write()
    async with gate_world(tmp_path, tool) as here:
        asked = await here.gate.drafts.draft("write", {"word": "a"}, ONE)
        await here.rules.add(rule("ask", tool="write"), ANN)
        by_rule = await here.gate.drafts.draft("write", {"word": "a"}, ONE)
        tool.action = "run"
        by_claim = await here.gate.drafts.draft("write", {"word": "a"}, ONE)
        tool.bound = {"version": 2, "cwd": "/w"}
        by_bound = await here.gate.drafts.draft("write", {"word": "a"}, ONE)
        told = [(await find_drift(asked, now)).sentence for now in (by_rule, by_claim, by_bound)]
        assert [sentence.partition(" changed since")[0] for sentence in told] == [
            "What the rules say about it",
            "What it would touch",
            "What it depends on (version, cwd)",
        ]
        assert (await find_drift(asked, "No such thing.")).sentence == "No such thing."
        assert "while Handrail was not running" in (await find_drift(None, by_bound)).sentence
