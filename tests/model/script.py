"""Scripts: what the model without a mind is to answer, as data.

A script is a list of turns. It stands in a prompt, as JSON between `<<<` and `>>>` (`script` writes that), or is put
into the server's own queue (`ModelServer.play`). Each request plays the next turn. In a prompt's script as many turns
count as played as the model has answered since; so it goes on where it was after a cancel, a restart, another process.
A script within a string of a script (the task of a sub-agent, say) is played by whoever is sent that string as its prompt.

The words of a turn, all of them optional:

    say          text, streamed word by word
    think        what it thinks before it speaks
    tool, input  a tool to use; an input that is a string is sent as it is, malformed or not
    calls        more tools to use in the same answer: [{"tool": ..., "input": ...}]
    pace         seconds between any two pieces of the stream
    hang         true: all but the end, then silence until whoever listens has left
    hold         a name: silence before the first byte, until `ModelServer.let_go(name)`
    stop         "length" or "refusal": why the answer ends; else by itself, or for its tools
    usage        {"input": 10, "output": 5, "cached": 0, "written": 0}: tokens, `input` without the other two
    trouble      what goes wrong first, one for each request, before the turn is played:
                 a number   that status, as the provider words it (429, 529, 500, 401, 404 ...)
                 "too_long" 400: the conversation does not fit
                 "refuse"   the connection closed instead of an answer
                 "silent"   no byte of an answer
                 "broken"   half of the stream, then the connection closed
                 "stall"    half of the stream, then silence
                 "overloaded"  half of the stream, then an error within it
    retry_after  seconds, told with such a status
    aside        true: for a request without tools (a title, a summary) instead of one of the conversation

A request without tools plays the next turn of the queue, else the script's next aside, else says "A conversation".
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal

Json = dict[str, Any]
Trouble = int | Literal["too_long", "refuse", "silent", "broken", "stall", "overloaded"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool to use."""

    tool: str
    input: Json | str = field(default_factory=dict[str, Any])

    @property
    def raw(self) -> str:
        return self.input if isinstance(self.input, str) else json.dumps(self.input)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model answers once."""

    say: str = ""
    tool: str | None = None
    input: Json | str = field(default_factory=dict[str, Any])
    hang: bool = False
    think: str = ""
    calls: tuple[Call, ...] = ()
    pace: float = 0.0
    hold: str = ""
    stop: Literal["", "length", "refusal"] = ""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])
    trouble: tuple[Trouble, ...] = ()
    retry_after: float | None = None
    aside: bool = False

    @property
    def uses(self) -> tuple[Call, ...]:
        """All the tools it uses."""
        return (*([Call(self.tool, self.input)] if self.tool else []), *self.calls)

    def tokens(self, kind: Literal["input", "output", "cached", "written"]) -> int:
        return self.usage.get(kind, {"input": 10, "output": 5}.get(kind, 0))


BESIDE = Turn("A conversation")
"""What agents ask a model for beside the conversation, a title for instance, gets this."""
OVER = Turn("That was all.")


def script(*turns: Turn, prompt: str = "Please do this.") -> str:
    """A prompt that makes the model play these turns."""
    return f"{prompt} <<<{json.dumps([_told(turn) for turn in turns])}>>>"


def _told(turn: Turn) -> Json:
    """What is not as it is by itself."""
    return {
        each.name: value
        for each in fields(turn)
        if (value := asdict(turn)[each.name])
        != (each.default if each.default_factory is MISSING else each.default_factory())
    }


def turns_in(text: str) -> list[Turn] | None:
    """The last script in a text."""
    found = list(_scripts(text))
    return [_turn(told) for told in json.loads(found[-1])] if found else None


def _turn(told: Json) -> Turn:
    calls = tuple(Call(**call) for call in told.get("calls", ()))
    both: Json = {"calls": calls, "trouble": tuple(told.get("trouble", ()))}
    return Turn(**(told | both))


def _scripts(text: str) -> Iterator[str]:
    """Scripts may hold others, which are not found for themselves."""
    depth, start = 0, 0
    for mark in re.finditer("<<<|>>>", text):
        if mark.group() == "<<<":
            start = mark.end() if depth == 0 else start
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield text[start : mark.start()]


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a conversation, in no provider's dialect. What tools answered is not in it."""

    role: str
    text: str


def scripted(messages: Sequence[Said]) -> tuple[list[Turn], int] | None:
    """The turns of the last script that a person said, and how many of them were played since."""
    played = 0
    for message in reversed(messages):
        if message.role == "assistant":
            played += 1
        elif message.role == "user" and (turns := turns_in(message.text)) is not None:
            return turns, played
    return None


def words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*|\s+", text)
