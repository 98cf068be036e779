"""What a call claims on this machine before it is forwarded to its server."""

from pathlib import Path
from pwd import getpwnam
from typing import Any, cast

import pytest
from pydantic import JsonValue

from handrail.store.values import Json
from handrail.upstream.forwarded_tool import ForwardedInput, ForwardedTool, find_paths
from handrail.upstream.secret_store import SecretStore
from handrail.upstream.tool_definition import ToolDefinition


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("/etc/passwd", "/etc/passwd"),
        (" /etc/passwd\n", "/etc/passwd"),
        ("/proc/self/environ", "/proc/self/environ"),
        ("~/.ssh/id_rsa", f"{Path.home()}/.ssh/id_rsa"),
        ("~root/.ssh/id_rsa", f"{getpwnam('root').pw_dir}/.ssh/id_rsa"),
        ("file:///etc/passwd", "/etc/passwd"),
        ("FILE:/etc/passwd", "/etc/passwd"),
        ("file://localhost/etc/passwd", "/etc/passwd"),
        ("file:///srv/%2e%2e/etc/passwd", "/srv/../etc/passwd"),
        ("file:///etc/passwd?x#y", "/etc/passwd"),
        ({"deep": [{"/etc/passwd": 1}]}, "/etc/passwd"),
    ],
    ids=str,
)
def test_every_spelling_of_an_absolute_path_is_found(argument: JsonValue, path: str) -> None:
    assert path in find_paths(argument)


def test_a_folder_whose_name_has_a_line_break_hides_no_path(tmp_path: Path) -> None:
    (tmp_path / "a\nb").mkdir()
    path = f"{tmp_path}/a\nb/../../secret"
    assert path in find_paths({"path": path})


@pytest.mark.parametrize(
    "text",
    ["src/main.py", "/* a comment\n */ int main() {}", "// a\n// b", "~5 minutes", "https://x.example/y"],
)
def test_other_text_is_no_path(text: str) -> None:
    assert list(find_paths({"text": text})) == []


def test_a_title_is_one_line_that_hides_nothing_of_what_it_shows() -> None:
    """A notification shows nothing else, and offers an answer only if the title is plain."""
    nothing = cast("Any", None)
    definition = ToolDefinition(server="git", wire={"name": "commit", "inputSchema": {"type": "object"}})
    tool = ForwardedTool(definition, nothing, nothing, nothing)
    given = {"message": "two\nlines \u202ewith\x1b more", "repo": ["x" * 100]}
    title = tool.display(ForwardedInput.model_validate(given))
    assert title.startswith("git commit: message=two⏎lines \\u{202e}with\\e more repo=")
    assert title.endswith("…")
    assert len(title) == 80


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"content": [{"type": "text", "text": "it is hunter2"}]}},
        {"result": {"content": [], "structuredContent": {"key": ["hunter2"]}}},
        {"error": {"code": -1, "message": "hunter2 is wrong"}},
    ],
    ids=["text", "structured", "error"],
)
def test_a_person_who_passes_a_result_on_knows_that_it_has_a_secret(answer: Json, tmp_path: Path) -> None:
    secrets = SecretStore(tmp_path / "secrets.json")
    secrets.set("TOKEN", "hunter2")
    secrets.get("TOKEN")
    nothing = cast("Any", None)
    definition = ToolDefinition(server="git", wire={"name": "commit", "inputSchema": {"type": "object"}})
    tool = ForwardedTool(definition, nothing, cast("Any", secrets), nothing)
    shown = tool.preview_answer(answer)
    assert "hunter2" not in str(shown)
    assert any("The agent gets its value" in note for note in shown.notes)
    plain = tool.preview_answer({"result": {"content": [{"type": "text", "text": "[secret]"}]}})
    assert plain.notes == ()
