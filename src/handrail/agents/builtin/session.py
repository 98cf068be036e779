"""One session: a conversation that is open, its operation where one is under way, its tools and its settings.

Owns that there is one operation at a time, and that a new prompt waits until the one before has really ended. Nothing is
kept of an operation but its root: cancelling is that scope's. It does not know how sessions are found (program.py), nor
how a prompt is thought about (conversation.py).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.agents.builtin import commands
from handrail.agents.builtin.activity import Activity, operation
from handrail.agents.builtin.blocks import text_of, title_of
from handrail.agents.builtin.model.model import ModelError
from handrail.agents.builtin.options import MODEL, THOUGHT, NoSuchOption, Options
from handrail.agents.builtin.sessions import NoSuchSession
from handrail.agents.builtin.tools.toolset import Toolset, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handrail.agents.builtin.blocks import Block
    from handrail.agents.builtin.budget import Stop
    from handrail.agents.builtin.commands import Command
    from handrail.agents.builtin.conversation import Conversation
    from handrail.agents.builtin.model.model import Model
    from handrail.agents.builtin.model.models import Models
    from handrail.agents.builtin.sessions import Kept
    from handrail.agents.builtin.speech import Speech
    from handrail.agents.builtin.tools.tool import Json
    from handrail.agents.builtin.tools.wanted import Given
    from handrail.config import OwnAgentSection

MENU_SECONDS = 1.0
"""What opening a session waits for the list of models; one that comes later is told later."""
FLUSH_SECONDS = 30.0
"""For a host to hear the end of an operation before it is answered; bounds the wait for one that does not read."""


@dataclass(frozen=True, slots=True)
class _Now:
    """The operation under way."""

    root: Activity
    over: anyio.Event
    """It has ended, and all it said is sent."""


class Session:
    """Open from `live` to `close`."""

    def __init__(
        self, kept: Kept, cwd: Path, speech: Speech, models: Models, settings: OwnAgentSection
    ) -> None:
        self._kept, self._cwd, self._speech, self._models, self._settings = (
            kept,
            cwd,
            speech,
            models,
            settings,
        )
        self._now: _Now | None = None
        self._closing, self._closed = anyio.Event(), anyio.Event()
        self._ready, self._menu = anyio.Event(), anyio.Event()
        self._toolset: Toolset | None = None
        self._conversation: Conversation | None = None
        self._noted: set[str] = set()
        self._told_options: list[Json] | None = None
        """As the host knows them; None before it knows the session."""
        self.options = _options(kept, settings)

    @property
    def id(self) -> str:
        return self._kept.id

    async def live(self, given: Sequence[Given], loaded: anyio.Event) -> None:
        """All that has to run while it is open. To be started as a task of its own; `loaded`: what is slow to load is."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._speech.deliver)
                group.start_soon(self._look_for_models, loaded)
                group.start_soon(self._hold_tools, given, loaded)
                await self._closing.wait()
                await self._end_operation()
                await self._speech.flushed()
                group.cancel_scope.cancel()
        except* Exception as broken:  # a fault of ours; the other sessions are not to end with this one
            logging.getLogger(__name__).error("Session %s broke", self.id, exc_info=broken)
            self.cancel()
        finally:
            self._closed.set()

    async def _hold_tools(self, given: Sequence[Given], loaded: anyio.Event) -> None:
        await loaded.wait()
        async with opened(given, str(self._cwd)) as self._toolset:
            self._ready.set()
            await anyio.sleep_forever()

    async def close(self, *, heard: bool = True) -> None:
        """End what runs, and let go of the tools. `heard`: whether anybody still listens."""
        if not heard:
            self._speech.end()
        self._closing.set()
        await self._closed.wait()

    async def menu(self) -> None:
        """Wait a moment for the list of models."""
        with anyio.move_on_after(MENU_SECONDS):
            await self._menu.wait()

    def greet(self) -> None:
        """What a host is told of a session as soon as it knows it."""
        told = {"sessionUpdate": "available_commands_update", "availableCommands": commands.listed()}
        self._speech.update(told)
        self._tell_options()

    async def show(self) -> None:
        """Say again all that was said before. Raises NoSuchSession."""
        await self._ready.wait()
        (await self._talk()).show()
        await self._speech.flushed()

    def cancel(self) -> None:
        if self._now is not None:
            self._now.root.scope.cancel()

    def cancel_activity(self, id: str) -> bool:
        """False where there is none of this id any more."""
        return self._now is not None and self._now.root.cancel(id)

    def listed(self) -> list[Json]:
        """The options, for the host to know."""
        self._told_options = self.options.listed()
        return self._told_options

    def set(self, option: str, value: object) -> None:
        """Raises NoSuchOption."""
        self._kept.set(option, self.options.set(option, value))

    async def prompt(self, blocks: Sequence[Block]) -> Stop:
        """Returns when it is answered and all of that is sent. Raises ModelError, NoSuchSession.

        An operation that is under way is cancelled, and has ended before this one begins. This one can be cancelled
        from the first moment on: nothing is awaited before it is known.
        """
        if self._closed.is_set():
            raise NoSuchSession
        before, over = self._now, anyio.Event()
        if before is not None:
            before.root.scope.cancel()
        try:
            return await self._operate(blocks, before, over)
        finally:
            with anyio.move_on_after(FLUSH_SECONDS, shield=True):
                await self._speech.flushed()
            over.set()
            if self._now is not None and self._now.over is over:
                self._now = None

    async def _operate(self, blocks: Sequence[Block], before: _Now | None, over: anyio.Event) -> Stop:
        with operation(title_of(blocks), self._speech.activity) as root:
            self._now = _Now(root, over)
            if before is not None:
                with anyio.CancelScope(shield=True):  # it is cancelled, and bounded by its own last words
                    await before.over.wait()
            return await self._work(blocks, root)
        return "cancelled"

    async def _work(self, blocks: Sequence[Block], root: Activity) -> Stop:
        command = commands.command_in(text_of(blocks))
        if command is not None:
            await self._do(command, root)
            return "end_turn"
        await self._ready.wait()  # what is slow to load is loaded, once and in one thread
        model, talk = await self._model(), await self._talk()
        self._entitle(blocks)
        talk.hear(blocks, model)
        return await talk.answer(model, await self._tools(), root)

    async def _do(self, command: Command, root: Activity) -> None:
        match command.word:
            case "help":
                tools = len((await self._tools()).tools)
                self._speech.text(commands.help_text(self.options.current, self.options.level, tools))
            case "model":
                self._speech.text(self._choose(command.rest))
            case "compact":
                await self._compact(command.rest, root)

    def _choose(self, name: str) -> str:
        if not name:
            return commands.models_text(self.options.current, self.options.offered)
        try:
            self.set(MODEL, name)
        except NoSuchOption as problem:
            return str(problem)
        self._tell_options()
        return f"From now on `{self.options.current}` answers."

    async def _compact(self, focus: str, root: Activity) -> None:
        talk = await self._talk()
        if not talk.begun:
            self._speech.text("There is nothing to sum up yet.")
        elif not await talk.compact(focus, await self._model(), await self._tools(), root):
            self._speech.text("The conversation stays as it was.")

    async def _model(self) -> Model:
        """Raises ModelError."""
        if self.options.current is None:
            self.options.otherwise = await self._models.default()
            self._tell_options()
        return await self._models.model(self.options.current, self.options.thought_level)

    async def _talk(self) -> Conversation:
        """Raises NoSuchSession."""
        if self._conversation is None:
            made = await anyio.to_thread.run_sync(_conversation)
            self._conversation = made(self._kept, self._cwd, self._speech, self._settings)
        return self._conversation

    async def _tools(self) -> Toolset:
        """Connected; what could not be is said once."""
        toolset = await self._loaded_tools()
        await toolset.ready()
        for note in toolset.notes:
            if note not in self._noted:
                self._noted.add(note)
                self._speech.note(note)
        return toolset

    async def _loaded_tools(self) -> Toolset:
        await self._ready.wait()
        assert self._toolset is not None
        return self._toolset

    async def _look_for_models(self, loaded: anyio.Event) -> None:
        await loaded.wait()
        self.options.offered = await self._models.offered()
        self.options.otherwise = await self._models.default()
        self._menu.set()
        self._tell_options()
        with suppress(ModelError):  # the prompt will say so; here it is only made ready for one
            await self._models.model(self.options.current, self.options.thought_level)

    def _tell_options(self) -> None:
        """Where they are others than the host knows."""
        if self._told_options is not None and self._told_options != self.options.listed():
            self._speech.update({"sessionUpdate": "config_option_update", "configOptions": self.listed()})

    def _entitle(self, blocks: Sequence[Block]) -> None:
        if not self._kept.record.title:
            self._kept.title(title_of(blocks))
            self._speech.title(self._kept.record.title)

    async def _end_operation(self) -> None:
        self.cancel()
        if self._now is not None:
            await self._now.over.wait()


def _options(kept: Kept, settings: OwnAgentSection) -> Options:
    """As they were set in this conversation, else as they are set for all."""
    options, found = Options(None, settings.thought_level or "default"), kept.record.settings
    for name in (MODEL, THOUGHT):
        with suppress(NoSuchOption):  # of another version, or by another hand
            options.set(name, found[name]) if name in found else None
    return options


def _conversation() -> type[Conversation]:
    """Slow the first time: to be called off the loop."""
    from handrail.agents.builtin.conversation import Conversation  # noqa: PLC0415

    return Conversation
