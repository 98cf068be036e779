"""Session modes: whom an agent asks in its present mode, and the mode in which it asks.

A table of the mode ids that agents use. A mode that is not in it gets no claim: an id says little about an untested
agent. Derived from the session state, never stored.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from typing_extensions import TypedDict

from handrail.agents.lenient_json import record, records, text
from handrail.store.values import Json

Asks = Literal["everything", "commands", "nobody"]
"""What an agent asks about before it acts: its changes and commands, its commands only, or nothing at all."""


class ModeSwitch(TypedDict):
    """A mode that can be set: the body of `POST /api/threads/{id}/setting`, and its name for people."""

    setting: Literal["mode", "option"]
    id: str
    value: str
    name: str


class Asking(TypedDict):
    """State `asking`: added to a thread's state where it is sent, and not stored."""

    asks: Asks
    mode: str
    """The name of the present mode."""
    switch: ModeSwitch | None
    """The mode that asks about more; None if the agent offers none."""


_ASKS: dict[str, Asks] = {
    **dict.fromkeys(("default", "ask", "manual", "approve", "interactive", "askalways"), "everything"),
    **dict.fromkeys(("acceptedits", "autoedit", "autoeditmode", "editsonly"), "commands"),
    **dict.fromkeys(("bypasspermissions", "bypass", "dontask", "yolo", "auto"), "nobody"),
    **dict.fromkeys(("autoapprove", "autopilot", "fullaccess", "dangerfullaccess"), "nobody"),
}
"""By the id, in lower case and without separators: `acceptEdits` of Claude Code, `auto-edit` of Qwen Code, `yolo` of
Gemini CLI, `auto` and `approve` of goose, `full-access` of Codex, `#autopilot` of Copilot."""
_ASKS_BY_AGENT: dict[str, dict[str, Asks | None]] = {
    # Its sandbox decides: it asks about what leaves the folder, and not about what stays in it.
    "codex": {
        "auto": None,
        "default": None,
        "readonly": "everything",
        "workspacewrite": None,
        "agent": "nobody",  # "Auto review": a model answers its permission requests
        "agentfullaccess": "nobody",
    },
    "claude": {"auto": None},  # a model decides about each call
    "qwen": {"auto": None},  # likewise: it lets a call pass, blocks it or asks
    "hermes": {"default": None},  # only for commands that it thinks dangerous
}
"""Known agents, by name, whose modes mean something else; None: no claim."""
_HARMLESS = ("model", "thought_level")
"""Categories of options that do not change whom an agent asks."""
_ORDER: tuple[Asks, ...] = ("nobody", "commands", "everything")


def find_asking(agent: str, state: Mapping[str, Json]) -> Asking | None:
    """Whom the agent asks in its present mode; None if that is not known."""
    modes = [*_modes(state)]
    current = next((mode for mode in modes if mode.is_current), None)
    asks = None if current is None else _asks_in(agent, current.value)
    if current is None or asks is None:
        return None
    better = [mode for mode in modes if _rank(_asks_in(agent, mode.value)) > _rank(asks)]
    best = max(better, key=lambda mode: _rank(_asks_in(agent, mode.value)), default=None)
    return {"asks": asks, "mode": current.name, "switch": best and best.as_switch()}


def add_asking(agent: str, state: dict[str, Json]) -> dict[str, Json]:
    """The state with `asking`, if it says something about the mode; an empty `asking` if that is not known."""
    if "modes" not in state and not _mode_option(state):
        return state
    found = find_asking(agent, state)
    return {**state, "asking": {} if found is None else record(found)}


def may_ask_less(agent: str, state: Mapping[str, Json], option: str, value: str | bool) -> bool:
    """Whether an agent may ask about less after this change: of an option, or of its mode if `option` is empty."""
    options = records(state.get("options", {}).get("options"))
    category = next((each.get("category") for each in options if each.get("id") == option), "")
    if category in _HARMLESS:
        return False
    is_mode = option == "" or category == "mode"
    return not is_mode or _asks_in(agent, str(value)) != "everything"


class _Mode(NamedTuple):
    value: str
    name: str
    is_current: bool
    option: str | None
    """The id of the option that sets it; None for a mode of the protocol's own kind."""

    def as_switch(self) -> ModeSwitch:
        kind: Literal["mode", "option"] = "mode" if self.option is None else "option"
        return {"setting": kind, "id": self.option or "", "value": self.value, "name": self.name}


def _modes(state: Mapping[str, Json]) -> Iterator[_Mode]:
    """The modes, from an option of category `mode` or else from the session's own list, as the page shows them."""
    if option := _mode_option(state):
        for choice in records(option.get("choices")):
            value = text(choice.get("value"))
            yield _Mode(
                value, text(choice.get("name")) or value, value == option.get("value"), text(option.get("id"))
            )
        return
    modes = state.get("modes", {})
    for mode in records(modes.get("modes")):
        value = text(mode.get("id"))
        yield _Mode(value, text(mode.get("name")) or value, value == modes.get("current"), None)


def _mode_option(state: Mapping[str, Json]) -> Json:
    options = records(state.get("options", {}).get("options"))
    found = [option for option in options if option.get("category") == "mode"]
    return found[0] if found else {}


def _asks_in(agent: str, mode: str) -> Asks | None:
    """By the last part of the id, as Copilot's are URLs."""
    key = "".join(filter(str.isalnum, mode.rpartition("#")[2])).lower()
    own = _ASKS_BY_AGENT.get(agent, {})
    return own[key] if key in own else _ASKS.get(key)


def _rank(asks: Asks | None) -> int:
    return -1 if asks is None else _ORDER.index(asks)
