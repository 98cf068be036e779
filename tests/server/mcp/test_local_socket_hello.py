"""The greeting as the daemon hears it, and the workspace that follows from it."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from handrail.framing import HELLO
from handrail.server.mcp.local_socket import Hello, workspace_of


def hello(cwd: Path, workspace: str | None = None) -> Hello:
    return Hello(handrail=HELLO, want="mcp", cwd=str(cwd), workspace=workspace)


def test_the_folder_a_door_stands_in_is_its_workspace(tmp_path: Path) -> None:
    assert workspace_of(hello(tmp_path)) == str(tmp_path)


def test_a_folder_within_a_repository_is_widened_to_its_top(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src" / "deep").mkdir(parents=True)

    assert workspace_of(hello(tmp_path / "src" / "deep")) == str(tmp_path)


def test_a_named_workspace_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()

    assert workspace_of(hello(Path("/"), str(tmp_path / "src"))) == str(tmp_path / "src")
    assert workspace_of(hello(tmp_path, "src")) == str(tmp_path / "src")


def test_a_link_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert workspace_of(hello(tmp_path / "link")) == str(tmp_path / "real")


def test_the_root_the_home_and_what_is_no_folder_count_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "file").touch()

    assert workspace_of(hello(Path("/"))) is None
    assert workspace_of(hello(tmp_path)) is None
    assert workspace_of(hello(tmp_path / "file")) is None
    assert workspace_of(hello(tmp_path / "missing")) is None
    assert workspace_of(hello(Path("/"), "~")) is None


@pytest.mark.parametrize(
    "said", [{"want": "root"}, {"cwd": "x" * 5000}, {"handrail": "one"}, {"door": "d" * 100}]
)
def test_a_greeting_that_makes_no_sense_is_none(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Hello.model_validate({"handrail": 1, "want": "mcp", **said})


def test_a_later_version_may_say_more() -> None:
    assert Hello.model_validate({"handrail": 1, "want": "read", "mood": "good"}).want == "read"
