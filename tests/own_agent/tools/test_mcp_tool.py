"""Somebody's tool as the loop knows tools: what it answers, what it says meanwhile, how it is shown."""

import json
from dataclasses import replace
from pathlib import Path

from tests.support.agent_toolset import ToolHost, connected_servers, run_tool, stdio_server

from handrail.own_agent.tools.mcp_tool import MOST_IMAGES, MOST_SCHEMA, McpTool


async def test_content_of_every_sort_is_told_or_said_to_be_there(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        shown = await run_tool(servers.tools["somebody__shows"], count=MOST_IMAGES + 1)

    assert [image.media_type for image in shown.images] == ["image/png"] * MOST_IMAGES
    assert shown.images[0].data.startswith(b"\x89PNG")
    assert shown.text.splitlines() == [
        "Here it is.",
        "[one more image, which is left out]",
        "[an image that cannot be read]",
        "[something of type image/x-odd, which cannot be shown here]",
        "[a sound of type audio/wav, which cannot be heard here]",
        "[the page: https://example.test/page]",
    ]


async def test_structured_content_alone_is_told_as_text_and_kept_short_for_people(
    root: Path, log: Path
) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        result = await run_tool(servers.tools["somebody__structured"])

    assert json.loads(result.text) == {"answer": 42, "long": "x" * 10_000}
    assert result.raw["answer"] == 42
    assert result.raw["long"].endswith("… (10,000 characters)")


async def test_our_own_words_for_an_ending_count_from_our_own_server_alone(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log), stdio_server(log, name="handrail")) as servers:
        theirs = await run_tool(servers.tools["somebody__denied"])
        ours = await run_tool(servers.tools["denied"])

    assert (theirs.ended, ours.ended) == ("failed", "denied")


async def test_what_a_server_says_meanwhile_is_heard(root: Path, log: Path) -> None:
    listener = ToolHost(answers=["allowed"])

    async with connected_servers(root, stdio_server(log)) as servers:
        await run_tool(servers.tools["somebody__progresses"], listener, id="t7")

    assert listener.heard == [("t7", "one of three"), ("t7", "2 of 3")]


async def test_a_call_that_waits_for_a_person_says_where_to_answer(root: Path, log: Path) -> None:
    listener = ToolHost()

    async with connected_servers(root, stdio_server(log, name="handrail")) as servers:
        await run_tool(servers.tools["asks"], listener, id="t7")

    where = (
        "Answer on Handrail's page (`handrail open`), or with `handrail approvals` and `handrail approve`."
    )
    assert listener.heard == [("t7", f"waiting for a person for 10 s. {where}")]
    assert listener.asked == []


async def test_a_result_is_never_empty_since_no_provider_takes_that(root: Path, log: Path) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        tool = servers.tools["somebody__says"]
        blank = await run_tool(tool, text=" \n", picture=False)
        picture = await run_tool(tool, text="", picture=True)

    assert (blank.text, blank.images) == ("Done; it had nothing to say.", ())
    assert (picture.text, len(picture.images)) == ("[an image]", 1)


async def test_an_input_that_takes_a_book_to_describe_is_not_told_to_every_request(
    root: Path, log: Path
) -> None:
    async with connected_servers(root, stdio_server(log)) as servers:
        tool = servers.tools["somebody__echo"]
        assert isinstance(tool, McpTool)
        schema = {"type": "object", "description": "x" * MOST_SCHEMA}
        long = replace(tool, spec=replace(tool.spec, input_schema=schema))

    assert tool.definition.parameters_json_schema["properties"]
    assert long.definition.parameters_json_schema == {"type": "object"}
