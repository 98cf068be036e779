"""What one entry of a history holds, takes in, and says in the end."""

import pytest

from handrail.terminal.input.typing_history import (
    BURST_SECONDS,
    ECHO_AFTER,
    JOIN,
    LINES_MAX,
    TEXT_MAX,
    Entry,
    agent_entry,
    key_entry,
    line_entry,
)


def line(text: str, at: float = 0.0, by: str = "ann") -> Entry:
    return line_entry(by, 0, text, 0, at, ended=True)


def settled(entry: Entry, shown: int) -> str | None:
    entry.resolve(shown, entry.last + ECHO_AFTER[-1])
    assert entry.is_settled
    return entry.text


def joined(*texts: str) -> Entry:
    first, *rest = map(line, texts)
    for following in rest:
        assert first.can_merge(following, crowded=False)
        first.merge(following)
    return first


def test_lines_that_come_in_one_go_are_one_entry() -> None:
    assert settled(joined("make", "", "ls"), 3) == "make\n\nls"


@pytest.mark.parametrize(
    ("following", "why"),
    [
        (line("ls", JOIN * 1.01), "typed by hand"),
        (line("ls", by="bob"), "somebody else"),
        (key_entry("ann", 0, ["^C"], 0, 0.0), "no line"),
        (agent_entry("claude-code", 0, b"ls\n"), "an agent"),
    ],
)
def test_what_did_not_come_in_one_go_is_an_entry_of_its_own(following: Entry, why: str) -> None:
    assert not line("make").can_merge(following, crowded=False), why


def test_a_line_that_was_not_ended_takes_in_nothing() -> None:
    assert not line_entry("ann", 0, "mak", 0, 0.0, ended=False).can_merge(line("ls"), crowded=False)


def test_a_stream_without_a_pause_is_told_of_now_and_then() -> None:
    entry, at = line("y"), 0.0
    while entry.can_merge(following := line("y", at := at + JOIN / 2), crowded=False):
        entry.merge(following)
    assert BURST_SECONDS <= at < BURST_SECONDS + JOIN


def test_an_entry_stays_small_and_counts_the_rest() -> None:
    flood = joined(*["y"] * 1000)
    assert len(flood.lines) == LINES_MAX
    assert (
        settled(flood, LINES_MAX) == "\n".join(["y"] * LINES_MAX) + f"\n… and {1000 - LINES_MAX} more lines"
    )
    wide = joined(*["w" * (TEXT_MAX // 2)] * 3)
    assert settled(wide, 2) == "\n".join(["w" * (TEXT_MAX // 2)] * 2) + "\n… and 1 more line"


def test_an_entry_says_as_much_as_was_shown() -> None:
    assert settled(joined("login", "hunter2"), 1) == "login\n… and 1 more line"
    assert settled(joined("hunter2", "login"), 0) is None


def test_an_entry_holds_no_line_once_it_is_settled() -> None:
    for shown in (0, 1):
        entry = line("hunter2")
        settled(entry, shown)
        assert entry.lines == []
    entry = line("hunter2")
    entry.give_up()
    assert (entry.is_settled, entry.text, entry.lines) == (True, None, [])


def test_an_entry_that_is_not_shown_yet_waits() -> None:
    entry = line("make")
    entry.resolve(0, ECHO_AFTER[0])
    assert not entry.is_settled
    entry.resolve(1, ECHO_AFTER[1])
    assert entry.text == "make"


def test_in_a_crowd_everything_that_follows_at_once_is_counted() -> None:
    keys = key_entry("ann", 0, ["^C", "^C", "^D"], 0, 0.0)
    for following in (line("ls"), key_entry("ann", 0, ["^Z"], 0, JOIN), line("make", JOIN * 2)):
        assert keys.can_merge(following, crowded=True)
        keys.merge(following)
        assert not keys.is_settled
    assert keys.can_merge(line("more", JOIN * 3), crowded=False), "until there is a pause"
    assert settled(keys, 0) == "^C x2 ^D\n… and 3 more pieces"


def test_keys_without_number_are_counted() -> None:
    assert key_entry("ann", 0, ["<up>", "<up>"], 1200, 0.0).text == "<up> x2 … and 1,200 more keys"
