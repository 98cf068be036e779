"""Runs the test suite in parallel lanes, beside the checks, and sums up.

Owns which file runs next: it deals files to lanes (`scripts/lane.py`), longest first by the seconds recorded in
`build/lanes`, or by a weight for each folder where nothing is recorded. Tests marked `serial` run afterwards, in one lane, on
a quiet machine. The last line is `N passed, N failed`, checks included. Does not know what any test or check does.

    python -m scripts.suite [--lanes N] [--check "make lint"]... [--before tests/real="make agents"] tests...
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
DURATIONS = RECORDS / "durations.json"
WEIGHTS = {
    "real": 12,
    "real_agents": 12,
    "browser": 6,
    "ui": 6,
    "e2e": 6,
    "safety": 6,
    "door": 3,
    "cli": 3,
    "keeper": 2,
}
"""Seconds for a kilobyte of a test file that was never timed, by folder; 1 elsewhere."""
SLOWEST = 10


@dataclass(frozen=True, slots=True)
class Failure:
    """A test, a check or a lane that failed, and its output."""

    name: str
    text: str


@dataclass
class Results:
    """What ran so far. Lanes report from threads; each update holds the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    outcomes: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])
    skips: list[Failure] = field(default_factory=list[Failure])
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict[str, float](float))
    tests: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    left_out: set[str] = field(default_factory=set[str])

    def fail(self, name: str, text: str) -> None:
        with self.lock:
            self.outcomes["failed"] += 1
            self.failures.append(Failure(name, text))
        announce(f"FAILED {name}")

    def take(self, message: dict[str, Any]) -> None:
        """One message of a lane. All lanes collect, so the same error in a file comes from each."""
        if message.get("when") == "collect" and any(each.text == message["text"] for each in self.failures):
            return
        if message.get("outcome") == "failed":
            self.fail(message["test"] + _stage(message["when"]), message["text"])
            return
        with self.lock:
            if "outcome" in message:
                self.outcomes[message["outcome"]] += 1
                if message["outcome"] == "skipped":
                    self.skips.append(Failure(message["test"], message["text"].strip().splitlines()[-1]))
            elif "took" in message:
                self.tests[message["took"]] = message["seconds"], message["cpu"]
                self.seconds[message["took"].partition("::")[0]] += message["seconds"]
            elif "left_out" in message:
                self.left_out.update(message["left_out"])


def _stage(when: str) -> str:
    return "" if when == "call" else f" ({when})"


class Deck:
    """The files still to run. A file below a folder that awaits a check is dealt when that check has ended."""

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
        """The next file that may run, once there is one; None when all are dealt."""
        with self._changed:
            while self._files:
                for file in self._files:
                    if not any(file.startswith(folder) for folder in self._awaited):
                        self._files.remove(file)
                        return file
                self._changed.wait()
            self._changed.notify_all()
            return None


def run_lane(name: str, deck: Deck, results: Results, arguments: Sequence[str]) -> None:
    """Serve one pytest process until it ends. A lane that ends early is a failure with its last words."""
    ours, theirs = socket.socketpair()
    log = RECORDS / f"{name}.log"
    command = [sys.executable, "-m", "pytest", "-p", "scripts.lane", "--dealer-fd", str(theirs.fileno())]
    command += ["--continue-on-collection-errors", *arguments]
    with log.open("w") as out, theirs:
        lane = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
        )
    # A process that a test left behind may hold the socket: the lane's own end decides.
    threading.Thread(target=_close_after, args=(lane, ours), daemon=True).start()
    last, status = "before its first test", None
    with ours, ours.makefile("rw", encoding="utf-8") as peer:
        for message in _messages(peer):
            last = message.get("started", last)
            status = message.get("finished", status)
            if "want" in message:
                peer.write(json.dumps({"file": deck.deal()}) + "\n")
                peer.flush()
            results.take(message)
    code = lane.wait()
    if status is None or code not in (0, 1, 5):
        results.fail(f"{name} ended with status {code} at {last}", _tail(log))


def _close_after(lane: subprocess.Popen[bytes], ours: socket.socket) -> None:
    lane.wait()
    time.sleep(0.5)
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)


def _messages(peer: TextIO) -> Iterator[dict[str, Any]]:
    with suppress(OSError, ValueError):
        for line in peer:
            yield json.loads(line)


def _tail(path: Path, lines: int = 60) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def run_check(command: str, results: Results) -> None:
    begin = time.monotonic()
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    seconds = time.monotonic() - begin
    if done.returncode:
        results.fail(command, done.stdout.decode(errors="replace"))
        return
    with results.lock:
        results.outcomes["passed"] += 1
        results.seconds[command] = seconds
    announce(f"passed {command} in {seconds:.0f} s")


def run_checks(commands: Sequence[str], before: dict[str, str], deck: Deck, results: Results) -> None:
    """One after another; those that tests wait for come first."""
    for folder, command in before.items():
        run_check(command, results)
        deck.release(folder)
    for command in commands:
        run_check(command, results)


def run_suite(options: argparse.Namespace, results: Results) -> None:
    deck = Deck(in_order(test_files(options.paths)), list(options.before))
    threads = [threading.Thread(target=run_checks, args=(options.check, options.before, deck, results))]
    for number in range(options.lanes):
        arguments = (
            f"lane-{number + 1}",
            deck,
            results,
            ["-m", "not serial", *options.extra, *options.paths],
        )
        threads.append(threading.Thread(target=run_lane, args=arguments))
    for thread in threads:
        thread.start()
    watch(threads, deck, results)
    if len(deck):
        results.fail("the lanes", f"{len(deck)} files were never run, because every lane ended early.")
    if results.left_out:
        announce(f"{len(results.left_out)} files with serial tests, in one lane")
        alone = in_order(sorted(results.left_out))
        run_lane("lane-serial", Deck(alone), results, ["-m", "serial", *options.extra, *alone])


def watch(threads: Sequence[threading.Thread], deck: Deck, results: Results) -> None:
    """Wait for all of them, with a line about the progress every half minute."""
    begin = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(30 / len(threads))
        minutes, seconds = divmod(int(time.monotonic() - begin), 60)
        keep(results)
        announce(f"{minutes}:{seconds:02d}  {results.outcomes.total()} done, {len(deck)} files to go")


def test_files(paths: Sequence[str]) -> list[str]:
    """Every test file of these files and folders, by its name below the project's root."""
    found = [
        file
        for path in map(Path, paths)
        for file in ([path] if path.is_file() else sorted((ROOT / path).rglob("test_*.py")))
    ]
    return sorted({file.resolve().relative_to(ROOT).as_posix() for file in found})


def in_order(files: Sequence[str]) -> list[str]:
    """Longest first, so that no lane begins a long file when the others are nearly done."""
    known = recorded()
    return sorted(files, key=lambda file: -known.get(file, _guess(file)))


def _guess(file: str) -> float:
    parts = Path(file).parts
    return (ROOT / file).stat().st_size / 1000 * (WEIGHTS.get(parts[1], 1) if len(parts) > 1 else 1)


def recorded() -> dict[str, float]:
    return json.loads(DURATIONS.read_text()) if DURATIONS.is_file() else {}


def keep(results: Results) -> None:
    """Write down how long everything took, for the order of the next run and for whoever looks for slow tests."""
    with results.lock:
        files = {name: round(seconds, 2) for name, seconds in results.seconds.items() if name.endswith(".py")}
        slowest = sorted(results.tests.items(), key=lambda each: -each[1][0])
    DURATIONS.write_text(json.dumps(recorded() | files, indent=0, sort_keys=True))
    lines = [f"{seconds:8.2f} {cpu:8.2f} {name}" for name, (seconds, cpu) in slowest]
    (RECORDS / "tests.txt").write_text("\n".join(["    wall      cpu test", *lines]) + "\n")


def report(results: Results, seconds: float) -> None:
    for failure in results.failures:
        show(f"\n{'=' * 20} {failure.name} {'=' * 20}\n{failure.text.rstrip()}")
    for skip in results.skips:
        show(f"skipped {skip.name}: {skip.text}")
    show(f"\nThe {SLOWEST} slowest files and checks, in seconds:")
    for name, taken in sorted(results.seconds.items(), key=lambda each: -each[1])[:SLOWEST]:
        show(f"{taken:8.1f}  {name}")
    if results.failures:
        show("\nFailed:")
        show("\n".join(f"  {failure.name}" for failure in results.failures))
    show(f"\n{seconds / 60:.1f} minutes")
    counts = results.outcomes
    rest = "".join(f", {counts[kind]} {kind}" for kind in ("skipped", "xfailed") if counts[kind])
    show(f"{counts['passed']} passed, {counts['failed']} failed{rest}")


def show(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


announce = show


def options_from(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.suite", description="Run the tests in parallel lanes."
    )
    parser.add_argument("paths", nargs="*", default=["tests"], help="files and folders (default: tests)")
    parser.add_argument("--lanes", type=int, default=max(2, os.cpu_count() or 2), help="pytest processes")
    parser.add_argument("--check", action="append", default=[], help="a command to run beside the tests")
    parser.add_argument(
        "--before",
        action="append",
        default=[],
        metavar="FOLDER=COMMAND",
        help="a check that tests of a folder need",
    )
    parser.add_argument("--extra", default="", help="arguments for each pytest")
    options = parser.parse_args(arguments)
    options.before = dict(each.split("=", 1) for each in options.before)
    options.extra = shlex.split(options.extra)
    return options


def main() -> None:
    options, results, begin = options_from(sys.argv[1:]), Results(), time.monotonic()
    RECORDS.mkdir(parents=True, exist_ok=True)
    try:
        run_suite(options, results)
    except KeyboardInterrupt:
        results.fail("the suite", "Interrupted: not every test was run.")
    keep(results)
    report(results, time.monotonic() - begin)
    ran = results.outcomes["passed"] > 0
    sys.exit(0 if ran and not results.failures else 1)


if __name__ == "__main__":
    main()
