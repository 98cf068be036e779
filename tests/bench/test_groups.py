"""The selection of groups by name, and the command line."""

import importlib.util

import pytest
from bench.__main__ import main
from bench.groups import GROUPS, UnknownGroup, list_groups, select_groups
from bench.line import Measurement


def test_all_groups_run_where_none_is_named() -> None:
    assert select_groups([]) == list(GROUPS)


def test_named_groups_run_in_the_given_order_and_once() -> None:
    assert [group.name for group in select_groups(["storm", "read", "storm"])] == ["storm", "read"]


def test_an_unknown_name_gets_a_sentence_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        UnknownGroup, match=r"There is no group nope here. Known groups: door, hook, restart, read, "
    ):
        select_groups(["read", "nope"])
    assert main(["nope"]) == 2
    assert "Known groups: door, hook, restart, read" in capsys.readouterr().err


def test_only_some_groups_can_be_compared_with_a_commit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--base", "HEAD", "storm"]) == 2
    assert "Known groups: door, read, command, agent." in capsys.readouterr().err


def test_a_commit_that_does_not_exist_gets_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--base", "no-such-commit", "read"]) == 2
    assert "There is no commit no-such-commit in this repository." in capsys.readouterr().err


def test_the_list_has_each_group_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out == list_groups() + "\n"
    rows = [row.split(maxsplit=1) for row in list_groups().splitlines()]
    assert [name for name, _ in rows] == [group.name for group in GROUPS]
    assert all(summary.endswith(".") for _, summary in rows)


@pytest.mark.parametrize("name", [group.name for group in GROUPS])
def test_every_group_declares_lines_with_different_titles(name: str) -> None:
    if name == "page" and importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed")
    (group,) = select_groups([name])
    measurements = group.load()
    titles = [line.title for measurement in measurements for line in measurement.lines]
    assert titles
    assert len(set(titles)) == len(titles)
    assert all(isinstance(measurement, Measurement) for measurement in measurements)
