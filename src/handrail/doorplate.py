"""The doorplate: what a daemon leaves on disk so that it is found, and found again after a restart.

The daemon's own. Owns two small files of its home, and what it can tell from those of the daemon before.
"""

import json
import os

from handrail import __version__
from handrail.places import Places


class Doorplate:
    """Where this daemon is."""

    def __init__(self, places: Places, wished: int) -> None:
        """`wished` is the port that it would like."""
        self._places = places
        self._wished = wished

    @property
    def ports(self) -> tuple[int, ...]:
        """Those to try. The one it had last comes first, when it wished for the same one then: an open page finds it again."""
        try:
            wished, got = (int(word) for word in self._places.port.read_text().split())
        except (OSError, ValueError):
            return (self._wished,)
        return (got, self._wished) if wished == self._wished else (self._wished,)

    @property
    def hangs(self) -> bool:
        """The daemon before did not take it down: it crashed."""
        return self._places.daemon_json.exists()

    def note_port(self, got: int) -> None:
        self._places.port.write_text(f"{self._wished} {got}\n")

    def put_up(self, url: str) -> None:
        """Whole, or not at all."""
        socket = str(self._places.daemon_socket)
        about = {"pid": os.getpid(), "url": url, "version": __version__, "socket": socket}
        path = self._places.daemon_json
        fresh = path.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps(about))
        fresh.replace(path)

    def take_down(self) -> None:
        self._places.daemon_json.unlink(missing_ok=True)
