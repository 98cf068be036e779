"""An agent reads and writes files through its host: by the rules, in its own words, and told plainly when it may not."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.acp_requests import RequestingAgent, error_data, requesting_agent
from tests.support.actors import ANN
from tests.support.gate_world import full_disk

from handrail.agents.requests.request_context import (
    BAD_PARAMS,
    CANCELLED,
    DENIED,
    FAILED,
    GIVEN_UP,
    NO_METHOD,
    NOT_FOUND,
    STOPPING,
)
from handrail.config import AgentSection
from handrail.gate import person_actions
from handrail.paths import Places
from handrail.store.events import CallSettled
from handrail.store.values import Caller, Comment

pytestmark = pytest.mark.anyio


@pytest.fixture
async def here(home: Path, caller: Caller) -> AsyncGenerator[RequestingAgent]:
    """A person is there, and rules leave everything that acts to them."""
    async with requesting_agent(home, caller, default="ask", agrees=False) as found:
        yield found


async def test_a_file_is_read_as_it_is(here: RequestingAgent) -> None:
    (here.root / "a.txt").write_text("one\r\ntwo\nthree", newline="")
    path = str(here.root / "a.txt")
    assert await here.ask("fs/read_text_file", path=path) == {"content": "one\r\ntwo\nthree"}
    assert await here.ask("fs/read_text_file", path=path, line=2, limit=1) == {"content": "two\n"}
    assert await here.ask("fs/read_text_file", path=path, line=0, limit=None) == {
        "content": "one\r\ntwo\nthree"
    }
    assert await here.ask("fs/read_text_file", path=path, limit=0) == {"content": ""}
    assert await here.ask("fs/read_text_file", path=path, line=9) == {"content": ""}


async def test_the_call_names_its_caller(here: RequestingAgent) -> None:
    (here.root / "a").write_text("x")
    await here.ask("fs/read_text_file", path=str(here.root / "a"))
    [call] = await here.opened()
    assert (call.tool, call.caller, call.assurance) == ("read_text_file", here.caller, "bound")


async def test_a_relative_path_is_in_the_sessions_folder(here: RequestingAgent) -> None:
    (here.root / "a").write_text("x")
    assert await here.ask("fs/read_text_file", path="a") == {"content": "x"}


async def test_a_missing_file_is_the_protocols_error(here: RequestingAgent) -> None:
    path = str(here.root / "none")
    error = await here.fails("fs/read_text_file", path=path)
    assert (error.code, str(error), error_data(error)) == (
        NOT_FOUND,
        f"Resource not found: {path} does not exist.",
        {"uri": path},
    )


async def test_a_missing_file_is_empty_for_an_agent_that_needs_it_so(here: RequestingAgent) -> None:
    here.quirks = AgentSection(name="mind", command=("mind",), missing_file_is_empty=True)
    assert await here.ask("fs/read_text_file", path=str(here.root / "none")) == {"content": ""}


async def test_what_cannot_be_read_is_said_in_words(here: RequestingAgent) -> None:
    (here.root / "bin").write_bytes(b"\0\1")
    assert "binary" in str(await here.fails("fs/read_text_file", path=str(here.root / "bin")))
    assert "directory" in str(await here.fails("fs/read_text_file", path=str(here.root)))
    assert (await here.fails("fs/read_text_file", path=str(here.root))).code == FAILED


async def test_a_file_outside_is_read_when_a_person_allows_it(here: RequestingAgent, tmp_path: Path) -> None:
    outside = tmp_path / "AGENTS.md"
    outside.write_text("be kind")
    answered = await here.both("fs/read_text_file", {"kind": "allow"}, path=str(outside))
    assert answered == {"content": "be kind"}


async def test_a_denial_is_an_error_also_without_a_reason(here: RequestingAgent, tmp_path: Path) -> None:
    error = await here.both("fs/read_text_file", {"kind": "deny"}, path=str(tmp_path / "x"))
    assert (error.code, str(error)) == (DENIED, "Denied by ann. No reason was given. Nothing was done.")


async def test_a_file_is_written_when_a_person_allows_it(here: RequestingAgent) -> None:
    path = here.root / "deep" / "new.txt"
    assert await here.both("fs/write_text_file", {"kind": "allow"}, path=str(path), content="hällo\n") == {}
    assert path.read_text() == "hällo\n"
    assert [call.tool for call in await here.opened()] == ["write_file"]


async def test_nobody_is_asked_about_what_an_agent_writes_itself_whatever_it_is_told(
    here: RequestingAgent,
) -> None:
    """So does opencode: it has asked before, sends the text for editors to show, and waits for no answer."""
    here.quirks = AgentSection(name="mind", command=("mind",), writes_itself=True)
    path = here.root / "new.txt"
    assert await here.ask("fs/write_text_file", path=str(path), content="x") == {}
    assert (path.exists(), await here.opened()) == (False, [])


async def test_a_rule_may_allow_a_write(here: RequestingAgent) -> None:
    await here.gate.rules.add(here.gate.rules.build_rule(path="*.md", workspace=str(here.root)), ANN)
    assert await here.ask("fs/write_text_file", path=str(here.root / "a.md"), content="x") == {}
    assert (here.root / "a.md").read_text() == "x"


async def test_a_write_that_is_denied_writes_nothing_and_the_agent_learns_why(here: RequestingAgent) -> None:
    denial = {"kind": "deny", "reason": "not there"}
    error = await here.both("fs/write_text_file", denial, path=str(here.root / "a"), content="x")
    assert (error.code, str(error)) == (DENIED, "Denied by ann. Reason: not there. Nothing was done.")
    assert error_data(error) == {"status": "denied", "reason": "not there", "by": "ann"}
    assert not (here.root / "a").exists()


async def test_an_agent_whose_text_a_person_changed_is_told_so(here: RequestingAgent) -> None:
    review = {"content": "mine\n", "comments": (Comment(line=1, text="shorter"),)}
    error = await here.both("fs/write_text_file", review, path=str(here.root / "a"), content="theirs\n")
    assert str(error).startswith("It was written, but not as asked. Created a ")
    assert "-theirs\n+mine\n" in str(error)
    assert "shorter" in str(error)
    assert (here.root / "a").read_text() == "mine\n"


async def test_an_agent_whose_input_a_person_changed_is_told_so(here: RequestingAgent) -> None:
    edited = {"input": {"path": str(here.root / "b"), "content": "theirs\n"}}
    error = await here.both("fs/write_text_file", edited, path=str(here.root / "a"), content="theirs\n")
    assert "A person changed this call before allowing it: `path` is" in str(error)
    assert (here.root / "b").exists()


async def test_a_cancelled_operation_answers_what_waits_as_cancelled(here: RequestingAgent) -> None:
    path, answered = str(here.root / "a"), list[Any]()
    async with here.gate.operation(here.caller) as operation:
        during = here.another(operation=operation.id)

        async def cancels() -> None:
            await during.question()
            operation.cancel(ANN)

        with anyio.CancelScope(shield=True):
            answered.append(await during.meanwhile(cancels, "fs/write_text_file", path=path, content="x"))
    assert (answered[0].code, str(answered[0])) == (CANCELLED, "Cancelled with its operation")
    assert not (here.root / "a").exists()


async def test_an_agent_that_takes_its_request_back_withdraws_the_question(here: RequestingAgent) -> None:
    approval = await here.given_up("fs/write_text_file", path=str(here.root / "a"), content="x")
    assert not approval.open
    assert approval.call not in here.gate.open
    await here.gate.journal.committed(here.gate.journal.head)
    entries = await here.gate.journal.since(0, 1000)
    settled = [each.event for each in entries if isinstance(each.event, CallSettled)]
    assert [(each.ending, each.by) for each in settled] == [(GIVEN_UP.ending, str(GIVEN_UP.by))]


async def test_a_person_may_complete_a_read_with_words_of_their_own(
    here: RequestingAgent, tmp_path: Path
) -> None:
    async def completes() -> None:
        call = here.gate.open[(await here.question()).call]
        assert person_actions.complete(here.gate, call, ANN, text="all is well")

    answered = await here.meanwhile(completes, "fs/read_text_file", path=str(tmp_path / "x"))
    assert answered == {"content": "all is well"}


async def test_what_is_missing_in_a_request_is_said(here: RequestingAgent) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("fs/read_text_file", {}),
        ("fs/read_text_file", {"path": 7}),
        ("fs/write_text_file", {"content": "x"}),
        ("fs/write_text_file", {"path": "/x"}),
        ("fs/write_text_file", {"path": "/x", "content": ["x"]}),
    ]
    for method, params in requests:
        assert (await here.fails(method, **params)).code == BAD_PARAMS
    assert await here.opened() == []


async def test_a_method_that_there_is_not_is_said(here: RequestingAgent) -> None:
    error = await here.fails("fs/delete_everything")
    assert (error.code, str(error)) == (NO_METHOD, "Handrail has no method fs/delete_everything.")


async def test_nothing_is_done_that_cannot_be_recorded(here: RequestingAgent, home: Path) -> None:
    (here.root / "a").write_text("x")
    await here.gate.journal.committed(here.gate.journal.head)
    with full_disk(Places.under(home).database.parent):
        error = await here.fails("fs/read_text_file", path=str(here.root / "a"))
    assert error.code == FAILED
    assert "could not be written" in str(error)


async def test_a_daemon_that_leaves_says_so_and_the_question_stays_for_the_next(
    here: RequestingAgent,
) -> None:
    async def leaves() -> None:
        await here.question()
        here.gate.leave()

    error = await here.meanwhile(leaves, "fs/write_text_file", path=str(here.root / "a"), content="x")
    assert (error.code, str(error)) == (FAILED, STOPPING)
