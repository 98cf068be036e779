"""The newest entries in memory."""

from tests.support.sample_events import daemon_stopped

from handrail.store.events import Entry, ThreadDeleted, ThreadOpened, ThreadRenamed
from handrail.store.journal import Ring


def entry(seq: int) -> Entry:
    return Entry(seq=seq, at=0, event=daemon_stopped())


def seqs(entries: list[Entry] | None) -> list[int] | None:
    return None if entries is None else [entry.seq for entry in entries]


def test_it_answers_what_it_holds_and_admits_what_it_does_not() -> None:
    ring = Ring(floor=10, entries=3)
    for seq in (11, 12, 15, 16):  # numbers may have gaps
        ring.add(entry(seq), 1)
    assert ring.after(10, 500) is None
    assert seqs(ring.after(11, 500)) == [12, 15, 16]
    assert seqs(ring.after(13, 500)) == [15, 16]
    assert seqs(ring.after(11, 2)) == [12, 15]
    assert seqs(ring.after(16, 500)) == []
    assert seqs(ring.after(99, 500)) == []


def test_it_is_bounded_in_bytes() -> None:
    ring = Ring(floor=0, size=100)
    for seq in range(1, 11):
        ring.add(entry(seq), 30)
    assert ring.after(6, 500) is None
    assert seqs(ring.after(7, 500)) == [8, 9, 10]


def test_an_entry_larger_than_the_ring_is_not_kept() -> None:
    ring = Ring(floor=0, size=100)
    ring.add(entry(1), 101)
    assert ring.after(0, 500) is None
    assert seqs(ring.after(1, 500)) == []


def test_it_holds_no_title_of_a_thread_that_was_deleted() -> None:
    ring = Ring(floor=0)
    for seq, thread in ((1, "h1"), (2, "h2")):
        opened = ThreadOpened(thread=thread, workspace=None, title="Secret", agent="demo", by="me")
        ring.add(Entry(seq=seq, at=0, event=opened), 10)
    ring.add(Entry(seq=3, at=0, event=ThreadRenamed(thread="h1", title="Secret too", by="me")), 10)
    ring.add(Entry(seq=4, at=0, event=ThreadDeleted(thread="h1", by="me")), 10)
    assert seqs(ring.after(0, 500)) == [2, 4]
