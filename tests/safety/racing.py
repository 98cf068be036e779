"""One race: a call that a person allows, and somebody who swaps something at a point of its way.

Owns the course of a race and the proof that the swap happened. It does not know what is swapped.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
from tests.actors import PAGE
from tests.safety.pausing import Pauses, Point
from tests.tools.desk import BOUND

from handrail.gate import person_actions
from handrail.gate.approval import Answer, Approval
from handrail.gate.call import Call, Outcome
from handrail.gate.gate import Gate, Request
from handrail.store.values import Caller

RACES = 200
"""Of each kind."""
SECONDS = 110.0
"""For all races of one kind, on a machine that is busy; some five on one that is not."""

Each = TypeVar("Each")


def rounds(kinds: Sequence[Each], races: int = RACES) -> Iterator[tuple[int, Each]]:
    """Each of these in turn, until there were so many races; in time, and numbered."""
    began = time.monotonic()
    for number in range(races):
        yield number, kinds[number % len(kinds)]
    assert time.monotonic() - began < SECONDS


@dataclass
class Race:
    """Somebody against a gate."""

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
        if point is not None and self.gate.toolbox[tool].reads_only:  # that asks nobody
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
    """What tells one thing from another."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    content = path.read_bytes() if path.is_file() else b""
    return found.st_dev, found.st_ino, found.st_mode, found.st_ctime_ns, content
