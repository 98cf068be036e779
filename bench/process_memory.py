"""The memory of a process, as the kernel sees it."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


def read_rss(pid: int) -> int:
    """The resident memory of a process, in bytes."""
    return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024


@contextmanager
def sample_memory(read: Callable[[], float], seconds: float) -> Generator[list[float]]:
    """Memory as `read` reports it, sampled in this interval until the block ends."""
    samples = [read()]
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.wait(seconds):
            samples.append(read())

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield samples
    finally:
        stopped.set()
        thread.join()
