"""`python -m bench`: every measurement in one table; exit status 1 when a line misses its target."""

import argparse
import sys
from collections.abc import Callable, Sequence

from bench import (
    cancel,
    command,
    crowd,
    cursor,
    door_start,
    finding,
    idle,
    inbox,
    memory,
    own_agent,
    policy,
    read_file,
    storm,
    talk,
    trees,
)
from bench.figures import Line
from bench.stage import Stage, staged
from bench.table import as_json, as_table

BENCHES: dict[str, Callable[[Stage], list[Line]]] = {
    "door": door_start.run,
    "read": read_file.run,
    "command": command.run,
    "policy": policy.run,
    "storm": storm.run,
    "cancel": cancel.run,
    "trees": trees.run,
    "crowd": crowd.run,
    "cursor": cursor.run,
    "finding": finding.run,
    "inbox": inbox.run,
    "talk": talk.run,
    "agent": own_agent.run,
    "memory": memory.run,
    "idle": idle.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    lines: list[Line] = []
    for name in options.only or BENCHES:
        print(f"measuring: {name} …", file=sys.stderr, flush=True)
        with staged() as stage:  # a daemon each, so that none is measured with another's memories
            lines += BENCHES[name](stage)
    print(as_json(lines) if options.json else as_table(lines))
    return 0 if all(line.held for line in lines) else 1


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench", description="Measure Handrail beside its peers.")
    parser.add_argument("--only", action="append", choices=BENCHES, help="one measurement; may be repeated")
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
