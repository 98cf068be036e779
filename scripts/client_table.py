"""Writes the table "what each client promises" in docs/connect.md from what the tests of the real clients saw.

`make test-agents-all` leaves build/client-observations.json and then runs this. A client that it did not run has no row; what
nobody has tried stands below the table, by hand.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from handrail.clients.hooks import DIALECTS
from handrail.clients.known_clients import NAMES, find_client

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "connect.md"
SEEN = ROOT / "build" / "client-observations.json"
Seen = Mapping[str, Mapping[str, str]]
NOT_TRIED = "not shown"
BEGIN, END = "<!-- clients: begin, by scripts/client_table.py -->", "<!-- clients: end -->"
FAULTS = ("hook missing", "hook fails", "hook killed", "no daemon")
FACTS = {
    "answer after 90 s": "you answer after 90 s",
    "answer after its limit": "you answer after its limit",
    "an edit of yours": "an edit of yours",
    "reason of a denial": "the reason of a denial",
    "own calls in the journal": "its own calls in the journal",
}
"""What was noted, and the head of its column."""
DAY = 86_400


def build_table(seen: Seen) -> str:
    head = ["client", ", ".join(FAULTS), "waits for you", *FACTS.values()]
    rows = [_cells(name, seen[name]) for name in NAMES if name in seen]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows))


def _cells(name: str, seen: Mapping[str, str]) -> list[str]:
    client = find_client(name)
    facts = [seen.get(about, NOT_TRIED) for about in FACTS]
    return [f"{client.title} {client.tried}", _describe_faults(seen), _describe_wait(name), *facts]


def _describe_faults(seen: Mapping[str, str]) -> str:
    """One word if all are alike."""
    results = {fault: seen.get(fault, NOT_TRIED) for fault in FAULTS}
    words = {*results.values()}
    return (
        words.pop() if len(words) == 1 else "; ".join(f"{fault}: {word}" for fault, word in results.items())
    )


def _describe_wait(name: str) -> str:
    seconds = DIALECTS[name].clock_seconds
    return "a day" if seconds > DAY / 2 else f"{seconds:.0f} s"


def put_table(page: str, table: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE} has no place for the table.")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    if not SEEN.exists():
        raise SystemExit(f"There is no {SEEN.relative_to(ROOT)}. Run `make test-agents-all` first.")
    PAGE.write_text(put_table(PAGE.read_text(), build_table(json.loads(SEEN.read_text()))))


if __name__ == "__main__":
    main()
