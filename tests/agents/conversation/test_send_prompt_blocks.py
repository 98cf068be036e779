"""What a person says, as an agent is sent it."""

import base64

import pytest

from handrail.agents.acp.capabilities import AgentInfo
from handrail.agents.conversation.send_prompt import PromptPart, blocks_of, first_line

pytestmark = pytest.mark.anyio
SEEING = AgentInfo("seeing", capabilities={"promptCapabilities": {"image": True}})
PICTURE = PromptPart(kind="image", data={"image": "sha", "mime": "image/gif"})


async def look(sha: str) -> bytes | None:
    return b"gif" if sha == "sha" else None


async def test_each_piece_is_a_block_in_its_place() -> None:
    file = PromptPart(kind="file", data={"uri": "file:///w/a", "name": "a"})
    blocks, unsent = await blocks_of([PromptPart(kind="text", text="See"), file, PICTURE], SEEING, look)
    assert unsent == []
    assert blocks == [
        {"type": "text", "text": "See"},
        {"type": "resource_link", "uri": "file:///w/a", "name": "a"},
        {"type": "image", "mimeType": "image/gif", "data": base64.b64encode(b"gif").decode()},
    ]


async def test_a_piece_that_cannot_be_sent_is_left_out_and_named() -> None:
    gone = PromptPart(kind="image", data={"image": "gone"})
    blocks, unsent = await blocks_of([PICTURE], AgentInfo("blind"), look)
    assert (blocks, unsent) == ([], ["blind takes no pictures, so it was not sent the one above."])
    blocks, unsent = await blocks_of([gone], SEEING, look)
    assert (blocks, unsent) == ([], ["A picture above is no longer kept, so it was not sent."])


def test_the_first_line_is_the_first_that_says_something() -> None:
    assert first_line([PICTURE, PromptPart(kind="text", text="\n \n  Hello \nthere")]) == "Hello"
    assert first_line([PICTURE]) == ""
