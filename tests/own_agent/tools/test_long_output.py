"""Long results by handle, and reading on in them."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.agent_toolset import connected_servers, run_tool, stdio_server

from handrail.own_agent.tools.long_output import KEPT, LONG, Outputs, ReadOutput

LINES = "".join(f"line {number}\n" for number in range(10_000))


async def test_a_long_result_is_told_by_its_ends_and_read_on_by_its_handle(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        tools = servers.tools
        told = await run_tool(tools["somebody__huge"], lines=100_000)
        middle = await run_tool(tools["read_output"], handle="output-1", offset=500_000, limit=50)
        found = await run_tool(tools["read_output"], handle="output-1", pattern="line 77777|LINE 88888")

    assert len(told.text) < LONG
    assert told.text.startswith("line 0\n")
    assert told.text.endswith("line 99999\n")
    assert "of 1,088,890 characters are left out here. The whole is kept as output-1" in told.text
    assert middle.text.startswith("[Characters 500,000 to 500,050 of 1,088,890. Go on with offset 500050.]")
    assert [line.partition(": ")[2] for line in found.text.splitlines()] == ["line 77777", "line 88888"]


def test_a_short_result_is_told_as_it_is() -> None:
    assert Outputs().short("x" * LONG) == "x" * LONG


@given(st.text(alphabet="ab\n", min_size=1, max_size=50), st.integers(700, 5000))
def test_head_and_tail_are_the_ends_of_the_whole(piece: str, times: int) -> None:
    text = piece * times + "." * LONG
    told = Outputs().short(text)
    head, rest = told.split("\n\n[", 1) if "\n\n[" in told else (told, "")
    tail = rest.split("]\n\n", 1)[1]

    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) < LONG


async def test_every_line_is_found_by_going_on_where_it_stopped() -> None:
    outputs = Outputs()
    outputs.short(LINES)
    offset, found = 0, list[str]()
    for _ in range(200):
        text = (await run_tool(ReadOutput(outputs), handle="output-1", pattern="5", offset=offset)).text
        found += [line.partition(": ")[2] for line in text.splitlines() if not line.startswith("[")]
        if not text.endswith("]"):
            break
        offset = int(text.rpartition("offset ")[2].rstrip(".]"))

    assert found == [line for line in LINES.splitlines() if "5" in line]


async def test_reading_on_to_the_end_gives_the_whole() -> None:
    outputs = Outputs()
    outputs.short(LINES)
    offset, whole = 0, ""
    while offset < len(LINES):
        piece = (await run_tool(ReadOutput(outputs), handle="output-1", offset=offset)).text.split("]\n", 1)[
            1
        ]
        whole += piece
        offset += len(piece)

    assert whole == LINES


async def test_the_oldest_are_given_up_where_there_is_too_much() -> None:
    outputs = Outputs()
    for _ in range(3):
        outputs.short("x" * (KEPT // 2))

    gone = await run_tool(ReadOutput(outputs), handle="output-1")

    assert gone.failed
    assert "Nothing is kept as 'output-1' any more" in gone.text
    assert outputs.get("output-2") is not None
    assert outputs.get("output-3") is not None


@pytest.mark.parametrize(
    ("input", "sentence"),
    [
        ({}, "`handle`"),
        ({"handle": "output-1", "limit": 10**9}, "`limit`"),
        ({"handle": "output-1", "offset": 10**9}, "has 98,890 characters"),
        ({"handle": "output-9"}, "Nothing is kept"),
        ({"handle": "output-1", "regex": "a"}, "`regex`"),
    ],
)
async def test_a_wish_that_cannot_be_met_is_refused_with_the_reason(
    input: dict[str, Any], sentence: str
) -> None:
    outputs = Outputs()
    outputs.short(LINES)

    refused = await run_tool(ReadOutput(outputs), **input)

    assert refused.failed
    assert sentence in refused.text
