"""The daemon's log: rotated, and free of inputs, outputs and secrets, because nobody hands it any."""

import logging
import os
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_BYTES = 2 * 1024 * 1024
LOGS_KEPT = 3
"""Together with the size: a log never fills a disk."""
_QUIET = ("mcp", "uvicorn", "websockets", "sse_starlette", "asyncio")
"""They log what clients sent, which may hold inputs."""


def start_logging(folder: Path) -> None:
    path = folder / "daemon.log"
    path.touch(mode=0o600)
    os.chmod(path, 0o600)  # noqa: PTH101  (an older file may be open to others)
    handler = RotatingFileHandler(path, maxBytes=LOG_BYTES, backupCount=LOGS_KEPT, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
