"""The journal's health, on real databases."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from handrail.doctor.checks import back_up, check_journal, check_rule_tables
from handrail.paths import Places
from handrail.store.events import DaemonStopped
from handrail.store.journal import open_journal


@pytest.fixture
async def places(home: Path) -> Places:
    """A home in which something has happened."""
    made = Places.under(home)
    made.make()
    async with open_journal(made.database, made.head) as journal:
        await journal.committed(journal.append(DaemonStopped(why="first")))
        await journal.committed(journal.append(DaemonStopped(why="second")))
    return made


def alter(places: Places, statement: str) -> None:
    with closing(sqlite3.connect(places.database)) as database:
        database.execute(statement)
        database.commit()


def test_before_anything_happened_all_is_well(home: Path) -> None:
    assert check_journal(Places.under(home)).level == "ok"


@pytest.mark.anyio
async def test_a_whole_journal_is_ok(places: Places) -> None:
    assert check_journal(places).says == "The journal is whole: 2 events, the last is 2."


@pytest.mark.anyio
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = replace(payload, 'first', 'worst')",
        "UPDATE events SET at = at + 1 WHERE seq = 1",
        "DELETE FROM events WHERE seq = 1",
        "DELETE FROM events WHERE seq = 2",
    ],
)
async def test_whatever_was_altered_removed_or_cut_is_bad(places: Places, statement: str) -> None:
    alter(places, statement)
    assert check_journal(places).level == "bad"


@pytest.mark.anyio
async def test_a_database_that_is_gone_is_bad(places: Places) -> None:
    places.database.unlink()
    assert check_journal(places).level == "bad"


@pytest.mark.anyio
async def test_a_copy_of_an_altered_journal_is_made_and_said_to_be_altered(
    places: Places, tmp_path: Path
) -> None:
    alter(places, "UPDATE events SET payload = replace(payload, 'first', 'worst')")
    made = back_up(places, tmp_path / "copy.db")
    assert made.level == "bad"
    assert "its payload is not the one that was written" in made.says
    assert (tmp_path / "copy.db").exists()


@pytest.mark.anyio
async def test_no_copy_is_made_where_none_can_be(places: Places, tmp_path: Path, home: Path) -> None:
    assert back_up(places, tmp_path / "missing" / "copy.db").level == "bad"
    assert back_up(Places.under(tmp_path), tmp_path / "copy.db").level == "bad"
    assert not (tmp_path / "copy.db").exists()


@pytest.mark.anyio
async def test_rule_tables_that_match_the_events_are_ok(places: Places) -> None:
    found = check_rule_tables(places)
    assert (found.level, found.says) == (
        "ok",
        "0 added by people, 0 trusted folders, as the journal has them.",
    )


@pytest.mark.anyio
async def test_rows_that_no_event_added_are_named_with_a_way_out(places: Places) -> None:
    alter(places, "INSERT INTO rules VALUES ('r9', '{}', 'ann', NULL, 1, NULL, NULL, 2)")
    alter(places, "INSERT INTO folders VALUES ('/', NULL, 'ann', 1)")
    found = check_rule_tables(places)
    assert found.level == "bad"
    assert "a rule r9 that no event added" in found.says
    assert "a trusted folder / that no event added" in found.says
    assert "handrail restart" in str(found.fix)
