"""What one session works with, and what is done with a prompt: a command, or thought.

Owns the session's tools, model, settings and conversation, each from when it is first needed. It does not know that
there is one operation at a time, nor how one is cancelled (session.py).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from handrail.agents.builtin.hosted import commands
from handrail.agents.builtin.hosted.blocks import text_of, title_of
from handrail.agents.builtin.hosted.options import MODEL, THOUGHT, NoSuchOption, Options
from handrail.agents.builtin.model.model import ModelError
from handrail.agents.builtin.tools.toolset import Toolset, opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from handrail.agents.builtin.hosted.blocks import Block
    from handrail.agents.builtin.hosted.commands import Command
    from handrail.agents.builtin.hosted.conversation import Conversation
    from handrail.agents.builtin.hosted.kept import Kept
    from handrail.agents.builtin.hosted.speech import Speech
    from handrail.agents.builtin.model.model import Model
    from handrail.agents.builtin.model.models import Models
    from handrail.agents.builtin.thinking.activity import Activity
    from handrail.agents.builtin.thinking.budget import Stop
    from handrail.agents.builtin.tools.tool import Json
    from handrail.agents.builtin.tools.wanted import Given
    from handrail.config import OwnAgentSection

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
        told = {"sessionUpdate": "available_commands_update", "availableCommands": commands.listed()}
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
        command = commands.command_in(text_of(blocks))
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
                self._speech.text(commands.help_text(self._options.current, self._options.level, tools))
            case "model":
                self._speech.text(self._choose(command.rest))
            case "compact":
                await self._compact(command.rest, root)

    def _choose(self, name: str) -> str:
        if not name:
            return commands.models_text(self._options.current, self._options.offered)
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
        from handrail.agents.builtin.hosted.conversation import Conversation  # noqa: PLC0415 - loaded by now

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
