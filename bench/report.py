"""Results as rows and tables for people, and as JSON for programs; and the files of one run.

Each run has three files of the same name in one directory: `.jsonl` grows by one line per result while the bench runs,
`.txt` and `.json` hold the whole table and are written at the end.
"""

import json
import math
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.line import Result

_HEAD = ("line", "ours", "peer", "value", "target", "result")
_WIDTHS = (66, 10, 10, 10, 10, 6)
"""Of a row that is printed before the others are known; fits the titles that exist."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where and when a run takes place."""

    date: str
    commit: str
    base: str | None
    """The commit that this one is compared with."""
    cores: int
    python: str

    def __str__(self) -> str:
        base = f" compared with {self.base}" if self.base else ""
        return f"{self.date}, commit {self.commit}{base}, {self.cores} cores, Python {self.python}"


def read_conditions(root: Path, base: str | None = None) -> Conditions:
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Conditions(date, _read_commit(root), base, os.cpu_count() or 1, platform.python_version())


class RunFiles:
    """The files of one run. `append` returns when the result is on disk, so that a crash later cannot lose it."""

    def __init__(self, directory: Path, conditions: Conditions) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        stamp = datetime.fromisoformat(conditions.date).strftime("%Y%m%d-%H%M%S")
        self._conditions = conditions
        self._stem = directory / f"{stamp}-{conditions.commit}-{os.getpid()}"

    @property
    def text(self) -> Path:
        return self._stem.with_name(f"{self._stem.name}.txt")

    @property
    def json(self) -> Path:
        return self._stem.with_name(f"{self._stem.name}.json")

    @property
    def json_lines(self) -> Path:
        return self._stem.with_name(f"{self._stem.name}.jsonl")

    def append(self, result: Result) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self.json_lines.open("a") as file:
            file.write(json.dumps({"measured_at": now, **_fields(result)}) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def save_table(self, results: Sequence[Result]) -> None:
        self.text.write_text(f"{self._conditions}\n\n{format_table(results)}\n")
        whole = {**asdict(self._conditions), "lines": [_fields(result) for result in results]}
        self.json.write_text(json.dumps(whole, indent=2) + "\n")


def format_row(result: Result) -> str:
    """One result, in columns wide enough for most of the others."""
    return _align(_cells(result), _WIDTHS)


def format_table(results: Sequence[Result]) -> str:
    rows = [_HEAD, *(_cells(result) for result in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD) - 1)]
    drawn = [_align(row, [*widths, len(_HEAD[-1])]) for row in rows]
    drawn.insert(1, "  ".join("─" * width for width in [*widths, len(_HEAD[-1])]))
    notes = [
        f"{result.line.title}: {result.figure.note}"
        for result in results
        if result.figure and result.figure.note
    ]
    return "\n".join([*drawn, *(["", *notes] if notes else [])])


def _cells(result: Result) -> tuple[str, ...]:
    line, figure = result.line, result.figure
    is_ratio = line.target.kind != "at most"
    sign = "≥" if line.target.kind == "times at least" else "≤"
    bound = f"{line.target.bound:g} x" if is_ratio else _format(line.target.bound, line.unit)
    if figure is None:
        return line.title, "-", "-", "-", f"{sign} {bound}", f"failed: {result.failure}"
    value = f"{result.value:.2f} x" if is_ratio else _format(result.value, line.unit)
    peer = "-" if figure.peer is None else _format(figure.peer, line.unit)
    outcome = "MISS" if result.outcome == "miss" else result.outcome
    return line.title, _format(figure.ours, line.unit), peer, value, f"{sign} {bound}", outcome


def _format(number: float, unit: str) -> str:
    if unit == "":
        return f"{number:g}"
    return f"{number:.2f} {unit}" if abs(number) < 10 else f"{number:.0f} {unit}"


def _align(cells: Sequence[str], widths: Sequence[int]) -> str:
    title, *numbers, outcome = cells
    aligned = (cell.rjust(width) for cell, width in zip(numbers, widths[1:], strict=False))
    return "  ".join([title.ljust(widths[0]), *aligned, outcome])


def _fields(result: Result) -> dict[str, object]:
    figure = result.figure
    return {
        "group": result.group,
        **asdict(result.line),
        "ours": figure.ours if figure else None,
        "peer": figure.peer if figure else None,
        "note": figure.note if figure else "",
        "value": None if math.isnan(result.value) else result.value,
        "outcome": result.outcome,
        "failure": result.failure,
    }


def _read_commit(root: Path) -> str:
    """The short id of HEAD, with a `+` when tracked files differ from it."""
    try:
        commit = _run_git(root, "rev-parse", "--short", "HEAD")
        return commit + ("+" if _run_git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _run_git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()
