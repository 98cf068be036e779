"""Replaced contents are kept within limits, at once and every hour, whatever the disk says."""

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from tests.support.sample_events import JournalFiles
from tests.support.thread_store import thread_store

from handrail.store import blobs as retention
from handrail.store.actor import PERSON
from handrail.store.blobs import BlobRetention, Blobs, ImageRetention

pytestmark = pytest.mark.anyio


class Watched(Blobs):
    """Tells when somebody looked for old contents; the first `refusals` looks find a disk that refuses."""

    def __init__(self, root: Path, refusals: int = 0) -> None:
        super().__init__(root)
        self.root = root
        self.refusals = refusals
        self.looked = anyio.Event()

    def prune(self, *limits: Any, **more: Any) -> int:
        if self.refusals:
            self.refusals -= 1
            raise OSError(30, "Read-only file system")
        try:
            return super().prune(*limits, **more)
        finally:
            anyio.from_thread.run_sync(self.looked.set)

    def put_long_ago(self, content: bytes) -> str:
        sha = self.put(content)
        os.utime(self.root / sha[:2] / sha[2:], (1, 1))
        return sha

    async def next_look(self) -> None:
        with anyio.fail_after(20):
            self.looked = anyio.Event()
            await self.looked.wait()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "APART", 0.01)


async def test_old_contents_go_at_the_start_and_then_again_and_again(tmp_path: Path) -> None:
    blobs = Watched(tmp_path)
    kept = blobs.put(b"new")
    blobs.put_long_ago(b"old")
    async with anyio.create_task_group() as group:
        group.start_soon(BlobRetention(blobs, keep_days=30, keep_bytes=1 << 30).run)
        await blobs.next_look()
        assert [one.sha for one in blobs.kept()] == [kept]
        later = blobs.put_long_ago(b"old too")
        assert later in [one.sha for one in blobs.kept()]
        await blobs.next_look()
        await blobs.next_look()
        assert [one.sha for one in blobs.kept()] == [kept]
        group.cancel_scope.cancel()


async def test_a_disk_that_refuses_once_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blobs = Watched(tmp_path, refusals=1)
    blobs.put_long_ago(b"old")
    async with anyio.create_task_group() as group:
        group.start_soon(BlobRetention(blobs, keep_days=30, keep_bytes=1 << 30).run)
        await blobs.next_look()
        group.cancel_scope.cancel()
    assert "old contents could not be let go: [Errno 30] Read-only file system" in caplog.text
    assert blobs.kept() == []


async def test_the_limits_are_the_persons(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    for content in (b"a" * 10, b"b" * 10):
        blobs.put(content)
    assert await BlobRetention(blobs, keep_days=30, keep_bytes=15).prune() == 1
    assert blobs.size() == 10


async def test_a_picture_stays_as_long_as_a_conversation_shows_it(tmp_path: Path, kept: JournalFiles) -> None:
    images = Watched(tmp_path / "images")
    said, drawn, shared, never = (
        images.put_long_ago(word) for word in (b"said", b"drawn", b"shared", b"never")
    )
    fresh = images.put(b"fresh, and about to be said")
    async with thread_store(kept) as talk:
        first, second = talk.open(), talk.open()
        for thread, sha in ((first, said), (first, shared), (second, shared)):
            message = talk.threads.open_message(thread, "user")
            message.add("image", data={"image": sha, "mime": "image/png"})
        answer = talk.threads.open_message(first, "assistant")
        answer.add("call", data={"content": [{"kind": "image", "image": drawn, "mime": "image/png"}]})
        await talk.threads.written()
        pictures = ImageRetention(images, talk.records)

        assert await pictures.prune() == 1
        assert {one.sha for one in images.kept()} == {said, drawn, shared, fresh}
        assert never not in {one.sha for one in images.kept()}

        await talk.threads.delete(first, PERSON)
        assert await pictures.prune() == 2
        assert {one.sha for one in images.kept()} == {shared, fresh}
