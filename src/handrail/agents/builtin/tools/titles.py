"""How calls are shown to people before they have run: a title, a sort of work, and the files they are about.

Owns the words for our own server's tools. It knows nothing of others' but their names.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from handrail.agents.builtin.tools.tool import Json, Kind, Shown

LONGEST = 160
"""Characters of a title: one line on a page."""


def shown(tool: str, input: Json, cwd: str) -> Shown:
    """A call of our own server's; one that this does not know is shown by its name."""
    kind, words = _OURS.get(tool, ("other", _by_name(tool)))
    return Shown(title=one_line(words(input)), kind=kind, paths=_paths(input, cwd))


def foreign(server: str, tool: str) -> Shown:
    """A call of another's."""
    return Shown(title=one_line(f"{tool} ({server})"))


def _paths(input: Json, cwd: str) -> tuple[str, ...]:
    path = input.get("path")
    return (str(Path(cwd, path)),) if isinstance(path, str) and path and "\0" not in path else ()


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _about(name: str, template: str, otherwise: str) -> Callable[[Json], str]:
    """The template with this input in it, where it is given."""

    def words(input: Json) -> str:
        value = input.get(name)
        return template.format(value) if isinstance(value, str) and value else otherwise

    return words


def _by_name(tool: str) -> Callable[[Json], str]:
    return lambda _input: tool.replace("_", " ").capitalize()


def _typed(input: Json) -> str:
    keys: Any = input.get("keys")
    named = " ".join(map(str, cast("list[object]", keys))) if isinstance(keys, list) else str(keys or "")
    what = f"`{input['text']}`" if input.get("text") else named or "nothing"
    return f"Type {what} into terminal {input.get('terminalId', '')}"


def _waited(input: Json) -> str:
    until = f"{input.get('until', '')} {input.get('value') or ''}".strip()
    return f"Wait for terminal {input.get('terminalId', '')}" + (f": {until}" if until else "")


_OURS: dict[str, tuple[Kind, Callable[[Json], str]]] = {
    "read_file": ("read", _about("path", "Read {}", "Read a file")),
    "list_files": ("search", _about("path", "List {}", "List files")),
    "search_files": ("search", _about("pattern", "Find {}", "Find files")),
    "search_content": ("search", _about("pattern", "Search for `{}`", "Search files")),
    "write_file": ("edit", _about("path", "Write {}", "Write a file")),
    "edit_file": ("edit", _about("path", "Edit {}", "Edit a file")),
    "apply_diff": ("edit", _about("path", "Edit {}", "Edit a file")),
    "execute_command": ("execute", _about("command", "Run `{}`", "Run a command")),
    "create_tracked_terminal": ("execute", _about("name", "Open terminal {}", "Open a terminal")),
    "list_tracked_terminals": ("read", lambda _: "List terminals"),
    "get_terminal_buffer": ("read", _about("terminalId", "Read terminal {}", "Read a terminal")),
    "send_to_terminal": ("execute", _typed),
    "wait_for_terminal": ("other", _waited),
    "search_terminal_buffer": (
        "search",
        _about("pattern", "Search a terminal for `{}`", "Search a terminal"),
    ),
    "close_terminal": ("execute", _about("terminalId", "Close terminal {}", "Close a terminal")),
    "list_calls": ("read", lambda _: "List calls"),
    "get_call": ("read", _about("call_id", "Look at call {}", "Look at a call")),
    "wait_for_call": ("other", _about("call_id", "Wait for call {}", "Wait for a call")),
}
