"""A scripted editor window behind the real `EditorWindows`: it answers, or keeps the questions."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from handrail.server.editor_windows import EditorWindow, EditorWindows

Answer = Callable[[str, dict[str, Any]], Any]
"""What the window answers to a question and its input; an exception is an error of the editor."""


class ScriptedWindow:
    """A window, and what it was asked."""

    def __init__(self, answer: Answer | None) -> None:
        self._answer = answer
        self.asked: list[dict[str, Any]] = []
        self.was_asked = anyio.Event()
        self.window: EditorWindow | None = None

    def take(self, line: bytes) -> None:
        message = json.loads(line)
        self.asked.append(message)
        self.was_asked.set()
        if self._answer is None or "ask" not in message:
            return
        try:
            reply: dict[str, Any] = {"result": self._answer(message["what"], message["input"])}
        except ValueError as problem:
            reply = {"error": str(problem)}
        self.hear({"answer": message["ask"], **reply})

    def hear(self, message: dict[str, Any]) -> None:
        assert self.window is not None
        self.window.hear(json.dumps(message).encode())


@contextmanager
def open_window(
    windows: EditorWindows, *folders: Path, answer: Answer | None = None, paired: bool = True
) -> Generator[ScriptedWindow]:
    """A window that has these folders open."""
    scripted = ScriptedWindow(answer)
    with windows.connect(scripted.take) as window:
        scripted.window = window
        window.paired = paired
        scripted.hear({"folders": [str(folder) for folder in folders]})
        yield scripted
