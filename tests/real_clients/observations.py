"""What the tests saw each client do, for the table in docs/connect.md (`scripts/client_table.py`)."""

import fcntl
import json

from tests.real_agents.install import BUILD

FILE = BUILD / "client-observations.json"


def note(client: str, about: str, seen: str) -> None:
    """Keep what was seen, in place of what an earlier run saw."""
    with FILE.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # several runs may share it
        file.seek(0)
        known: dict[str, dict[str, str]] = json.loads(file.read() or "{}")
        known.setdefault(client, {})[about] = seen
        file.truncate(0)
        file.write(json.dumps(known, indent=1, sort_keys=True) + "\n")
