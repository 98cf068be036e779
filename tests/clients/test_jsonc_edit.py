"""One setting is changed; everything else in the text stays where it is."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.clients.jsonc import NotAnObject, find_node, parse, remove_member, set_member

PATH = ("terminal.profiles", "handrail")
SETTINGS = """\
// mine
{
  // Fonts
  "editor.fontSize": 12, // small
  "terminal.profiles": {
    "bash": { "path": "bash" } // the old one
  },
  /* last */
  "files.eol": "\\n", // never CRLF
}
"""


def test_a_member_goes_behind_the_others_and_comments_stay_with_their_lines() -> None:
    made = set_member(set_member(SETTINGS, PATH, {"path": "sh"}), ("terminal.default",), "handrail")
    assert (
        made
        == """\
// mine
{
  // Fonts
  "editor.fontSize": 12, // small
  "terminal.profiles": {
    "bash": { "path": "bash" }, // the old one
    "handrail": {
      "path": "sh"
    }
  },
  /* last */
  "files.eol": "\\n", // never CRLF
  "terminal.default": "handrail",
}
"""
    )
    assert remove_member(remove_member(made, PATH), ("terminal.default",)) == SETTINGS


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n    "a": 1\n}\n'),
        ("\n\n", '{\n    "a": 1\n}\n'),
        ("{}", '{\n    "a": 1\n}'),
        ("{\r\n}\r\n", '{\r\n    "a": 1\r\n}\r\n'),
        ("{ // nothing yet\n}\n", '{ // nothing yet\n    "a": 1\n}\n'),
        ("{ /* nothing */ }", '{ /* nothing */\n    "a": 1\n}'),
        ('{ "b": 2 }', '{ "b": 2, "a": 1 }'),
        ('{ "b": 2, }', '{ "b": 2, "a": 1, }'),
        ('{\n\t"b": 2\n}', '{\n\t"b": 2,\n\t"a": 1\n}'),
        ('{\n  "b": 2 }', '{\n  "b": 2,\n  "a": 1 }'),
        ('{"a": 0, "b": {"a": 3}}', '{"a": 1, "b": {"a": 3}}'),
        ('{"a": [1], "a": 0 /* twice */}', '{"a": [1], "a": 1 /* twice */}'),
        ("\ufeff{\n}", '\ufeff{\n    "a": 1\n}'),
    ],
)
def test_a_member_is_put_where_it_belongs(before: str, after: str) -> None:
    assert set_member(before, ("a",), 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', "{}"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2 }'),
        ('{"b": 2, "a": 1,}', '{"b": 2, }'),
        ('{\n  "b": 2,\n  "a": 1 // ours\n}', '{\n  "b": 2\n  // ours\n}'),
        ('{\n  "b": 2, // last\n  "a": 1\n}', '{\n  "b": 2 // last\n}'),
        ('{"b": 2}', '{"b": 2}'),
    ],
)
def test_a_member_is_taken_out_with_its_comma(before: str, after: str) -> None:
    assert parse(remove_member(before, ("a",))).value == parse(after).value
    assert remove_member(before, ("a",)).split() == after.split()


def test_where_an_object_belongs_and_something_else_stands_is_told() -> None:
    with pytest.raises(NotAnObject, match="an object was expected"):
        set_member("[1]", ("a",), 1)


# Settings as people leave them.
gaps = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\n    ",
        "\r\n  ",
        "/* c1 */",
        " /* c2\n c3 */ ",
        " // c4\n",
        "// c5, }\r\n\t",
        "\n// c6\n\n",
    ]
)
keys = st.sampled_from(["a", "b", "c", "profiles", 'q"uote', "//no"])


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> str:
    members: list[str] = []
    for _ in range(draw(st.integers(0, 3))):
        inner = (
            draw(objects(depth - 1))
            if depth and draw(st.booleans())
            else draw(st.sampled_from(["1", '"//x"', "[1,]", "null"]))
        )
        key = draw(keys).replace('"', '\\"')
        members.append(f'{draw(gaps)}"{key}"{draw(gaps)}:{draw(gaps)}{inner}{draw(gaps)}')
    end = draw(st.sampled_from(["", ","])) + draw(gaps) if members else draw(gaps)
    return "{" + ",".join(members) + end + "}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    return draw(gaps) + draw(objects()) + draw(gaps)


paths = st.lists(keys, min_size=1, max_size=3)


def comments(text: str) -> list[str]:
    strings = r'"(?:[^"\\]|\\.)*"'
    return [
        found[1] for found in re.finditer(rf"{strings}|(//[^\r\n]*|/\*.*?\*/)", text, re.DOTALL) if found[1]
    ]


def with_value(value: Any, path: list[str], new: Any) -> Any:
    kept: dict[str, Any] = dict(value) if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownArgumentType]
    kept[path[0]] = with_value(kept.get(path[0]), path[1:], new) if path[1:] else new
    return kept


@given(documents(), paths)
def test_putting_changes_that_value_alone_and_loses_no_comment(text: str, path: list[str]) -> None:
    replaced = find_node(text, path)
    made = set_member(text, path, {"new": [1, "x"]})
    assert parse(made).value == with_value(parse(text).value, path, {"new": [1, "x"]})
    if replaced is None and not _blocked(text, path):
        assert comments(made) == comments(text)
        assert _is_spread_over(text, made)


@given(documents(), paths)
def test_removing_takes_out_that_value_alone(text: str, path: list[str]) -> None:
    value = find_node(text, path)
    made = remove_member(text, path)
    if value is None:
        assert made == text
        return
    kept = comments(text)
    for comment in comments(made):  # what is left is in its order
        kept = kept[kept.index(comment) + 1 :]
    left = find_node(made, path)  # a key that was there twice is still there once
    if left is None:
        assert parse(made).value == _without(parse(text).value, path)


@given(documents(), paths)
def test_what_was_put_can_be_taken_out_again(text: str, path: list[str]) -> None:
    if find_node(text, path) is not None or find_node(text, path[:1]) is not None:
        return
    made = remove_member(set_member(text, path, "new"), path[:1])
    assert parse(made).value == parse(text).value
    assert comments(made) == comments(text)


def _blocked(text: str, path: list[str]) -> bool:
    """Something that is no object stands on the way, and is replaced."""
    return any(
        find_node(text, path[:end]) is not None and not isinstance(_value(text, path[:end]), dict)
        for end in range(1, len(path))
    )


def _value(text: str, path: list[str]) -> Any:
    found = find_node(text, path)
    return None if found is None else found.value


def _without(value: Any, path: list[str]) -> Any:
    if path[1:]:
        return {key: _without(inner, path[1:]) if key == path[0] else inner for key, inner in value.items()}
    return {key: inner for key, inner in value.items() if key != path[0]}


def _is_spread_over(small: str, large: str) -> bool:
    """Every character of the one stands in the other, in the same order: nothing was taken away."""
    rest = iter(large)
    return all(each in rest for each in small)
