"""Small transcripts of each client, as its own program writes them, in a home."""

import json
import sqlite3
from pathlib import Path
from typing import Any

CLAUDE_SESSION = "d5bb0a72-1111-4222-8333-444455556666"
CODEX_SESSION = "0199aaaa-2222-7333-8444-555566667777"
GEMINI_SESSION = "7e57ab1e-3333-4444-8555-666677778888"
OPENCODE_SESSION = "ses_5f00ba"

CLAUDE_LINES: list[dict[str, Any]] = [
    {"type": "permission-mode", "permissionMode": "default", "sessionId": CLAUDE_SESSION},
    {
        "type": "user",
        "isMeta": True,
        "cwd": "/work/shop",
        "message": {"role": "user", "content": "Caveat: not typed by a person"},
    },
    {
        "type": "user",
        "cwd": "/work/shop",
        "timestamp": "2026-11-01T10:00:00.000Z",
        "message": {"role": "user", "content": "Why does the login test fail?"},
    },
    {
        "type": "assistant",
        "timestamp": "2026-11-01T10:00:02.000Z",
        "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "Look at the test."}]},
    },
    {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I run it."},
                {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "pytest -x"}},
            ],
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "Exit code 1"}],
                }
            ],
        },
    },
    {"type": "assistant", "isSidechain": True, "message": {"content": [{"type": "text", "text": "hidden"}]}},
    {
        "type": "assistant",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "The key is old."}]},
    },
    {"type": "from-the-future", "value": 1},
]
CODEX_LINES: list[dict[str, Any]] = [
    {
        "timestamp": "2026-11-02T10:00:00Z",
        "type": "session_meta",
        "payload": {"id": CODEX_SESSION, "cwd": "/work/api"},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "<environment_context>…</environment_context>"}],
        },
    },
    {
        "timestamp": "2026-11-02T10:00:01Z",
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "item": {"type": "UserMessage", "content": [{"type": "text", "text": "List the routes"}]},
        },
    },
    {"type": "token_usage_record", "payload": {"usage": {}}},
    {
        "type": "response_item",
        "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Use rg."}]},
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "exec_command",
            "arguments": '{"cmd":"rg route"}',
            "call_id": "call_1",
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nGET /",
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "There is one."}],
        },
    },
    {"type": "event_msg", "payload": {"type": "agent_message", "message": "There is one."}},
    {"type": "from-the-future", "payload": {}},
]
GEMINI_LINES: list[dict[str, Any]] = [
    {"sessionId": GEMINI_SESSION, "projectHash": "abc", "startTime": "2026-11-03T10:00:00Z"},
    {"id": "m0", "type": "user", "content": [{"text": "<session_context>This is the Gemini CLI."}]},
    {"id": "m1", "type": "user", "timestamp": "2026-11-03T10:00:00Z", "content": [{"text": "Say hello"}]},
    {"id": "m2", "type": "gemini", "timestamp": "2026-11-03T10:00:01Z", "content": "wrong"},
    {"$rewindTo": "m2"},
    {"id": "m3", "type": "gemini", "timestamp": "2026-11-03T10:00:02Z", "content": ""},
    {
        "id": "m3",
        "type": "gemini",
        "timestamp": "2026-11-03T10:00:02Z",
        "content": "Hello.",
        "thoughts": [{"subject": "Greeting", "description": "Be short."}],
        "toolCalls": [
            {
                "id": "t1",
                "name": "run_shell_command",
                "args": {"command": "echo hello"},
                "status": "success",
                "result": [{"functionResponse": {"name": "x", "response": {"output": "hello"}}}],
            }
        ],
    },
    {"$set": {"lastUpdated": "2026-11-03T10:00:03Z"}},
    {"unknown": True},
]


def write_claude(home: Path, *, session: str = CLAUDE_SESSION, extra: str = "") -> Path:
    return _write(home / f".claude/projects/-work-shop/{session}.jsonl", _lines(CLAUDE_LINES) + extra)


def write_codex(home: Path) -> Path:
    name = f"rollout-2026-11-02T10-00-00-{CODEX_SESSION}.jsonl"
    return _write(home / ".codex/sessions/2026/11/02" / name, _lines(CODEX_LINES))


def write_gemini(home: Path) -> Path:
    _write(home / ".gemini/tmp/site/.project_root", "/work/site")
    name = f"session-2026-11-03T10-00-{GEMINI_SESSION[:8]}.jsonl"
    return _write(home / ".gemini/tmp/site/chats" / name, _lines(GEMINI_LINES))


def write_opencode(home: Path) -> Path:
    path = home / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    tool = {
        "status": "completed",
        "input": {"filePath": "/work/tool/a.py"},
        "output": "1: import os",
        "title": "a.py",
    }
    parts: list[tuple[str, str, dict[str, Any]]] = [
        ("prt_1", "msg_1", {"type": "text", "text": "Read a.py"}),
        ("prt_2", "msg_1", {"type": "text", "text": "not typed", "synthetic": True}),
        ("prt_3", "msg_2", {"type": "step-start"}),
        ("prt_4", "msg_2", {"type": "reasoning", "text": "Open it."}),
        ("prt_5", "msg_2", {"type": "tool", "callID": "call_9", "tool": "read", "state": tool}),
        ("prt_6", "msg_2", {"type": "text", "text": "It imports os."}),
        ("prt_7", "msg_2", {"type": "from-the-future"}),
    ]
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, time_updated integer);"
        "CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);"
        "CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);"
    )
    session = (OPENCODE_SESSION, None, "/work/tool", "Reading a.py", 1_793_000_000_000)
    connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?)", session)
    for key, role, at in (("msg_1", "user", 10), ("msg_2", "assistant", 20)):
        row = (key, OPENCODE_SESSION, at, json.dumps({"role": role}))
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
    for key, message, data in parts:
        connection.execute(
            "INSERT INTO part VALUES (?, ?, ?, ?)", (key, message, OPENCODE_SESSION, json.dumps(data))
        )
    connection.commit()
    connection.close()
    return path


def write_all(home: Path) -> None:
    for write in (write_claude, write_codex, write_gemini, write_opencode):
        write(home)


def _lines(records: list[dict[str, Any]]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
