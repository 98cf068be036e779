"""Running a query: the short-lived process behind every search, which never outlives its call.

Owns which program answers (ripgrep where there is one, else scan.py), and the bounds on its time and output. It
does not know what records mean, or which of them a caller may see.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.abc import ByteReceiveStream, Process

from handrail.terminal.output.ripgrep import ripgrep
from handrail.tools.search.query import Query, arguments, separator

SECONDS = 20.0
"""How long a search may take, well within a client's patience; what was found until then is given."""
RECORD_MAX = 1 << 20
"""Bytes of one record; a match in a file of one endless line would be as large as the file."""
_COMPLAINT_MAX = 4096
_TWIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from handrail.tools.search.scan import main; sys.exit(main())"


@dataclass(slots=True)
class Ended:
    """How a search ended."""

    complaint: str = ""
    out_of_time: bool = False
    stopped: bool = False
    """The taker had enough."""
    too_long: int = 0
    """Records that were dropped because they were too long."""


def command(query: Query) -> list[str]:
    program = ripgrep()
    if program is not None:
        return [program, *arguments(query)]
    package = Path(__file__).parents[3]
    return [sys.executable, "-I", "-c", _TWIN, str(package), json.dumps(asdict(query))]


async def seek(
    query: Query, folder: int, path: str, take: Callable[[bytes], bool], stdin: int | None = None
) -> Ended:
    """Run a query in an open folder, whose path is `path`; `take` gets each record, and False ends it."""
    ended = Ended()
    with anyio.move_on_after(SECONDS) as scope:
        process = await anyio.open_process(
            command(query),
            stdin=DEVNULL if stdin is None else stdin,
            stdout=PIPE,
            stderr=PIPE,
            cwd=_held(folder, path),
            env={},
        )
        async with process:
            await _listen(process, _Records(separator(query), take, ended), ended)
    ended.out_of_time = scope.cancelled_caught
    return ended


async def _listen(process: Process, records: "_Records", ended: Ended) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    complaint = bytearray()
    async with anyio.create_task_group() as group:
        group.start_soon(_collect, process.stderr, complaint)
        async for chunk in process.stdout:
            if not records.feed(chunk):
                ended.stopped = True
                process.kill()
                break
    ended.complaint = "" if ended.stopped else complaint.decode(errors="replace").strip()


async def _collect(stream: ByteReceiveStream, into: bytearray) -> None:
    async for chunk in stream:
        into += chunk[: _COMPLAINT_MAX - len(into)]


def _held(folder: int, path: str) -> str:
    """A name for the open folder itself, which stays right whatever happens to its path."""
    return f"/proc/self/fd/{folder}" if Path("/proc/self/fd").exists() else path


class _Records:
    """Splits output into records of bounded length."""

    def __init__(self, end: bytes, take: Callable[[bytes], bool], ended: Ended) -> None:
        self._end = end
        self._take = take
        self._ended = ended
        self._rest = b""
        self._dropping = False

    def feed(self, chunk: bytes) -> bool:
        *whole, self._rest = (self._rest + chunk).split(self._end)
        for record in whole:
            if self._dropping:
                self._dropping = False
            elif not self._take(record):
                return False
        if len(self._rest) > RECORD_MAX:
            self._rest = b""
            self._ended.too_long += not self._dropping
            self._dropping = True
        return True
