"""A last look before something is done: one key, from a person who has seen what it is.

Owns when that is asked. Without a terminal nobody is there to ask, and the command itself was the decision.
"""

import sys

from handrail.cli.keyboard import Keyboard
from handrail.cli.show import say

LOOK_SECONDS = 3600.0
"""For one wait for a key; there is another after it."""


def sure(question: str) -> bool:
    """Whether the person at this terminal says yes, by a key pressed after the question was shown."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    with Keyboard() as keyboard:
        say((question, "bold"), "   [y]es   [n]o")
        keyboard.guard()
        while True:
            match keyboard.key(LOOK_SECONDS):
                case "y" | "Y":
                    return True
                case "n" | "N" | "q" | "\x1b" | "\n" | "\r":
                    return False
                case _:
                    pass
