"""What a person types becomes terms; what nothing can match is said."""

from datetime import UTC, datetime

import pytest

from handrail.store.search_query import BadQuery, Term, parse_query

NOW = datetime(2026, 11, 18, 14, 30, tzinfo=UTC)


def at(text: str) -> str:
    return str(round(datetime.fromisoformat(text).timestamp() * 1000))


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("", ()),
        ("  flaky  test ", (Term("", ("flaky",)), Term("", ("test",)))),
        ('"no module" x', (Term("", ("no module",), quoted=True), Term("", ("x",)))),
        ('"never closed', (Term("", ("never closed",), quoted=True),)),
        ("-noise", (Term("", ("noise",), negated=True),)),
        ("a-b - -", (Term("", ("a-b",)), Term("", ("-",)), Term("", ("-",)))),
        ("rm -rf --force", (Term("", ("rm",)), Term("", ("-rf",)), Term("", ("--force",)))),
        ("STATUS:Failed,denied", (Term("status", ("failed", "denied")),)),
        ("-tool:read_file", (Term("tool", ("read_file",), negated=True),)),
        ("client:codex", (Term("agent", ("codex",)),)),
        ('folder:"my project, 2"', (Term("folder", ("my project, 2",)),)),
        ("session:claude:1:2", (Term("session", ("claude:1:2",)),)),
        ("https://example.org/x", (Term("", ("https://example.org/x",)),)),
        ("Error: 3", (Term("", ("Error:",)), Term("", ("3",)))),
        ("exit:failed exit:sigterm exit:2", (*(Term("exit", (one,)) for one in ("failed", "SIGTERM", "2")),)),
        ("ran:>1.5s waited:<2m ran:10s", (Term("ran", (">=1500",)), Term("waited", ("<120000",)), Term("ran", (">=10000",)))),
        ("since:2h", (Term("since", (at("2026-11-18T12:30+00:00"),)),)),
        ("since:yesterday before:14:03", (Term("since", (at("2026-11-17T00:00+00:00"),)), Term("before", (at("2026-11-18T14:03+00:00"),)))),
        ("after:2026-11-01T09:00+00:00", (Term("since", (at("2026-11-01T09:00+00:00"),)),)),
    ],
)  # fmt: skip
def test_words_phrases_keys_and_negations_are_told_apart(typed: str, terms: tuple[Term, ...]) -> None:
    assert parse_query(typed, NOW).terms == terms


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("foo:bar", "There is no key `foo`. Known: status, tool, agent, folder, risk, by,"),
        ("-owner:me", "There is no key `owner`."),
        ("status:finished", "`status:` takes waiting, running,"),
        ("risk:huge", "`risk:` takes low, medium, high, not `huge`."),
        ("exit:maybe", "`exit:` takes a number"),
        ("ran:long", "`ran:` takes a duration"),
        ("since:someday", "`since:` takes a day"),
        ("before:25:99", "`before:` takes a day"),
        ("since:99999999999999d", "`since:` takes a day"),
        ("in:everywhere", "`in:` takes title, input, output, message, terminal"),
        ("x " * 41, "at most 40"),
        ("y" * 501, "too long"),
        ("tool:" + "a," * 51, "too long"),
        ("exit:" + "9" * 30, "`exit:` takes a number"),
        ("ran:>" + "9" * 400 + "w", "`ran:` takes a duration"),
        ("since:" + "9" * 400 + "d", "`since:` takes a day"),
    ],
)
def test_what_nothing_can_match_is_said_with_what_can(typed: str, problem: str) -> None:
    with pytest.raises(BadQuery) as refused:
        parse_query(typed, NOW)
    assert problem in str(refused.value)


def test_an_unknown_key_is_found_as_text_in_quotes() -> None:
    assert parse_query('"foo:bar"', NOW).words == (Term("", ("foo:bar",), quoted=True),)


@pytest.mark.parametrize(
    ("typed", "status", "accepted"),
    [("", "done", True), ("status:open", "waiting", True), ("-status:ended", "done", False), ("status:failed,done", "done", True)],
)  # fmt: skip
def test_a_status_is_accepted_by_the_terms_about_it(typed: str, status: str, accepted: bool) -> None:
    assert parse_query(typed, NOW).accepts_status(status) is accepted
