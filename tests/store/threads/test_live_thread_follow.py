"""Whoever follows a conversation ends up with what was said, however slow, torn or late they are."""

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.actors import ANN
from tests.support.sample_events import JournalFiles
from tests.support.thread_store import ThreadReader, ThreadStore, follow_thread, thread_store

from handrail.store.threads.live_thread import KEPT, Thread, ThreadChanges
from handrail.store.threads.message import Message
from handrail.store.values import Json

TEXTS = st.text(st.sampled_from("ab é🪁\ud83e\ude81\n"), max_size=6)
NUMBERS = st.integers(0, 5)
STEP = st.one_of(
    st.tuples(st.just("say"), NUMBERS, TEXTS),
    st.tuples(st.just("speak"), NUMBERS, TEXTS),
    st.tuples(st.just("settle"), NUMBERS, TEXTS),
    st.tuples(st.just("open"), st.booleans(), TEXTS),
    st.tuples(st.just("add"), NUMBERS, TEXTS),
    st.tuples(st.just("grow"), NUMBERS, TEXTS),
    st.tuples(st.just("put"), NUMBERS, st.none() | TEXTS),
    st.tuples(st.just("end"), NUMBERS, TEXTS),
    st.tuples(st.just("drop"), NUMBERS, TEXTS),
    st.tuples(st.just("send"), NUMBERS, TEXTS),
    st.tuples(st.just("state"), NUMBERS, TEXTS),
    st.tuples(st.just("write"), NUMBERS, TEXTS),
    st.tuples(st.just("take"), NUMBERS, TEXTS),
    st.tuples(st.just("leave"), NUMBERS, TEXTS),
    st.tuples(st.just("return"), NUMBERS, TEXTS),
    st.tuples(st.just("return elsewhere"), NUMBERS, TEXTS),
)
Steps = list[tuple[str, int, str | None]]


class Slow:
    """A reader who takes what is sent only when told to, and comes and goes."""

    def __init__(self, eager: bool = False) -> None:
        self.reader = ThreadReader()
        self._permits = anyio.Semaphore(0)
        self._scope: anyio.CancelScope | None = None
        self._free = eager

    def come(self, group: TaskGroup, talk: ThreadStore, thread: str) -> None:
        if self._scope is None:
            self._scope = anyio.CancelScope()
            group.start_soon(self._follow, self._scope, talk, thread)

    def leave(self) -> None:
        if self._scope is not None:
            self._scope.cancel()
            self._scope = None

    def forget(self, how: int) -> None:
        """Begin anew, with a cursor of no time at all; or with one that is older than what one has."""
        if how < 2:
            self.reader = ThreadReader(rev=how * 2**53)
        else:
            self.reader.rev -= how

    def take(self) -> None:
        self._permits.release()

    def free(self) -> None:
        self._free = True
        self._permits.release()

    async def _follow(self, scope: anyio.CancelScope, talk: ThreadStore, thread: str) -> None:
        with scope:
            await talk.threads.follow(thread, self.reader.rev, self._send)

    async def _send(self, flow: ThreadChanges) -> None:
        if not self._free:
            await self._permits.acquire()
        await self.reader.take(flow)


class Story:
    """Steps of a conversation, on one store."""

    def __init__(self, talk: ThreadStore, group: TaskGroup, thread: str, readers: Sequence[Slow]) -> None:
        self.talk = talk
        self.group = group
        self.thread = thread
        self.readers = readers
        self.spoken: list[Message] = []

    async def step(self, what: str, number: int, text: str | None) -> None:
        message = self.spoken[number % len(self.spoken)] if self.spoken else None
        if what in {"take", "leave", "return", "return elsewhere"}:
            self._read(what, self.readers[number % len(self.readers)], number)
        elif what in {"open", "say", "speak", "settle", "state", "write"}:
            await self._speak(what, number, text)
        elif message is not None:
            self._change(what, message, number, text)
        for _ in range(4):  # whoever is awake does something
            await anyio.lowlevel.checkpoint()

    def _read(self, what: str, reader: Slow, number: int) -> None:
        match what:
            case "take":
                reader.take()
            case "leave":
                reader.leave()
            case "return":
                reader.come(self.group, self.talk, self.thread)
            case _:
                reader.leave()
                reader.forget(number)
                reader.come(self.group, self.talk, self.thread)

    async def _speak(self, what: str, number: int, text: str | None) -> None:
        threads = self.talk.threads
        match what:
            case "open":
                self.spoken.append(threads.open_message(self.thread, "assistant", queued=bool(number)))
            case "say":
                self.talk.say(self.thread, text or "")
            case "speak":  # in pieces that are written one by one
                message = threads.open_message(self.thread, "assistant")
                part = message.add("text", text or "")
                self.spoken.append(message)
                for _ in range(number):
                    await threads.written()
                    part.grow(f"{text}.")
            case "state":
                threads.put_state(self.thread, f"name{number}", {"is": text})
            case "settle":
                await threads.written()
                await threads.written()
            case _:
                await threads.written()

    def _change(self, what: str, message: Message, number: int, text: str | None) -> None:
        part = message.parts[number % len(message.parts)] if message.parts else None
        data: Json = {"number": number, "text": text}
        match what:
            case "add":
                message.add("text", text or "", data)
            case "end":
                message.end("end_turn")
            case "drop" if message.queued:
                self.talk.threads.dropped(message.id, ANN)
                self.spoken.remove(message)
            case "send" if message.queued:
                self.talk.threads.sent(message.id, "o1")
            case "grow" if part is not None:
                part.grow(text or "")
            case "put" if part is not None:
                part.put(data, text)
            case _:
                pass


async def all_agree(talk: ThreadStore, thread: str, readers: Sequence[Slow]) -> None:
    now = await talk.threads.snapshot(thread, limit=1000)
    for slow in readers:
        await slow.reader.until(lambda slow=slow: slow.reader.same_as(now))


async def tell(
    kept: JournalFiles, thread: str | None, steps: Steps, readers: Sequence[Slow], last: bool
) -> str:
    """Do the steps, then crash; or, at the last, let all readers catch up."""
    async with AsyncExitStack() as stack:
        talk = await stack.enter_async_context(thread_store(kept))
        if thread is None:
            thread = talk.open()
            await talk.threads.written()
        group = await stack.enter_async_context(anyio.create_task_group())
        story = Story(talk, group, thread, readers)
        for slow in readers:
            slow.come(group, talk, thread)
        for step in steps:
            await story.step(*step)
        if last:
            for slow in readers:
                slow.free()
                slow.come(group, talk, thread)
            await all_agree(talk, thread, readers)
        else:
            for end in ("", "-wal"):
                source = kept.path.with_name(kept.path.name + end)
                shutil.copyfile(source, kept.path.with_name(f"crashed{end}"))
        for slow in readers:
            slow.leave()
        group.cancel_scope.cancel()
    return thread


@given(steps=st.lists(STEP, max_size=40), backend=st.sampled_from(["asyncio", "trio"]))
@settings(max_examples=40, deadline=None)
def test_every_reader_ends_with_what_was_said(steps: Steps, backend: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        kept = JournalFiles(Path(place, "db"), Path(place, "head"))
        anyio.run(tell, kept, None, steps, [Slow(eager=True), Slow()], True, backend=backend)


@given(before=st.lists(STEP, max_size=30), after=st.lists(STEP, max_size=15))
@settings(max_examples=40, deadline=None)
def test_every_reader_ends_with_what_a_crash_left(before: Steps, after: Steps) -> None:
    readers: list[Slow] = []

    async def main(place: Path) -> None:
        readers.extend((Slow(eager=True), Slow()))
        thread = await tell(JournalFiles(place / "db", place / "head"), None, before, readers, last=False)
        await tell(JournalFiles(place / "crashed", place / "head2"), thread, after, readers, last=True)

    readers.clear()
    with tempfile.TemporaryDirectory() as place:
        anyio.run(main, Path(place))


@pytest.mark.anyio
async def test_a_slow_reader_is_sent_what_came_meanwhile_put_together(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        slow = Slow()
        async with anyio.create_task_group() as group:
            slow.come(group, talk, thread)
            text = talk.threads.open_message(thread, "assistant").add("text")
            await anyio.wait_all_tasks_blocked()
            for number in range(10_000):
                text.grow(f"{number} ")
            slow.free()
            await slow.reader.until(lambda: any(one.endswith(" 9999 ") for one in slow.reader.texts.values()))
            assert len(slow.reader.flows) <= 3
            slow.leave()


@pytest.mark.anyio
async def test_a_reader_who_is_not_too_far_behind_is_never_sent_all_anew(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        slow = Slow()
        slow.reader.load(await talk.threads.snapshot(thread))
        async with anyio.create_task_group() as group:
            slow.come(group, talk, thread)
            await anyio.wait_all_tasks_blocked()
            for number in range(KEPT):
                talk.say(thread, f"message {number}")
                await talk.threads.written()
            slow.free()
            await all_agree(talk, thread, [slow])
            assert not any(flow.reset for flow in slow.reader.flows)
            slow.leave()


@pytest.mark.anyio
async def test_a_reader_who_comes_back_with_what_they_have_is_sent_only_what_is_new(
    kept: JournalFiles,
) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        answer = talk.threads.open_message(thread, "assistant")
        old, new = answer.add("text", "said before"), answer.add("text", "")
        reader = ThreadReader()
        reader.load(await talk.threads.snapshot(thread))
        new.grow("said since")
        async with follow_thread(talk, thread, reader):
            await reader.until(lambda: reader.texts[answer.id, 1] == "said since")
        assert [(growth.n, growth.text) for flow in reader.flows for growth in flow.growths] == [
            (new.n, "said since")
        ]
        assert old.text == "said before"
        assert [flow.reset for flow in reader.flows] == [False]


def kept_in_memory(talk: ThreadStore, thread: str) -> Thread:
    return talk.threads._thread(thread)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.anyio
async def test_memory_holds_nothing_of_what_is_over_and_on_disk(kept: JournalFiles) -> None:
    async with thread_store(kept) as talk:
        thread = talk.open()
        for number in range(20):
            talk.say(thread, f"message {number}")
        talk.threads.put_state(thread, "modes", {"is": "ask"})
        await talk.threads.written()
        await talk.threads.written()
        assert kept_in_memory(talk, thread).messages == {}
        assert kept_in_memory(talk, thread).state == {}
        snapshot = await talk.threads.snapshot(thread)
        assert len(snapshot.messages) == 20
        assert snapshot.state == {"modes": {"is": "ask"}}
