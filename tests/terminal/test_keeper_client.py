"""Our end of the keeper's socket, where the other end is not well."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, SocketStream
from tests.support.keeper_terminals import BOUND

from handrail.keeper.message_framing import encode
from handrail.keeper.protocol import PROTOCOL, Exit, Exited, Grown, Kept, Overheard, Stop, Stopped, Welcome
from handrail.paths import Places
from handrail.store.values import Json
from handrail.terminal import keeper_client
from handrail.terminal.keeper_client import Keeper, KeeperError
from handrail.terminal.terminal import InputSender, NotReading, TypingRefused
from handrail.terminal.terminals import Terminals


@asynccontextmanager
async def saying(places: Places, *messages: object, hangs_up: int = 0) -> AsyncGenerator[list[SocketStream]]:
    """A keeper that says this in one breath, and then nothing by itself; the first few it hangs up on."""
    places.make()
    greeted = count(1)
    streams: list[SocketStream] = []

    async def handle(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            if next(greeted) <= hangs_up:
                return
            await stream.send(b"".join(encode(message) for message in messages))
            streams.append(stream)
            await anyio.sleep_forever()

    listener = await anyio.create_unix_listener(places.keeper_socket)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield streams
        group.cancel_scope.cancel()


@asynccontextmanager
async def connected(keeper: Keeper) -> AsyncGenerator[None]:
    async with anyio.create_task_group() as group:
        with anyio.fail_after(BOUND):
            await group.start(keeper.run)
        yield
        group.cancel_scope.cancel()


async def test_a_keeper_that_hangs_after_its_hello_is_answered_for_with_a_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_client, "HEALTH_SECONDS", 0.05)
    monkeypatch.setattr(keeper_client, "REPLY_SECONDS", 0.05)
    places, keeper = Places.under(home), Keeper(Places.under(home))
    async with saying(places, Welcome(PROTOCOL, 1)), connected(keeper):
        with anyio.fail_after(BOUND):
            with pytest.raises(KeeperError, match=r"has not answered for 0\.05 s.*down --force"):
                await keeper.health()
            with pytest.raises(KeeperError, match=r"has not answered for 0\.15 s"):
                await keeper.request(Stop(keeper.number(), "t1", grace=0.1), Stopped)


async def test_a_keeper_that_was_just_ending_is_not_the_last_word(home: Path) -> None:
    places, keeper = Places.under(home), Keeper(Places.under(home))
    async with saying(places, Welcome(PROTOCOL, 7), hangs_up=2), connected(keeper):
        assert keeper.pid == 7


async def test_a_keeper_that_hangs_up_on_everybody_is_told_of_with_a_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_client, "HELLO_APART", 0.001)
    places, keeper = Places.under(home), Keeper(Places.under(home))
    async with saying(places, Welcome(PROTOCOL, 7), hangs_up=1000):
        with anyio.fail_after(BOUND), pytest.raises(KeeperError, match="did not answer a hello: EndOfStream"):
            await keeper.run()


async def test_news_in_the_very_moment_of_leaving_breaks_nothing(home: Path) -> None:
    places, keeper = Places.under(home), Keeper(Places.under(home))
    async with saying(places, Welcome(PROTOCOL, 7)) as streams:
        for _ in range(3):
            async with connected(keeper):
                await anyio.wait_all_tasks_blocked()
                streams[-1].extra(SocketAttribute.raw_socket).send(encode(Grown("t1", 5)))
                await anyio.lowlevel.checkpoint()  # the loop hears of it in the turn in which we leave
            await anyio.lowlevel.checkpoint()


async def test_what_comes_in_the_same_breath_as_the_terminals_is_heard_of_them(home: Path) -> None:
    kept = Kept("t1", ("sh",), "/", 7, 0.0, 80, 24, False, 0)
    news = (Grown("t1", 5), Overheard("t1", b"ls\r", False, 0), Exited("t1", Exit(code=3), 5))
    places, keeper = Places.under(home), Keeper(Places.under(home))
    ended: list[str] = []
    terminals = Terminals(keeper, places.spool, ended=lambda terminal: ended.append(terminal.id))
    async with saying(places, Welcome(PROTOCOL, 1, kept=1), kept, *news), connected(keeper):
        with anyio.fail_after(BOUND):
            terminal = terminals.get("t1")
            assert terminal is not None
            assert await terminal.wait() == Exit(code=3)
        assert ended == ["t1"]
        assert terminal.last_input_at is not None


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        ({"code": "not_reading", "why": "In whatever words."}, NotReading),
        ({"why": "Terminal t1 is not reading; what was typed before still waits."}, TypingRefused),
        ({"code": "of_a_later_version", "why": "Terminal t1 is not reading."}, TypingRefused),
    ],
    ids=["a code", "an old keeper's message without a code", "an unknown code"],
)
async def test_a_refusal_is_classified_by_its_code_and_never_by_its_words(
    home: Path, refusal: Json, kind: type[TypingRefused]
) -> None:
    kept = Kept("t1", ("sh",), "/", 7, 0.0, 80, 24, False, 0)
    places, keeper = Places.under(home), Keeper(Places.under(home))
    terminals = Terminals(keeper, places.spool)
    async with saying(places, Welcome(PROTOCOL, 1, kept=1), kept) as streams, connected(keeper):
        terminal = terminals.get("t1")
        assert terminal is not None

        async def refuse() -> None:
            request = json.loads(await streams[-1].receive())
            await streams[-1].send(
                json.dumps({"is": "failed", "id": request["id"], **refusal}).encode() + b"\n"
            )

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as group:
                group.start_soon(refuse)
                with pytest.raises(TypingRefused, match=str(refusal["why"])) as caught:
                    await terminal.type(b"x", InputSender(person=False, name="claude-code"))
                assert type(caught.value) is kind
