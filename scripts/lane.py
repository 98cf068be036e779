"""A pytest plugin that runs the test files which a dealer hands out, one after another, in one session.

Owns the dialogue with the dealer (`scripts/suite.py`) over an inherited socket: JSON lines, a file name for each
request, a report for each test. Session fixtures live for as long as the lane. Does not know how many lanes there are,
nor in which order the files are dealt.

    python -m pytest -p scripts.lane --dealer-fd N
"""

import json
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dealer-fd", required=True, help="the socket on which a dealer hands out test files")


def pytest_configure(config: pytest.Config) -> None:
    descriptor = int(str(config.getoption("--dealer-fd")))
    os.set_inheritable(descriptor, False)  # the processes that tests start must not hold the socket open
    config.pluginmanager.register(Lane(socket.socket(fileno=descriptor), config.rootpath))


class Lane:
    """One session's end of the socket, and the seconds that the test at hand has taken."""

    def __init__(self, dealer: socket.socket, root: Path) -> None:
        self._dealer = dealer.makefile("rw", encoding="utf-8")
        self._root = root
        self._seconds = 0.0
        self._cpu = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run each test with its successor in view, because that decides which fixtures end with it."""
        items = self._dealt_items(session)
        item = next(items, None)
        while item is not None:
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        return True

    def _dealt_items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        by_file: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            by_file.setdefault(self._name(item), []).append(item)
        while name := self._next_file():
            yield from by_file.get(name, ())

    def _name(self, item: pytest.Item) -> str:
        return os.path.relpath(item.path, self._root)

    def _next_file(self) -> str | None:
        self._send(want="file")
        line = self._dealer.readline()
        return json.loads(line)["file"] if line else None

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._send(left_out=sorted({self._name(item) for item in items}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._seconds, self._cpu = 0.0, _cpu()
        self._send(started=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        if report.when == "teardown":
            self._send(took=report.nodeid, seconds=self._seconds, cpu=_cpu() - self._cpu)
        if report.failed or report.skipped or report.when == "call":
            self._send(test=report.nodeid, outcome=_outcome(report), when=report.when, text=_text(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed or report.skipped:
            self._send(test=report.nodeid, outcome=report.outcome, when="collect", text=_text(report))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._send(finished=int(exitstatus))

    def _send(self, **message: Any) -> None:
        self._dealer.write(json.dumps(message) + "\n")
        self._dealer.flush()


def _cpu() -> float:
    """Seconds of this process and of those that it has waited for. Inflated less by a busy machine than the wall clock."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _outcome(report: pytest.TestReport) -> str:
    return "xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome


def _text(report: pytest.TestReport | pytest.CollectReport) -> str:
    """What a person reads of a failure or a skip; empty for a test that passed."""
    if report.passed:
        return ""
    parts = [report.longreprtext or str(report.longrepr)]
    parts += [f"--- {title} ---\n{content}" for title, content in report.sections]
    return "\n".join(parts)
