"""Editing what an agent asked for."""

import socket
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.client import Link
from handrail.cli.failure import Failure
from handrail.cli.interactive.question import edit_in_editor, edit_input, edit_on_one_line, editor_command

_CLOSED = socket.socket()
_CLOSED.close()
NOBODY = Link(url="http://127.0.0.1:1", pid=1, version="0", bearer="none", recognised=_CLOSED)
"""What is edited here needs no daemon."""


def asked(tool: str, **given: Any) -> Any:
    return {"id": "a1", "tool": tool, "input": given, "reviewable": False}


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    file = tmp_path / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o700)
    monkeypatch.setenv("EDITOR", f"'{file}' --wait")
    monkeypatch.delenv("VISUAL", raising=False)


def test_a_command_is_edited_as_text_and_the_newline_that_editors_add_is_not_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, 'printf "git push --dry-run\\n" > "$2"')
    found = edit_input(NOBODY, asked("execute_command", command="git push -f", cwd="a"), edit_in_editor)
    assert found == {"input": {"command": "git push --dry-run", "cwd": "a"}}


def test_what_is_left_as_it_was_is_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, 'echo >> "$2"')
    assert edit_input(NOBODY, asked("execute_command", command="ls"), edit_in_editor) is None
    editor(tmp_path, monkeypatch, "true")
    assert edit_input(NOBODY, asked("send_to_terminal", text="x"), edit_in_editor) is None


def test_any_other_input_is_edited_as_json_and_nonsense_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, 'sed -i s/one/two/ "$2"')
    found = edit_input(NOBODY, asked("send_to_terminal", text="one é", terminalId="t1"), edit_in_editor)
    assert found == {"input": {"text": "two é", "terminalId": "t1"}}
    for wrong, words in (("{", "not JSON"), ("[]", "a JSON object")):
        editor(tmp_path, monkeypatch, f"echo '{wrong}' > \"$2\"")
        with pytest.raises(Failure, match=words):
            edit_input(NOBODY, asked("send_to_terminal", text="x"), edit_in_editor)


def test_an_edit_goes_on_from_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor(tmp_path, monkeypatch, 'sed -i "s/$/!/" "$2"')
    question = asked("execute_command", command="ls a")
    found = edit_input(NOBODY, question, edit_in_editor, {"input": {"command": "ls b"}})
    assert found == {"input": {"command": "ls b!"}}


def test_only_the_person_can_read_what_is_edited_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    editor(tmp_path, monkeypatch, 'stat -c %a "$(dirname "$2")" > "$0.mode"; echo "$2" > "$0.path"')
    edit_in_editor("secret", ".sh")
    assert (tmp_path / "editor.mode").read_text() == "700\n"
    edited = Path((tmp_path / "editor.path").read_text().strip())
    assert edited.suffix == ".sh"
    assert not edited.parent.exists()


def test_an_editor_that_fails_or_is_not_there_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, monkeypatch, "exit 3")
    with pytest.raises(Failure, match="ended with 3, so nothing was changed"):
        edit_in_editor("x", ".sh")
    monkeypatch.setenv("EDITOR", str(tmp_path / "none"))
    with pytest.raises(Failure, match=r"cannot be started: No such file or directory\. Set EDITOR"):
        edit_in_editor("x", ".sh")
    monkeypatch.setenv("EDITOR", "vi '")
    with pytest.raises(Failure, match="which is no command"):
        editor_command()
    monkeypatch.setenv("EDITOR", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert editor_command() is None
    with pytest.raises(Failure, match="There is no editor"):
        edit_in_editor("x", ".sh")


def test_without_an_editor_a_line_is_typed_anew() -> None:
    said: list[str] = []

    def types(answer: str) -> Any:
        return edit_on_one_line(lambda words: said.append(words) or answer)

    assert types("ls b")("ls a", ".sh") == "ls b"
    assert types("")("ls a", ".sh") == "ls a"
    assert said == ["Run this instead (empty leaves it as it is):"] * 2
    with pytest.raises(Failure, match="more than one line"):
        types("x")("a\nb", ".sh")
