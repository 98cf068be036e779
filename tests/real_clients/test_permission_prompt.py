"""Claude Code with `--permission-prompt-tool mcp__handrail__approve`, and no hooks: our MCP tool answers its questions."""

from collections.abc import Iterator

import anyio
import pytest
from tests.real_clients.client_catalog import CLAUDE
from tests.real_clients.guarded_client import TURN_SECONDS, GuardedClient, guarded_client

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

PROMPT_TOOL = ("--permission-prompt-tool", "mcp__handrail__approve")


@pytest.fixture(scope="module")
def prompting() -> Iterator[GuardedClient]:
    with guarded_client(CLAUDE) as guarded:
        connected = guarded.handrail("connect", "claude", "--no-hooks", "--yes")
        assert connected.returncode == 0, connected.stdout + connected.stderr
        yield guarded


async def test_an_allowed_command_runs(prompting: GuardedClient) -> None:
    async with prompting.running(CLAUDE.runs("touch allowed"), arguments=PROMPT_TOOL) as run:
        await prompting.person.allow("touch allowed")
    assert (prompting.workspace / "allowed").exists(), run.text


async def test_a_denied_command_does_not_run_and_the_model_reads_the_reason(prompting: GuardedClient) -> None:
    async with prompting.running(CLAUDE.runs("touch denied"), arguments=PROMPT_TOOL) as run:
        await prompting.person.deny("touch denied", "Ask the owner first.")
    assert not (prompting.workspace / "denied").exists(), run.text
    assert prompting.is_told("Ask the owner first.")


async def test_an_edited_command_runs_instead(prompting: GuardedClient) -> None:
    async with prompting.running(CLAUDE.runs("touch proposed"), arguments=PROMPT_TOOL) as run:
        await prompting.allow_edited("touch proposed", "touch edited")
    assert not (prompting.workspace / "proposed").exists(), run.text
    assert (prompting.workspace / "edited").exists(), run.text


@pytest.mark.all_clients
async def test_an_answer_after_90_seconds_counts(prompting: GuardedClient) -> None:
    async with prompting.running(
        CLAUDE.runs("touch slowly"), arguments=PROMPT_TOOL, within=TURN_SECONDS + 90
    ) as run:
        asked = await prompting.person.question("touch slowly")
        await anyio.sleep(90)  # the time itself is what is tried here
        assert not (prompting.workspace / "slowly").exists()
        (await prompting.person.answer(asked, "allow")).raise_for_status()
    assert (prompting.workspace / "slowly").exists(), run.text
