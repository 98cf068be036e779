"""Transcripts: every client's format is read into the same messages, within bounds and below the client's folder."""

import json
import os
import sqlite3
from pathlib import Path

import pytest
from tests.support import client_transcripts as samples

from handrail.clients.transcripts.transcript import LONGEST_TEXT, MOST_MESSAGES, Transcript
from handrail.clients.transcripts.transcripts import Transcripts, UnknownTranscript


@pytest.fixture
def home(tmp_path: Path) -> Path:
    samples.write_all(tmp_path)
    return tmp_path


def outline(transcript: Transcript) -> list[tuple[str, ...]]:
    """The roles, and for each part its kind and text; for a call its tool, output and end."""
    rows: list[tuple[str, ...]] = []
    for message in transcript.messages:
        rows.append((message.role,))
        for part in message.parts:
            call = part.call
            end = "" if call is None else "failed" if call.failed else "done" if call.ended else "open"
            rows.append((part.kind, part.text) if call is None else (call.tool, call.output, end))
    return rows


@pytest.mark.parametrize(
    ("client", "session", "rows"),
    [
        (
            "claude",
            samples.CLAUDE_SESSION,
            [
                ("user",),
                ("text", "Why does the login test fail?"),
                ("assistant",),
                ("thought", "Look at the test."),
                ("text", "I run it."),
                ("Bash", "Exit code 1", "failed"),
                ("text", "The key is old."),
            ],
        ),
        (
            "codex",
            samples.CODEX_SESSION,
            [
                ("user",),
                ("text", "List the routes"),
                ("assistant",),
                ("thought", "Use rg."),
                (
                    "exec_command",
                    "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nGET /",
                    "failed",
                ),
                ("text", "There is one."),
            ],
        ),
        (
            "gemini",
            samples.GEMINI_SESSION,
            [
                ("user",),
                ("text", "Say hello"),
                ("assistant",),
                ("thought", "Greeting\n\nBe short."),
                ("text", "Hello."),
                ("run_shell_command", "hello", "done"),
            ],
        ),
        (
            "opencode",
            samples.OPENCODE_SESSION,
            [
                ("user",),
                ("text", "Read a.py"),
                ("assistant",),
                ("thought", "Open it."),
                ("read", "1: import os", "done"),
                ("text", "It imports os."),
            ],
        ),
    ],
)
def test_a_transcript_is_read_and_what_is_unknown_is_counted(
    home: Path, client: str, session: str, rows: list[tuple[str, ...]]
) -> None:
    _, transcript = Transcripts(home, {}).read(client, session)

    assert outline(transcript) == rows
    assert (transcript.skipped, transcript.shortened) == (1, False)


def test_a_transcript_of_an_older_codex_is_read(home: Path) -> None:
    path = samples.write_codex(home)
    older = [
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Hello"}},
        _item(type="function_call", name="shell", arguments='{"command":["ls"]}', call_id="c1"),
        _item(type="function_call_output", call_id="c1", output='{"output":"a","metadata":{"exit_code":1}}'),
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in older))

    _, transcript = Transcripts(home, {}).read("codex", samples.CODEX_SESSION)

    assert outline(transcript) == [("user",), ("text", "Hello"), ("assistant",), ("shell", "a", "failed")]


def _item(**payload: str) -> dict[str, object]:
    return {"type": "response_item", "payload": payload}


def test_the_list_has_title_and_folder_of_every_client_newest_first(home: Path) -> None:
    for n, path in enumerate(sorted(home.rglob("*.jsonl"))):
        os.utime(path, (1_790_000_000 + n, 1_790_000_000 + n))

    listed = [(one.client, one.title, one.folder) for one in Transcripts(home, {}).find()]

    assert listed == [
        ("opencode", "Reading a.py", "/work/tool"),
        ("gemini", "Say hello", "/work/site"),
        ("codex", "List the routes", "/work/api"),
        ("claude", "Why does the login test fail?", "/work/shop"),
    ]


@pytest.mark.parametrize(
    ("folder", "clients"), [("/work/api", ["codex"]), ("/work/ap", []), ("/work/shop/sub", [])]
)
def test_the_list_can_be_limited_to_a_folder(home: Path, folder: str, clients: list[str]) -> None:
    assert [one.client for one in Transcripts(home, {}).find(folder)] == clients


def test_the_clients_own_variables_name_their_folders(tmp_path: Path) -> None:
    samples.write_claude(tmp_path / "elsewhere")
    environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "elsewhere/.claude")}

    assert [one.client for one in Transcripts(tmp_path, environment).find()] == ["claude"]


@pytest.mark.parametrize("link", ["projects/-work-shop/d.jsonl", "projects/linked", "projects"])
def test_no_symbolic_link_below_the_clients_folder_is_followed(tmp_path: Path, link: str) -> None:
    outside = samples.write_claude(tmp_path / "outside", session="d")
    targets = {"projects": outside.parent.parent, "projects/linked": outside.parent}
    place = tmp_path / ".claude" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(targets.get(link, outside))

    assert Transcripts(tmp_path, {}).find() == []
    with pytest.raises(UnknownTranscript):
        Transcripts(tmp_path, {}).read("claude", "d")


def test_a_folder_of_a_client_that_is_a_link_itself_is_read(tmp_path: Path) -> None:
    samples.write_claude(tmp_path / "dotfiles")
    (tmp_path / ".claude").symlink_to(tmp_path / "dotfiles/.claude")

    assert len(Transcripts(tmp_path, {}).find()) == 1


@pytest.mark.parametrize(
    ("client", "session"),
    [("claude", "../../secret"), ("claude", "nobody"), ("vi", "x"), ("opencode", "ses_none"), ("claude", "")],
)
def test_an_unknown_transcript_is_refused_with_a_sentence(home: Path, client: str, session: str) -> None:
    with pytest.raises(UnknownTranscript, match=r"There is no transcript .* of"):
        Transcripts(home, {}).read(client, session)


def test_a_fifo_in_the_place_of_a_transcript_does_not_block(tmp_path: Path) -> None:
    (tmp_path / ".claude/projects/x").mkdir(parents=True)
    os.mkfifo(tmp_path / ".claude/projects/x/s.jsonl")

    assert Transcripts(tmp_path, {}).find() == []


def test_long_parts_and_long_conversations_are_shortened(tmp_path: Path) -> None:
    line = json.dumps({"type": "user", "message": {"content": "x" * (LONGEST_TEXT + 500)}})
    samples.write_claude(tmp_path, extra=f"{line}\n" * (MOST_MESSAGES + 5))

    _, transcript = Transcripts(tmp_path, {}).read("claude", samples.CLAUDE_SESSION)

    assert transcript.shortened
    assert 0 < len(transcript.messages) < MOST_MESSAGES
    assert "500 characters are left out" in transcript.messages[-1].parts[0].text


@pytest.mark.parametrize("content", ["", "\0\0\0", "[1]\n{\n", "{}\n" * 3, '{"type":"user","message":7}\n'])
def test_a_file_with_anything_in_it_is_read(tmp_path: Path, content: str) -> None:
    path = samples.write_claude(tmp_path, session="odd")
    path.write_text(content)

    _, transcript = Transcripts(tmp_path, {}).read("claude", "odd")

    assert transcript.messages == []


def test_a_broken_database_of_opencode_is_passed_over(home: Path) -> None:
    (home / ".local/share/opencode/opencode.db").write_bytes(b"not a database, " * 500)

    assert "opencode" not in {one.client for one in Transcripts(home, {}).find()}


def test_the_database_of_opencode_is_not_changed(home: Path) -> None:
    database = home / ".local/share/opencode/opencode.db"
    before = database.read_bytes()

    Transcripts(home, {}).read("opencode", samples.OPENCODE_SESSION)

    assert database.read_bytes() == before
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (1,)
