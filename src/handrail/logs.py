"""The daemon's log: rotated, and free of inputs, outputs and secrets, because nobody hands it any."""

import logging
import os
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

ExceptionFacts = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

LOG_BYTES = 2 * 1024 * 1024
LOGS_KEPT = 3
"""Together with the size: a log never fills a disk."""
_QUIET = ("mcp", "uvicorn", "websockets", "sse_starlette", "asyncio")
"""They log what clients sent, which may hold inputs."""


class Discreet(logging.Formatter):
    """Tells of an exception where it happened and of what kind, but not what it said: that may hold inputs."""

    def formatException(self, ei: ExceptionFacts) -> str:  # noqa: N802  (logging's own name)
        kind, _, trace = ei
        frames = "".join(traceback.format_tb(trace)) if trace is not None else ""
        return f"{frames}{kind.__name__ if kind is not None else 'no exception'}"


def start_logging(folder: Path) -> None:
    path = folder / "daemon.log"
    path.touch(mode=0o600)
    os.chmod(path, 0o600)  # noqa: PTH101  (an older file may be open to others)
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")
    handler.setFormatter(Discreet("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
