"""Where what a person types becomes an entry."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.terminal.input.typing_history import KEYS_MAX, LINES_MAX, TEXT_MAX, Draft, Entry


def typed(*pieces: bytes | None, among: bool = False) -> tuple[list[Entry], Draft]:
    """The entries that these pieces make; None for one that was hidden."""
    draft = Draft("ann", lambda _: among)
    found: list[Entry] = []
    for offset, piece in enumerate(pieces):
        found += draft.hide(offset, 0.0) if piece is None else draft.feed(piece, offset, 0.0)
    return found, draft


def told(*pieces: bytes | None, among: bool = False) -> list[list[str] | str | None]:
    found, draft = typed(*pieces, among=among)
    return [entry.lines or entry.text for entry in (*found, *draft.close(0.0))]


def test_a_line_ends_at_enter_and_where_a_key_follows() -> None:
    assert told(b"ec", b"\t", b"ho x\r", b"\x03") == [["ec"], "<tab>", ["ho x"], "^C"]


def test_keys_end_where_text_follows_and_what_was_hidden_where_it_is_shown_again() -> None:
    assert told(b"\x1b[A\x1b[A", b"x", None, None, b"y\r") == ["<up> x2", ["x"], None, ["y"]]


def test_what_was_mended_is_kept_as_it_was_sent() -> None:
    assert told(b"makr\x7fe\r") == [["make"]]


def test_an_empty_line_is_a_key_but_among_others() -> None:
    assert told(b"\r") == ["<enter>"]
    assert told(b"\r", among=True) == [[""]]


def test_a_paste_is_one_entry_of_many_lines() -> None:
    assert told(b"\x1b[200~one\rtwo\x1b[201~\r") == [["one", "two"]]


def test_an_entry_begins_where_its_first_key_was_pressed() -> None:
    found, _ = typed(b"a", b"b", b"c\r", b"d\r")
    assert [entry.offset for entry in found] == [0, 3]


def test_lines_are_counted_once_wherever_a_flood_is_cut() -> None:
    for size in (1000, 1001, 1002, 1003):
        flood = b"line\n" * 2000
        found, _ = typed(*(flood[at : at + size] for at in range(0, len(flood), size)), among=True)
        assert sum(len(entry.lines) + entry.more for entry in found) == 2000


@given(st.lists(st.one_of(st.none(), st.binary(max_size=3000)), max_size=5))
def test_whatever_is_typed_an_entry_stays_small(pieces: list[bytes | None]) -> None:
    found, draft = typed(*pieces)
    for entry in (*found, *draft.close(0.0)):
        assert len(entry.lines) <= LINES_MAX
        assert sum(map(len, entry.lines)) <= TEXT_MAX
        assert len((entry.text or "").split()) <= 3 * KEYS_MAX
    assert draft.is_empty
