"""`python -m bench [NAME…]`: measure, print and save. Exit status 1 when a line failed; a missed target is no failure."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.base_checkout import CheckoutFailed
from bench.comparison import build_groups
from bench.groups import UnknownGroup, list_groups, select_groups
from bench.line import Result
from bench.report import RunFiles, format_row, format_table, read_conditions
from bench.runner import Group, run_groups

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    if options.list:
        print(list_groups())
        return 0
    try:
        groups = _select(options.base, options.names)
    except (UnknownGroup, CheckoutFailed) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    return measure(groups, ROOT / "build" / "bench", options.base)


def measure(groups: Sequence[Group], directory: Path, base: str | None = None) -> int:
    """Run the groups, with files in the directory. The table is saved and printed even when the run is interrupted."""
    conditions = read_conditions(ROOT, base)
    files = RunFiles(directory, conditions)
    results: list[Result] = []

    def report(result: Result) -> None:
        files.append(result)
        results.append(result)
        print(format_row(result), flush=True)

    print(f"{conditions}\nEach line is also appended to {files.json_lines}\n", flush=True)
    try:
        run_groups(groups, report)
    finally:
        files.save_table(results)
        print(f"\n{format_table(results)}\n\nSaved as {files.text} and {files.json.name}.", flush=True)
    return 1 if any(result.outcome == "failed" for result in results) else 0


def _select(base: str | None, names: Sequence[str]) -> list[Group]:
    if base is None:
        return select_groups(names)
    return build_groups(ROOT, base, names)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m bench", description="Measure Handrail, beside peers or beside another commit."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="groups to run; all when none is named")
    parser.add_argument("--list", action="store_true", help="list the groups and end")
    parser.add_argument("--base", metavar="COMMIT", help="compare with this commit instead of with peers")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
