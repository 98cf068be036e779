"""What the door reads in a line: exactly in a whole one, at both ends of one too long to be kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.door.jsonrpc_lines import Message, read, survey

keys = st.one_of(st.integers(), st.text(max_size=20))
methods = st.text(min_size=1, max_size=20)
params = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
)


def facts(message: Message) -> tuple[str | None, str | None, bool, bool]:
    return message.key, message.method, message.is_request, message.is_answer


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"id": 0, "method": "a"}, ("0", "a", True, False)),
        ({"id": "0", "method": "a"}, ('"0"', "a", True, False)),
        ({"method": "a"}, (None, "a", False, False)),
        ({"id": None, "method": "a"}, (None, "a", False, False)),
        ({"id": 1, "result": None}, ("1", None, False, True)),
        ({"id": "x", "error": {}}, ('"x"', None, False, True)),
        ({"id": 1}, ("1", None, False, False)),
        ({"id": 1, "method": 5}, ("1", None, False, False)),
    ],
)
def test_a_whole_line_is_read_exactly(line: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert [facts(each) for each in read(json.dumps(line).encode())] == [expected]


@pytest.mark.parametrize(
    "line", [b"", b"\n", b"{", b"\xff\xfe", b"5", b'"x"', b"[" * 100_000, b"[[]]", b"1" * 10_000]
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert read(line) == []


def test_every_message_of_a_batch_is_read() -> None:
    assert [each.key for each in read(b'[{"id":1,"method":"a"},7,{"id":"b","method":"c"}]')] == ["1", '"b"']


def test_a_cancel_names_the_request_it_is_for() -> None:
    [message] = read(b'{"method":"notifications/cancelled","params":{"requestId":0}}')
    assert message.cancels == "0"


@given(key=keys, method=methods, filling=params, id_first=st.booleans(), spaced=st.booleans())
def test_both_ends_of_a_long_request_tell_its_id_and_method(
    key: object, method: str, filling: object, id_first: bool, spaced: bool
) -> None:
    long = {"filling": filling, "long": "," * 9000}
    python = {"jsonrpc": "2.0", "id": key, "method": method, "params": long}
    typescript = {"method": method, "params": long, "jsonrpc": "2.0", "id": key}
    text = json.dumps(python if id_first else typescript, separators=None if spaced else (",", ":"))
    line = text.encode() + b"\n"
    assert [facts(each) for each in survey(line, line)] == [facts(each) for each in read(line)]


@given(key=keys, text=st.text())
def test_the_head_of_a_long_answer_tells_whose_it_is(key: object, text: str) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": key, "result": {"text": text + "x" * 9000}}).encode()
    assert [facts(each) for each in survey(line)] == [(json.dumps(key), None, False, True)]


def test_an_id_deep_inside_a_long_line_is_not_taken_for_its_own() -> None:
    inner = json.dumps({"a": 1, "id": 666})
    line = json.dumps({"method": "m", "params": {"text": "x" * 9000 + inner, "object": {"b": 1, "id": 667}}})
    [message] = survey(line.encode(), line.encode())
    assert message.key is None


@given(head=st.binary(max_size=200), tail=st.binary(max_size=200))
def test_garbage_is_surveyed_without_harm(head: bytes, tail: bytes) -> None:
    assert len(survey(b"{" + head, tail + b"}")) <= 1
