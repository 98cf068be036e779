"""Messages as lines: whatever is sent arrives, and whatever else arrives is refused."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.keeper.message_framing import FrameError, decode, encode
from handrail.keeper.protocol import Process, Report, Sent, Swept, from_keeper


@dataclass(frozen=True)
class Thing:
    name: str
    data: bytes
    words: tuple[str, ...]
    env: dict[str, str]
    amount: float
    maybe: int | None = None


KNOWN: dict[str, type] = {"thing": Thing}
things = st.builds(
    Thing,
    name=st.text(),
    data=st.binary(),
    words=st.lists(st.text()).map(tuple),
    env=st.dictionaries(st.text(), st.text()),
    amount=st.floats(allow_nan=False, allow_infinity=False),
    maybe=st.none() | st.integers(),
)


@given(things)
def test_a_message_arrives_as_it_was_sent(thing: Thing) -> None:
    line = encode(thing)
    assert line.index(b"\n") == len(line) - 1
    assert decode(line, KNOWN) == thing


def test_a_report_within_a_message_arrives_as_it_was_sent() -> None:
    report = Report("stop", (Sent("SIGTERM", 0.1),), (Process(7, "sh"),), (), 3.5, 2)
    assert from_keeper(encode(Swept("t1", report, 12))) == Swept("t1", report, 12)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"null",
        b"[1]",
        b'"thing"',
        b'{"is": "other"}',
        b'{"is": ["thing"]}',
        b'{"is": "thing"}',
        b'{"is": "thing", "name": 1, "data": "", "words": [], "env": {}, "amount": 1}',
        b'{"is": "thing", "name": "", "data": "!", "words": [], "env": {}, "amount": 1}',
        b'{"is": "thing", "name": "", "data": "", "words": [1], "env": {}, "amount": 1}',
        b'{"is": "thing", "name": "", "data": "", "words": "ab", "env": {}, "amount": 1}',
        b'{"is": "thing", "name": "", "data": "", "words": [], "env": {"a": 1}, "amount": 1}',
        b'{"is": "thing", "name": "", "data": "", "words": [], "env": {}, "amount": true}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(FrameError):
        decode(line, KNOWN)


@given(st.binary())
def test_no_bytes_do_more_than_be_refused(line: bytes) -> None:
    with pytest.raises(FrameError):
        decode(line, KNOWN)


def test_a_field_from_a_newer_peer_is_left_out() -> None:
    line = b'{"is": "thing", "name": "", "data": "", "words": [], "env": {}, "amount": 1, "new": 5}'
    assert decode(line, KNOWN) == Thing("", b"", (), {}, 1.0)
