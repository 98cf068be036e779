"""Scripts of the model server: the answers of a model, as data, and the turn that a request plays.

A script is a list of turns. It is in a prompt, as JSON between `<<<` and `>>>` (`script` writes that), or in the
server's queue (`ModelServer.play`). Each request plays the next turn. In a prompt's script, each answer of the model
since that prompt counts as one played turn, so a script continues after a cancel, a restart or in another process. A
script within a string of a script (the task of a sub-agent, for example) is played for the prompt with that string.

The fields of a turn, all optional:

    say          text, streamed word by word
    think        a thought before the text
    tool, input  a tool to use; an input that is a string is sent unchanged, malformed or not
    calls        more tools to use in the same answer: [{"tool": ..., "input": ..., "namespace": ..., "freeform": ...}]
    pace         seconds between two pieces of the stream
    hang         true: all but the end, then silence until the client disconnects
    hold         a name: silence before the first byte, until `ModelServer.let_go(name)`
    stop         "length" or "refusal": why the answer ends; default: its end, or its tools
    usage        {"input": 10, "output": 5, "cached": 0, "written": 0}: tokens, `input` without the other two
    trouble      failures before the turn is played, one for each request:
                 a number   this status, with the provider's message (429, 529, 500, 401, 404 ...)
                 "too_long" 400: the conversation does not fit
                 "refuse"   the connection closed instead of an answer
                 "silent"   no byte of an answer
                 "broken"   half of the stream, then the connection closed
                 "stall"    half of the stream, then silence
                 "overloaded"  half of the stream, then an error within it
    retry_after  seconds, sent with such a status
    aside        true: for a request without tools (a title, a summary) instead of one of the conversation

A request without tools plays the next turn of the queue, else the script's next aside, else "A conversation".
"""

import json
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any, Literal

Json = dict[str, Any]
Trouble = int | Literal["too_long", "refuse", "silent", "broken", "stall", "overloaded"]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool to use."""

    tool: str
    input: Json | str = field(default_factory=dict[str, Any])
    namespace: str = ""
    """Of OpenAI's responses only: the group of tools that it is in."""
    freeform: bool = False
    """Of OpenAI's responses only: a tool whose input is plain text, not JSON."""

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


ASIDE = Turn("A conversation")
"""What agents ask a model for beside the conversation, a title for instance, gets this."""
OVER = Turn("That was all.")


def script(*turns: Turn, prompt: str = "Please do this.") -> str:
    """A prompt that makes the model play these turns."""
    return f"{prompt} <<<{json.dumps([_told(turn) for turn in turns])}>>>"


def _told(turn: Turn) -> Json:
    """The fields that differ from their defaults."""
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
class ScriptMessage:
    """A message of a conversation, in no provider's dialect. What tools answered is not in it."""

    role: str
    text: str


def scripted(messages: Sequence[ScriptMessage]) -> tuple[list[Turn], int] | None:
    """The turns of the last script in a user message, and how many were played since."""
    played = 0
    for message in reversed(messages):
        if message.role == "assistant":
            played += 1
        elif message.role == "user" and (turns := turns_in(message.text)) is not None:
            return turns, played
    return None


def words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*|\s+", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How one provider is spoken."""

    name: str
    said: Callable[[Json], Sequence[ScriptMessage]]
    """The conversation of a request."""
    problem: Callable[[Json], str | None]
    """Why the provider would refuse this request."""
    stream: Callable[[Turn, str], Iterator[str]]
    """The events of an answer by the model of this name; where the turn hangs, all but the end of it."""
    whole: Callable[[Turn, str], Json]
    """The same in one piece."""
    error: Callable[[int, str], Json]
    """A refusal with this status."""
    overloaded: str
    """An error within a stream."""
    always_streams: bool = False
    """Whatever the request says."""

    def streams(self, body: Json) -> bool:
        """Whether the answer to this request is streamed."""
        return self.always_streams or bool(body.get("stream"))


def event(kind: str, **values: Any) -> str:
    """A server-sent event whose type stands in it, too."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **values})}\n\n"


def data(values: Json) -> str:
    return f"data: {json.dumps(values)}\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What one request gets."""

    turn: Turn
    trouble: Trouble | None = None
    """What goes wrong instead."""
    aside: bool = False
    """Not of the conversation."""


@dataclass
class Plays:
    """The queued turns, and how far each script is."""

    _queues: dict[str, deque[Turn]] = field(default_factory=dict[str, deque[Turn]])
    _had: Counter[Hashable] = field(default_factory=Counter[Hashable])
    _played: Counter[str] = field(default_factory=Counter[str])
    _asides: Counter[Hashable] = field(default_factory=Counter[Hashable])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, turns: tuple[Turn, ...], marker: str) -> None:
        with self._lock:
            self._queues.setdefault(marker, deque()).extend(turns)

    @property
    def waiting(self) -> int:
        """The number of queued turns not yet played."""
        return sum(map(len, self._queues.values()))

    def next(self, body: Json, dialect: Dialect) -> Play:
        said = tuple(dialect.said(body))
        with self._lock:
            return self._queued(body, said) or self._scripted(said, bool(body.get("tools")))

    def _queued(self, body: Json, said: tuple[ScriptMessage, ...]) -> Play | None:
        """From the queue with the longest marker that the conversation or its system prompt contains."""
        text = f"{body.get('system', '')}{body.get('systemInstruction', '')}" + "".join(
            each.text for each in said
        )
        found = [marker for marker, queue in self._queues.items() if queue and marker in text]
        if not found:
            return None
        marker = max(found, key=len)
        queue = self._queues[marker]
        trouble = self._trouble(queue[0], (marker, self._played[marker]))
        self._played[marker] += trouble is None
        return Play(turn=queue[0] if trouble is not None else queue.popleft(), trouble=trouble)

    def _scripted(self, said: tuple[ScriptMessage, ...], tools: bool) -> Play:
        found = scripted(said)
        if found is None:
            return Play(turn=ASIDE, aside=True)
        turns, played = found
        if not tools:
            return self._aside([turn for turn in turns if turn.aside], repr(turns))
        mains = [turn for turn in turns if not turn.aside]
        turn = mains[played] if played < len(mains) else OVER
        return Play(turn=turn, trouble=self._trouble(turn, said))

    def _aside(self, turns: list[Turn], key: str) -> Play:
        at = self._asides[key]
        if at >= len(turns):
            return Play(turn=ASIDE, aside=True)
        trouble = self._trouble(turns[at], (key, at))
        self._asides[key] += trouble is None
        return Play(turn=turns[at], trouble=trouble, aside=True)

    def _trouble(self, turn: Turn, key: Hashable) -> Trouble | None:
        """The next that this turn has for the same request made again."""
        if self._had[key] >= len(turn.trouble):
            return None
        self._had[key] += 1
        return turn.trouble[self._had[key] - 1]
