"""What an agent is told about a person's part in its call: what they changed, and what they said.

Owns these words. It does not know what a tool did with the change; of a reviewed file the tool itself tells.
"""

import json

from pydantic import JsonValue

from handrail.store.values import Comment, Json, Result

LONGEST = 200
"""Characters of a value that is told in a sentence; the whole of it is in the data."""
UNCHANGED = "Nothing: it runs as it was asked."


def tells(asked: Json, input: Json, review: str) -> str:
    """What the agent will be told of a changed input and of a review."""
    told = [changed(asked, input)] if _differing(asked, input) else []
    return "\n".join([*told, *([review] if review else [])]) or UNCHANGED


def changed(asked: Json, input: Json) -> str:
    """One sentence about the difference between two inputs."""
    told = [_one(name, asked, input) for name in _differing(asked, input)]
    return f"A person changed this call before allowing it: {'; '.join(told)}."


def with_words(result: Result | None, asked: Json, edited: Json | None, said: str) -> Result | None:
    """The same result, saying first what a person changed, with both inputs whole, and what they said."""
    if edited is None and not said:
        return result
    found = result or Result(text="", data={})
    first, data = list[str](), dict(found.data)
    if edited is not None:
        first.append(changed(asked, edited))
        data["edited"] = {"input": edited, "asked": asked}
    if said:
        first.append(f"The person who allowed it says: {said}")
        data["person_says"] = said
    return Result(text="\n".join(first) + (f"\n\n{found.text}" if found.text else ""), data=data)


def words(reason: str, comments: tuple[Comment, ...]) -> str:
    """A reason, and what was said about lines of the proposal."""
    told = [f"Line {comment.line}: {comment.text}" for comment in comments]
    return "\n".join([*([reason] if reason else []), *told])


def _differing(asked: Json, input: Json) -> list[str]:
    """Names whose values differ as JSON, where 1 is not true and null is not nothing."""
    return [name for name in {**asked, **input} if _part(asked, name) != _part(input, name)]


def _part(input: Json, name: str) -> str:
    return json.dumps(input[name], sort_keys=True) if name in input else ""


def _one(name: str, asked: Json, input: Json) -> str:
    if name not in input:
        return f"`{name}` was left out"
    if name not in asked:
        return f"`{name}` was added: {_value(input[name])}"
    return f"`{name}` is {_value(input[name])} instead of {_value(asked[name])}"


def _value(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
