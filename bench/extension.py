"""The VS Code extension: the size of its package."""

from collections.abc import Generator

from bench.line import Figure, Line, Measurement, Target
from handrail.clients.vscode_extension import VSIX


def measure_size() -> Generator[Figure]:
    if not VSIX.is_file():
        raise FileNotFoundError("The extension is not built; `make vsix` builds it.")
    yield Figure(VSIX.stat().st_size / 1e6)


MEASUREMENTS = (
    Measurement((Line("the package of the VS Code extension", "MB", Target("at most", 1.5)),), measure_size),
)
