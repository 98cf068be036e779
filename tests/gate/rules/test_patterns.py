"""Globs over paths and hosts: what they fit, and which are refused with a sentence."""

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.gate.rules.patterns import BadPattern, Glob, PathPattern, host_glob, spell_path

ROOT, HOME = "/home/ann/api", "/home/ann"
names = st.text(alphabet="ab*", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("README.md", ["/home/ann/api/README.md"], ["/home/ann/api/docs/README.md", "/home/ann/README.md"]),
        ("*.md", ["/home/ann/api/a.md"], ["/home/ann/api/docs/a.md", "/home/ann/api/a.mdx"]),
        ("**/*.md", ["/home/ann/api/a.md", "/home/ann/api/docs/x/a.md"], ["/home/ann/a.md"]),
        ("src/**", ["/home/ann/api/src", "/home/ann/api/src/a/b"], ["/home/ann/api/src2", "/home/ann/api"]),
        (
            "src/**/test_*.py",
            ["/home/ann/api/src/test_a.py", "/home/ann/api/src/x/y/test_.py"],
            ["/home/ann/api/src/x"],
        ),
        ("a/*/b", ["/home/ann/api/a/x/b"], ["/home/ann/api/a/b", "/home/ann/api/a/x/y/b"]),
        ("./src/a", ["/home/ann/api/src/a"], ["/home/ann/api/src"]),
        ("src/", ["/home/ann/api/src"], ["/home/ann/api/src/a"]),
        ("/etc/hosts", ["/etc/hosts"], ["/home/ann/api/etc/hosts", "/etc/hosts.d"]),
        ("/srv/**", ["/srv", "/srv/a"], ["/srv-evil/a"]),
        ("~/notes/*", ["/home/ann/notes/a"], ["/home/ann/notes", "/home/bob/notes/a"]),
        ("a[b]", ["/home/ann/api/a[b]"], ["/home/ann/api/ab"]),
        ("**/a/**/b", ["/home/ann/api/a/b", "/home/ann/api/x/a/y/z/b"], ["/home/ann/api/b/a"]),
    ],
)
def test_a_path_pattern_fits_whole_paths_and_nothing_beside_them(
    pattern: str, fits: list[str], fits_not: list[str]
) -> None:
    found = PathPattern.of(pattern, ROOT, HOME)
    assert found is not None
    assert [path for path in fits if not found.fits(path)] == []
    assert [path for path in fits_not if found.fits(path)] == []


def test_letter_case_is_told_apart_unless_the_rule_forbids() -> None:
    loose = PathPattern.of("Secrets/**", ROOT, HOME, folds=True)
    tight = PathPattern.of("Secrets/**", ROOT, HOME)
    assert loose is not None
    assert tight is not None
    assert loose.fits(f"{ROOT}/sECRETS/key")
    assert not tight.fits(f"{ROOT}/sECRETS/key")


def test_a_star_in_the_folder_itself_is_no_pattern() -> None:
    found = PathPattern.of("a", "/w/*", HOME)
    assert found is not None
    assert found.fits("/w/*/a")
    assert not found.fits("/w/x/a")


def test_a_relative_pattern_without_a_folder_fits_nothing() -> None:
    assert PathPattern.of("src/**", None, HOME) is None


@pytest.mark.parametrize(
    "pattern", ["", "  ", "../x", "src/../x", "a/./b", "src/a**", "a\u202eb", "a\nb", "a" * 4001]
)
def test_a_path_pattern_that_cannot_be_meant_is_refused_with_a_sentence(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"\.$"):
        PathPattern.of(pattern, ROOT, HOME)


@pytest.mark.parametrize(
    ("pattern", "host", "fits"),
    [
        ("example.org", "example.org", True),
        ("Example.org.", "example.org", True),
        ("example.org", "www.example.org", False),
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "a.b.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
    ],
)
def test_a_host_is_itself_or_all_below_it(pattern: str, host: str, fits: bool) -> None:
    assert host_glob(pattern).fits(host) == fits


@pytest.mark.parametrize("pattern", ["*", "*.", "a*.org", "www.*", "http://a.org", "a b"])
def test_what_is_no_host_is_refused(pattern: str) -> None:
    with pytest.raises(BadPattern, match="no host"):
        host_glob(pattern)


@given(names, st.text(alphabet="ab", max_size=12))
@example("ab*ba", "aba")
@example("*ab*b", "ab")
@example("*a*a", "a")
def test_a_glob_fits_what_a_regular_expression_would(pattern: str, text: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL)
    assert Glob.of(pattern).fits(text) == bool(expected)


@given(
    st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=6),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=7),
)
def test_a_path_pattern_fits_what_a_regular_expression_would(pattern: list[str], path: list[str]) -> None:
    spelled = {"**": "(?:/[^/]+)*", "*": "/[^/]*"}
    expected = re.fullmatch(
        "/r" + "".join(spelled.get(name, f"/{name}") for name in pattern), "/".join(["/r", *path])
    )
    found = PathPattern.of("/".join(pattern), "/r", HOME)
    assert found is not None
    assert found.fits("/".join(["/r", *path])) == bool(expected)


def test_no_pattern_is_slow() -> None:
    glob, path = Glob.of("*a" * 2000), PathPattern.of("/".join(["**", "*a*a*b"] * 200), ROOT, HOME)
    assert path is not None
    began = time.thread_time()
    assert not glob.fits("a" * 1999 + "b")
    assert not path.fits(ROOT + "/aaaaaaaa" * 400)
    assert time.thread_time() - began < 5.0


def test_a_path_with_a_star_in_its_name_is_no_pattern_of_its_own() -> None:
    assert spell_path("src/a.py") == "src/a.py"
    with pytest.raises(BadPattern):
        spell_path("src/*.py")
