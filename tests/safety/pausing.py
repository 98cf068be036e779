"""Stopping the product at a named function, and doing something there before it goes on.

Owns the trace function that finds the place; the product knows nothing of it. What is done happens while the thread
that came there stands still, as if another process had been faster.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Literal

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
        """Do this once, when somebody comes there."""
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
