"""The runner: goes on after a failed line, stores each result as it comes, and bounds every line."""

import json
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from bench.__main__ import measure
from bench.line import Figure, Line, Measurement, Result, Target
from bench.runner import Group, module_group, run_groups

TARGET = Target("at most", 10.0)


def build_group(name: str, *measures: Callable[[], Generator[Figure]], lines: int = 1) -> Group:
    """A group of measurements with so many lines each, titled `name 0`, `name 1` …"""
    titles = tuple(Line(f"{name} {number}", "ms", TARGET) for number in range(lines))
    return Group(name, "", lambda: [Measurement(titles, each, seconds=30.0) for each in measures])


def five() -> Generator[Figure]:
    yield Figure(5.0)


def fail() -> Generator[Figure]:
    raise RuntimeError("the server ended\nand this is its log")
    yield


def run(*groups: Group) -> list[tuple[str, str, str]]:
    results = run_groups(groups, lambda _: None)
    return [(result.line.title, result.outcome, result.failure) for result in results]


def test_a_failed_line_has_a_reason_and_the_others_are_measured() -> None:
    assert run(build_group("a", fail, five), build_group("b", five)) == [
        ("a 0", "failed", "RuntimeError: the server ended"),
        ("a 0", "ok", ""),
        ("b 0", "ok", ""),
    ]


def test_lines_before_the_failure_of_a_measurement_keep_their_figures() -> None:
    def half() -> Generator[Figure]:
        yield Figure(20.0)
        raise OSError("no space")

    assert run(build_group("a", half, lines=3)) == [
        ("a 0", "miss", ""),
        ("a 1", "failed", "OSError: no space"),
        ("a 2", "failed", "OSError: no space"),
    ]


def test_a_measurement_with_too_few_figures_has_failed() -> None:
    (_, second) = run(build_group("a", five, lines=2))
    assert second == ("a 1", "failed", "NoFigure: the measurement ended before this line")


def test_a_line_that_hangs_fails_after_its_time_and_is_cleaned_up() -> None:
    cleaned: list[bool] = []

    def hang() -> Generator[Figure]:
        try:
            threading.Event().wait(60)
            yield Figure(1.0)
        finally:
            cleaned.append(True)

    line = Line("hangs", "ms", TARGET)
    hanging = Group("a", "", lambda: [Measurement((line,), hang, seconds=0.05)])

    assert run(hanging, build_group("b", five)) == [
        ("hangs", "failed", "MeasurementTimeout: no result within 0.05 s"),
        ("b 0", "ok", ""),
    ]
    assert cleaned == [True]


def test_a_failed_clean_up_is_a_failure_and_the_figure_stays() -> None:
    def dirty() -> Generator[Figure]:
        try:
            yield Figure(1.0)
        finally:
            raise RuntimeError("it did not end")

    assert run(build_group("a", dirty), build_group("b", five)) == [
        ("a 0", "ok", ""),
        ("clean-up after: a 0", "failed", "RuntimeError: it did not end"),
        ("b 0", "ok", ""),
    ]


def test_a_group_that_cannot_be_imported_costs_only_itself() -> None:
    missing = module_group("gone", "", "bench.no_such_module")
    (failed, ok) = run(missing, build_group("b", five))
    assert failed == ("all of gone", "failed", "ModuleNotFoundError: No module named 'bench.no_such_module'")
    assert ok == ("b 0", "ok", "")


def test_each_result_is_reported_before_the_next_line_is_measured() -> None:
    reported: list[Result] = []

    def count() -> Generator[Figure]:
        yield Figure(len(reported))
        yield Figure(len(reported))

    run_groups([build_group("a", count, lines=2), build_group("b", count, lines=2)], reported.append)

    assert [result.figure and result.figure.ours for result in reported] == [0, 1, 2, 3]


def read_lines(directory: Path) -> list[str]:
    return [
        json.loads(line)["title"]
        for file in directory.glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]


def test_each_result_is_printed_and_on_disk_before_the_next_line_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[list[str], bool]] = []

    def look() -> Generator[Figure]:
        seen.append((read_lines(tmp_path), "a 0" in capsys.readouterr().out))
        yield Figure(1.0)

    assert measure([build_group("a", five), build_group("b", look)], tmp_path) == 0

    assert seen == [(["a 0"], True)]
    assert read_lines(tmp_path) == ["a 0", "b 0"]


def test_the_exit_status_is_one_after_a_failure_and_zero_after_a_miss(tmp_path: Path) -> None:
    def slow() -> Generator[Figure]:
        yield Figure(11.0)

    assert measure([build_group("a", slow)], tmp_path / "miss") == 0
    assert measure([build_group("a", fail, five)], tmp_path / "failed") == 1


def test_an_interrupted_run_saves_the_table_so_far(tmp_path: Path) -> None:
    def interrupt() -> Generator[Figure]:
        raise KeyboardInterrupt
        yield

    with pytest.raises(KeyboardInterrupt):
        measure([build_group("a", five), build_group("b", interrupt)], tmp_path)

    (file,) = tmp_path.glob("*.json")
    assert [line["title"] for line in json.loads(file.read_text())["lines"]] == ["a 0"]
    assert "a 0" in file.with_suffix(".txt").read_text()
