"""Every check of the shell parser is needed: without any single one of them some line of the corpus is decided otherwise."""

from functools import cache

import pytest
from tests.gate.shell.mutants import Check, Site, checks, parser, sites
from tests.gate.shell.shell_corpus import MADE, WRITTEN, decided

from handrail.store.values import Effect

CHECKS = checks()


LIKELY = [*reversed(WRITTEN), *MADE]
"""The lines that are not plain first."""


def is_noticed(without: Check | Site, deaf_to: str = "") -> bool:
    parse, whole = parser(without, deaf_to), _decisions(deaf_to)
    return any(decided(line, parse) != whole[line] for line, _ in LIKELY)


@cache
def _decisions(deaf_to: str) -> dict[str, Effect]:
    """What the corpus says; of a parser that is deaf to one of its readers, what it decides by the other alone."""
    if not deaf_to:
        return dict(LIKELY)
    parse = parser(deaf_to=deaf_to)
    return {line: decided(line, parse) for line, _ in LIKELY}


def test_the_whole_copy_decides_as_the_corpus_says() -> None:
    parse = parser()
    assert [line for line, effect in WRITTEN if decided(line, parse) != effect] == []


def test_the_checks_are_found_in_the_source() -> None:
    tables = {(check.module, check.table) for check in CHECKS}
    assert tables == {
        ("characters", "CHARACTERS"),
        ("wrappers", "TRANSPARENT"),
        ("wrappers", "LINES"),
        ("wrappers", "CLOSED"),
        ("wrappers", "INNER"),
        ("wrappers", "WRAPPED"),
        ("wrappers", "FLAGS"),
        ("wrappers", "STATE"),
        ("shell_parser", "TROUBLES"),
    }
    assert len(CHECKS) > 100


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_without_this_check_some_line_is_decided_otherwise(check: Check) -> None:
    assert is_noticed(check)


def test_plain_reading_alone_stops_all_that_both_readers_stop() -> None:
    assert _decisions("_tree_sitter_reader") == _decisions("")


def test_the_grammar_alone_lets_only_pass_what_it_does_not_know() -> None:
    passed = [
        line
        for line, effect in _decisions("bash_reader").items()
        if effect == "allow" != _decisions("")[line]
    ]
    assert 0 < len(passed) < 25


@pytest.mark.parametrize("site", sites("bash_reader"), ids=str)
def test_each_place_where_plain_reading_stops_is_needed_when_the_grammar_is_not_heard(site: Site) -> None:
    assert is_noticed(site, deaf_to="_tree_sitter_reader")


@pytest.mark.parametrize("site", sites("_tree_sitter_reader"), ids=str)
def test_each_place_where_the_grammar_stops_is_needed_when_plain_reading_is_not_heard(site: Site) -> None:
    assert is_noticed(site, deaf_to="bash_reader")
