"""config.toml, changed by people on the page: one edit at a time, checked, accepted, and taken up where possible.

Comments and the order of the file are kept. A file that is not the one this daemon knows is not edited: accepting the
edit would accept what another program wrote.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from pydantic import ValidationError

from handrail.clients.config_edit import BadFile, append_item, remove_item, remove_value, set_value
from handrail.clients.config_file import FileProblem, write_bytes
from handrail.config import BadConfig, Config, parse, read, read_text
from handrail.errors import Conflict
from handrail.flat_settings import describe_settings
from handrail.gate.rules.accepted_policy import AcceptedPolicy
from handrail.store.actor import Actor
from handrail.toml_lines import flatten

LIVE = (
    *("human_in_the_loop", "allow_reading_commands", "default_policy", "approvals.", "notify.", "journal."),
    *("undo.", "terminal.keep_", "servers"),
)
"""Prefixes of settings that are in force as soon as they are changed; all others after a restart."""
CHANGED = (
    "config.toml has changed since Handrail took it up, so nothing was written. Run `handrail restart`: it shows what "
    "changed before it takes that up. Then change your settings here."
)
TextEdit = Callable[[str], str]
"""A function from the file's text to the changed text. Raises BadFile."""


class BadSetting(Exception):
    """A value is not valid, or cannot be written; the message is a sentence."""


def is_live(name: str) -> bool:
    return name.startswith(LIVE)


class SettingsFile:
    """The settings file of the running daemon."""

    def __init__(self, path: Path, config: Config, policy: AcceptedPolicy) -> None:
        self.path = path
        self.on_change: list[Callable[[Config], None]] = []
        """Called in a task with settings that a person changed."""
        self._started = self._current = config
        self._policy = policy
        self._one_edit = anyio.Lock()

    @property
    def pending(self) -> frozenset[str]:
        """Names of the settings that were changed, and are in force after a restart."""
        before, now = _flat(self._started), _flat(self._current)
        return frozenset(name for name in now if before.get(name) != now[name] and not is_live(name))

    async def set_values(self, values: Mapping[str, Any], by: Actor) -> None:
        """Set values by their dotted names; None removes one, so that its default holds. Raises BadSetting or Conflict."""

        def edit(text: str) -> str:
            for name, value in values.items():
                pointer = tuple(name.split("."))
                text = (
                    remove_value("toml", text, pointer)
                    if value is None
                    else set_value("toml", text, pointer, value)
                )
            return text

        await self._edit(edit, by)

    async def add_agent(self, entry: Mapping[str, Any], by: Actor) -> None:
        """Append an entry to `[[agents]]`. Raises BadSetting or Conflict."""
        name = entry["name"]
        if any(each.name == name for each in self._current.agents):
            raise BadSetting(f"There is an agent {name} already. Remove it first, or choose another name.")
        await self._edit(lambda text: append_item("toml", text, ("agents",), entry), by)

    async def remove_agent(self, name: str, by: Actor) -> bool:
        """Remove an entry of `[[agents]]`; False if it is missing. Raises BadSetting or Conflict."""
        if all(each.name != name for each in self._current.agents):
            return False

        def edit(text: str) -> str:
            entries: list[dict[str, Any]] = parse(self.path, text).get("agents", [])
            for entry in entries:
                if entry.get("name") == name:
                    text = remove_item("toml", text, ("agents",), entry)
            return text

        await self._edit(edit, by)
        return True

    async def _edit(self, edit: TextEdit, by: Actor) -> None:
        async with self._one_edit:
            before, after, config = await to_thread.run_sync(self._prepare, edit)
            if before == after:
                return

            async def write() -> None:
                await to_thread.run_sync(self._write, before, after)

            await self._policy.change_settings(describe_settings(config), write, by)
            self._current = config
            for notify in self.on_change:
                notify(config)

    def _prepare(self, edit: TextEdit) -> tuple[str, str, Config]:
        """The text of the file, the edited text, and its settings. Raises BadSetting or Conflict."""
        try:
            before = read_text(self.path)  # once: another process may write it at any moment
            known = read(Config, self.path, before)
        except BadConfig as problem:
            raise Conflict(str(problem)) from None
        if describe_settings(known) != self._policy.settings:
            raise Conflict(CHANGED)
        try:
            after = edit(before)
            return before, after, Config.model_validate(parse(self.path, after))
        except BadFile as problem:
            raise BadSetting(f"{self.path} was not changed: {problem}. Change it in an editor.") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(map(str, first["loc"]))
            problem = first["msg"].removeprefix("Value error, ")
            raise BadSetting(f"{name or 'This'}: {problem}. Nothing was changed.") from None

    def _write(self, before: str, after: str) -> None:
        try:
            if read_text(self.path) != before:
                raise Conflict(CHANGED)
            write_bytes(self.path, after.encode())
        except (FileProblem, BadConfig) as problem:
            raise BadSetting(str(problem)) from None


def _flat(config: Config) -> dict[str, Any]:
    return flatten(config.model_dump(mode="json", exclude={"rules"}))
