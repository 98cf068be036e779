"""A terminal that has printed 64 MB and still holds all of it."""

from typing import Any

from bench.client import Client
from bench.stage import Stage

SIZE = 64_000_000
_LINE = (
    "%012.0f \\033[32mcompiled\\033[0m src/some/module/of/a/program.c in 0.31 s, with 0 warnings and 0 errors"
)
"""About a hundred bytes, with a colour on every line, as builds print."""
COMMAND = f"seq -f $'{_LINE}' 1 1000000 | head -c {SIZE - 700_000}"
"""A little less than is kept: the terminal turns each newline into two bytes."""


def kept(stage: Stage, client: Client) -> dict[str, Any]:
    """The facts of the terminal's command."""
    request = client.begin("execute_command", {"command": COMMAND, "wait_seconds": 600})
    stage.allow(stage.asked())
    found = client.answer(request)["structuredContent"]
    assert 0.98 * SIZE < found["output_bytes"] <= 1.05 * SIZE, found["output_bytes"]
    return found
