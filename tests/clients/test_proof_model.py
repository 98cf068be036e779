"""The scripted model of a proof asks for one tool call in each API, and then says that it is done."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from handrail.clients._proof_model import CALL_ID, DONE, ProofCall, ProofModel, proof_model

Json = dict[str, Any]
INPUT = {"command": "touch proof-1"}
PATHS = {
    "messages": "/v1/messages",
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "google": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
WHOLE = {**PATHS, "google": "/v1beta/models/m:generateContent"}
OFFERED = {"tools": [{"name": "shell"}]}


@pytest.fixture(scope="module")
def model() -> Iterator[ProofModel]:
    with proof_model(ProofCall("shell", INPUT, "proof-1")) as server:
        yield server


def ask(model: ProofModel, path: str, **body: Any) -> httpx.Response:
    answer = httpx.post(model.url + path, json=body, timeout=30, trust_env=False)
    assert answer.status_code == 200
    return answer


def events(answer: httpx.Response) -> list[Json]:
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def called(api: str, answers: list[Json]) -> tuple[str, Json]:
    """Tool and input of the only call in a stream, put together as a client does it."""
    match api:
        case "messages":
            (block,) = [each["content_block"] for each in answers if "content_block" in each]
            text = "".join(each["delta"].get("partial_json", "") for each in answers if "delta" in each)
            assert (block["type"], block["id"], answers[-1]["type"]) == ("tool_use", CALL_ID, "message_stop")
            assert answers[-2]["delta"]["stop_reason"] == "tool_use"
            return block["name"], json.loads(text)
        case "chat":
            choices = [choice for each in answers for choice in each["choices"]]
            (use,) = [use for each in choices for use in each["delta"].get("tool_calls", [])]
            assert (use["id"], choices[-1]["finish_reason"]) == (CALL_ID, "tool_calls")
            return use["function"]["name"], json.loads(use["function"]["arguments"])
        case "responses":
            (item,) = [each["item"] for each in answers if each["type"] == "response.output_item.done"]
            text = "".join(each["delta"] for each in answers if each["type"].endswith("arguments.delta"))
            assert [each["sequence_number"] for each in answers] == list(range(len(answers)))
            assert answers[-1]["response"]["output"] == [item]
            return item["name"], json.loads(text)
        case _:
            (part,) = answers[0]["candidates"][0]["content"]["parts"]
            assert part["thoughtSignature"]
            return part["functionCall"]["name"], part["functionCall"]["args"]


@pytest.mark.parametrize("api", PATHS)
def test_a_stream_asks_for_the_call_and_after_its_result_says_that_it_is_done(
    model: ProofModel, api: str
) -> None:
    model.has_called = model.has_result = False
    first = ask(model, PATHS[api], stream=True, **OFFERED)
    assert called(api, events(first)) == ("shell", INPUT)
    assert (model.has_called, model.has_result) == (True, False)
    second = ask(model, PATHS[api], stream=True, **OFFERED, history=json.dumps(INPUT))
    assert DONE in second.text
    assert "proof-1" not in second.text
    assert model.has_result


@pytest.mark.parametrize("api", WHOLE)
def test_a_whole_answer_has_the_same_call(model: ProofModel, api: str) -> None:
    answer = ask(model, WHOLE[api], **OFFERED)
    assert answer.headers["Content-Type"] == "application/json"
    assert "proof-1" in answer.text
    assert "shell" in json.dumps(answer.json())


@pytest.mark.parametrize("api", PATHS)
def test_a_request_without_the_tool_gets_a_text(model: ProofModel, api: str) -> None:
    answer = ask(model, PATHS[api], stream=True, prompt="A title for this conversation, please.")
    assert DONE in answer.text
    assert "shell" not in answer.text


def test_models_and_tokens_are_told_and_everything_else_is_refused(model: ProofModel) -> None:
    listed = httpx.get(f"{model.url}/v1/models", timeout=30, trust_env=False).json()
    assert [each["id"] for each in listed["data"]] == ["model"]
    assert ask(model, "/v1/messages/count_tokens").json()["input_tokens"] == 10
    assert httpx.post(f"{model.url}/telemetry", json={}, timeout=30, trust_env=False).status_code == 404
    connection = http.client.HTTPConnection(urlsplit(model.url).netloc, timeout=30)
    connection.request("CONNECT", "example.com:443")
    assert connection.getresponse().status == 404
    connection.close()
