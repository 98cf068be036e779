"""Lines within bounds, and the messages in them."""

import pytest

from handrail.terminal.jsonrpc_messages import encode_message, excerpt_line, parse_message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[]",
        b"1",
        b'"text"',
        b"{}",
        b"null",
        b'{"method": 1}',
        b'{"id": [1], "result": {}}',
        b'{"id": {"a": 1}, "method": "x"}',
        b'{"id": 1.5, "result": {}}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0"}',
        b'{"method": "x", "params": ' + b"[" * 150 + b"]" * 150 + b"}",
        b'{"method": "x", "params": ' + b'{"a":' * 150 + b"1" + b"}" * 151,
        b'{"id": ' + b"9" * 5000 + b', "result": {}}',
    ],
)
def test_what_is_no_message_is_none(line: bytes) -> None:
    assert parse_message(line) is None


@pytest.mark.parametrize("number", [0, -1, "0", "8d5f3a0e-uuid", "", None])
def test_any_id_that_the_protocol_has_makes_a_message(number: int | str | None) -> None:
    message = {"jsonrpc": "2.0", "id": number, "method": "fs/read_text_file", "unknown": {"field": 1}}
    assert parse_message(encode_message(message)) == message


def test_what_no_database_or_browser_takes_is_made_into_something_they_take() -> None:
    words = rb'"half \ud800": ["\udc00 \ud83d\ude00 \u00fc"]'
    numbers = b'"cost": NaN, "size": -Infinity, "used": 1e999'
    line = b'{"method": "x", "params": {' + words + b", " + numbers + b"}}"
    assert parse_message(line) == {
        "method": "x",
        "params": {"half ?": ["? \U0001f600 ü"], "cost": None, "size": None, "used": None},
    }


def test_a_message_may_be_long_without_being_deep() -> None:
    message = {"method": "x", "params": {"rows": [{"n": [n]} for n in range(500)]}}
    assert parse_message(encode_message(message)) == message


def test_a_line_is_shown_short_and_without_control_characters() -> None:
    assert excerpt_line(b"\x1b[31mWARN\x1b[0m starting\r") == "[31mWARN [0m starting"
    assert len(excerpt_line(b"x" * 10_000)) == 201


def test_text_that_no_encoding_has_is_sent_all_the_same() -> None:
    assert encode_message({"text": "a\ud800b"}) == b'{"text":"a?b"}\n'
