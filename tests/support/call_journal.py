"""A home whose journal already has very many calls, written in a second: rows of the tables, with a valid hash chain."""

import json
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from handrail.store._search_file import SearchFile
from handrail.store.database import open_writer
from handrail.store.hash_chain import START, HeadFile, Link, chained, payload_hash

HOUR_MS = 3_600_000
TOOLS = ("read_file", "write_file", "execute_command")
CLIENTS = ("claude-code", "codex")
RUN = 100
"""Calls of one client in a row; within it, of one tool in tens."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """The `number`th call: 0 is the oldest."""

    number: int
    at: int

    @property
    def id(self) -> str:
        return f"c{self.number:010x}"

    @property
    def tool(self) -> str:
        return TOOLS[self.number // 10 % len(TOOLS)]

    @property
    def title(self) -> str:
        verb = {"read_file": "Read", "write_file": "Write", "execute_command": "make"}[self.tool]
        return f"{verb} part{self.number}"

    @property
    def client(self) -> str:
        return CLIENTS[self.number // RUN % len(CLIENTS)]

    @property
    def ending(self) -> str:
        return "failed" if self.number % RUN == 50 else "done"

    def event(self) -> str:
        caller = {"door": "stdio", "client": self.client, "key": self.client, "workspace": "/home/ann/shop"}
        fields = {"kind": "CallOpened", "call": self.id, "tool": self.tool, "title": self.title}
        return json.dumps({**fields, "input": {}, "caller": {**caller, "thread": None, "operation": None}})

    def row(self, seq: int) -> tuple[object, ...]:
        ran, ended = self.at + 5, self.at + 5 + self.number % 7
        named = (self.id, self.tool, self.title, "stdio", self.client, self.client, "/home/ann/shop", "bound")
        return (
            *named,
            "rule reads in the workspace",
            self.ending,
            "tool",
            "",
            self.at,
            ran,
            ended,
            ended,
            seq,
        )


def write_calls(database: Path, head: Path, words: Path, count: int, newest: int) -> None:
    """Fill a new database with `count` calls, a minute apart. The search index has nothing to do for them."""
    calls = [PastCall(number, newest - (count - number) * HOUR_MS // 60) for number in range(count)]
    last, events = START, list[tuple[object, ...]]()
    for seq, call in enumerate(calls, 1):
        payload = call.event()
        digest = payload_hash(payload)
        last = Link(seq, chained(last.chain, seq, call.at, "CallOpened", digest))
        events.append((seq, call.at, "CallOpened", payload, digest, last.chain))
    with closing(open_writer(database)) as connection:
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", events)
        connection.executemany(_INSERT, [call.row(seq) for seq, call in enumerate(calls, 1)])
        connection.execute("COMMIT")
    with closing(HeadFile(head)) as file:
        file.write(last)
    with closing(SearchFile(words)) as index:
        index.fill([], last.seq)


_INSERT = """
INSERT INTO calls (id, tool, title, door, client, caller_key, workspace, assurance, allowed_by, ending, settled_by,
                   message, opened_at, started_at, settled_at, stopped_at, opened_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
