"""The one way a command fails.

Does not know where the sentence is shown.
"""

from enum import IntEnum


class Code(IntEnum):
    """What a script sees of a command's end."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NO_DAEMON = 3


class Failure(Exception):
    """A command could not do what was asked; the sentence says what, why and which command helps."""

    def __init__(self, sentence: str, code: Code = Code.FAILED) -> None:
        super().__init__(sentence)
        self.code = code
