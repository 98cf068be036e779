"""`handrail threads`, `thread`, `export` and `import`."""

import json
from typing import Any

import pytest
from tests.support.cli_home import Home

from handrail.cli.commands.threads import describe_asks

pytestmark = pytest.mark.e2e


@pytest.fixture
def thread(handrail: Home) -> str:
    """A conversation of two messages."""
    told = handrail.ok("chat", "--agent", "demo", "--new", "--json", "hello there")
    return json.loads(told.out.splitlines()[-1])["thread"]


def test_conversations_are_listed_named_and_deleted(handrail: Home, thread: str) -> None:
    listed = handrail.ok("threads", "--here").out
    assert thread in listed
    assert "hello there" in listed
    assert handrail.ok("thread", "rename", thread, "The tour").out == f"{thread} is now “The tour”.\n"
    assert [row["title"] for row in handrail.ok("threads", "--here", "--json").json] == ["The tour"]
    assert handrail.ok("thread", "delete", thread, "--yes").out == f"Deleted {thread}.\n"
    assert "No conversations yet" in handrail.ok("threads", "--here").err
    assert f"There is no thread {thread}" in handrail.run("thread", "rename", thread, "Gone").err


def test_a_conversation_is_forked_and_says_how_its_agent_gets_it(handrail: Home, thread: str) -> None:
    told = handrail.ok("thread", "fork", thread, "--title", "Another way")
    fork = told.out.split()[0]
    assert told.out == f"{fork}  Another way, 2 messages\n"
    assert "demo cannot copy its session. demo gets a summary of it with your next message." in told.err
    assert f"handrail chat --thread {fork}" in told.err
    handrail.ok("chat", "--thread", fork, "hello again")
    rows = {row["id"]: row for row in handrail.ok("threads", "--here", "--json").json}
    assert (rows[thread]["messages"], rows[fork]["messages"]) == (2, 4)
    assert rows[fork]["forked_from"] == thread


@pytest.mark.parametrize(
    ("asks", "words"),
    [("nobody", "asks nobody"), ("commands", "asks about commands only"), ("everything", ""), (None, "")],
)
def test_an_agent_that_acts_without_asking_is_marked(asks: str | None, words: str) -> None:
    row: Any = {"asks": asks}
    assert describe_asks(row) == words


def test_nothing_of_a_plain_conversation_was_done_unasked(handrail: Home, thread: str) -> None:
    assert handrail.ok("calls", "--unasked", "--json").json == []
    assert "No call matches" in handrail.ok("calls", "--unasked").err
    assert "give no filters" in handrail.run("calls", "-f", "--unasked").err


def test_a_conversation_goes_out_as_markdown_or_json_and_comes_in_again(handrail: Home, thread: str) -> None:
    markdown = handrail.ok("export", thread).out
    assert "hello there" in markdown
    assert "**demo agent**" in markdown
    handrail.ok("export", thread, "--json", "-o", "talk.json")
    taken = handrail.run("export", thread, "--json", "-o", "talk.json")
    assert (taken.code, "Name another file" in taken.err) == (1, True)
    again = handrail.ok("import", "talk.json").out
    assert "hello there, 2 messages" in again
    assert handrail.ok("export", again.split()[0]).out.splitlines()[4:] == markdown.splitlines()[4:]


def test_what_is_no_conversation_is_refused_with_a_sentence(handrail: Home) -> None:
    (handrail.workspace / "no.json").write_text("{")
    (handrail.workspace / "other.json").write_text('{"handrail": 1}')
    assert "cannot be read as JSON" in handrail.run("import", "no.json").err
    refused = handrail.run("import", "other.json")
    assert (refused.code, "thread" in refused.err) == (1, True)
    assert "not both" in handrail.run("export", "h1", "--md", "--json").err
