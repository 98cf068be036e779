"""Searching 64 MB of a terminal: its bytes beside ripgrep on the same bytes, and its text."""

import subprocess
import time
from pathlib import Path
from urllib.parse import quote

from bench.figures import ROUNDS, Line, Target, alternate, median
from bench.kept import kept
from bench.stage import Stage
from handrail.places import Places
from handrail.terminal.output.ripgrep import ripgrep

PATTERN = r"0000\d1234[05] .*warnings"
"""On a handful of lines; nothing that a plain search for a word would find."""
TEXT_PATTERN = r"0000\d1234[05] compiled src"
"""What is read as one phrase has colours between its words."""


def run(stage: Stage) -> list[Line]:
    with stage.client() as client:
        terminal = str(kept(stage, client)["terminal_id"])
    same = _joined(stage, terminal)
    ours, peer = alternate(lambda: _search(stage, terminal, PATTERN, raw=True), lambda: _rg(same))
    text = median([_search(stage, terminal, TEXT_PATTERN, raw=False) for _ in range(ROUNDS)])
    return [
        Line(
            what="raw search of 64 MB", ours=ours, peer=peer, unit="ms", target=Target("times at most", 3.0)
        ),
        Line(what="text search of 64 MB", ours=text, peer=None, unit="ms", target=Target("at most", 1000.0)),
    ]


def _search(stage: Stage, terminal: str, pattern: str, *, raw: bool) -> float:
    path = f"/api/terminals/{terminal}/search?pattern={quote(pattern)}&raw={str(raw).lower()}"
    began = time.perf_counter()
    found = stage.get(path)
    took = time.perf_counter() - began
    assert 5 < len(found["matches"]) < 50, found
    return took * 1000


def _rg(file: Path) -> float:
    rg = ripgrep()
    began = time.perf_counter()
    subprocess.run([rg, "-a", "-n", PATTERN, str(file)], check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000


def _joined(stage: Stage, terminal: str) -> Path:
    """The very bytes, in one file."""
    spool = Places.under(Path(stage.env["HANDRAIL_HOME"])).spool / terminal
    file = stage.workspace / "bytes"
    with file.open("wb") as out:
        for segment in sorted(spool.glob("*.seg")):
            out.write(segment.read_bytes())
    return file
