"""What a client was told, written down before it goes on: an acknowledgement that outlives anything."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """A file of its own for each client; every line is on disk before the next thing is asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, **facts: Any) -> None:
        os.write(self._descriptor, json.dumps(facts).encode() + b"\n")
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from (json.loads(line) for line in self._path.read_text().splitlines())
