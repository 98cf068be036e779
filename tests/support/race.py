"""Races against the gate: pause the product at a named function, and swap a file there.

`Pauses` owns the trace function that finds the point; the paused thread waits while the swap happens. `Race` runs one
call that a person allows, and proves that the swap happened.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal, TypeVar

import anyio
import anyio.lowlevel
from tests.support.actors import PAGE
from tests.support.tool_runner import BOUND

from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Request
from handrail.store.values import Caller

When = Literal["enters", "leaves"]


@dataclass(frozen=True)
class Point:
    """A place in the product: a function that is entered or left, for the first or a later time."""

    function: Callable[..., Any]
    when: When
    time: int = 1

    @property
    def code(self) -> CodeType:
        return self.function.__code__

    def __str__(self) -> str:
        again = f" ({self.time}.)" if self.time > 1 else ""
        return f"{self.when} {self.function.__qualname__}{again}"


class Pauses:
    """While it is entered, threads that begin and the one it is entered in can be stopped at a point."""

    def __init__(self) -> None:
        self._code: CodeType | None = None
        self._when: When = "enters"
        self._left = 0
        self._act: Callable[[], None] = lambda: None
        self.failed: BaseException | None = None

    def __enter__(self) -> "Pauses":
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def arm(self, point: Point, act: Callable[[], None]) -> None:
        """Run `act` once, when a thread reaches the point."""
        self._when, self._left, self._act = point.when, point.time, act
        self._code = point.code

    @property
    def reached(self) -> bool:
        return self._code is None

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not self._code or event != "call":
            return None
        if self._when == "leaves":
            return self._leaving
        self._come()
        return None

    def _leaving(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "return" and frame.f_code is self._code:
            self._come()
        return self._leaving

    def _come(self) -> None:
        self._left -= 1
        if self._left:
            return
        self._code = None
        try:
            self._act()
        except BaseException as error:
            self.failed = error  # raised here, it would be the product's


RACES = 200
"""Of each kind."""
SECONDS = 110.0
"""For all races of one kind on a busy machine; an idle one needs about five."""

Each = TypeVar("Each")


def rounds(kinds: Sequence[Each], races: int = RACES) -> Iterator[tuple[int, Each]]:
    """Each of these in turn, until there were so many races; in time, and numbered."""
    began = time.monotonic()
    for number in range(races):
        yield number, kinds[number % len(kinds)]
    assert time.monotonic() - began < SECONDS


@dataclass
class Race:
    """One race against a gate."""

    gate: Gate
    caller: Caller
    pauses: Pauses

    async def run(
        self, tool: str, input: dict[str, Any], point: Point | None, path: Path, swap: Callable[[], None]
    ) -> Outcome:
        """The outcome of a call during which `swap` makes another thing of `path`; None is while it waits."""
        seen: list[tuple[object, object]] = []

        def proven() -> None:
            before = _facts(path)
            swap()
            seen.append((before, _facts(path)))

        with anyio.fail_after(BOUND):
            outcome = await self._call(tool, input, point, proven)
        if self.pauses.failed is not None:
            raise self.pauses.failed
        assert self.pauses.reached, f"nobody came to {point}"
        assert len(seen) == 1, f"nothing was swapped at {point}"
        assert seen[0][0] != seen[0][1], f"the swap made no difference at {point}"
        return outcome

    async def _call(
        self, tool: str, input: dict[str, Any], point: Point | None, swap: Callable[[], None]
    ) -> Outcome:
        opened: list[Call] = []
        if point is not None and self.gate.toolbox[tool].reads_only:  # without an approval
            self.pauses.arm(point, swap)
        async with anyio.create_task_group() as group:
            request = Request(tool=tool, input=input, caller=self.caller, patience=BOUND)
            group.start_soon(self.gate.submit, request, opened.append)
            while not opened or (opened[0].approval is None and opened[0].outcome is None):
                await anyio.lowlevel.checkpoint()
            if opened[0].approval is not None:
                await self._allow(opened[0].approval, point, swap)
        assert opened[0].outcome is not None
        return opened[0].outcome

    async def _allow(self, approval: Approval, point: Point | None, swap: Callable[[], None]) -> None:
        if point is None:
            swap()
        else:
            self.pauses.arm(point, swap)
        await person_actions.answer(self.gate, approval, Answer(kind="allow", by=PAGE), approval.digest)


def _facts(path: Path) -> object:
    """The identity and content of a file."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    content = path.read_bytes() if path.is_file() else b""
    return found.st_dev, found.st_ino, found.st_mode, found.st_ctime_ns, content
