"""The official conformance suite, against a server that it knows, directly and through Handrail.

What passes directly has to pass through Handrail, in both generations of the protocol.
"""

import json
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from starlette.types import ASGIApp
from tests.real_agents.install import SETS, node
from tests.real_servers.conformance_fixture import build_app
from tests.real_servers.suite_names import SuiteNames
from tests.support.daemon_home import BOUND, running_daemon
from tests.support.person_client import Person, person_of

pytestmark = pytest.mark.timeout(180)

SERVER = "c"
CONFIG = """
[[servers]]
name = "c"
url = "{url}"
sampling = true

[[rules]]
effect = "allow"
server = "c"
"""


@dataclass(slots=True)
class Report:
    """The checks of one run, as `scenario check`: those that passed, and why others did not."""

    passed: set[str] = field(default_factory=set[str])
    others: dict[str, str] = field(default_factory=dict[str, str])
    remarks: dict[str, str] = field(default_factory=dict[str, str])
    """What the suite notes without a judgement."""

    def add(self, scenario: str, check: dict[str, Any]) -> None:
        name = f"{scenario} {check['id']}"
        if check["status"] == "SUCCESS" and name not in self.others:
            self.passed.add(name)
        elif check["status"] == "INFO":
            self.remarks[name] = str(check.get("details", {}).get("message", ""))
        elif check["status"] != "SUCCESS":
            self.passed.discard(name)
            self.others[name] = f"{check['status']}: {check.get('errorMessage', '')}"


async def let_in(person: Person, workspace: str) -> dict[str, str]:
    """A credential for a folder that the person trusts."""
    await person.post("folders/trust", {"folder": workspace, "config": None})
    return await person.credential(workspace)


@contextmanager
def serve(app: ASGIApp) -> Generator[str]:
    """An application on loopback, in a thread; its address."""
    config = uvicorn.Config(app, port=0, loop="asyncio", log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + BOUND
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(BOUND)


def run_suite(url: str, version: str, folder: Path) -> Report:
    program = SETS["servers"].modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [str(node()), str(program), "server", "--url", url, "--suite", "all", "--spec-version", version]
    ran = subprocess.run(
        [*command, "-o", str(folder)], capture_output=True, text=True, timeout=2 * BOUND, check=False
    )
    report = Report()
    for path in sorted(folder.rglob("checks.json")):
        scenario = path.parent.name.removeprefix("server-").partition("-20")[0]
        for check in json.loads(path.read_text()):
            report.add(scenario, check)
    assert report.passed, ran.stdout + ran.stderr
    return report


OLD, NEW = "2025-11-25", "2026-07-28"
FEWEST = {OLD: 84, NEW: 136}
"""Checks that pass directly, so that a suite that does not run cannot pass."""
REMARKS: dict[str, dict[str, str]] = {
    # The fixture ends the stream of a call before its answer, which saves its own connection. Handrail fetches that answer on a
    # connection of its own, and keeps its client's stream open: there the answer comes at once. The suite allows both.
    OLD: {"server-sse-polling server-sse-disconnect-resume": "Tool response received on initial POST stream"},
    NEW: {},
}
"""Checks that only pass directly, and what the suite notes about them: no failure and no warning."""


@pytest.mark.parametrize("version", [OLD, NEW])
def test_what_passes_directly_passes_through_us(version: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        fixture = stack.enter_context(serve(build_app()))
        own = stack.enter_context(serve(SuiteNames(f"{fixture}/mcp")))
        direct = run_suite(f"{own}/mcp", version, tmp_path / "direct")
        home = stack.enter_context(running_daemon(CONFIG.format(url=f"{fixture}/mcp")))
        credential = anyio.run(let_in, person_of(home), str(tmp_path))
        headers = {"authorization": f"Bearer {credential['bearer']}"}
        relay = stack.enter_context(serve(SuiteNames(credential["url"], f"{SERVER}__", headers)))
        through = run_suite(f"{relay}/mcp", version, tmp_path / "through")

    lost = {name: through.remarks.get(name, "was not reached") for name in direct.passed - through.passed}
    assert direct.others == {}
    assert len(direct.passed) >= FEWEST[version]
    assert through.others == {}
    assert {name: noted.partition(" - ")[0] for name, noted in lost.items()} == REMARKS[version]
