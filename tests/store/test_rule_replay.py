"""Rules and trusted folders rebuilt from their events, against altered tables and altered events."""

import sqlite3
from contextlib import closing

import pytest
from tests.support.sample_events import JournalFiles, daemon_stopped

from handrail.store.database import open_reader
from handrail.store.events import (
    Event,
    FolderDistrusted,
    FolderTrusted,
    RuleAdded,
    RuleDisabled,
    RuleEnabled,
    RuleRemoved,
    RulesOrdered,
)
from handrail.store.hash_chain import GENESIS, chained, payload_hash
from handrail.store.journal import open_journal
from handrail.store.mcp_servers import ServerToolsPinned
from handrail.store.rule_replay import PAUSE_EVENTS, PIN_EVENTS, RULE_EVENTS, RuleReplay, replay_rules
from handrail.store.values import Rule

pytestmark = pytest.mark.anyio


def added(id: str, command: str = "ls") -> RuleAdded:
    return RuleAdded(rule=Rule(id=id, effect="allow", command=command), by="ann")


STORY: tuple[Event, ...] = (
    daemon_stopped("first"),
    added("r1"),
    added("r2"),
    RuleRemoved(rule="r1", by="ann"),
    FolderTrusted(folder="/a", config=None, by="ann"),
    FolderTrusted(folder="/b", config="sha", by="ann"),
    daemon_stopped("between"),
    FolderDistrusted(folder="/a", by="ann"),
    added("r3"),
    ServerToolsPinned(server="web", tools=({"name": "old"},), capabilities={}, why="first listing"),
    ServerToolsPinned(
        server="web", tools=({"name": "get", "n": 1e22},), capabilities={"x": 0.1}, why="approval:a1"
    ),
)


async def journal_with(kept: JournalFiles, *story: Event) -> None:
    async with open_journal(kept.path, kept.head) as journal:
        for event in story:
            await journal.committed(journal.append(event))


def alter(kept: JournalFiles, *statements: str) -> None:
    with closing(sqlite3.connect(kept.path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


def summary(replay: RuleReplay) -> tuple[list[str], list[str]]:
    (web,) = replay.servers
    assert (web.name, web.tools, web.capabilities) == ("web", ({"name": "get", "n": 1e22},), {"x": 0.1})
    return [record.rule.id for record in replay.rules], [record.folder for record in replay.folders]


async def test_the_events_give_what_is_in_force_and_the_tables_match(kept: JournalFiles) -> None:
    await journal_with(kept, *STORY)
    replay = replay_rules(kept.path)
    assert summary(replay) == (["r2", "r3"], ["/b"])
    assert (replay.faults, replay.repair) == ((), ())


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        (
            'INSERT INTO rules VALUES (\'r9\', \'{"id":"r9","effect":"allow"}\', \'ann\', NULL, 1, NULL, NULL, 2)',
            "The database has a rule r9 that no event added.",
        ),
        ("UPDATE rules SET removed_at = NULL", "The rule r1 in the database is not as its events have it."),
        (
            "UPDATE rules SET rule = replace(rule, 'ls', 'rm') WHERE id = 'r2'",
            "The rule r2 in the database is not as its events have it.",
        ),
        (
            "DELETE FROM rules WHERE id = 'r3'",
            "The rule r3 is missing in the database, though an event added it.",
        ),
        (
            "INSERT INTO folders VALUES ('/', NULL, 'ann', 1)",
            "The database has a trusted folder / that no event added.",
        ),
        (
            "UPDATE folders SET config = NULL",
            "The trusted folder /b in the database is not as its events have it.",
        ),
        (
            "UPDATE mcp_servers SET tools = replace(tools, 'get', 'rm')",
            "The list of accepted tools of web in the database is not as its events have it.",
        ),
        (
            "DELETE FROM mcp_servers",
            "The list of accepted tools of web is missing in the database, though an event added it.",
        ),
        (
            "INSERT INTO mcp_servers VALUES ('evil', '[]', '{}', 1)",
            "The database has a list of accepted tools of evil that no event added.",
        ),
    ],
)
async def test_an_altered_table_changes_nothing_is_reported_and_can_be_rebuilt(
    kept: JournalFiles, statement: str, fault: str
) -> None:
    await journal_with(kept, *STORY)
    alter(kept, statement)
    replay = replay_rules(kept.path)
    assert summary(replay) == (["r2", "r3"], ["/b"])
    assert replay.faults == (fault,)
    async with open_journal(kept.path, kept.head) as journal:
        journal.queue.write(replay.repair, 0, lambda _fate: None)
        await journal.written()
    assert replay_rules(kept.path).faults == ()


async def test_an_event_that_was_altered_or_added_is_not_used(kept: JournalFiles) -> None:
    await journal_with(kept, *STORY)
    alter(
        kept,
        "UPDATE events SET payload = replace(payload, 'ls', 'rm') WHERE seq = 9",
        "INSERT INTO events SELECT 12, at, kind, payload, payload_hash, chain FROM events WHERE seq = 3",
        "INSERT INTO events VALUES (13, 1, 'RuleAdded', CAST(x'ff' AS TEXT), x'00', x'00')",
    )
    replay = replay_rules(kept.path)
    assert summary(replay) == (["r2"], ["/b"])
    assert replay.faults[:3] == (
        "Event 9 (RuleAdded) was altered, so it is not used.",
        "Event 12 (RuleAdded) does not follow from the one before it, so it is not used.",
        "Event 13 (RuleAdded) was altered, so it is not used.",
    )


async def test_rules_that_were_disabled_and_ordered_are_replayed_so(kept: JournalFiles) -> None:
    await journal_with(
        kept,
        *STORY,
        RuleDisabled(rule="r2", by="ann"),
        RulesOrdered(rules=("r3", "r2"), by="ann"),
        RuleDisabled(rule="r3", by="ann"),
        RuleEnabled(rule="r3", by="ann"),
        RuleDisabled(rule="unknown", by="ann"),
    )
    replay = replay_rules(kept.path)
    assert [(record.rule.id, record.rule.disabled, record.rule.rank) for record in replay.rules] == [
        ("r2", True, 2),
        ("r3", False, 1),
    ]
    assert (replay.faults, replay.repair) == ((), ())
    alter(kept, "UPDATE rules SET rule = json_remove(rule, '$.disabled') WHERE id = 'r2'")
    assert replay_rules(kept.path).faults == ("The rule r2 in the database is not as its events have it.",)


async def test_a_chain_that_was_recomputed_is_not_detected_here(kept: JournalFiles) -> None:
    await journal_with(kept, *STORY)
    alter(kept, "UPDATE events SET payload = replace(payload, '\"ls\"', '\"rm\"') WHERE seq = 9")
    recompute_chain(kept)
    replay = replay_rules(kept.path)
    assert [record.rule.command for record in replay.rules] == ["ls", "rm"]
    assert replay.faults == ("The rule r3 in the database is not as its events have it.",)


def recompute_chain(kept: JournalFiles) -> None:
    """Recompute every hash, as an attacker with the user's rights can."""
    with closing(sqlite3.connect(kept.path)) as database:
        rows = database.execute("SELECT seq, at, kind, payload FROM events ORDER BY seq").fetchall()
        before = GENESIS
        for seq, at, kind, payload in rows:
            hashed = payload_hash(payload)
            before = chained(before, seq, at, kind, hashed)
            database.execute("UPDATE events SET payload_hash=?, chain=? WHERE seq=?", (hashed, before, seq))
        database.commit()


async def test_the_events_are_found_without_a_scan(kept: JournalFiles) -> None:
    await journal_with(kept, *STORY)
    with closing(open_reader(kept.path)) as connection:
        for query, index in (
            (RULE_EVENTS, "events_of_rules"),
            (PAUSE_EVENTS, "events_of_pauses"),
            (PIN_EVENTS, "events_of_pins"),
        ):
            plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}")]
            assert f"USING INDEX {index}" in plan[0], plan
