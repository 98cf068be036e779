"""One session: a conversation that is open, and its operation where one is under way.

Owns that there is one operation at a time, and that a new prompt waits until the one before has really ended. Nothing is
kept of an operation but its root: cancelling is that scope's. It does not know how sessions are found (program.py), nor
what is done with a prompt (work.py).

What one session works with, and what is done with a prompt: a command, or thought.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from handrail.own_agent import slash_commands
from handrail.own_agent.activity import Activity, operation
from handrail.own_agent.content import text_of, title_of
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.session_files import NoSuchSession
from handrail.own_agent.slash_commands import MODEL, THOUGHT, NoSuchOption, Options
from handrail.own_agent.tools.toolset import Toolset, opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from handrail.config import OwnAgentSection
    from handrail.own_agent.budget import Stop
    from handrail.own_agent.content import Block
    from handrail.own_agent.conversation import Conversation
    from handrail.own_agent.models.catalog import Models
    from handrail.own_agent.models.model import Model
    from handrail.own_agent.session_files import Kept
    from handrail.own_agent.slash_commands import Command
    from handrail.own_agent.tools.agent_tool import Json
    from handrail.own_agent.tools.mcp_transport import Given
    from handrail.own_agent.updates import Speech


MENU_SECONDS = 3.0
"""What opening a session waits for the list of models where none is known by a key that was given: some hosts choose one
at once, and never look again. One that comes later is told later."""


class Work:
    """Of one session."""

    def __init__(
        self, kept: Kept, cwd: Path, speech: Speech, models: Models, settings: OwnAgentSection
    ) -> None:
        self._kept, self._cwd, self._speech = kept, cwd, speech
        self._models, self._settings = models, settings
        self._ready, self._menu = anyio.Event(), anyio.Event()
        self._toolset: Toolset | None = None
        self._conversation: Conversation | None = None
        self._noted: set[str] = set()
        self._options = _options(kept, settings)
        self._options.offered = models.known()
        self._options.otherwise = models.preferred(self._options.offered)
        self._told_options: list[Json] | None = None
        """As the host knows them; None before it knows the session."""

    async def prepare(self, given: Sequence[Given], loaded: anyio.Event) -> None:
        """Connect the tools, look for models, and hold on to both until cancelled. `loaded`: what is slow to load is."""
        await loaded.wait()
        async with opened(given, str(self._cwd)) as self._toolset:
            self._ready.set()
            await self._look_for_models()
            await anyio.sleep_forever()

    async def menu(self) -> None:
        """Wait a moment for the list of models, where there is none."""
        if not self._options.offered:
            with anyio.move_on_after(MENU_SECONDS):
                await self._menu.wait()

    def greet(self) -> None:
        """What a host is told of a session as soon as it knows it."""
        told = {"sessionUpdate": "available_commands_update", "availableCommands": slash_commands.listed()}
        self._speech.update(told)
        self._tell_options()

    async def show(self) -> None:
        """Say again all that was said before. Raises NoSuchSession."""
        (await self._talk()).show()
        await self._speech.flushed()

    def listed(self) -> list[Json]:
        """The options, for the host to know."""
        self._told_options = self._options.listed()
        return self._told_options

    def set(self, option: str, value: object) -> None:
        """Raises NoSuchOption."""
        self._kept.set(option, self._options.set(option, value))

    async def do(self, blocks: Sequence[Block], root: Activity) -> Stop:
        """One prompt. Raises ModelError, NoSuchSession."""
        command = slash_commands.command_in(text_of(blocks))
        if command is not None:
            await self._obey(command, root)
            return "end_turn"
        talk, model = await self._talk(), await self._model()
        self._entitle(blocks)
        talk.hear(blocks, model)
        return await talk.answer(model, await self._tools(), root)

    async def _obey(self, command: Command, root: Activity) -> None:
        match command.word:
            case "help":
                tools = len((await self._tools()).tools)
                self._speech.text(slash_commands.help_text(self._options.current, self._options.level, tools))
            case "model":
                self._speech.text(self._choose(command.rest))
            case "compact":
                await self._compact(command.rest, root)

    def _choose(self, name: str) -> str:
        if not name:
            return slash_commands.models_text(self._options.current, self._options.offered)
        try:
            self.set(MODEL, name)
        except NoSuchOption as problem:
            return str(problem)
        self._tell_options()
        return f"From now on `{self._options.current}` answers."

    async def _compact(self, focus: str, root: Activity) -> None:
        talk = await self._talk()
        if not talk.begun:
            self._speech.text("There is nothing to sum up yet.")
        elif not await talk.compact(focus, await self._model(), await self._tools(), root):
            self._speech.text("The conversation stays as it was.")

    async def _model(self) -> Model:
        """Raises ModelError."""
        if self._options.current is None:
            self._options.otherwise = await self._models.default()
            self._tell_options()
        return await self._models.model(self._options.current, self._options.thought_level)

    async def _talk(self) -> Conversation:
        """Raises NoSuchSession."""
        await self._ready.wait()  # what is slow to load is loaded, once and in one thread
        from handrail.own_agent.conversation import Conversation  # noqa: PLC0415 - loaded by now

        if self._conversation is None:
            self._conversation = Conversation(self._kept, self._cwd, self._speech, self._settings)
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

    async def _look_for_models(self) -> None:
        self._options.offered = await self._models.offered()
        self._options.otherwise = self._options.otherwise or await self._models.default()
        self._menu.set()
        self._tell_options()
        with suppress(ModelError):  # the prompt will say so; here it is only made ready for one
            await self._models.model(self._options.current, self._options.thought_level)

    def _tell_options(self) -> None:
        """Where they are others than the host knows."""
        if self._told_options is not None and self._told_options != self._options.listed():
            self._speech.update({"sessionUpdate": "config_option_update", "configOptions": self.listed()})

    def _entitle(self, blocks: Sequence[Block]) -> None:
        if not self._kept.record.title:
            self._kept.title(title_of(blocks))
            self._speech.title(self._kept.record.title)


def _options(kept: Kept, settings: OwnAgentSection) -> Options:
    """As they were set in this conversation, else as they are set for all."""
    options, found = Options(None, settings.thought_level or "default"), kept.record.settings
    for name in (MODEL, THOUGHT):
        with suppress(NoSuchOption):  # of another version, or by another hand
            options.set(name, found[name]) if name in found else None
    return options


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

    def __init__(self, id: str, speech: Speech, work: Work) -> None:
        self.id, self.work, self._speech = id, work, speech
        self._now: _Now | None = None
        self._closing, self._closed = anyio.Event(), anyio.Event()

    async def live(self, given: Sequence[Given], loaded: anyio.Event) -> None:
        """All that has to run while it is open. To be started as a task of its own; `loaded`: what is slow to load is."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._speech.deliver)
                group.start_soon(self.work.prepare, given, loaded)
                await self._closing.wait()
                await self._end_operation()
                await self._speech.flushed()
                group.cancel_scope.cancel()
        except* Exception as broken:  # a fault of ours; the other sessions are not to end with this one
            logging.getLogger(__name__).error("Session %s broke", self.id, exc_info=broken)
            self._closing.set()
            self.cancel()
        finally:
            self._closed.set()

    async def close(self, *, heard: bool = True) -> None:
        """End what runs, and let go of the tools. `heard`: whether anybody still listens."""
        if not heard:
            self._speech.end()
        self._closing.set()
        await self._closed.wait()

    def cancel(self) -> None:
        if self._now is not None:
            self._now.root.scope.cancel()

    def cancel_activity(self, id: str) -> bool:
        """False where there is none of this id any more."""
        return self._now is not None and self._now.root.cancel(id)

    async def prompt(self, blocks: Sequence[Block]) -> Stop:
        """Returns when it is answered and all of that is sent. Raises ModelError, NoSuchSession.

        An operation that is under way is cancelled, and has ended before this one begins. This one can be cancelled
        from the first moment on: nothing is awaited before it is known.
        """
        if self._closing.is_set():
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
        with operation("Prompt", self._speech.activity) as root:
            self._now = _Now(root, over)
            if before is not None:
                with anyio.CancelScope(shield=True):  # it is cancelled, and bounded by its own last words
                    await before.over.wait()
            return await self.work.do(blocks, root)
        return "cancelled"

    async def _end_operation(self) -> None:
        self.cancel()
        if self._now is not None:
            await self._now.over.wait()
