"""Failure: the exception with which a command fails, and the exit codes."""

from enum import IntEnum


class Code(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_DAEMON = 3


class Failure(Exception):
    """A command failed. The message names the problem, its cause, and a command that helps."""

    def __init__(self, sentence: str, code: Code = Code.FAILED) -> None:
        super().__init__(sentence)
        self.code = code
