"""Every event reads back from disk as it was appended."""

import tempfile
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.sample_events import call_opened

from handrail.store import events
from handrail.store.events import (
    Event,
    JournalCompacted,
    ThreadDeleted,
    ThreadOpened,
    ThreadRenamed,
    decode,
    encode,
)
from handrail.store.journal import open_journal
from handrail.store.records import open_records
from handrail.store.values import Json

NUMBERS = st.integers(-(2**63), 2**63 - 1)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.dictionaries(
    st.text(),
    st.recursive(
        LEAVES, lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(st.text(), deeper, max_size=3)
    ),
    max_size=4,
)
KINDS: tuple[type, ...] = get_args(get_args(Event)[0])


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Anything a field of this type may hold."""
    if hint == Json:
        return JSON
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return values_of(arguments[0])
    if origin is tuple:
        return tuples_of(arguments)
    if isinstance(hint, UnionType) or str(origin) == "typing.Union":
        return st.one_of([values_of(argument) for argument in arguments])
    if hasattr(hint, "__dataclass_fields__"):
        return built(hint)
    return NUMBERS if hint is int else st.from_type(hint)


def tuples_of(items: tuple[Any, ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    if items[1:] == (...,):
        return st.lists(values_of(items[0]), max_size=3).map(tuple)
    return st.tuples(*map(values_of, items))


def built(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind, dict(vars(events)), include_extras=True)
    return st.builds(kind, **{name: values_of(hint) for name, hint in hints.items()})


FACTS = st.one_of([built(kind) for kind in KINDS])


def test_every_kind_of_event_is_tried() -> None:
    assert {kind.__name__ for kind in KINDS} >= {
        "CallOpened",
        "CallSettled",
        "ApprovalOpened",
        "CredentialIssued",
    }


def compacted(facts: list[Event]) -> set[int]:
    """The numbers of the events that later ones removed."""
    return {
        seq
        for place, fact in enumerate(facts, 1)
        if isinstance(fact, JournalCompacted)
        for gap in fact.gaps
        if gap.last < place
        for seq in range(max(1, gap.first), gap.last + 1)
    }


def without_erased(facts: list[Event]) -> list[Event]:
    """Without events with a title of a thread that is deleted later, and without compacted ones."""
    gone = compacted(facts)
    deleted = {fact.thread: place for place, fact in enumerate(facts) if isinstance(fact, ThreadDeleted)}
    return [
        fact
        for place, fact in enumerate(facts)
        if place + 1 not in gone
        if not (isinstance(fact, ThreadOpened | ThreadRenamed) and place < deleted.get(fact.thread, 0))
    ]


@given(facts=st.lists(FACTS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_what_is_appended_is_what_is_read(facts: list[Event]) -> None:
    async def main(place: Path) -> None:
        async with open_journal(place / "db", place / "head") as journal:
            for fact in facts:
                journal.append(fact)
            await journal.committed(journal.head)
        async with (
            open_journal(place / "db", place / "head") as journal,
            open_records(place / "db") as records,
        ):
            assert [entry.event for entry in await journal.since(0)] == without_erased(facts)
            for call in await records.calls.find():
                assert await records.calls.get(call.id) is not None
            await records.approvals.find(open_only=False)

    with tempfile.TemporaryDirectory() as place:
        anyio.run(main, Path(place))


@given(fact=FACTS)
@settings(max_examples=300, deadline=None)
def test_encoding_keeps_every_event(fact: Event) -> None:
    same, payload = encode(fact)
    assert same is fact
    assert decode(payload) == fact


@pytest.mark.anyio
async def test_a_name_that_is_not_utf8_is_kept_with_a_mark_in_it(tmp_path: Path) -> None:
    name = b"caf\xe9.txt".decode("utf-8", "surrogateescape")
    async with open_journal(tmp_path / "db", tmp_path / "head") as journal:
        await journal.committed(journal.append(call_opened(title=name, input={"path": name})))
        (entry,) = await journal.since(0)
        assert entry.event == call_opened(title="caf?.txt", input={"path": "caf?.txt"})
