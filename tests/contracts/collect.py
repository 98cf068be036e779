"""Collects Handrail's public contracts from the code, as text that can be compared with the stored files.

Every import of `handrail` in this folder's contract tests stands here. After a move, only these lines change. A contract
holds names, types, defaults and versions. Docstrings, help texts and names of internal classes are left out, except
where a client reads them: tool descriptions are part of `tools/list`.
"""

import json
import re
import socket
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, cast, get_args, get_origin

import anyio
import typer.main
from mcp.client.client import Client
from pydantic import TypeAdapter

from handrail.cli.command_line import build_app
from handrail.cli.failure import Code
from handrail.config import Config, ProjectConfig
from handrail.daemon._toolbox import build_toolbox
from handrail.door import attach_client, connect, shell
from handrail.gate import tool as undo
from handrail.keeper import protocol as keeper
from handrail.keeper.message_framing import name_of
from handrail.server.api import approval_models
from handrail.server.mcp import local_socket, tool_results
from handrail.server.mcp.mcp_server import ConnectionHooks, McpServers
from handrail.server.openapi import describe
from handrail.store import values
from handrail.store._search_file import SearchFile, TextKind
from handrail.store.calls import Status
from handrail.store.database import open_writer
from handrail.store.events import events
from handrail.store.threads import parts
from handrail.terminal.wait import wait

Json = dict[str, Any]
PROSE = ("title", "description", "summary", "operationId")
"""Keys of a schema that docstrings and internal names fill."""
WIDE = 110
"""Characters of a line in a stored file."""


# MCP


def collect_tools() -> str:
    """`tools/list` and the server's instructions, as an MCP client receives them."""
    return as_json(anyio.run(_list_tools))


async def _list_tools() -> Json:
    anything: Any = _Anything()
    anything.toolbox = build_toolbox(anything, anything, anything, [], {}, anything)
    server = McpServers(anything, anything, 1.0, None, anything).server(ConnectionHooks(caller=anything))
    async with Client(server, mode="legacy") as client:
        listed = await client.list_tools()
        tools = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
        return {"instructions": client.instructions, "tools": tools}


class _Anything:
    """Stands in for what tools only keep until they run."""

    def __getattr__(self, name: str) -> "_Anything":
        return _Anything()

    def __call__(self, *_: object) -> "_Anything":
        return _Anything()


# HTTP


def collect_openapi() -> str:
    """The description of `/api`, without prose. Schema names stay: the page's types are generated from them."""
    return as_json(without_prose(describe()))


# Journal and database


def collect_events() -> str:
    """Every event kind with the JSON schema of its fields."""
    schema = inline(events.json_schema())
    kinds: list[Json] = schema["oneOf"]
    return as_json({kind["properties"]["kind"]["const"]: kind for kind in kinds})


def collect_sql() -> str:
    """The schema of a new database and of a new search index, without comments."""
    with TemporaryDirectory() as folder:
        database, words = Path(folder, "handrail.db"), Path(folder, "words.db")
        open_writer(database).close()
        SearchFile(words).close()
        return "\n".join(_schema_of(path) for path in (database, words))


def _schema_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        shadows = {row[1] for row in connection.execute("PRAGMA table_list") if row[2] == "shadow"}
        rows = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
        )
        statements = [_plain_sql(sql) for name, sql in rows if name not in shadows]
    return "\n\n".join([f"-- {path.name}: user_version {version}", *statements]) + "\n"


def _plain_sql(statement: str) -> str:
    lines = (re.sub(r"\s*--.*", "", line).rstrip() for line in statement.splitlines())
    return "\n".join(line for line in lines if line) + ";"


# Command line


def collect_commands() -> str:
    """Every command with its arguments and options."""
    return as_json(dict(_commands("handrail", typer.main.get_command(build_app()))))


def _commands(name: str, command: Any) -> list[tuple[str, Any]]:
    below: Mapping[str, Any] = getattr(command, "commands", {})
    hidden = [{"hidden": True}] if command.hidden else []
    found = [(name, [*hidden, *(_param(param) for param in command.params)])]
    return found + [pair for word, one in below.items() for pair in _commands(f"{name} {word}", one)]


def _param(param: Any) -> Json:
    """One argument or option. An option is known by its flags, an argument by its name in the usage line."""
    kind: str = param.param_type_name
    names = (
        [param.metavar or param.name.upper()] if kind == "argument" else [*param.opts, *param.secondary_opts]
    )
    marks = {name: True for name in ("required", "multiple", "hidden") if getattr(param, name)}
    default = {} if param.default is None else {"default": _plain(param.default)}
    nargs = {} if param.nargs == 1 else {"nargs": param.nargs}
    return {kind: names, "type": _type_name(param.type_descriptor.annotation), **default, **nargs, **marks}


def _type_name(kind: Any) -> str | list[str]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return str(kind) if get_args(kind) else kind.__name__


def _plain(default: object) -> object:
    return default if isinstance(default, str | int | float | bool) else str(default)


def collect_exit_codes() -> str:
    commands = {code.name: int(code) for code in Code}
    return as_json({**commands, "PROGRAM_NOT_FOUND": shell.NOT_FOUND})


# Configuration


def collect_config() -> str:
    """Every key of `config.toml` and of a project's own file, with type, bounds and default."""
    user, project = (inline(kind.model_json_schema()) for kind in (Config, ProjectConfig))
    return as_json({"config.toml": user, ".handrail/config.toml": project})


# Sockets


def collect_keeper() -> str:
    """The keeper's protocol version, and every message with its fields."""
    to_keeper = (keeper.Hello, *get_args(keeper.Request))
    from_keeper = (keeper.Welcome, keeper.Refused, *get_args(keeper.Reply), *get_args(keeper.Notice))
    return as_json(
        {
            "protocol": {"keeper": keeper.PROTOCOL, "door": attach_client.PROTOCOL},
            "terminal_id": keeper.TERMINAL_ID.pattern,
            "to_keeper": {name_of(kind): _fields(kind) for kind in to_keeper},
            "from_keeper": {name_of(kind): _fields(kind) for kind in from_keeper},
        }
    )


def _fields(kind: Any) -> Json:
    return inline(TypeAdapter(kind).json_schema())


def collect_hello() -> str:
    """The greeting on the daemon's socket: what a door sends, and what the daemon reads."""
    return as_json(
        {
            "version": {"door": connect.HELLO, "daemon": local_socket.HELLO},
            "sent": {name: type(value).__name__ for name, value in sorted(_sent_hello().items())},
            "read": inline(local_socket.Hello.model_json_schema()),
        }
    )


def _sent_hello() -> Json:
    """The line that a door sends, caught on a socket pair."""
    ours, theirs = socket.socketpair()
    reply = json.dumps({"handrail": connect.HELLO, "ok": True}).encode() + b"\n"
    options = {"workspace": "/w", "door": "d", "credential": "c"}
    with ours, theirs:
        thread = threading.Thread(target=connect.say_hello, args=(ours, "mcp"), kwargs=options)
        thread.start()
        with theirs.makefile("rb") as lines:
            sent = json.loads(lines.readline())
        theirs.sendall(reply)
        thread.join()
    return sent


# Words


def collect_words() -> str:
    """Words with a fixed meaning in events, routes, tools and commands."""
    return as_json(
        {
            "call status": words_of(Status),
            "call status, to agents": words_of(tool_results.WireStatus),
            "call outcome": words_of(values.Ending),
            "call assurance": words_of(values.Assurance),
            "claim action": words_of(values.Action),
            "rule effect": words_of(values.Effect),
            "rule scope": words_of(values.Scope),
            "risk": words_of(values.Risk),
            "approval status": words_of(approval_models.ApprovalStatus),
            "approval answer": words_of(values.AnswerKind),
            "terminal kind": words_of(values.TerminalKind),
            "terminal wait, until": words_of(wait.Until),
            "terminal wait, ended by": words_of(wait.WaitReason),
            "message role": words_of(values.Role),
            "message part": words_of(values.PartKind),
            "tool call part, status": words_of(parts.CallStatus),
            "tool call part, kind": words_of(parts.CallKind),
            "operation stop": words_of(values.Stop),
            "activity kind": words_of(values.ActivityKind),
            "activity outcome": words_of(values.ActivityEnding),
            "agent handover": words_of(values.Handover),
            "undo action": words_of(undo.UndoAction),
            "undo subject": words_of(undo.UndoSubject),
            "search result kind": words_of(TextKind),
        }
    )


def words_of(kind: Any) -> list[str]:
    """The words of a Literal, or of a union of them."""
    found = (
        get_args(kind) if get_origin(kind) is Literal else [w for k in get_args(kind) for w in words_of(k)]
    )
    return sorted(cast("list[str]", found))


# Schemas and text


def inline(schema: Json) -> Json:
    """A JSON schema without prose, references written out, so that no name of an internal class is left."""
    return cast("Json", _inline(without_prose(schema), schema.get("$defs", {})))


def _inline(node: Any, definitions: Json) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("Json", node)
    if isinstance(reference := schema.get("$ref"), str):
        target = without_prose(definitions[reference.removeprefix("#/$defs/")])
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        return {**_inline(target, definitions), **_inline(rest, definitions)}
    kept = {name: value for name, value in schema.items() if name not in ("$defs", "discriminator")}
    return {name: _inline(value, definitions) for name, value in kept.items()}


def without_prose(node: Any) -> Any:
    """A schema without titles and descriptions. A field may be called `title`: its value is a schema, not a text."""
    if isinstance(node, list):
        return [without_prose(item) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("Json", node)
    return {
        name: without_prose(value)
        for name, value in schema.items()
        if not (name in PROSE and isinstance(value, str))
    }


def sort_enums(node: Any) -> Any:
    """Sort the values of an enum: their order depends on which module asked for the type first."""
    if isinstance(node, dict):
        pairs = cast("Json", node).items()
        return {
            key: sorted(cast("list[str]", value), key=str) if key == "enum" else sort_enums(value)
            for key, value in pairs
        }
    return [sort_enums(each) for each in cast("list[Any]", node)] if isinstance(node, list) else node


def as_json(contract: object) -> str:
    """Sorted JSON; a value that fits stands on one line, so that a difference is short and near its name."""
    return _lines(sort_enums(contract), "") + "\n"


def _lines(node: object, indent: str) -> str:
    flat = json.dumps(node, sort_keys=True, ensure_ascii=False)
    if not isinstance(node, dict | list) or len(indent) + len(flat) <= WIDE:
        return flat
    inner = indent + "  "
    if isinstance(node, list):
        items = [_lines(item, inner) for item in cast("list[object]", node)]
        return f"[\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}]"
    pairs = sorted(cast("Json", node).items())
    fields = [f"{json.dumps(name)}: {_lines(value, inner)}" for name, value in pairs]
    return f"{{\n{inner}" + f",\n{inner}".join(fields) + f"\n{indent}}}"


CONTRACTS: dict[str, Callable[[], str]] = {
    "tools.json": collect_tools,
    "openapi.json": collect_openapi,
    "events.json": collect_events,
    "schema.sql": collect_sql,
    "commands.json": collect_commands,
    "exit_codes.json": collect_exit_codes,
    "config.json": collect_config,
    "keeper.json": collect_keeper,
    "hello.json": collect_hello,
    "words.json": collect_words,
}
"""The name of each stored file, and the function that collects its contract."""
