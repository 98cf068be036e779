"""Real coding agents with their own tools, behind the hooks that `handrail connect` wrote, against a scripted model.

Each does the same things. What one cannot do stands in `client_catalog.py`, and is asserted as such.
"""

import base64
from dataclasses import replace

import pytest
from tests.real_agents.hosting import answering
from tests.real_clients.client_catalog import CHANGED, CODEX, Client, Fault
from tests.real_clients.guarded_client import GuardedClient, guarded_client
from tests.real_clients.observations import note
from tests.support.daemon_home import eventually
from tests.support.person_client import Json
from tests.support.thread_client import parts_of, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

TRANSCRIPTS = {"claude", "codex", "gemini", "opencode"}
"""Clients whose own files of conversations Handrail reads."""
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR4nGNQSFiAFTEMLQkAAmxIAbLcbYIAAAAASUVORK5CYII="
)
"""A PNG of 8 times 8 pixels."""
FAULTS: dict[Fault, str] = {
    "missing": "hook missing",
    "crashed": "hook fails",
    "killed": "hook killed",
    "daemon_down": "no daemon",
}


def test_a_client_that_is_not_installed_is_said_before_anything_starts() -> None:
    missing = replace(CODEX, command=lambda: ("/nowhere/codex",))
    wanted = "codex is not installed: there is no /nowhere/codex. Run: make agents"
    with pytest.raises(pytest.fail.Exception, match=wanted), guarded_client(missing):
        pass


async def test_a_shell_command_waits_with_its_parts_and_risk_and_runs_once_it_is_allowed(
    guarded: GuardedClient,
) -> None:
    made = guarded.workspace / "allowed"
    async with guarded.running(guarded.client.runs("touch allowed && echo 'it is' made")) as run:
        asked = await guarded.person.question("touch allowed")
        assert not made.exists()
        assert [claim["words"] for claim in asked["claims"]] == [
            ["touch", "allowed"],
            ["echo", "it is", "made"],
        ]
        assert asked["risk"] == "medium"
        assert [part["level"] for part in asked["risks"]] == ["medium", "low"]
        [session] = await guarded.person.get("clients")
        assert (session["client"], session["folder"]) == (guarded.client.name, str(guarded.workspace))
        assert (session["state"], session["approvals"]) == ("needs_you", [asked["id"]])
        (await guarded.person.answer(asked, "allow")).raise_for_status()
    assert made.exists(), run.text
    call = await guarded.person.settled(asked["call_id"])
    assert (call["assurance"], call["status"]) == ("advisory", "done")
    assert call["caller"]["client"] == guarded.client.name
    assert guarded.is_told("it is made")
    assert await guarded.person.get("approvals", open=True) == []
    await eventually(lambda: _nobody_runs(guarded))
    await _is_read_from_its_own_files(guarded, "touch allowed")


async def _nobody_runs(guarded: GuardedClient) -> bool:
    return await guarded.person.get("clients") == []


async def _is_read_from_its_own_files(guarded: GuardedClient, line: str) -> None:
    """The session of the first turn, if Handrail reads what this client keeps of its conversations."""
    listed: list[Json] = await guarded.person.get("transcripts")
    assert [each["client"] for each in listed] == [*{guarded.client.name} & TRANSCRIPTS]
    for session in listed:
        assert session["folder"] == str(guarded.workspace)
        read = await guarded.person.get(f"transcripts/{session['client']}/{session['session']}")
        assert [message["role"] for message in read["said"]] == ["user", "assistant"]
        [call] = parts_of(read["said"][1], "call")
        assert line in call["data"]["title"]
        assert text_of(read["said"][1]).startswith("I run it.")


async def test_a_denied_command_does_not_run_and_the_model_reads_the_reason(guarded: GuardedClient) -> None:
    async with guarded.running(guarded.client.runs("touch denied")) as run:
        call = await guarded.person.deny("touch denied", "Wrong folder, use build instead.")
    assert not (guarded.workspace / "denied").exists(), run.text
    assert (await guarded.person.settled(call))["status"] == "denied"
    is_told = guarded.is_told("Wrong folder, use build instead.")
    note(guarded.client.name, "reason of a denial", "told" if is_told else "not told")
    assert is_told == guarded.client.tells_reason


async def test_an_edited_command_runs_instead_where_the_client_can(guarded: GuardedClient) -> None:
    async with guarded.running(guarded.client.runs("touch proposed")) as run:
        asked = await guarded.person.question("touch proposed")
        assert asked["can_edit"] == guarded.client.can_edit
        assert bool(asked["why_not_edit"]) != guarded.client.can_edit
        if guarded.client.can_edit:
            await guarded.allow_edited("touch proposed", "touch edited")
        else:
            (await guarded.person.answer(asked, "deny", "No.")).raise_for_status()
    assert not (guarded.workspace / "proposed").exists(), run.text
    is_edited = (guarded.workspace / "edited").exists()
    note(guarded.client.name, "an edit of yours", "runs as edited" if is_edited else "not possible; deny it")
    assert is_edited == guarded.client.can_edit, run.text
    assert guarded.is_told(guarded.client.edit_notice), "an empty text is in every request"
    assert guarded.is_told(CHANGED) == guarded.client.edit_notice.startswith(CHANGED)


async def test_a_file_edit_shows_its_diff_and_can_be_undone(guarded: GuardedClient) -> None:
    path = guarded.workspace / "notes.txt"
    path.write_text("one\ntwo\n")
    async with answering(guarded.person, "allow") as asked:
        run = await guarded.run(guarded.client.reads(path), guarded.client.edits(path, "two", "three"))
    assert path.read_text() == "one\nthree\n", run.text
    (edit,) = [each for each in asked if each["preview"] and each["preview"]["kind"] == "diff"]
    assert {"-two", "+three"} <= set(edit["preview"]["diff"].splitlines())
    plan = await guarded.person.get(f"undo/{edit['call_id']}")
    await guarded.person.post(f"undo/{edit['call_id']}", {"digest": plan["digest"]})
    assert path.read_text() == "one\ntwo\n"


async def test_every_call_of_a_turn_is_recorded_with_verdict_and_outcome(guarded: GuardedClient) -> None:
    before = {call["id"] for call in await guarded.calls()}
    path = guarded.workspace / "recorded.txt"
    lines = ("touch first", "ls /does-not-exist")
    async with answering(guarded.person, "allow") as asked:
        run = await guarded.run(*map(guarded.client.runs, lines), guarded.client.writes(path, "text\n"))
    assert path.read_text() == "text\n", run.text
    calls = [call for call in await guarded.settled_calls() if call["id"] not in before]
    assert len(calls) == 3 + sum(len(turn.uses) for turn in guarded.client.ends)
    assert len(asked) <= len(calls), "nobody is asked twice about one action"
    assert all(call["allowed_by"] for call in calls)


async def test_our_own_tools_ask_once_and_not_through_the_hook_and_show_pictures(
    guarded: GuardedClient,
) -> None:
    path, picture = guarded.workspace / "ours.txt", guarded.workspace / "picture.png"
    picture.write_bytes(base64.b64decode(PICTURE))
    ours = guarded.client.ours
    turns = (
        ours("read_file", {"path": str(picture)}),
        ours("write_file", {"path": str(path), "content": "by you\n"}),
    )
    async with answering(guarded.person, "allow") as asked:
        run = await guarded.run(*guarded.client.waits_for_ours, *turns)
    assert path.read_text() == "by you\n", run.text
    assert guarded.is_told("image/png"), run.text
    assert guarded.is_told(PICTURE) == guarded.client.shows_pictures, run.text
    assert [each["tool"] for each in asked] == ["write_file"]
    assert (await guarded.person.call(asked[0]["call_id"]))["assurance"] == "bound"


async def test_every_call_of_the_clients_own_tools_is_in_the_journal_with_verdict_and_outcome(
    guarded: GuardedClient,
) -> None:
    """Over all scenarios above. Below, no hook works, so that nothing runs and nothing is recorded."""
    async with answering(guarded.person, "allow"):
        await guarded.run(guarded.client.runs("touch counted"))
    calls = await guarded.settled_calls()
    assert len(calls) == len(guarded.scripted)
    unsettled = [call for call in calls if call["status"] not in ("done", "denied")]
    known = len(calls) - len(unsettled)
    note(guarded.client.name, "own calls in the journal", f"{known} of {len(guarded.scripted)}")
    assert [(call["title"], call["status"], call["message"]) for call in unsettled] == []
    assert [call["title"] for call in calls if call["status"] != "denied" and not call["allowed_by"]] == []


@pytest.mark.parametrize("fault", ["missing", "crashed", "killed", "daemon_down"])
async def test_without_a_working_hook_the_tool_does_not_run(guarded: GuardedClient, fault: Fault) -> None:
    made = guarded.workspace / f"unguarded-{fault}"
    before = len(guarded.model.asked)
    with guarded.fault(fault):
        run = await guarded.run(guarded.client.runs(f"touch {made}"), arguments=guarded.client.asks_nobody)
    assert len(guarded.model.asked) > before, "the model proposed it"
    note(guarded.client.name, FAULTS[fault], "runs" if made.exists() else "refused")
    assert made.exists() == (fault in guarded.client.fails_open), run.text


async def test_disconnect_leaves_every_file_as_it_was(client: Client) -> None:
    with guarded_client(client) as guarded:
        before = guarded.files()
        connected = guarded.handrail("connect", client.name, "--yes")
        assert connected.returncode == 0, connected.stdout + connected.stderr
        assert guarded.files() != before
        done = guarded.handrail("disconnect", client.name, "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        after = guarded.files()
        # It is what the guard kept it from above: without hooks it runs a command, and nobody is asked.
        run = await guarded.run(client.runs("touch unguarded"), arguments=client.asks_nobody)
        assert (guarded.workspace / "unguarded").exists(), run.text
    assert {name: text for name, text in after.items() if before.get(name, text) != text} == {}
    assert before.keys() <= after.keys()
    assert [name for name, text in after.items() if b"handrail" in text and name not in before] == []
