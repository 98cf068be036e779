"""What of the caller goes along to a new terminal."""

import os
from pathlib import Path

import pytest

from handrail.door.shell import NAME_MAX, environment, order


def test_the_directory_is_named_as_the_caller_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    monkeypatch.chdir(link)
    monkeypatch.setenv("PWD", str(link))
    assert order([], "", keep=False)["cwd"] == str(link)
    assert order(["./run", "./x"], "", keep=False)["command"] == [f"{link}/./run", "./x"]
    monkeypatch.setenv("PWD", "/")  # a caller that is mistaken
    assert order([], "", keep=False)["cwd"] == str(real)


def test_a_variable_that_is_no_text_stays_behind_and_the_shell_is_one_that_exists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(os.environb, b"BYTES", b"\xff\xfe")
    monkeypatch.setenv("LINES_OF_IT", "one\ntwo\té")
    monkeypatch.setenv("SHELL", "/nonexistent")
    told = environment()
    assert "BYTES" not in told
    assert told["LINES_OF_IT"] == "one\ntwo\té"
    assert os.access(told["SHELL"], os.X_OK)


def test_a_name_is_cut_to_what_may_be_asked_for() -> None:
    asked = order([], "\udcff" + "n" * 300, keep=True)
    assert asked["name"] == "?" + "n" * (NAME_MAX - 1)
    assert (asked["command"], asked["keep"], asked["of"]) == ([], True, "shell")
