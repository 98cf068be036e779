"""Takes a posture, makes the tries it was ordered to make, and writes down what came of each."""

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from . import files, keeper, listener, ports, postures, proc, verbs, web
from .ground import Order, Try, above, keeper_pid

TRIES: dict[str, Try] = {
    **verbs.TRIES,
    **keeper.TRIES,
    **proc.TRIES,
    **web.TRIES,
    **files.TRIES,
    **postures.TRIES,
    **ports.TRIES,
    **listener.TRIES,
}


def main(path: str) -> None:
    order = Order(**json.loads(Path(path).read_text()))
    if "killing_both" in order.posture or "killing_the_keeper" in order.posture:
        drop_terminal(path)
    if not verbs.TRIES.keys().isdisjoint(order.tries):
        verbs.load_commands()
    told: dict[str, Any] = {"environ": dict(os.environ), "got": {}}
    try:
        postures.ALL[order.posture]()
        told["above"] = list(above(os.getpid()))
        for name in order.tries:
            got = TRIES[name](order)
            told["got"][name] = [got.code, got.said]
    except BaseException as error:
        told["broke"] = f"{type(error).__name__}: {error}"
    fresh = Path(order.out + ".new")
    fresh.write_text(json.dumps(told))
    fresh.rename(order.out)
    with contextlib.suppress(OSError, ValueError):
        os.kill(keeper_pid(), signal.SIGCONT)


def drop_terminal(path: str) -> None:
    """Start again without the variable by which a daemon finds, and ends, what outlived its keeper."""
    environ = {name: value for name, value in os.environ.items() if name != "HANDRAIL_TERMINAL"}
    if len(environ) < len(os.environ):
        os.execve(sys.executable, [sys.executable, "-m", "attack", path], environ)


if __name__ == "__main__":
    main(sys.argv[1])
