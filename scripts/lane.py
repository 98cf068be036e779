"""A pytest plugin that runs the test files which a dealer hands out, one after another, in one session.

Owns the dialogue with the dealer (`scripts/suite.py`) over an inherited socket: JSON lines, a file name for each
request, a report for each test. A file is imported when it is dealt, so that no other lane imports it. Session fixtures
live for as long as the lane. Does not know how many lanes there are, nor in which order the files are dealt.

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
        self._files: dict[str, pytest.Module] = {}
        """The files that are not dealt yet."""
        self._dealt: pytest.Module | None = None
        """The file that is being collected; None while the files are listed."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Only note a file while the files are listed: importing and collecting them all takes half a minute."""
        if self._dealt is not None or not isinstance(collector, pytest.Module):
            return None
        self._files[self._name(collector)] = collector
        return pytest.CollectReport(collector.nodeid, "passed", None, [])

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool | None:
        """List the files as pytest does, and later collect the file that was dealt."""
        if self._dealt is None:
            return None
        session.items = list(session.genitems(self._dealt))
        config = session.config
        config.hook.pytest_collection_modifyitems(session=session, config=config, items=session.items)
        session.testscollected += len(session.items)
        return True

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
        while name := self._next_file():
            self._dealt = self._files.pop(name, None)
            if self._dealt is not None:
                session.config.hook.pytest_collection(session=session)
                yield from session.items

    def _name(self, node: pytest.Item | pytest.Module) -> str:
        return os.path.relpath(node.path, self._root)

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
            facts = {"outcome": _outcome(report), "when": report.when, "text": _text(report)}
            self._send(test=report.nodeid, file=report.location[0], **facts)

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
