"""The sentence for people when the daemon ends with an exception, instead of a traceback."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from handrail.config import BadConfig
from handrail.daemon.state_files import AlreadyRunning
from handrail.errors import BadRecord, LostJournal, NewerSchema, Unwritable
from handrail.terminal.keeper_client import KeeperError

EXPLAINED = (AlreadyRunning, BadConfig, BadRecord, KeeperError, LostJournal, NewerSchema, Unwritable)
"""Exceptions whose message is a sentence for people."""


def explain_failure(problem: BaseException, logs: Path) -> str:
    """The sentence for an exception that ended the daemon. Other messages may hold inputs, so they are not shown."""
    causes = list(_flatten(problem))
    explained = [str(cause) for cause in causes if isinstance(cause, EXPLAINED)]
    if explained:
        return explained[0]
    shown = [f"{cause}" for cause in causes if isinstance(cause, OSError | sqlite3.Error)]
    why = shown[0] if shown else type(causes[0]).__name__
    return (
        f"The daemon ended because of an error: {why}. `handrail doctor` checks the installation; the details are in "
        f"{logs / 'daemon.log'}."
    )


def _flatten(problem: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group of groups; an exception itself if it is no group."""
    if isinstance(problem, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", problem)
        for each in group.exceptions:
            yield from _flatten(each)
    else:
        yield problem
