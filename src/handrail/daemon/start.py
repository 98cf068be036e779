"""Start the daemon with its usual command line, `up --foreground --no-open [--port N]`.

The keeper, doors and `handrail up` use that command line. This module does not import the command-line package, which
takes a fifth of a start.
"""

import gc
import os
import queue
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from handrail.hardening import hide_memory, ignore_plugins
from handrail.paths import Places

ARGUMENTS = ("up", "--foreground", "--no-open")


def main(arguments: Sequence[str]) -> int | None:
    """Run the daemon and return its exit status; None leaves the arguments to the command line.

    The command line also reports a bad configuration.
    """
    hide_memory()
    ignore_plugins()
    gc.disable()  # imports leave little garbage; the web server enables it, see `tune_gc`
    port = parse_port(arguments)
    try:
        return None if port is None else _run(port)
    except KeyboardInterrupt:
        return 130
    finally:
        gc.enable()


def parse_port(arguments: Sequence[str]) -> int | None:
    """The port, or 0 for the configured one; None for arguments that the command line must parse."""
    if tuple(arguments[:3]) != ARGUMENTS:
        return None
    if len(arguments) == 3:
        return 0
    match arguments[3:]:
        case ["--port", text] if text.isascii() and text.isdigit() and len(text) <= 5:
            return int(text) if 0 < int(text) < 65_536 else None
        case _:
            return None


def _run(port: int) -> int | None:
    from handrail.config import BadConfig, load  # noqa: PLC0415 - pydantic: after the memory is hidden

    places = Places.find(os.environ)
    try:
        config = load(places.config)
    except BadConfig:
        return None
    from handrail.daemon import daemon  # noqa: PLC0415 - imports everything

    return daemon.run(places, config, port=port or None)


def end_worker_threads() -> None:
    """End anyio's worker threads. One that starts while the event loop ends may never be told to, and would keep the process."""
    for thread in threading.enumerate():
        if thread.name == "AnyIO worker thread":
            with suppress(queue.Full):  # it was told already
                cast("Any", thread).queue.put_nowait(None)
