"""A process of the command line that answers many questions, each at a word: `python -m tests.e2e.answering NAME`.

It is let in as a person and answers as `handrail approve` and `handrail deny` do. The questions come as one line of
JSON; before each it says `ready` and waits for a line; at the end it says what it was told about each.
"""

import json
import sys
from typing import Any

from handrail.cli.client import Link, reach
from handrail.cli.commands.approvals import Answer, send_answer
from handrail.cli.failure import Failure


def main(name: str) -> None:
    with reach("person") as link:
        say("in")
        questions: list[dict[str, Any]] = json.loads(sys.stdin.readline())
        say(json.dumps([answered(link, asked, name) for asked in questions]))


def answered(link: Link, asked: dict[str, Any], name: str) -> str:
    """Nothing when it was this answer that counted; else the sentence for whoever came too late."""
    say("ready")
    sys.stdin.readline()
    try:
        send_answer(link, asked, Answer(kind=asked["answer"], reason=name))
    except Failure as problem:
        return str(problem)
    return ""


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
