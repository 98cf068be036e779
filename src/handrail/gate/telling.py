"""What an agent is told about a person's part in its call: what they changed, and what they said.

Owns these words. It does not know what a tool did with the change; of a reviewed file the tool itself tells.
"""

import json
from dataclasses import replace

from pydantic import JsonValue

from handrail.store.value import Comment, Json, Result

LONGEST = 200
"""Characters of a value that is told in a sentence; the whole of it is in the data."""
REVIEWED = "A person reviewed the proposed file; the result says what was written."
UNCHANGED = "It runs as it was asked."


def tells(asked: Json, input: Json, *, reviewed: bool) -> str:
    """What the agent will be told of this change."""
    if input != asked:
        return changed(asked, input)
    return REVIEWED if reviewed else UNCHANGED


def changed(asked: Json, input: Json) -> str:
    """One sentence about the difference between two inputs."""
    told = [_one(name, asked, input) for name in {**asked, **input} if asked.get(name) != input.get(name)]
    return f"A person changed this call before allowing it: {'; '.join(told)}."


def with_change(result: Result | None, asked: Json, input: Json) -> Result:
    """The same result, saying first what was changed, and holding both inputs whole."""
    found = result or Result(text="", data={})
    text = f"{changed(asked, input)}\n\n{found.text}".rstrip()
    return replace(found, text=text, data={**found.data, "edited": {"input": input, "asked": asked}})


def denial(reason: str, comments: tuple[Comment, ...]) -> str:
    """A reason, and what was said about lines of the proposal."""
    told = [f"Line {comment.line}: {comment.text}" for comment in comments]
    return "\n".join([*([reason] if reason else []), *told])


def _one(name: str, asked: Json, input: Json) -> str:
    if name not in input:
        return f"`{name}` was left out"
    if name not in asked:
        return f"`{name}` was added: {_value(input[name])}"
    return f"`{name}` is {_value(input[name])} instead of {_value(asked[name])}"


def _value(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
