"""A process that answers approvals as the CLI does: `python -m tests.support.answering_process NAME`.

It signs in as a person. It reads the approvals as one line of JSON. Before each answer it prints `ready` and waits for a
line. At the end it prints the outcome of each answer as JSON.
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


def answered(link: Link, asked: Any, name: str) -> str:
    """Empty if this answer won, else the error message."""
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
