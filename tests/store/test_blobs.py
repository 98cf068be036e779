"""Contents under their names: written to last, read only when they are what they were, and let go when they are old."""

import errno
import hashlib
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from handrail.store.blobs import Blobs, BlobUnavailable

DAY = 86_400.0
WIDE = 1 << 40
"""More bytes than any test keeps."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


def name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def file_of(root: Path, content: bytes) -> Path:
    return root / name(content)[:2] / name(content)[2:]


def aged(root: Path, content: bytes, days: float) -> str:
    """The name of a content that was put so many days ago."""
    sha = Blobs(root).put(content)
    then = file_of(root, content).stat().st_mtime - days * DAY
    os.utime(file_of(root, content), (then, then))
    return sha


@pytest.mark.parametrize("content", [b"", b"text\n", bytes(range(256)) * 5000])
def test_what_is_put_is_got_back_byte_for_byte(root: Path, content: bytes) -> None:
    blobs = Blobs(root)
    assert blobs.put(content) == name(content)
    assert Blobs(root).get(name(content)) == content
    assert blobs.size() == len(content)


def test_nobody_else_can_read_what_is_kept(root: Path) -> None:
    old = os.umask(0)
    try:
        Blobs(root).put(b"secret")
    finally:
        os.umask(old)
    assert stat.S_IMODE(file_of(root, b"secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(file_of(root, b"secret").parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_content_that_is_there_is_not_written_again_but_counts_as_new(root: Path) -> None:
    aged(root, b"same", 40)
    inode = file_of(root, b"same").stat().st_ino
    Blobs(root).put(b"same")
    assert file_of(root, b"same").stat().st_ino == inode
    assert Blobs(root).prune(30, WIDE) == 0
    assert Blobs(root).get(name(b"same")) == b"same"


def test_a_content_that_was_cut_short_is_written_again_when_it_is_put_again(root: Path) -> None:
    blobs = Blobs(root)
    blobs.put(b"whole")
    file_of(root, b"whole").write_bytes(b"who")
    blobs.put(b"whole")
    assert blobs.get(name(b"whole")) == b"whole"


def test_a_damaged_content_is_a_sentence_and_never_content(root: Path) -> None:
    sha = Blobs(root).put(b"right")
    file_of(root, b"right").write_bytes(b"wrong")
    with pytest.raises(BlobUnavailable, match="is damaged on disk") as caught:
        Blobs(root).get(sha)
    assert caught.value.damaged


@pytest.mark.parametrize("sha", [name(b"never"), "", "../../etc/passwd", "a" * 63, "A" * 64])
def test_what_was_never_kept_is_a_sentence(root: Path, sha: str) -> None:
    Blobs(root).put(b"something")
    with pytest.raises(BlobUnavailable, match="no longer kept") as caught:
        Blobs(root).get(sha)
    assert not caught.value.damaged


@pytest.mark.skipif(sys.platform != "linux", reason="sees by /proc what is synced")
def test_a_content_has_its_name_only_once_it_is_whole_and_on_disk(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced = Path(f"/proc/self/fd/{descriptor}").readlink().relative_to(root.parent)
        seen.append((str(synced.parent if synced.name.startswith(".new-") else synced), named()))
        real(descriptor)

    def named() -> bool:
        return file_of(root, b"data").exists()

    monkeypatch.setattr(os, "fsync", fsync)
    Blobs(root).put(b"data")
    shard = f"blobs/{name(b'data')[:2]}"
    assert seen == [(".", False), ("blobs", False), (shard, False), (shard, True)]


def test_a_full_disk_leaves_nothing_behind_and_is_not_hidden(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    blobs = Blobs(root)
    blobs.put(b"before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        blobs.put(b"too much")
    assert [path.name for path in root.glob("*/*")] == [name(b"before")[2:]]


def test_what_is_too_old_goes_and_the_rest_stays(root: Path) -> None:
    old, new = aged(root, b"old", 31), aged(root, b"new", 29)
    assert Blobs(root).prune(30, WIDE) == 1
    assert [kept.sha for kept in Blobs(root).kept()] == [new]
    with pytest.raises(BlobUnavailable):
        Blobs(root).get(old)


def test_beyond_the_limit_the_oldest_go_first_until_the_rest_fits(root: Path) -> None:
    shas = [aged(root, bytes([number]) * 10, 20 - number) for number in range(5)]
    assert Blobs(root).prune(30, 29) == 3
    assert [kept.sha for kept in Blobs(root).kept()] == shas[3:]
    assert Blobs(root).size() == 20


def test_what_is_asked_to_stay_stays_and_counts(root: Path) -> None:
    dear, plain = aged(root, b"dear" * 5, 90), aged(root, b"plain", 1)
    assert Blobs(root).prune(30, 20, keep=lambda sha: sha == dear) == 1
    assert [kept.sha for kept in Blobs(root).kept()] == [dear]
    with pytest.raises(BlobUnavailable):
        Blobs(root).get(plain)


def test_a_content_put_again_while_old_ones_go_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = Blobs(root)
    aged(root, b"wanted", 40)
    looked_at = blobs.kept()
    blobs.put(b"wanted")
    monkeypatch.setattr(blobs, "kept", lambda: looked_at)  # as if it had been put between look and removal
    assert blobs.prune(30, WIDE) == 0
    assert blobs.get(name(b"wanted")) == b"wanted"


def test_half_written_files_go_once_nobody_can_be_writing_them(root: Path) -> None:
    Blobs(root).put(b"x")
    shard = file_of(root, b"x").parent
    stale, fresh = shard / ".new-stale", shard / ".new-fresh"
    for path in (stale, fresh):
        path.write_bytes(b"half")
    os.utime(stale, (1, 1))
    assert [kept.sha for kept in Blobs(root).kept()] == [name(b"x")]
    Blobs(root).prune(30, WIDE)
    assert (stale.exists(), fresh.exists()) == (False, True)


def test_an_empty_store_has_nothing_to_let_go(root: Path) -> None:
    assert (Blobs(root).size(), Blobs(root).prune(0, 0), Blobs(root).kept()) == (0, 0, [])


def test_many_at_once_put_the_same(root: Path) -> None:
    blobs, contents = Blobs(root), [bytes([number % 5]) * 1000 for number in range(40)]
    threads = [threading.Thread(target=blobs.put, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(kept.sha for kept in blobs.kept()) == sorted({name(content) for content in contents})
    assert list(root.glob("*/.new-*")) == []
