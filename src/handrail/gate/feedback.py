"""Feedback to the agent about a person's changes to its call and the person's message.

Changes to a reviewed file are described by the tool itself (`Tool.tells`).
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from handrail.store.values import Comment, Json, Result

LONGEST = 200
"""Characters of a value in a sentence, so that the text stays readable; `data` has the whole value."""
CLIENT_INPUT = "input"
"""The field with a client's own input: the client's model knows the names in it, and not this one."""
UNCHANGED = "Nothing: it runs as it was asked."


def describe_feedback(edit: str, review: str) -> str:
    """The message that the agent will get about a changed input and a review; each is empty without one."""
    return "\n".join(filter(None, (edit, review))) or UNCHANGED


def describe_allow(asked: Json, edited: Json | None, said: str) -> list[str]:
    """Sentences about what a person changed in a call, and said, when allowing it."""
    change = "" if edited is None else describe_edit(asked, edited)
    return [*filter(None, (change, f"The person who allowed it says: {said}" if said else ""))]


def describe_edit(asked: Json, input: Json) -> str:
    """One sentence about the difference between two inputs; empty if there is none."""
    changes = [words for name in _differing(asked, input) for words in _describe_change(name, asked, input)]
    return "" if not changes else f"A person changed this call before allowing it: {'; '.join(changes)}."


def add_feedback(result: Result | None, asked: Json, edited: Json | None, said: str) -> Result | None:
    """The result with the person's changes and message put first; `data` gets both inputs in full."""
    if edited is None and not said:
        return result
    original = result or Result(text="", data={})
    first, data = describe_allow(asked, edited, said), dict(original.data)
    if edited is not None:
        data["edited"] = {"input": edited, "asked": asked}
    if said:
        data["person_says"] = said
    return Result(text="\n".join(first) + (f"\n\n{original.text}" if original.text else ""), data=data)


def join_comments(reason: str, comments: tuple[Comment, ...]) -> str:
    """A reason and the comments on lines of the proposal, as one text."""
    lines = [f"Line {comment.line}: {comment.text}" for comment in comments]
    return "\n".join([*([reason] if reason else []), *lines])


def _differing(asked: Json, input: Json) -> list[str]:
    """Names whose values differ as JSON: 1 is not true, and null is not absent, but 1.0 is 1."""
    return [name for name in {**asked, **input} if _part(asked, name) != _part(input, name)]


def _part(input: Json, name: str) -> str:
    return json.dumps(_normalized(input[name]), sort_keys=True) if name in input else ""


def _normalized(value: JsonValue) -> JsonValue:
    """Whole numbers as integers: a page cannot distinguish 660.0 from 660, so no person changed one into the other."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_normalized(item) for item in value]
    return {key: _normalized(item) for key, item in value.items()} if isinstance(value, dict) else value


def _describe_change(name: str, asked: Json, input: Json) -> Iterator[str]:
    if name not in input:
        yield f"`{name}` was left out"
    elif name not in asked:
        yield f"`{name}` was added: {_value(input[name])}"
    elif (
        name == CLIENT_INPUT and isinstance(old := asked[name], dict) and isinstance(new := input[name], dict)
    ):
        for inner in _differing(old, new):
            yield from _describe_change(inner, old, new)
    else:
        yield f"`{name}` is {_value(input[name])} instead of {_value(asked[name])}"


def _value(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
