"""Servers of a session: real programs and real HTTP, well behaved and not, and what the model is given of them."""

import json
from pathlib import Path
from typing import Literal

import anyio
import pytest
from tests.agents.builtin.tools.company import (
    BOUND,
    Listener,
    address,
    at_an_address,
    company,
    descriptors,
    free_port,
    listens,
    program,
    until,
    use,
)

from handrail.agents.builtin.tools.servers import LONGEST_NAME, known_as
from handrail.agents.builtin.tools.wanted import Stdio

Way = Literal["stdio", "http", "old http"]
ways = pytest.mark.parametrize("way", ["stdio", "http", "old http"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.touch()
    return path


async def test_a_program_s_tools_are_offered_under_its_name_and_work(root: Path, log: Path) -> None:
    async with company(root, program(log)) as servers:
        tools = servers.tools
        said = await use(tools["somebody__echo"], text="hello")

    assert {"somebody__echo", "somebody__raises", "update_plan", "read_output"} <= tools.keys()
    assert tools["somebody__echo"].definition.parameters_json_schema["required"] == ["text"]
    assert tools["somebody__echo"].definition.description == "Say the same again."
    assert (said.text, said.failed, said.ended) == ("hello", False, "done")
    assert "Use echo for everything." in servers.instructions
    assert servers.problems == []
