"""What became of a file since its change was planned.

Owns the look at what is there now, and the sentences about it. It changes nothing (replace.py).
"""

import os
import stat
from dataclasses import dataclass

from handrail.gate.tool import Refusal
from handrail.tools.beneath import openat
from handrail.tools.files.diff import unified
from handrail.tools.files.target import Target, read_all
from handrail.tools.place import replaced

_SHORT_DIFF = 40
"""Lines of difference shown to a model whose edit came too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a file differs from what it held when its change was planned."""

    sentence: str
    diff: str = ""
    """Before → now; empty where there is nothing to compare."""


def changed_since(target: Target) -> Drift | None:
    """How a file differs now; None while it is what the plan found."""
    try:
        folder = target.folder.open(target.place)
    except Refusal as refusal:
        return Drift(sentence=refusal.sentence)
    try:
        name = target.missing[0] if target.missing else target.name
        return drift_of(target, now_in(folder, name, target))
    except Refusal as refusal:
        return Drift(sentence=refusal.sentence)
    finally:
        os.close(folder)


def check_unchanged(folder: int, name: str, target: Target) -> None:
    """Raises Refusal unless the file of this name in an open folder holds what the plan found."""
    drift = drift_of(target, now_in(folder, name, target))
    if drift is not None:
        raise Refusal(told(drift, target))


def told(drift: Drift, target: Target) -> str:
    """For a model; of a place that it may not read only the fact."""
    if not drift.diff or not target.place.is_common:
        return drift.sentence
    lines = drift.diff.splitlines()
    more = ["…"] if len(lines) > _SHORT_DIFF else []
    return "\n".join([f"{drift.sentence} It changed like this:", *lines[:_SHORT_DIFF], *more])


def now_in(folder: int, name: str, target: Target) -> bytes | None:
    """What a file holds; None when there is none. Raises Refusal when it is no file."""
    try:
        descriptor = openat(folder, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except OSError:
        raise Refusal(replaced(target.place)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(replaced(target.place))
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def drift_of(target: Target, now: bytes | None) -> Drift | None:
    if now == target.before:
        return None
    shown = target.place.shown
    if now is None:
        return Drift(
            sentence=f"{shown} was deleted on disk since this change was proposed. Nothing was written. Look what became "
            "of it, then propose again."
        )
    what = "was created" if target.before is None else "changed"
    return Drift(
        sentence=f"{shown} {what} on disk since this change was proposed: another agent or program wrote it. Nothing was "
        "written. Read it again, then propose your change again.",
        diff=unified(shown, target.before, now).text,
    )
