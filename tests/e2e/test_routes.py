"""What people's programs can ask of /api, route by route, and the sentence when they ask amiss."""

from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from tests.support.daemon_home import Home, eventually
from tests.support.mcp_client import agent
from tests.support.person_client import Person


async def test_calls_are_filtered_and_paged(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a")
    async with agent(shared_home, workspace, shared_person, name="pager") as client:
        read = [(await client.use("read_file", path="a.txt")).call for _ in range(3)]
        missing = (await client.use("read_file", path="b.txt")).call
    mine = [call["id"] for call in await shared_person.get("calls", agent="pager")]
    assert mine == [missing, *reversed(read)]
    failed = await shared_person.get("calls", agent="pager", status="failed")
    assert [call["id"] for call in failed] == [missing]
    found = await shared_person.get("calls", agent="pager", q="b.txt")
    assert [call["id"] for call in found] == [missing]
    first = await shared_person.get("calls", agent="pager", limit=2)
    rest = await shared_person.get("calls", agent="pager", limit=2, before=first[-1]["seq"])
    assert [call["id"] for call in (*first, *rest)] == mine


async def test_the_events_after_a_snapshot_lead_from_it_to_now(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    before = await shared_person.get("state")
    async with agent(shared_home, workspace, shared_person) as client:
        call = (await client.use("list_files")).call
    entries = (await shared_person.get("events", after=before["seq"]))["entries"]
    assert [entry["seq"] for entry in entries] == sorted({entry["seq"] for entry in entries})
    assert entries[0]["seq"] > before["seq"]
    told = [entry["event"]["kind"] for entry in entries if entry["event"].get("call") == call]
    assert told == ["CallOpened", "CallStarted", "CallSettled"]


async def test_a_terminal_that_runs_on_is_listed_and_can_be_closed_by_name(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("execute_command", command="echo on; sleep 1000")
        call = await shared_person.allow("sleep 1000")
        await shared_person.has_printed(call)
        await shared_person.complete(call)
        assert (await asked.told()).status == "force-completed"
    detail = await shared_person.call(call)
    assert (detail["status"], detail["terminal_running"], detail["stopped"]) == ("completed", True, False)
    (running,) = [one for one in await shared_person.get("terminals", running=True) if one["call_id"] == call]
    closed = await shared_person.post(f"terminals/{running['id']}/close")
    assert closed["running"] is False
    assert (await shared_person.stopped(call))["receipt"]["stopped"] is True
    events = (await shared_person.get("events", after=0))["entries"]
    (who,) = [entry["event"]["by"] for entry in events if entry["event"]["kind"] == "TerminalClosed"]
    assert who.startswith("a person")


async def test_a_credential_opens_one_workspace_until_it_is_revoked(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace, shared_person, transport="http", name="web") as client:
        call = (await client.use("list_files")).call
    assert (await shared_person.call(call))["caller"]["workspace"] == str(workspace)
    given = await shared_person.credential(str(workspace), name="to revoke")
    listed = await shared_person.get("credentials")
    assert given["id"] in [one["id"] for one in listed]
    assert "bearer" not in listed[0]
    (await shared_person.ask("DELETE", f"credentials/{given['id']}")).raise_for_status()
    assert given["id"] not in [one["id"] for one in await shared_person.get("credentials")]


async def test_a_person_learns_how_daemon_and_keeper_feel(shared_person: Person) -> None:
    async def look() -> dict[str, dict[str, float]] | None:
        health = await shared_person.get("health")
        return health if health["daemon"]["loop_lag_ms"] > 0 else None

    health = await eventually(look)
    for process in ("daemon", "keeper"):
        assert health[process]["rss_bytes"] > 1 << 20
        assert health[process]["descriptors"] > 3


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "calls/nope", 404, "There is no call nope. `handrail calls` lists what there is."),
        ("POST", "calls/nope/cancel", 404, "There is no call nope"),
        ("GET", "approvals/nope", 404, "There is no approval nope"),
        ("POST", "terminals/nope/close", 404, "There is no terminal nope"),
        ("POST", "operations/nope/cancel", 404, "There is no open operation nope"),
        ("GET", "calls?limit=0", 422, "The request does not fit"),
        ("GET", "calls?status=sleeping", 422, "The request does not fit"),
        ("GET", "nowhere", 404, ""),
    ],
)
async def test_what_is_asked_amiss_gets_a_sentence(
    shared_person: Person, method: str, path: str, status: int, words: str
) -> None:
    place, _, query = path.partition("?")
    response = await shared_person.ask(method, place, **dict(parse_qsl(query)))
    assert response.status_code == status
    assert words in response.json()["detail"]


async def test_a_second_answer_is_told_who_was_first(
    shared_home: Home, shared_person: Person, workspace: Path
) -> None:
    async with agent(shared_home, workspace, shared_person) as client:
        asked = client.ask("write_file", path="x.txt", content="x")
        approval = await shared_person.question("x.txt")
        stale = await shared_person.answer({**approval, "digest": "0" * 64}, "allow")
        assert (stale.status_code, "out of date" in stale.json()["detail"]) == (409, True)
        assert (await shared_person.answer(approval, "deny", "not now")).status_code == 200
        late = await shared_person.answer(approval, "allow")
        assert late.status_code == 409
        assert "Already denied by a person" in late.json()["detail"]
        told = await asked.told()
    assert (told.status, told.data["reason"]) == ("denied", "not now")
    assert not (workspace / "x.txt").exists()


@pytest.mark.parametrize("path", ["calls/a%0Ab", "terminals/a%0Ab/output", "nowhere"])
async def test_an_address_that_no_route_takes_is_answered_with_a_sentence(
    shared_person: Person, path: str
) -> None:
    answer = await shared_person.ask("GET", path)
    assert answer.status_code == 404
    assert answer.json()["detail"]
