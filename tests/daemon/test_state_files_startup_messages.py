"""What is told on the terminal that started Handrail."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from handrail.daemon.state_files import ForegroundOutput, build_connect_command
from handrail.server.access import Access
from handrail.store.journal import open_journal

URL = "http://127.0.0.1:7433"


@pytest.fixture
async def access(home: Path) -> AsyncGenerator[Access]:
    async with open_journal(home / "handrail.db", home / "handrail.head") as journal:
        yield Access(journal, [], b"")


async def test_a_link_that_signs_in_once_and_the_line_for_an_agent_are_said(
    access: Access, capsys: pytest.CaptureFixture[str]
) -> None:
    await ForegroundOutput(access, URL, "claude mcp add handrail").run()
    said = capsys.readouterr().out

    assert f"ready at {URL}" in said
    assert "claude mcp add handrail" in said
    link = re.search(rf"{URL}/#code=(\S+)", said)
    assert link is not None
    assert access.sign_ins.redeem(link[1]) not in ("unknown", "expired", "used")
    assert access.sign_ins.redeem(link[1]) == "used"


async def test_a_port_that_could_not_be_had_is_said(
    access: Access, capsys: pytest.CaptureFixture[str]
) -> None:
    await ForegroundOutput(access, URL, "claude mcp add handrail", 7433).run()
    assert "Port 7433 is taken" in capsys.readouterr().out


async def test_a_sealed_daemon_gives_no_link_and_says_why(
    access: Access, capsys: pytest.CaptureFixture[str]
) -> None:
    access.seal("Run `handrail restart`.")
    await ForegroundOutput(access, URL, "claude mcp add handrail").run()
    said = capsys.readouterr().out

    assert "Run `handrail restart`." in said
    assert "#code=" not in said


async def test_where_no_person_reads_it_no_link_is_said(
    access: Access, capsys: pytest.CaptureFixture[str]
) -> None:
    await ForegroundOutput(access, URL, "claude mcp add handrail", has_person=False).run()
    said = capsys.readouterr().out

    assert "`handrail open`" in said
    assert "#code=" not in said


def test_the_line_for_an_agent_names_a_home_of_its_own() -> None:
    """Without it the client's door would start another daemon in the usual places."""
    assert "HANDRAIL_HOME" not in build_connect_command({"HOME": "/home/me"})
    line = build_connect_command({"HANDRAIL_HOME": "/srv/two words"})
    assert line.startswith("claude mcp add handrail -- env 'HANDRAIL_HOME=/srv/two words' ")
    assert line.endswith("/handrail mcp")
