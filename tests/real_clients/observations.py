"""What the tests saw each client do, for the table in docs/connect.md (`scripts/client_table.py`)."""

import json

from tests.real_agents.install import BUILD

FILE = BUILD / "client-observations.json"


def note(client: str, about: str, seen: str) -> None:
    """Keep what was seen, in place of what an earlier run saw."""
    known: dict[str, dict[str, str]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    known.setdefault(client, {})[about] = seen
    FILE.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
