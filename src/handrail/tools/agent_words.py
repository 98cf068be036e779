"""What an agent's own words about its work name: lines it would run, paths and machines it would touch.

Owns the reading of those words, which are the agent's and may understate: everything that is named counts, and what is
not known for sure to be harmless is told as unclear. It makes no claims (advisory.py), and looks at no file.
"""

import shlex
from collections.abc import Iterator

from pydantic import JsonValue

from handrail.tools.commands.commanding import COMMAND_BYTES
from handrail.tools.commands.hosts import hosts

MOST_NAMED = 400
"""Paths of one question; of more than that, nobody could tell what they mean together."""
_LINES = ("command", "cmd", "commands", "script", "argv")
_WORDS = ("args", "arguments")
"""More words of the command that stands beside them."""
_FOLDERS = ("cwd", "workdir", "working_directory", "directory", "dir_path")
_HARMLESS = frozenset(
    (
        *("description", "reason", "justification", "explanation", "title", "timeout", "timeout_ms", "id"),
        *("run_in_background", "is_background", "call_id", "turn_id", "approval_id", "parsed_cmd"),
        "proposed_execpolicy_amendment",
    )
)
"""What agents say beside a command that changes nothing about it; a variable, a shell or an undone sandbox would."""
_PATHS = ("path", "paths", "file", "files", "filename", "file_name", "folder", "directory", "dir", "root")
"""How the names of fields end that hold paths; also `file_path`, `filePath`, `notebook_path`, `grant_root`."""
_ENDS = frozenset(("source", "src", "destination", "dest", "dst", "target", "from", "to", "old", "new"))
_BY_PATH = ("changes", "file_changes", "filechanges", "files")
"""Fields that hold an object of which each name is a path."""
_CHANGES = frozenset(
    ("content", "contents", "new_string", "newstring", "new_text", "newtext", "edits", "patch", "new_source")
)
"""Fields by which an agent's tools change a file."""
_URLS = ("url", "uri", "urls", "href", "link")


class Words:
    """The input of an agent's own tool, as far as it can be read."""

    def __init__(self, given: JsonValue) -> None:
        self._given = given if isinstance(given, dict) else {}
        self._is_read = given is None or isinstance(given, dict)

    @property
    def readable(self) -> bool:
        """It is an object, or nothing was said: anything else may be a part of something larger."""
        return self._is_read

    @property
    def lines(self) -> list[str]:
        """Whatever it would run, under any name."""
        found = (self._line(name) for name in _LINES if self._given.get(name) is not None)
        return [line for line in found if line]

    @property
    def one_line(self) -> bool:
        """That it runs one plain line, and nothing stands beside it that might change what it does."""
        said = [name for name, value in self._given.items() if value not in (None, "", False, [], {})]
        others = [
            name for name in said if name not in (*_LINES, *_WORDS, *_FOLDERS) and name not in _HARMLESS
        ]
        lines = [name for name in said if name in _LINES]
        return not others and len(lines) == 1 and len(self.lines) == 1 and len(self.folders) <= 1

    @property
    def folders(self) -> list[str]:
        """Where it would run it; one that is no text is told as an empty one."""
        said = [value for name in _FOLDERS if (value := self._given.get(name)) not in (None, "")]
        return list(dict.fromkeys(value if isinstance(value, str) else "" for value in said))

    @property
    def paths(self) -> list[str]:
        """Every path that it names, wherever it stands."""
        return list(dict.fromkeys(_paths(self._given)))

    @property
    def changes(self) -> bool:
        """It holds something to put into a file."""
        return any(name.lower() in _CHANGES and value is not None for name, value in self._given.items())

    @property
    def hosts(self) -> list[str]:
        """The machines of the URLs it names."""
        return list(dict.fromkeys(host for word in _texts(self._given) for host in hosts(("fetch", word))))

    @property
    def reaches(self) -> bool:
        """Each URL it names says which machine."""
        named = [value for name in _URLS if (value := self._given.get(name)) is not None]
        return bool(named) and all(
            isinstance(word, str) and any(hosts(("fetch", word)))
            for value in named
            for word in (value if isinstance(value, list) else [value])
        )

    def _line(self, name: str) -> str:
        """One line; empty where it is none that could be run as it stands."""
        more = next((value for name in _WORDS if (value := self._given.get(name)) is not None), None)
        said = self._given[name]
        line = said if isinstance(said, str) and more in (None, [], "") else _joined(said, more)
        is_line = bool(line.strip()) and len(line) <= COMMAND_BYTES and "\0" not in line
        return line if is_line else ""


def _joined(said: JsonValue, more: JsonValue) -> str:
    """Words as a line; a word that is no text makes it none, since it would be left out."""
    first = said if isinstance(said, list) else [said]
    rest = more if isinstance(more, list) else [] if more is None else [more]
    words = [word for word in (*first, *rest) if isinstance(word, str)]
    return shlex.join(words) if len(words) == len(first) + len(rest) else ""


def _paths(given: JsonValue) -> Iterator[str]:
    if isinstance(given, list):
        for each in given:
            yield from _paths(each)
    if isinstance(given, dict):
        for name, value in given.items():
            low = name.lower()
            if low in _BY_PATH and isinstance(value, dict):
                yield from value
            elif low.endswith(_PATHS) or (low in _ENDS and _looks_like_a_path(value)):
                yield from _at_once(value)
            if isinstance(value, dict | list):
                yield from _paths(value)


def _looks_like_a_path(value: JsonValue) -> bool:
    """Fields with these names hold text of any kind."""
    return isinstance(value, str) and value.startswith(("/", "~", "./", "../", "file://"))


def _at_once(value: JsonValue) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str) and each:
            yield each


def _texts(given: JsonValue) -> Iterator[str]:
    match given:
        case str():
            yield given
        case list():
            for each in given:
                yield from _texts(each)
        case dict():
            for each in given.values():
                yield from _texts(each)
        case _:
            return
