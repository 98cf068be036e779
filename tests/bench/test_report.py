"""The table, the rows, and the files of a run."""

import json
from pathlib import Path

from bench.line import Figure, Line, Result, Target
from bench.report import Conditions, RunFiles, format_row, format_table, read_conditions

OK = Result("a", Line("quick", "ms", Target("times at most", 0.6)), Figure(1.0, 2.0))
MISS = Result("a", Line("slow", "ms", Target("at most", 12.0)), Figure(20.0, note="too slow"))
FAILED = Result("b", Line("broken", "ms", Target("at most", 5.0)), failure="OSError: no browser")
CONDITIONS = Conditions("2026-01-02T03:04:05+00:00", "abc1234", None, 2, "3.11.7")


def test_the_table_shows_figures_targets_and_outcomes() -> None:
    head, _, ok, miss, failed, _, note = format_table([OK, MISS, FAILED]).splitlines()
    assert head.split() == ["line", "ours", "peer", "value", "target", "result"]
    assert ok.split() == ["quick", "1.00", "ms", "2.00", "ms", "0.50", "x", "≤", "0.6", "x", "ok"]
    assert miss.split() == ["slow", "20", "ms", "-", "20", "ms", "≤", "12", "ms", "MISS"]
    assert failed.split() == [
        "broken",
        "-",
        "-",
        "-",
        "≤",
        "5.00",
        "ms",
        *["failed:", "OSError:", "no", "browser"],
    ]
    assert note == "slow: too slow"


def test_columns_are_aligned() -> None:
    rows = format_table([OK, MISS, FAILED]).splitlines()
    starts = [row.index(outcome) for row, outcome in zip(rows[2:], ("ok", "MISS", "failed"), strict=False)]
    assert starts == [rows[0].index("result")] * 3


def test_a_row_is_complete_without_the_others() -> None:
    assert format_row(FAILED).endswith("failed: OSError: no browser")
    assert format_row(OK).split()[:3] == ["quick", "1.00", "ms"]


def test_a_result_is_on_disk_as_soon_as_it_is_appended(tmp_path: Path) -> None:
    files = RunFiles(tmp_path / "bench", CONDITIONS)
    files.append(OK)
    assert [json.loads(line)["title"] for line in files.json_lines.read_text().splitlines()] == ["quick"]
    files.append(FAILED)
    last = json.loads(files.json_lines.read_text().splitlines()[1])
    assert (last["group"], last["outcome"], last["failure"]) == ("b", "failed", "OSError: no browser")
    assert (last["ours"], last["value"]) == (None, None)


def test_the_whole_table_is_saved_with_its_conditions(tmp_path: Path) -> None:
    files = RunFiles(tmp_path, CONDITIONS)
    files.save_table([OK, MISS])
    text = files.text.read_text()
    assert text.startswith("2026-01-02T03:04:05+00:00, commit abc1234, 2 cores, Python 3.11.7\n")
    assert format_table([OK, MISS]) in text
    whole = json.loads(files.json.read_text())
    assert (whole["commit"], whole["cores"], whole["python"]) == ("abc1234", 2, "3.11.7")
    assert [(line["title"], line["value"], line["outcome"]) for line in whole["lines"]] == [
        ("quick", 0.5, "ok"),
        ("slow", 20.0, "miss"),
    ]


def test_a_directory_outside_of_git_has_no_commit(tmp_path: Path) -> None:
    assert read_conditions(tmp_path).commit == "unknown"
