"""A daemon that goes away under a living client: what is answered, what is said again, what never is."""

from __future__ import annotations

import json
import random
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.door.test_mcp_stdio import INITIALIZE, INITIALIZED
from tests.support.scripted_daemon import (
    BOUND,
    DaemonConnection,
    DoorClient,
    ScriptedDaemon,
    encode_line,
    opened_note,
    request,
    result,
)

MEGABYTE = 1 << 20


def shake_hands(client: DoorClient, seat: DaemonConnection) -> None:
    client.send(INITIALIZE)
    seat.line()
    seat.send(result(0, protocolVersion="2025-11-25"))
    client.line()
    client.send(INITIALIZED)
    seat.line()


def test_a_call_in_flight_is_answered_as_interrupted_with_its_call_id(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        shake_hands(client, seat)
        client.send(request(0), request("s"), request(7))
        for key, call in ((0, "c-zero"), ("s", "c-string")):
            assert seat.message()["id"] == key
            seat.send(opened_note(key, call))
        seat.line()
        seat.send(result(7))
        assert client.message() == result(7)
        seat.die()
        for key, call in ((0, "c-zero"), ("s", "c-string")):
            answer = client.message()
            assert answer["id"] == key
            assert answer["result"]["isError"] is True
            assert "resultType" not in answer["result"]
            structured = answer["result"]["structuredContent"]
            assert (structured["status"], structured["call_id"]) == ("interrupted", call)
            [block] = answer["result"]["content"]
            assert block == {"type": "text", "text": structured["message"]}
            for words in (call, "Nothing was run again", "waited for a person still does", "get_call"):
                assert words in block["text"]


def test_a_call_without_a_known_id_says_where_to_look(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1))
        seat.line()
        seat.die()
        answer = client.message()["result"]
        assert answer["resultType"] == "complete"
        assert answer["structuredContent"]["status"] == "interrupted"
        assert "call_id" not in answer["structuredContent"]
        assert "list_calls" in answer["content"][0]["text"]


def test_other_requests_in_flight_are_answered_with_an_error(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request("p", "ping"))
        seat.line()
        seat.die()
        answer = client.message()
        assert (answer["id"], answer["error"]["code"]) == ("p", -32000)


def test_the_next_daemon_hears_the_handshake_again_and_the_client_does_not(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        shake_hands(client, first)
        first.die()
        client.send(request(1))
        second = peer.seat()
        assert second.hello["door"] == first.hello["door"]
        assert second.line() == INITIALIZE
        second.send({"jsonrpc": "2.0", "method": "notifications/message"}, result(0))
        assert second.line() == INITIALIZED
        assert second.message()["id"] == 1
        second.send(result(1))
        assert client.message()["method"] == "notifications/message"
        assert client.message() == result(1)


def test_a_client_without_a_handshake_gets_none_replayed(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        client.send(request(1, "server/discover"))
        first.line()
        first.send(result(1))
        client.line()
        first.die()
        client.send(request(2))
        assert peer.seat().message()["id"] == 2


def test_an_initialize_nobody_answered_is_asked_of_the_next_daemon(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        client.send(INITIALIZE)
        assert first.line() == INITIALIZE
        first.die()
        second = peer.seat()
        assert second.line() == INITIALIZE
        second.send(result(0, once=True))
        client.end_input()
        assert client.rest() == json.dumps(result(0, once=True)).encode() + b"\n"


def test_a_handshake_cut_short_is_finished_once_with_the_next_daemon(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        client.send(INITIALIZE)
        first.line()
        first.send(result(0))
        client.line()
        first.die()
        second = peer.seat()
        client.send(INITIALIZED, request(1))
        assert second.line() == INITIALIZE
        second.send(result(0))
        assert second.line() == INITIALIZED
        assert second.message()["id"] == 1


def test_what_was_sent_is_never_sent_again_and_what_was_not_is_sent_once(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        client.send(request(1))
        assert first.message()["id"] == 1
        client.send(b'{"jsonrpc":"2.0","id":2,"method":"tools/')
        first.die()
        assert client.message()["id"] == 1
        second = peer.seat()
        client.send(b'call"}\n', request(3))
        assert [second.message()["id"], second.message()["id"]] == [2, 3]
        client.end_input()
        assert second.line() == b""


def test_a_line_partly_written_to_the_dead_daemon_is_sent_whole_to_the_next(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        client.send(request(1, big="x" * 900_000))
        begun = first.read(1000)
        first.die()
        second = peer.seat()
        line = second.line()
        assert line.startswith(begun)
        assert len(json.loads(line)["params"]["big"]) == 900_000


def test_what_a_daemon_said_before_it_went_is_heard(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1), request(2))
        seat.line()
        seat.line()
        seat.send(result(1), b'{"jsonrpc":"2.0","id":2,"res')
        seat.die()
        assert client.message() == result(1)
        assert client.message()["result"]["isError"] is True


def test_a_cancelled_request_is_passed_on_and_gets_no_answer_when_the_daemon_goes(
    peer: ScriptedDaemon,
) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1), request(2))
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        client.send(cancel)
        assert [seat.message()["id"], seat.message()["id"], seat.message()] == [1, 2, cancel]
        seat.die()
        assert client.message()["id"] == 2
        client.end_input()
        assert client.rest() == b""


def test_a_question_of_a_dead_daemon_is_withdrawn_and_its_answer_reaches_no_other(
    peer: ScriptedDaemon,
) -> None:
    with DoorClient() as client:
        first = peer.seat()
        first.send(request(5, "roots/list"))
        assert client.message()["method"] == "roots/list"
        first.die()
        withdrawn = client.message()
        assert (withdrawn["method"], withdrawn["params"]["requestId"]) == ("notifications/cancelled", 5)
        second = peer.seat()
        client.send(result(5, roots=[]), request(6))
        assert second.message()["id"] == 6
        second.send(request(5, "roots/list"))
        client.message()
        client.send(result(5, roots=[1]))
        assert second.message()["result"] == {"roots": [1]}


def test_notes_to_the_door_never_reach_the_client(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1))
        seat.line()
        seat.send(
            b'{"handrail":[1]}\n',
            b'{"handrail":' + b"x" * (2 * MEGABYTE) + b"\n",
            opened_note(1, "c"),
            result(1),
        )
        assert client.message() == result(1)


def test_a_daemon_that_said_bye_is_not_called_back_before_the_client_asks(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1))
        seat.line()
        seat.send(b'{"handrail":{"bye":"handrail down"}}\n')
        seat.die()
        client.message()
        client.send({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        assert not select.select([peer.listener], [], [], 0.5)[0]
        client.send(request(2))
        seat = peer.seat()
        assert "method" in seat.message()
        assert seat.message()["id"] == 2


def test_a_line_of_64_megabytes_passes_both_ways_in_bounded_memory(peer: ScriptedDaemon) -> None:
    asked = b'{"method":"ping","params":"' + b"x" * (64 * MEGABYTE) + b'","jsonrpc":"2.0","id":1}\n'
    answered = b'{"jsonrpc":"2.0","id":1,"result":"' + b"y" * (64 * MEGABYTE) + b'"}\n'
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(0))
        seat.line()
        before = client.rss()
        with client.sending(asked):
            assert passed(seat.some, client, before) == asked
        with seat.sending(answered):
            assert passed(client.some, client, before) == answered
        seat.die()
        assert client.message()["id"] == 0
        client.end_input()
        assert client.rest() == b""  # the long request was seen to be answered


def passed(read: Callable[[], bytes], client: DoorClient, before: int) -> bytes:
    """A line as it came out of the door, whose memory was watched meanwhile."""
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        pieces.append(read())
        assert client.rss() - before < 8 * MEGABYTE
    return b"".join(pieces)


def test_a_daemon_that_reads_nothing_does_not_make_the_door_grow(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        peer.seat()
        before = client.rss()
        line = b'{"jsonrpc":"2.0","method":"' + b"x" * 10_000 + b'"}\n'
        taken = 0
        while select.select([], [client.stdin], [], 0.5)[1]:
            taken += client.write_some(memoryview(line * 5)[taken % len(line) :])
        assert MEGABYTE < taken < 8 * MEGABYTE
        assert client.rss() - before < 8 * MEGABYTE


def test_a_long_line_torn_by_a_dying_daemon_is_answered_as_not_run(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        first = peer.seat()
        with client.sending(b'{"method":"tools/call","params":"' + b"x" * (2 * MEGABYTE)):
            first.read(2 * MEGABYTE)
        first.die()
        second = peer.seat()
        client.send(b"x" * (2 * MEGABYTE), b'","jsonrpc":"2.0","id":"torn"}\n', request(2))
        answer = client.message()
        assert answer["id"] == "torn"
        assert "was not run; it is safe to send it again" in answer["error"]["message"]
        assert second.message()["id"] == 2


def test_a_long_answer_torn_by_a_dying_daemon_ends_before_the_next_line(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        client.send(request(1))
        seat.line()
        with seat.sending(b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (2 * MEGABYTE)):
            torn = 0
            while torn < MEGABYTE:
                torn += len(client.some())
        seat.die()
        assert client.line().endswith(b"x\n")
        assert client.message()["result"]["structuredContent"]["status"] == "interrupted"


def test_a_client_that_only_asks_is_told_when_too_much_waits(peer: ScriptedDaemon) -> None:
    with DoorClient() as client:
        seat = peer.seat()
        for key in range(6):
            client.send(request(str(key) * 900_000, "ping"))
            if key < 5:
                assert len(seat.line()) > 900_000
        answer = client.message()
        assert answer["id"] == "5" * 900_000
        assert "Too many requests wait" in answer["error"]["message"]


@pytest.mark.parametrize("seed", range(4))
def test_under_random_deaths_every_request_is_answered_once_and_heard_at_most_once(
    peer: ScriptedDaemon, seed: int
) -> None:
    chance = random.Random(seed)
    count = 400
    heard: list[int] = []

    def live_and_die() -> None:
        for life in range(5):
            seat = peer.seat()
            for _ in range(chance.randrange(60) if life < 4 else count * 2):
                line = seat.line()
                if not line:
                    return
                heard.append(json.loads(line)["id"])
                if chance.random() < 0.7 or life == 4:
                    seat.send(result(heard[-1]))
            seat.die()

    with DoorClient() as client, ThreadPoolExecutor(1) as executor:
        daemons = executor.submit(live_and_die)
        requests = b"".join(
            encode_line(request(key, filling="x" * chance.randrange(3000))) for key in range(count)
        )
        with client.sending(requests):
            answers = [client.message() for _ in range(count)]
        client.end_input()
        assert client.rest() == b""
        daemons.result(BOUND)
    assert sorted(answer["id"] for answer in answers) == list(range(count))
    assert sorted(set(heard)) == sorted(heard)
    done = {answer["id"] for answer in answers if "isError" not in answer["result"]}
    assert done <= set(heard)
    assert len(done) > count // 2
