"""A project's own file is read with bounds, by no link, and again when it changed."""

import os
from pathlib import Path

import pytest

from handrail.gate.rules.trust import LARGEST, read_project, stat_project

RULES = '[[rules]]\neffect = "deny"\ncommand = "git push"\nmatch = ["git push -f"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".handrail").mkdir()
    return tmp_path


def file(folder: Path) -> Path:
    return folder / ".handrail" / "config.toml"


def test_a_folder_without_a_file_says_nothing(tmp_path: Path) -> None:
    project = read_project(str(tmp_path), "/home/ann")
    assert (project.sha, project.rules, project.problem) == (None, (), "")
    assert project.holds(str(tmp_path))


def test_rules_of_a_file_belong_to_its_folder_and_tell_their_line(folder: Path) -> None:
    file(folder).write_text(f"# ours\n\n{RULES}")
    project = read_project(str(folder), "/home/ann")
    assert project.problem == ""
    [rule] = project.rules
    assert (rule.scope, rule.workspace, rule.source) == ("project", str(folder), ".handrail/config.toml:3")
    assert read_project(str(folder), "/home/ann").rules == project.rules, (
        "the id must be the same over restarts"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("port = = 3\n", "not valid TOML"),
        ("[server]\nport = 1\n", "no setting `server` in a project's file"),
        ('[[rules]]\neffect = "deny"\n', "line 1: The rule does not say what it is about"),
        (
            '[[rules]]\neffect = "deny"\nserver = "github"\ncommand = "x"\n',
            "line 1: A rule about a server takes no command",
        ),
        (
            f'{RULES}[[rules]]\neffect = "deny"\ncommand = "a"\nmatch = ["b"]\n',
            "line 5: `match` has the example `b`",
        ),
    ],
)
def test_a_file_that_is_wrong_says_so_with_its_line_and_holds_in_nothing(
    folder: Path, text: str, words: str
) -> None:
    file(folder).write_text(text)
    project = read_project(str(folder), "/home/ann")
    assert words in project.problem
    assert str(file(folder)) in project.problem
    assert project.rules == ()
    assert project.sha is not None


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.toml"
    outside.write_text(RULES)
    file(folder).symlink_to(outside)
    project = read_project(str(folder), "/home/ann")
    assert "link" in project.problem
    assert (project.sha, project.rules) == (None, ())


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "config.toml").write_text(RULES)
    (tmp_path / ".handrail").symlink_to("real")
    assert "link" in read_project(str(tmp_path), "/home/ann").problem


def test_a_pipe_in_its_place_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(file(folder))
    assert "it is not a file" in read_project(str(folder), "/home/ann").problem


def test_a_file_that_is_too_large_or_no_text_is_refused(folder: Path) -> None:
    file(folder).write_text("#" * (LARGEST + 1))
    assert "larger than" in read_project(str(folder), "/home/ann").problem
    file(folder).write_bytes(b"\xff\xfe")
    assert "not text" in read_project(str(folder), "/home/ann").problem


def test_a_change_is_noticed_also_right_after_it_was_read(folder: Path) -> None:
    file(folder).write_text("# 1\n")
    project = read_project(str(folder), "/home/ann")
    assert not project.holds(str(folder)), "it may change within the same tick of the clock"
    old = file(folder).stat().st_mtime - 100
    os.utime(file(folder), (old, old))
    assert stat_project(str(folder)) != project.seen
