"""From a clone with nothing installed, and an environment with nothing in it, one command serves the page."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.house.source import ROOT

BOUND = 240.0
"""Seconds for an environment, an installation and a page; a minute where the packages are near."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=BOUND)
    return folder


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An empty HOME, and the PATH of a system with the Python in use."""
    (tmp_path / "home").mkdir()
    python = Path(sys.base_prefix) / "bin"
    return {"HOME": str(tmp_path / "home"), "PATH": f"/usr/local/bin:/usr/bin:/bin:{python}"}


@pytest.fixture
def running(clone: Path, bare: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    ours, terminal = os.openpty()
    process = subprocess.Popen(
        ["make", "run"],
        cwd=clone,
        env=bare,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        text=True,
        start_new_session=True,
    )
    os.close(terminal)
    process.stdout = open(ours, errors="replace")  # noqa: SIM115  (closed by the process's own end)
    with process:
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.timeout(BOUND + 60)
def test_make_run_serves_the_page_and_ctrl_c_stops_all_of_it(
    running: subprocess.Popen[str], clone: Path, bare: dict[str, str]
) -> None:
    assert running.stdout is not None
    said, deadline = "", time.monotonic() + BOUND
    while (found := re.search(r"Sign in:\s+(http://\S+)/#code=(\S+)", said)) is None:
        assert time.monotonic() < deadline, said
        line = running.stdout.readline()
        assert line, said
        said += line
    url, code = found.groups()
    page = httpx.get(url, timeout=30)
    assert page.status_code == 200
    script = re.search(r'src="(/assets/[^"]+\.js)"', page.text)
    assert script is not None
    assert httpx.get(url + script[1], timeout=30).status_code == 200
    assert httpx.post(f"{url}/api/sign-in", json={"code": code}, timeout=30).json()["bearer"]

    os.killpg(running.pid, signal.SIGINT)
    running.wait(timeout=30)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, timeout=5)
    status = subprocess.run(
        [str(clone / ".venv/bin/python"), "-m", "handrail", "status"],
        env=bare,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert status.returncode == 3
    assert "handrail up" in status.stderr
