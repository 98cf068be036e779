"""Google's generateContent API: streamed and whole answers, and the main checks of a request."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.model_server.script import Dialect, Json, ScriptMessage, Turn, data, words

STATES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}

SEAL = b64encode(b"a thought").decode()


def said(body: Json) -> list[ScriptMessage]:
    return [
        ScriptMessage("assistant" if each.get("role") == "model" else "user", _text(each["parts"]))
        for each in body["contents"]
    ]


def _text(parts: Sequence[Json]) -> str:
    return "\n".join(part["text"] for part in parts if "text" in part and not part.get("thought"))


def problem(body: Json) -> str | None:
    """The first thing that is wrong."""
    return next(_problems(body), None)


def _problems(body: Json) -> Iterator[str]:
    contents: list[Json] = body.get("contents") or []
    if not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
    owed: list[str] = []
    end: Json = {"role": "end", "parts": [{"text": "end"}]}
    for content in [*contents, end]:
        if not content["parts"] or any(
            part.get("text") == "" and len(part) == 1 for part in content["parts"]
        ):
            yield "* GenerateContentRequest.contents.parts: part must have one initialized field"
        given = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if sorted(given) != sorted(owed):
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                f"parts of the function call turn. ({owed} called, {given} answered)"
            )
        owed = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    yield from _unsigned(contents)


def _unsigned(contents: Sequence[Json]) -> Iterator[str]:
    """Since the last prompt, the first call of each answer must come back with the seal it was given."""
    for content in reversed(contents):
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not (calls[0].get("thoughtSignature") or calls[0].get("thought_signature")):
            yield f"Function call is missing a thought_signature in functionCall parts. ({calls[0]['functionCall']['name']})"
        if content.get("role") == "user" and any("text" in part for part in content["parts"]):
            return


def stream(turn: Turn, model: str) -> Iterator[str]:
    for part in _parts(turn):
        yield data(_answer([part], model))
    if not turn.hang:
        yield data({**_answer([{"text": ""}], model, _stop(turn)), "usageMetadata": _usage(turn)})


def whole(turn: Turn, model: str) -> Json:
    return {**_answer(list(_parts(turn)), model, _stop(turn)), "usageMetadata": _usage(turn)}


def _parts(turn: Turn) -> Iterator[Json]:
    yield from ({"text": word, "thought": True} for word in words(turn.think))
    yield from ({"text": word} for word in words(turn.say))
    for index, call in enumerate(turn.uses):
        seal = {} if index else {"thoughtSignature": SEAL}
        yield {"functionCall": {"name": call.tool, "args": json.loads(call.raw)}, **seal}


def _answer(parts: list[Json], model: str, stop: str | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if stop:
        candidate["finishReason"] = stop
    return {"candidates": [candidate], "modelVersion": model, "responseId": "response"}


def _stop(turn: Turn) -> str:
    return {"length": "MAX_TOKENS", "refusal": "SAFETY"}.get(turn.stop, "STOP")


def _usage(turn: Turn) -> Json:
    read = turn.tokens("input") + turn.tokens("cached")
    return {
        "promptTokenCount": read,
        "cachedContentTokenCount": turn.tokens("cached"),
        "candidatesTokenCount": turn.tokens("output"),
        "totalTokenCount": read + turn.tokens("output"),
    }


def error(status: int, message: str) -> Json:
    about: dict[str, Any] = {"code": status, "message": message, "status": STATES.get(status, "INTERNAL")}
    return {"error": about}


GOOGLE = Dialect(
    name="google",
    said=said,
    always_streams=True,
    problem=problem,
    stream=stream,
    whole=whole,
    error=error,
    overloaded=data(error(503, "The model is overloaded. Please try again later.")),
)
