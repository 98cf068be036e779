"""One ACP session: its tools, options and conversation, and the operation that is running.

At most one operation runs at a time. A new prompt cancels the running one and waits until it has ended; a message can
be added to it instead (steering). Slash
commands are handled here; other prompts go to conversation.py.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from handrail.lazy_dataclass import dataclass
from handrail.own_agent import slash_commands
from handrail.own_agent.activity import Activity, operation
from handrail.own_agent.content import text_of, title_of
from handrail.own_agent.models.model import ModelError
from handrail.own_agent.session_files import NoSuchSession
from handrail.own_agent.slash_commands import MODEL, THOUGHT, NoSuchOption, Options
from handrail.own_agent.tools.toolset import open_toolset

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from handrail.config import OwnAgentSection
    from handrail.own_agent.acp_requests import Block, HostServer
    from handrail.own_agent.budget import Stop
    from handrail.own_agent.conversation import Conversation
    from handrail.own_agent.models.catalog import Models
    from handrail.own_agent.models.model import Model
    from handrail.own_agent.session_files import SessionFile
    from handrail.own_agent.slash_commands import Command
    from handrail.own_agent.tools.agent_tool import Json
    from handrail.own_agent.tools.toolset import Toolset
    from handrail.own_agent.updates import SessionUpdates


MENU_SECONDS = 3.0
"""Seconds to wait for the model list when a session opens and no model is known yet: some hosts pick a model
immediately and never look again. A list that arrives later is sent as an update."""


class PromptHandler:
    """Processes the prompts of one session and holds its options."""

    def __init__(
        self, kept: SessionFile, cwd: Path, updates: SessionUpdates, models: Models, settings: OwnAgentSection
    ) -> None:
        self._kept, self._cwd, self._updates = kept, cwd, updates
        self._models, self._settings = models, settings
        self._ready, self._menu = anyio.Event(), anyio.Event()
        self._toolset: Toolset | None = None
        self._conversation: Conversation | None = None
        self._sent_notes: set[str] = set()
        self._options = _options(kept, settings)
        self._options.offered = models.known()
        self._options.otherwise = models.preferred(self._options.offered)
        self._sent_options: list[Json] | None = None
        """The options as last sent to the host; None before the host knows the session."""

    async def prepare(self, given: Sequence[HostServer], loaded: anyio.Event) -> None:
        """Connect the tools, list the models, and hold both until cancelled. `loaded` is set when the slow modules are
        imported; our own server is connected meanwhile."""
        async with open_toolset(given, str(self._cwd)) as self._toolset:
            await loaded.wait()
            self._ready.set()
            await self._look_for_models()
            await anyio.sleep_forever()

    async def menu(self) -> None:
        """Wait up to MENU_SECONDS for the list of models, unless one is known."""
        if not self._options.offered:
            with anyio.move_on_after(MENU_SECONDS):
                await self._menu.wait()

    def greet(self) -> None:
        """Send the commands and options, once the host knows the session."""
        update = {
            "sessionUpdate": "available_commands_update",
            "availableCommands": slash_commands.list_commands(),
        }
        self._updates.update(update)
        self._send_options()

    async def show(self) -> None:
        """Replay the whole conversation to the host. Raises NoSuchSession."""
        (await self._load_conversation()).show()
        await self._updates.flushed()

    def listed(self) -> list[Json]:
        """The options in ACP form; remembers that the host has them."""
        self._sent_options = self._options.listed()
        return self._sent_options

    def set(self, option: str, value: object) -> None:
        """Raises NoSuchOption."""
        self._kept.set(option, self._options.set(option, value))

    async def do(self, blocks: Sequence[Block], root: Activity) -> Stop:
        """Process one prompt. Raises ModelError, NoSuchSession."""
        command = slash_commands.parse_command(text_of(blocks))
        if command is not None:
            await self._run_command(command, root)
            return "end_turn"
        conversation, model = await self._load_conversation(), await self._model()
        self._set_title(blocks)
        conversation.hear(blocks, model)
        try:
            return await conversation.answer(model, await self._tools(), root)
        finally:  # without an await after the loop has ended: a message is answered, or refused
            conversation.close_steering()

    def steer(self, blocks: Sequence[Block]) -> bool:
        """Add a message to the prompt that is being processed; False if it takes none. A slash command is a prompt of
        its own."""
        if self._conversation is None or slash_commands.parse_command(text_of(blocks)) is not None:
            return False
        return self._conversation.steer(blocks)

    async def _run_command(self, command: Command, root: Activity) -> None:
        match command.word:
            case "help":
                tools = len((await self._tools()).tools)
                self._updates.text(
                    slash_commands.help_text(self._options.current, self._options.level, tools)
                )
            case "model":
                self._updates.text(self._choose_model(command.rest))
            case "compact":
                await self._compact(command.rest, root)

    def _choose_model(self, name: str) -> str:
        if not name:
            return slash_commands.models_text(self._options.current, self._options.offered)
        try:
            self.set(MODEL, name)
        except NoSuchOption as problem:
            return str(problem)
        self._send_options()
        return f"From now on `{self._options.current}` answers."

    async def _compact(self, focus: str, root: Activity) -> None:
        conversation = await self._load_conversation()
        if not conversation.begun:
            self._updates.text("There is nothing to sum up yet.")
        elif not await conversation.compact(focus, await self._model(), await self._tools(), root):
            self._updates.text("The conversation stays as it was.")

    async def _model(self) -> Model:
        """Raises ModelError."""
        if self._options.current is None:
            self._options.otherwise = await self._models.default()
            self._send_options()
        return await self._models.model(self._options.current, self._options.thought_level)

    async def _load_conversation(self) -> Conversation:
        """Raises NoSuchSession."""
        await self._ready.wait()  # the slow modules are imported by now
        from handrail.own_agent.conversation import Conversation  # noqa: PLC0415 - imported by now

        if self._conversation is None:
            self._conversation = Conversation(self._kept, self._cwd, self._updates, self._settings)
        return self._conversation

    async def _tools(self) -> Toolset:
        """The connected tools. Each server that could not be connected is reported once."""
        toolset = await self._loaded_tools()
        await toolset.ready()
        for note in toolset.notes:
            if note not in self._sent_notes:
                self._sent_notes.add(note)
                self._updates.note(note)
        return toolset

    async def _loaded_tools(self) -> Toolset:
        await self._ready.wait()
        assert self._toolset is not None
        return self._toolset

    async def _look_for_models(self) -> None:
        self._options.offered = await self._models.offered()
        self._options.otherwise = self._options.otherwise or await self._models.default()
        self._menu.set()
        self._send_options()
        with suppress(ModelError):  # the next prompt reports it; this only prepares the model
            await self._models.model(self._options.current, self._options.thought_level)

    def _send_options(self) -> None:
        """Send the options if they differ from those the host has."""
        if self._sent_options is not None and self._sent_options != self._options.listed():
            self._updates.update({"sessionUpdate": "config_option_update", "configOptions": self.listed()})

    def _set_title(self, blocks: Sequence[Block]) -> None:
        if not self._kept.record.title:
            self._kept.title(title_of(blocks))
            self._updates.title(self._kept.record.title)


def _options(kept: SessionFile, settings: OwnAgentSection) -> Options:
    """The options saved with the conversation; defaults come from the configuration."""
    options, saved = Options(None, settings.thought_level or "default"), kept.record.settings
    for name in (MODEL, THOUGHT):
        with suppress(NoSuchOption):  # written by another version, or by hand
            options.set(name, saved[name]) if name in saved else None
    return options


FLUSH_SECONDS = 30.0
"""Seconds to send the last updates before the prompt is answered; bounds the wait for a host that does not
read."""


@dataclass(frozen=True, slots=True)
class _Operation:
    """The operation that is running."""

    root: Activity
    over: anyio.Event
    """Set when it has ended and all its updates are sent."""


class Session:
    """One session, open from `live` to `close`."""

    def __init__(self, id: str, updates: SessionUpdates, work: PromptHandler) -> None:
        self.id, self.work, self._updates = id, work, updates
        self._operation: _Operation | None = None
        self._closing, self._closed = anyio.Event(), anyio.Event()

    async def live(self, given: Sequence[HostServer], loaded: anyio.Event) -> None:
        """Run the session until `close`. Start it as a task. `loaded` is set when the slow modules are
        imported."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._updates.deliver)
                group.start_soon(self.work.prepare, given, loaded)
                await self._closing.wait()
                await self._end_operation()
                await self._updates.flushed()
                group.cancel_scope.cancel()
        except* Exception as broken:  # a bug; the other sessions must go on
            logging.getLogger(__name__).error("Session %s broke", self.id, exc_info=broken)
            self._closing.set()
            self.cancel()
        finally:
            self._closed.set()

    async def close(self, *, heard: bool = True) -> None:
        """Cancel the operation and disconnect the tools. `heard` is False if the host has disconnected."""
        if not heard:
            self._updates.end()
        self._closing.set()
        await self._closed.wait()

    def cancel(self) -> None:
        if self._operation is not None:
            self._operation.root.scope.cancel()

    def steer(self, blocks: Sequence[Block]) -> bool:
        """Add a message to the operation; False if none runs, or if it takes none."""
        running = self._operation
        return running is not None and not running.root.scope.cancel_called and self.work.steer(blocks)

    def cancel_activity(self, id: str) -> bool:
        """Cancel one activity. False if no open activity has this id."""
        return self._operation is not None and self._operation.root.cancel(id)

    async def prompt(self, blocks: Sequence[Block]) -> Stop:
        """Process a prompt; returns when all its updates are sent. Raises ModelError, NoSuchSession.

        A running operation is cancelled, and ends before this one begins. This one can be cancelled from the
        start: nothing is awaited before it is registered.
        """
        if self._closing.is_set():
            raise NoSuchSession
        before, over = self._operation, anyio.Event()
        if before is not None:
            before.root.scope.cancel()
        try:
            return await self._operate(blocks, before, over)
        finally:
            with anyio.move_on_after(FLUSH_SECONDS, shield=True):
                await self._updates.flushed()
            over.set()
            if self._operation is not None and self._operation.over is over:
                self._operation = None

    async def _operate(self, blocks: Sequence[Block], before: _Operation | None, over: anyio.Event) -> Stop:
        with operation("Prompt", self._updates.activity) as root:
            self._operation = _Operation(root, over)
            if before is not None:
                with anyio.CancelScope(shield=True):  # already cancelled, and bounded by FLUSH_SECONDS
                    await before.over.wait()
            return await self.work.do(blocks, root)
        return "cancelled"

    async def _end_operation(self) -> None:
        self.cancel()
        if self._operation is not None:
            await self._operation.over.wait()
