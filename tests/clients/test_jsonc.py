"""JSON with comments is read as editors read it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.clients.jsonc import NotJson, parse

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_what_is_json_is_read_as_json(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    assert parse(json.dumps(value, indent=indent, ensure_ascii=ascii_only)).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('// first\n{ /* a */ "a" /* b */ : // c\n 1 , }  // last', {"a": 1}),
        ('\ufeff{"a": [1, 2, /* none */], }', {"a": [1, 2]}),
        ('{"url": "http://x/*y*/", "a": "\\"//"}', {"url": "http://x/*y*/", "a": '"//'}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("{/**/}", {}),
    ],
)
def test_comments_and_trailing_commas_are_passed_over(text: str, value: Any) -> None:
    assert parse(text).value == value


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        ("{,}", "line 1, column 2"),
        ("[1,,2]", "line 1, column 4"),
        ('{"a" 1}', "line 1, column 6"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": 1', "line 1, column 8"),
        ('{"a": "b\n"}', "line 1, column 7"),
        ('{"a": tru}', "line 1, column 7"),
        ("{/* no end", "line 1, column 2"),
        ("[" * 5000, "column 202"),
        ('{"a": 01}', "line 1, column 7"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, where: str) -> None:
    with pytest.raises(NotJson, match=where):
        parse(text)


@given(st.text(alphabet='{}[]",:/* \n\\a1tru', max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        node = parse(text)
    except NotJson:
        return
    assert 0 <= node.start < node.end <= len(text)
