"""The effects of a client's tool: builders of `Work` for the tools that coding agents share.

A client's table maps the names of its tools to builders. A tool that is not in the table, or whose input does not have
the shape that the builder expects, becomes work of the sort `other`, which always asks.
"""

from collections.abc import Callable, Mapping
from pathlib import PurePath

from handrail.clients.hook_event import Edit, Json, Work
from handrail.clients.hook_payload import (
    children,
    flag,
    required_text,
    required_texts,
    stated_text,
    stated_texts,
)

WorkBuilder = Callable[[Json], Work]
"""Raises ValueError with a sentence if the input does not have the expected shape."""
ToolTable = Mapping[str, WorkBuilder]

OUR_SERVER = "handrail"
"""The name under which `handrail connect` registers the MCP server."""


def build_work(table: ToolTable, tool: str, input: Json) -> Work | None:
    """The work of a tool in the table, or None if the tool is not in it."""
    builder = table.get(tool)
    if builder is None:
        return None
    try:
        return builder(input)
    except ValueError as problem:
        return Work(sort="other", warning=f"Handrail cannot read the input of {tool}. {problem}")


def command(*names: str, cwd: tuple[str, ...] = ("cwd",)) -> WorkBuilder:
    """A shell line, or a list of lines."""

    def build(input: Json) -> Work:
        return Work(
            sort="command", commands=required_texts(input, *names), cwd=stated_text(input, *cwd) or None
        )

    return build


def typed_input(*names: str) -> WorkBuilder:
    """Text that is typed into a program which already runs."""
    warning = (
        "This text is typed into a program that already runs. Handrail does not know which program reads it."
    )

    def build(input: Json) -> Work:
        return Work(sort="command", commands=(required_text(input, *names),), warning=warning)

    return build


def whole_file(path: tuple[str, ...], content: tuple[str, ...]) -> WorkBuilder:
    """A file that is written as a whole."""

    def build(input: Json) -> Work:
        edit = Edit(path=required_text(input, *path), content=required_text(input, *content))
        return Work(sort="edit", edits=(edit,))

    return build


def replacement(
    path: tuple[str, ...],
    old: tuple[str, ...],
    new: tuple[str, ...],
    every: tuple[str, ...] = ("replace_all",),
) -> WorkBuilder:
    """Old text that is replaced by new text. Empty old text creates the file."""

    def build(input: Json) -> Work:
        pair = (stated_text(input, *old), required_text(input, *new))
        edit = _replacement_edit(required_text(input, *path), (pair,), every=flag(input, *every))
        return Work(sort="edit", edits=(edit,))

    return build


def replacements(
    path: tuple[str, ...], list_name: str, old: tuple[str, ...], new: tuple[str, ...]
) -> WorkBuilder:
    """A list of replacements in one file."""

    def build(input: Json) -> Work:
        items = children(input, list_name)
        pairs = tuple((stated_text(item, *old), required_text(item, *new)) for item in items)
        if not pairs:
            raise ValueError(f"The field {list_name} is missing or empty.")
        every = any(flag(item, "replace_all") for item in items)
        return Work(sort="edit", edits=(_replacement_edit(required_text(input, *path), pairs, every=every),))

    return build


def _replacement_edit(path: str, pairs: tuple[tuple[str, str], ...], *, every: bool) -> Edit:
    if len(pairs) == 1 and not pairs[0][0]:
        return Edit(path=path, content=pairs[0][1])
    return Edit(path=path, replacements=pairs, replace_all=every)


def deletion(*names: str) -> WorkBuilder:
    """Files that are deleted."""

    def build(input: Json) -> Work:
        paths = required_texts(input, *names)
        return Work(sort="edit", edits=tuple(Edit(path=path, delete=True) for path in paths))

    return build


def changed_files(*names: str) -> WorkBuilder:
    """Files that are changed in a way that the input does not show as text, such as a cell of a notebook."""
    warning = "The input does not show the new text of the whole file."

    def build(input: Json) -> Work:
        paths = required_texts(input, *names)
        return Work(sort="edit", edits=tuple(Edit(path=path) for path in paths), warning=warning)

    return build


def read(*names: str) -> WorkBuilder:
    """Files or folders that are read, in all of these fields. No field means the client's own folder."""

    def build(input: Json) -> Work:
        return Work(sort="read", paths=stated_texts(input, *names))

    return build


def search(*names: str) -> WorkBuilder:
    """A search in the contents of files."""

    def build(input: Json) -> Work:
        return Work(sort="read", paths=stated_texts(input, *names), globs=stated_texts(input, *_GLOBS))

    return build


_GLOBS = ("glob", "globs", "include", "includes", "include_pattern", "file_pattern", "filePattern")


def fetch(*names: str) -> WorkBuilder:
    """A page that is fetched."""

    def build(input: Json) -> Work:
        return Work(sort="fetch", urls=required_texts(input, *names))

    return build


def search_web(_: Json) -> Work:
    """A search by a service of the client: the words leave the machine, but no address is known."""
    return Work(sort="fetch")


def harmless(_: Json) -> Work:
    """Nothing outside of the agent changes."""
    return Work(sort="harmless")


def load_skill(warning: str = "A skill gives the agent new instructions.") -> WorkBuilder:
    """A skill: instructions, and perhaps commands, that the agent loads. Always asks."""
    return lambda _: Work(sort="other", warning=warning)


def save_memory(_: Json) -> Work:
    """A note that the agent keeps. Always asks."""
    return Work(sort="other", warning="The agent reads its memory in every later conversation.")


def read_resource(input: Json) -> Work:
    """A resource of an MCP server. Never ours, which has none."""
    return mcp(required_text(input, "server", "server_name"), "resources/read", ours=False)


def start_subagent(input: Json) -> Work:
    """Harmless, because a subagent's own calls reach the hook one by one, unless it gets a place of its own."""
    isolation = " ".join(stated_texts(input, "isolation", "working_dir"))
    if not isolation:
        return Work(sort="harmless")
    return Work(sort="other", warning=f"The subagent works in a place of its own: {isolation}.")


def mcp(server: str, tool: str, *, ours: bool | None = None) -> Work:
    """A call to an MCP server: ours by its name, unless the client says more about it."""
    is_ours = server == OUR_SERVER and ours is not False
    return Work(
        sort="mcp", server=server, server_tool=tool, ours=is_ours, is_vouched=is_ours and ours is True
    )


def mcp_from_name(name: str, *, prefix: str = "mcp__", separator: str = "__") -> Work | None:
    """A call to an MCP server by a name such as `mcp__server__tool`, or None if the name has another form."""
    if not name.startswith(prefix):
        return None
    server, _, tool = name.removeprefix(prefix).partition(separator)
    return mcp(server, tool) if server and tool else None


def is_our_program(program: str, cwd: str) -> bool:
    """Whether an MCP server that calls itself by our name is started from outside of the project."""
    path = PurePath(program)
    return path.is_absolute() and path.name == OUR_SERVER and not (cwd and path.is_relative_to(cwd))
