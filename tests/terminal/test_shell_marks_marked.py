"""Marks by terminal: read once, as far as the output has come, and not for all time."""

from pathlib import Path

import anyio
import pytest

from handrail.terminal import shell_marks
from handrail.terminal.output.tail import Tail
from handrail.terminal.shell_marks import Marks, MarksCache


def printed(folder: Path, data: bytes) -> Tail:
    folder.mkdir()
    (folder / f"{0:020d}.seg").write_bytes(data)
    return Tail(folder)


async def test_the_marks_are_up_to_date_and_do_not_change_under_their_reader(tmp_path: Path) -> None:
    tail = printed(tmp_path / "t1", prompt() + b"echo fresh\r\n")
    marked = MarksCache()
    first = await marked.of("t1", "nonce", tail)
    assert first is not None
    assert first == Marks(at_prompt=True, prompt_at=0, read_to=tail.end)
    began = tail.end
    with (tmp_path / "t1" / f"{0:020d}.seg").open("ab") as file:
        file.write(b"\x1b]133;C;nonce=nonce\x07fresh\r\n\x1b]133;D;0;nonce=nonce\x07" + prompt())
    later: list[Marks | None] = []

    async def read() -> None:
        later.append(await marked.of("t1", "nonce", tail))

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(read)
    assert (first.commands, first.prompt_at, first.read_to) == ((), 0, began)
    (marks,) = {marks for marks in later if marks is not None}
    assert ([item.exit_code for item in marks.commands], marks.read_to) == ([0], tail.end)


def prompt() -> bytes:
    return b"\x1b]133;A;nonce=nonce\x07$ "


async def test_a_shell_without_a_nonce_has_none(tmp_path: Path) -> None:
    assert await MarksCache().of("t1", "", printed(tmp_path / "t1", b"hello")) is None


async def test_only_so_many_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_marks, "TERMINALS_MAX", 2)
    marked, tails = MarksCache(), [printed(tmp_path / f"t{n}", b"hello") for n in range(3)]
    first = await marked.of("t0", "nonce", tails[0])
    for number in (1, 0, 2):  # the oldest used goes
        await marked.of(f"t{number}", "nonce", tails[number])
    assert await marked.of("t0", "nonce", tails[0]) is first
    await marked.of("t1", "nonce", tails[1])
    await marked.of("t2", "nonce", tails[2])
    assert await marked.of("t0", "nonce", tails[0]) is not first
