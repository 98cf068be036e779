"""Runs groups of measurements. Reports each result the moment it exists, and goes on after a failure."""

import importlib
import signal
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from bench.line import Figure, Line, Measurement, Result, Target

REPEAT_SECONDS = 30.0
"""An event loop may log and drop the exception of a timeout; it is raised again after so long. Clean-up gets this long too."""
_REASON_CHARACTERS = 200
_NO_TARGET = Target("at most", 0)


class MeasurementTimeout(Exception):
    """A measurement took longer than it may. No TimeoutError: that is an OSError, which measuring code may suppress."""


class NoFigure(Exception):
    """A measurement yielded fewer figures than it declares lines."""


@dataclass(frozen=True, slots=True)
class Group:
    """A subject of the bench: a name to select it by, a sentence about it, and the source of its measurements."""

    name: str
    summary: str
    load: Callable[[], Sequence[Measurement]]


def module_group(name: str, summary: str, module: str) -> Group:
    """The group of a module's `MEASUREMENTS`. The import waits until the group runs, so that its failure costs only this group."""
    return Group(name, summary, lambda: importlib.import_module(module).MEASUREMENTS)


def run_groups(groups: Iterable[Group], report: Callable[[Result], None]) -> list[Result]:
    """Run the groups in order and pass each result on as it comes. Returns all results."""
    results: list[Result] = []
    for group in groups:
        for result in _run_group(group):
            report(result)
            results.append(result)
    return results


def _run_group(group: Group) -> Iterator[Result]:
    try:
        measurements = group.load()
    except Exception as error:
        yield Result(group.name, Line(f"all of {group.name}", "", _NO_TARGET), failure=_explain(error))
        return
    for measurement in measurements:
        yield from _run_measurement(group.name, measurement)


def _run_measurement(group: str, measurement: Measurement) -> Iterator[Result]:
    figures = measurement.measure()
    pending = list(measurement.lines)
    try:
        while pending:
            figure = _next_figure(figures, measurement.seconds)
            yield Result(group, pending.pop(0), figure)
        pending = [Line(f"clean-up after: {measurement.lines[-1].title}", "", _NO_TARGET)]
        with _time_limit(measurement.seconds):
            figures.close()
    except Exception as error:
        failure = _explain(error)
        yield from (Result(group, line, failure=failure) for line in pending)


def _next_figure(figures: Iterator[Figure], seconds: float) -> Figure:
    with _time_limit(seconds):
        figure = next(figures, None)
    if figure is None:
        raise NoFigure("the measurement ended before this line")
    return figure


@contextmanager
def _time_limit(seconds: float) -> Generator[None]:
    """Raise MeasurementTimeout in the block after so many seconds. For the main thread only, as signals are."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise MeasurementTimeout(f"no result within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def _explain(error: Exception) -> str:
    """One line about the error; the traceback goes to stderr."""
    traceback.print_exception(error)
    sentence = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {sentence}".removesuffix(": ")[:_REASON_CHARACTERS]
