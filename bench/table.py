"""Lines as a table for people, or as JSON for programs."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from bench.figures import Line

_HEAD = ("what", "ours", "peer", "value", "target", "held")


def as_table(lines: Sequence[Line]) -> str:
    rows = [_HEAD, *(_row(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    drawn = [_drawn(row, widths) for row in rows]
    drawn.insert(1, "  ".join("─" * width for width in widths))
    notes = [f"{line.what}: {line.note}" for line in lines if line.note]
    return "\n".join([*drawn, *(["", *notes] if notes else [])])


def as_json(lines: Sequence[Line]) -> str:
    return json.dumps([_facts(line) for line in lines], indent=2)


def _facts(line: Line) -> dict[str, object]:
    value = None if math.isnan(line.value) else line.value
    return {**asdict(line), "value": value, "held": line.held}


def _row(line: Line) -> tuple[str, ...]:
    times = line.target.kind != "at most"
    sign = "≥" if line.target.kind == "times at least" else "≤"
    bound = f"{line.target.bound:g} x" if times else _shown(line.target.bound, line.unit)
    value = f"{line.value:.2f} x" if times else _shown(line.value, line.unit)
    peer = "-" if line.peer is None else _shown(line.peer, line.unit)
    held = "yes" if line.held else "NO"
    return line.what, _shown(line.ours, line.unit), peer, value, f"{sign} {bound}", held


def _shown(figure: float, unit: str) -> str:
    if unit == "":
        return f"{figure:g}"
    return f"{figure:.2f} {unit}" if abs(figure) < 10 else f"{figure:.0f} {unit}"


def _drawn(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(row, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)])
