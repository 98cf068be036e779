"""The editor windows that answer questions about code, each for the folders that it has open.

A window offers its folders on the connection on which it greeted, and gets questions there. Only a paired editor is
asked: another program could answer an agent with anything. Does not know which questions there are.
"""

import itertools
import json
import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Annotated

import anyio
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from handrail.gate.tool import Refusal
from handrail.store.bell import Bell
from handrail.store.values import Json

log = logging.getLogger(__name__)

ANSWER_SECONDS = 60.0
"""For one answer. A language server that starts needs many seconds; one that hangs must not hold a call forever."""
ANSWER_BYTES = 8 << 20
"""The longest line from a window: bounds memory."""
OPEN_MAX = 32
"""Unanswered questions of one window: bounds what an agent in a loop can make an editor do."""
FOLDERS_MAX = 64

GET_EDITOR = (
    "Open {folder} in VS Code, Cursor, VSCodium or code-server with Handrail's extension; `handrail connect vscode` "
    "installs it."
)
NO_EDITOR = f"No editor has {{folder}} open, so nothing is known about the code in it. {GET_EDITOR}"
NOT_PAIRED = (
    "An editor has {folder} open, but it is not paired with Handrail, so it is not asked. `handrail editors` lists it and "
    "says how to pair it."
)
GONE = "The editor was closed, or lost its connection to Handrail, before it answered. Nothing was changed."
SLOW = (
    f"The editor did not answer within {ANSWER_SECONDS:g} seconds; its language server may still be starting. Try again, or "
    "look at the code with read_file and search_content."
)
BUSY = "The editor has too many questions to answer. Wait until it has answered some of them, then ask again."


class _Line(BaseModel):
    """A line from a window: its folders, or an answer. Unknown fields are ignored: newer versions may send more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    folders: Annotated[list[Annotated[str, Field(max_length=4096)]] | None, Field(max_length=FOLDERS_MAX)] = (
        None
    )
    answer: int | None = None
    result: JsonValue = None
    error: Annotated[str, Field(max_length=2000)] = ""


class _Question:
    """An open question, and what came of it."""

    def __init__(self) -> None:
        self.settled = anyio.Event()
        self.result: JsonValue = None
        self.problem = ""

    def settle(self, result: JsonValue, problem: str) -> None:
        if not self.settled.is_set():
            self.result, self.problem = result, problem
            self.settled.set()


class EditorWindow:
    """One window."""

    def __init__(self, put: Callable[[Json], None], changed: Callable[[], None]) -> None:
        """`put` sends to the window. It raises BrokenResourceError if that is gone, WouldBlock if it does not read."""
        self._put = put
        self._changed = changed
        self._ids = itertools.count(1)
        self._open: dict[int, _Question] = {}
        self._folders: dict[str, str] = {}
        """The folders it has open, by real path, each as the window names it."""
        self._paired = False

    @property
    def paired(self) -> bool:
        return self._paired

    @paired.setter
    def paired(self, paired: bool) -> None:
        if paired != self._paired:
            self._paired = paired
            self._changed()

    def hear(self, line: bytes | None) -> None:
        """Take a line from the window; None is one that was too long."""
        try:
            message = _Line.model_validate_json(line or b"")
        except ValidationError:
            log.warning("a line from an editor was not understood, and ignored")
            return
        if message.folders is not None:
            self._folders = {os.path.realpath(folder): folder for folder in message.folders}
            self._changed()
        question = None if message.answer is None else self._open.get(message.answer)
        if question is not None:
            question.settle(message.result, message.error)

    def find_folder(self, path: str) -> str | None:
        """The innermost folder that this path lies in; else one that lies below it; None without either."""
        around = [folder for folder in self._folders if _is_below(path, folder)]
        below = [folder for folder in self._folders if _is_below(folder, path)]
        return max(around, key=len, default=min(below, default=None))

    def rename_path(self, path: str) -> str:
        """A real path as the window names it: it may have opened its folder through a symbolic link."""
        folder = self.find_folder(path)
        if folder is None or not _is_below(path, folder):
            return path
        return self._folders[folder] + path[len(folder.rstrip("/")) :]

    async def ask(self, what: str, input: Json) -> JsonValue:
        if len(self._open) >= OPEN_MAX:
            raise Refusal(BUSY)
        number, question = next(self._ids), _Question()
        self._open[number] = question
        try:
            self._put({"ask": number, "what": what, "input": input})
            with anyio.move_on_after(ANSWER_SECONDS):
                await question.settled.wait()
        except anyio.BrokenResourceError:
            question.settle(None, GONE)
        except anyio.WouldBlock:
            question.settle(None, BUSY)
        finally:
            self._open.pop(number, None)
            if not question.settled.is_set():
                with suppress(anyio.BrokenResourceError, anyio.WouldBlock):
                    self._put({"cancel": number})
        if not question.settled.is_set() or question.problem:
            raise Refusal(question.problem or SLOW)
        return question.result

    def close(self) -> None:
        for question in self._open.values():
            question.settle(None, GONE)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class EditorWindows:
    """All windows."""

    def __init__(self) -> None:
        self._windows: list[EditorWindow] = []
        self.bell = Bell()
        """Rings when a window came, went, or opened other folders."""

    @contextmanager
    def connect(self, put: Callable[[bytes], None]) -> Generator[EditorWindow]:
        """A window, as long as its connection."""
        window = EditorWindow(lambda message: put(json.dumps(message).encode() + b"\n"), self.bell.ring)
        self._windows.append(window)
        try:
            yield window
        finally:
            self._windows.remove(window)
            window.close()
            self.bell.ring()

    def serves(self, folder: str | None) -> bool:
        """Whether a paired window has this folder, or a part of it, open."""
        return folder is not None and self._find(os.path.realpath(folder)) is not None

    async def ask(self, path: str, what: str, input: Json) -> JsonValue:
        """Ask the window that has this real path open; the input gets the path as `path`.

        Raises Refusal: there is no such window, it went away, it did not answer in time, or it says why it cannot.
        """
        window = self._find(path)
        if window is None:
            has_unpaired = any(each.find_folder(path) is not None for each in self._windows)
            raise Refusal((NOT_PAIRED if has_unpaired else NO_EDITOR).format(folder=path))
        return await window.ask(what, {**input, "path": window.rename_path(path)})

    def _find(self, path: str) -> EditorWindow | None:
        """The window whose folder is nearest: around the path and as deep as possible, else below it; the newest wins."""
        serving = [each for each in self._windows if each.paired and each.find_folder(path) is not None]

        def nearness(window: EditorWindow) -> tuple[bool, int]:
            folder = window.find_folder(path) or ""
            return _is_below(path, folder), len(folder)

        return max(reversed(serving), key=nearness, default=None)
