"""Runs the test suite in parallel lanes, with the checks beside them, and sums up.

Deals test files to lanes (`scripts/lane.py`), longest first: by the durations recorded in `build/lanes`, else by a weight
for each folder. Tests marked `serial` run afterwards in one lane. A test that failed runs once more, alone: if it passes then, it is
reported as flickering, which is a failure too unless `--flickers` accepts that many. Prints each failure in full, the
slowest files, and as the last line `N passed, N failed`, where each check counts as one. Does not know what a test or a
check does.

    python -m scripts.suite [--lanes N] [--check "make lint"]... [--before tests/real_agents="make agents"] [PATH]...
"""

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "build" / "lanes"
WEIGHTS = {
    "real_agents": 12,
    "real_clients": 12,
    "real_servers": 12,
    "browser": 6,
    "ui": 6,
    "e2e": 6,
    "safety": 6,
    "cli": 3,
    "door": 3,
    "editors": 20,
    "test_load.py": 60,
    "test_answers_race.py": 40,
    "test_own_agent_cancel.py": 40,
    "test_fresh_clone.py": 60,
    "test_api.py": 30,
    "test_gate_schedules.py": 8,
}
"""How slow a test file is for its size, by folder or name, while no duration is recorded; 1 elsewhere."""
LANES = 3 * (os.cpu_count() or 1)
"""With two lanes for each processor the processors were idle for 40 % of the time: the tests wait for processes and sockets."""
SLOWEST = 10
PROGRESS_SECONDS = 30
MOST_REPEATED = 12
"""Failed tests that run once more. Beyond that the machine or the change is broken, and repeating would only take time."""
REPEAT_SECONDS = 300.0
"""How long one repeated test may take; bounds a test that hangs."""
END_SECONDS = 60.0
"""Time for a lane to end after its last test. A thread that a test left behind would keep it alive for ever."""
EXPECTED = (0, 1, 5)
"""Exit statuses of a lane that ran to its end: all passed, some failed, no file was left for it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A test, a check or a lane that failed, and its output."""

    name: str
    text: str
    test: str | None = None
    """The id of the test, if it can run once more."""


@dataclass
class Results:
    """Everything that ran so far. Several threads report; each of them holds the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    outcomes: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])
    flickers: list[Failure] = field(default_factory=list[Failure])
    skips: list[str] = field(default_factory=list[str])
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    tests: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    left_out: set[str] = field(default_factory=set[str])

    def fail(self, name: str, text: str, test: str | None = None) -> None:
        with self.lock:
            self.outcomes["failed"] += 1
            self.failures.append(Failure(name, text, test))
        show(f"FAILED {name}")

    def take(self, message: dict[str, Any]) -> None:
        """Count one message of a lane."""
        if message.get("outcome") == "failed":
            if not self._is_repeated(message):
                self.fail(message["test"] + _phase(message["when"]), message["text"], _repeatable(message))
            return
        with self.lock:
            if "outcome" in message:
                self.outcomes[message["outcome"]] += 1
                if message["outcome"] == "skipped":
                    self.skips.append(f"{message['test']}: {message['text'].strip().splitlines()[-1]}")
            elif "took" in message:
                self.tests[message["took"]] = message["seconds"], message["cpu"]
                self.seconds[message["took"].partition("::")[0]] += message["seconds"]
            elif "left_out" in message:
                self.left_out.update(message["left_out"])

    def accept_flickers(self, tests: set[str], most: int) -> None:
        """Note which failed tests passed alone. They stay failures if there are more than `most`."""
        self.flickers = [failure for failure in self.failures if failure.test in tests]
        if len(tests) <= most:
            self.failures = [failure for failure in self.failures if failure.test not in tests]
            self.outcomes["failed"] = len(self.failures)

    def _is_repeated(self, message: dict[str, Any]) -> bool:
        """Every lane collects every file, so each reports the same collection error."""
        known = {failure.name for failure in self.failures}
        return message["when"] == "collect" and message["test"] + _phase("collect") in known


def _repeatable(message: dict[str, Any]) -> str | None:
    """What to give to pytest to run this test alone; None for a file that could not be collected."""
    if message["when"] == "collect":
        return None
    return f"{message['file']}::{message['test'].partition('::')[2]}"


def _phase(when: str) -> str:
    return "" if when == "call" else f" ({when})"


class Deck:
    """The files still to be dealt. Files of an awaited folder are held back until it is released."""

    def __init__(self, files: Sequence[str], awaited: Sequence[str] = ()) -> None:
        self._files = list(files)
        self._awaited = set(awaited)
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._files)

    def release(self, folder: str) -> None:
        with self._changed:
            self._awaited.discard(folder)
            self._changed.notify_all()

    def deal(self) -> str | None:
        """The next file, as soon as one may run; None when every file is dealt."""
        with self._changed:
            while self._files:
                ready = next(
                    (file for file in self._files if not file.startswith(tuple(self._awaited))), None
                )
                if ready is not None:
                    self._files.remove(ready)
                    self._changed.notify_all()
                    return ready
                self._changed.wait()
            return None


class Suite:
    """One run: its options, its results, and the folder for logs and durations."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results = Results()
        self.records: Path = options.records
        self.durations = self.records / "durations.json"
        self.records.mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        deck = Deck(self.in_order(test_files(self.options.paths)), list(self.options.before))
        threads = [threading.Thread(target=self.run_checks, args=(deck,))]
        for number in range(1, self.options.lanes + 1):
            lane = (f"lane-{number}", deck, "not serial", self.options.paths)
            threads.append(threading.Thread(target=self.run_lane, args=lane))
        for thread in threads:
            thread.start()
        self.watch(threads, deck)
        if len(deck):
            self.results.fail("lanes", f"{len(deck)} files were not run, because every lane ended early.")
        if self.results.left_out:
            show(f"{len(self.results.left_out)} files have serial tests, which run now")
            serial = self.in_order(sorted(self.results.left_out))
            self.run_lane("lane-serial", Deck(serial), "serial", serial)
        self.repeat_failures()

    def repeat_failures(self) -> None:
        """Run each failed test once more, alone, to tell a race or a busy machine from a broken promise."""
        failed = sorted({failure.test for failure in self.results.failures if failure.test is not None})
        if not failed or len(failed) > MOST_REPEATED:
            return
        show(f"{len(failed)} failed tests run once more, alone")
        passed = {test for test in failed if self.passes_alone(test)}
        self.results.accept_flickers(passed, self.options.flickers)

    def passes_alone(self, test: str) -> bool:
        log = self.records / "repeated.log"
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "--rootdir",
            str(ROOT),
            *shlex.split(self.options.extra),
            test,
        ]
        with log.open("a") as out, suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                argv,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=REPEAT_SECONDS,
                check=False,
            )
            return done.returncode == 0
        return False

    def run_lane(self, name: str, deck: Deck, marked: str, paths: Sequence[str]) -> None:
        """Serve one pytest process until it ends. If it ends early, that is a failure with the end of its log."""
        log, chosen = self.records / f"{name}.log", self.options.marked
        marked = f"({chosen}) and {marked}" if chosen else marked
        ours, theirs = socket.socketpair()
        with log.open("w") as out, theirs:
            argv = [sys.executable, "-m", "pytest", "-p", "scripts.lane", "--dealer-fd", str(theirs.fileno())]
            argv += ["--rootdir", str(ROOT), "--continue-on-collection-errors", "-m", marked]
            lane = subprocess.Popen(
                [*argv, *shlex.split(self.options.extra), *paths],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
            )
        last = self._serve(lane, ours, deck)
        with suppress(subprocess.TimeoutExpired):
            lane.wait(END_SECONDS)
        lane.kill()  # nothing, if it has ended
        if lane.wait() not in EXPECTED or last != "":
            self.results.fail(f"{name} ended with status {lane.returncode} {last}".strip(), _tail(log))

    def _serve(self, lane: subprocess.Popen[bytes], ours: socket.socket, deck: Deck) -> str:
        """Where the lane was when it went; empty after an orderly end."""
        # A process that a test left behind may hold the other end open, so the lane's exit closes the socket.
        threading.Thread(target=_close_after, args=(lane, ours), daemon=True).start()
        last = "before its first test"
        with ours, ours.makefile("rw", encoding="utf-8") as peer:
            for message in _messages(peer):
                if "want" in message:
                    peer.write(json.dumps({"file": deck.deal()}) + "\n")
                    peer.flush()
                elif "started" in message:
                    last = f"at {message['started']}"
                elif "finished" in message:
                    last = ""
                self.results.take(message)
        return last

    def run_checks(self, deck: Deck) -> None:
        """One after another; those that tests wait for come first."""
        for folder, command in self.options.before.items():
            self.run_check(command)
            deck.release(folder)
        for command in self.options.check:
            self.run_check(command)

    def run_check(self, command: str) -> None:
        begin, log = time.monotonic(), self.records / "check.log"
        with log.open("w") as out:
            argv = shlex.split(command)
            done = subprocess.run(
                argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False
            )
        seconds = time.monotonic() - begin
        if done.returncode:
            self.results.fail(command, log.read_text(errors="replace"))
            return
        with self.results.lock:
            self.results.outcomes["passed"] += 1
            self.results.seconds[command] = seconds
        show(f"passed {command}, {seconds:.0f} s")

    def watch(self, threads: Sequence[threading.Thread], deck: Deck) -> None:
        """Wait for all threads, with a line about the progress now and then."""
        begin = time.monotonic()
        while alive := [thread for thread in threads if thread.is_alive()]:
            alive[-1].join(PROGRESS_SECONDS)
            self.record()
            minutes, seconds = divmod(int(time.monotonic() - begin), 60)
            show(f"{minutes}:{seconds:02d}  {self.results.outcomes.total()} done, {len(deck)} files to go")

    def in_order(self, files: Sequence[str]) -> list[str]:
        """Longest first, so that no lane begins a long file when the others are nearly done."""
        known = self.recorded()
        return sorted(files, key=lambda file: -known.get(file, _guess(file)))

    def recorded(self) -> dict[str, float]:
        return json.loads(self.durations.read_text()) if self.durations.is_file() else {}

    def record(self) -> None:
        """Write the durations down, for the order of the next run and to find slow tests."""
        with self.results.lock:
            files = {
                name: round(taken, 2) for name, taken in self.results.seconds.items() if name.endswith(".py")
            }
            tests = sorted(self.results.tests.items(), key=lambda each: -each[1][0])
        self.durations.write_text(json.dumps(self.recorded() | files, indent=0, sort_keys=True))
        lines = [f"{wall:8.2f} {cpu:8.2f} {name}" for name, (wall, cpu) in tests]
        (self.records / "tests.txt").write_text("\n".join(["    wall      cpu test", *lines]) + "\n")


def _close_after(lane: subprocess.Popen[bytes], ours: socket.socket) -> None:
    lane.wait()
    time.sleep(0.5)  # for the lane's last messages, which may still be in the socket
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)


def _messages(peer: TextIO) -> Iterator[dict[str, Any]]:
    with suppress(OSError, ValueError):
        for line in peer:
            yield json.loads(line)


def _tail(path: Path, lines: int = 60) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def _guess(file: str) -> float:
    """A weight that is comparable to seconds: small files of plain unit tests take one or two."""
    weight = max((WEIGHTS.get(part, 1) for part in Path(file).parts), default=1)
    return (ROOT / file).stat().st_size / 3000 * weight


def test_files(paths: Sequence[str]) -> list[str]:
    """Every test file in these files and folders, by its path below the project's root."""
    places = [ROOT / path for path in paths]
    found = [file for place in places for file in (place.rglob("test_*.py") if place.is_dir() else [place])]
    return sorted({os.path.relpath(file, ROOT) for file in found})


def report(results: Results, seconds: float) -> None:
    accepted = [failure for failure in results.flickers if failure not in results.failures]
    for failure in (*results.failures, *accepted):
        show(f"\n{'=' * 20} {failure.name} {'=' * 20}\n{failure.text.rstrip()}")
    for skip in results.skips:
        show(f"skipped {skip}")
    show(f"\nThe {SLOWEST} slowest files and checks, in seconds:")
    for name, taken in sorted(results.seconds.items(), key=lambda each: -each[1])[:SLOWEST]:
        show(f"{taken:8.1f}  {name}")
    if results.failures:
        show("\nFailed:")
        show("\n".join(f"  {failure.name}" for failure in results.failures))
    if results.flickers:
        show("\nFlickered (failed, then passed alone: find the race):")
        show("\n".join(f"  {failure.name}" for failure in results.flickers))
    show(f"\n{seconds / 60:.1f} minutes")
    counts = results.outcomes
    rest = "".join(f", {counts[kind]} {kind}" for kind in ("skipped", "xfailed") if counts[kind])
    show(f"{counts['passed']} passed, {counts['failed']} failed{rest}")


def show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def options_from(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.suite", description="Run the tests in parallel.")
    parser.add_argument("paths", nargs="*", default=["tests"], help="test files and folders (default: tests)")
    parser.add_argument("--lanes", type=int, default=LANES, help="pytest processes")
    parser.add_argument("--check", action="append", default=[], help="a command to run beside the tests")
    parser.add_argument("--before", action="append", default=[], metavar="FOLDER=COMMAND", help="a check that the tests of a folder need")  # fmt: skip
    parser.add_argument("--marked", default="", help="only tests with these marks, as for pytest -m")
    parser.add_argument("--extra", default="", help="more arguments for each pytest")
    parser.add_argument("--flickers", type=int, default=0, metavar="N", help="accept up to N tests that failed and passed alone (default: none)")  # fmt: skip
    parser.add_argument("--records", type=Path, default=RECORDS, help="folder for logs and durations")
    options = parser.parse_args(arguments)
    options.before = dict(each.split("=", 1) for each in options.before)
    return options


def main() -> None:
    suite, begin = Suite(options_from(sys.argv[1:])), time.monotonic()
    try:
        suite.run()
    except KeyboardInterrupt:
        suite.results.fail("suite", "Interrupted: some tests were not run.")
    suite.record()
    report(suite.results, time.monotonic() - begin)
    sys.exit(1 if suite.results.failures or not suite.results.outcomes["passed"] else 0)


if __name__ == "__main__":
    main()
