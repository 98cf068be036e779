"""The model without a mind says what it is told to, and no less strictly than the providers whose dialects it speaks."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx
import pytest
from tests.house.source import ROOT
from tests.support.model_server.script import Call, Turn, script, turns_in
from tests.support.model_server.server import ModelServer, model_server

Json = dict[str, Any]
TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
FUNCTIONS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


def anthropic(model: ModelServer, *messages: Json, **more: Any) -> httpx.Response:
    body = {"model": "m", "max_tokens": 10, "messages": messages, "tools": TOOLS, **more}
    return httpx.post(f"{model.url}/v1/messages", json=body, timeout=10)


def openai(model: ModelServer, *messages: Json, **more: Any) -> httpx.Response:
    body = {"model": "m", "messages": messages, "tools": FUNCTIONS, **more}
    return httpx.post(f"{model.url}/v1/chat/completions", json=body, timeout=10)


def google(model: ModelServer, contents: list[Json]) -> httpx.Response:
    url = f"{model.url}/v1beta/models/gemini:streamGenerateContent?alt=sse"
    return httpx.post(url, json={"contents": contents}, timeout=10)


def spoken(text: str) -> Json:
    return {"role": "user", "parts": [{"text": text}]}


LOOKS: Json = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": "sealed"}
SEEN: Json = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]}


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def use(id: str = "t1", input: Any = None) -> Json:
    return {"type": "tool_use", "id": id, "name": "look", "input": {} if input is None else input}


def result(id: str = "t1") -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": "seen"}


def called(id: str = "c1", arguments: str = "{}") -> Json:
    return {"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def test_a_script_is_read_as_it_was_written_also_within_another() -> None:
    inner = script(Turn("I am deep."), prompt="Go deeper.")
    turns = (
        Turn(
            "One.", "look", {"a": 1}, think="Hm.", calls=(Call("look", "{broken"),), trouble=(429, "broken")
        ),
        Turn("Two.", "dispatch", {"task": inner}, stop="length", usage={"input": 7}, retry_after=0.5),
    )
    assert turns_in(script(*turns)) == list(turns)
    assert turns_in(inner) == [Turn("I am deep.")]


def test_each_answer_of_a_conversation_is_the_next_turn_of_its_script(model: ModelServer) -> None:
    prompt = user(script(Turn("First.", "look"), Turn("Second.")))
    first = anthropic(model, prompt).json()["content"]
    assert [block["type"] for block in first] == ["text", "tool_use"]
    answered = user([{"type": "tool_result", "tool_use_id": first[1]["id"], "content": "seen"}])
    second = anthropic(model, prompt, assistant(first), answered)
    assert second.json()["content"] == [{"type": "text", "text": "Second."}]
    third = openai(model, prompt, assistant("First."), assistant("Second."), user("And?"))
    assert third.json()["choices"][0]["message"]["content"] == "That was all."
    assert anyio.run(model.endings) == ["whole"] * 3


def test_what_is_asked_without_tools_is_beside_the_conversation(model: ModelServer) -> None:
    prompt = user(script(Turn("Summed up.", aside=True), Turn("In the conversation.")))
    said = [anthropic(model, prompt, tools=[]).json()["content"][0]["text"] for _ in range(2)]
    assert said == ["Summed up.", "A conversation"]
    assert anthropic(model, prompt).json()["content"][0]["text"] == "In the conversation."
    assert [each.aside for each in model.requests] == [True, True, False]


def test_turns_can_be_queued_for_whoever_has_a_marker(model: ModelServer) -> None:
    model.play(Turn("For anybody."))
    model.play(Turn("For the small one."), marker="small")
    assert (
        openai(model, user("I am small.")).json()["choices"][0]["message"]["content"] == "For the small one."
    )
    assert openai(model, user("I am small.")).json()["choices"][0]["message"]["content"] == "For anybody."


def test_trouble_comes_once_for_each_request_before_the_turn(model: ModelServer) -> None:
    prompt = user(script(Turn("At last.", trouble=(429, 529, "refuse", "broken"), retry_after=0.25)))
    limited = anthropic(model, prompt, stream=True)
    assert (limited.status_code, limited.headers["Retry-After-Ms"]) == (429, "250")
    assert limited.json()["error"]["type"] == "rate_limit_error"
    assert anthropic(model, prompt, stream=True).json()["error"]["type"] == "overloaded_error"
    for _ in ("refuse", "broken"):
        with pytest.raises(httpx.TransportError):
            anthropic(model, prompt, stream=True)
    assert "message_stop" in anthropic(model, prompt, stream=True).text
    assert anyio.run(model.endings) == ["refused", "refused", "cut", "cut", "whole"]


def test_a_stream_has_each_word_by_itself_and_tools_in_pieces(model: ModelServer) -> None:
    model.play(Turn("Two words.", "look", '{"bro', think="Let me see."))
    lines = anthropic(model, user("Go."), stream=True).text.splitlines()
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert [delta["text"] for delta in deltas if delta["type"] == "text_delta"] == ["Two ", "words."]
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"bro'
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


def test_it_sees_its_listener_leave_in_the_middle_of_a_silence(model: ModelServer) -> None:
    model.play(Turn("I am thinking about", hang=True))
    body = {"model": "m", "messages": [user("Go.")], "stream": True}
    with httpx.stream("POST", f"{model.url}/v1/chat/completions", json=body, timeout=10) as answer:
        read = answer.iter_lines()
        while "about" not in next(read):
            pass
        assert model.silent.wait(10)
    assert model.left.wait(10)
    assert model.asked[0].ended == "left"


def test_a_key_that_is_asked_for_must_be_given(model: ModelServer) -> None:
    model.key = "right"
    assert anthropic(model, user("Hello")).status_code == 401
    given = httpx.post(
        f"{model.url}/v1/messages",
        json={"model": "m", "max_tokens": 1, "messages": [user("Hello")]},
        headers={"X-Api-Key": "right"},
    )
    assert given.status_code == 200


def test_it_lists_its_models(model: ModelServer) -> None:
    model.models = ["a", "b"]
    listed = httpx.get(f"{model.url}/v1/models").json()
    assert [each["id"] for each in listed["data"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "at least one message"),
        ([user("")], "non-empty content"),
        ([user([{"type": "text", "text": " "}])], "non-whitespace"),
        ([assistant("Hi"), user("Hello")], "first message"),
        ([user("Hello"), assistant("Hi")], "prefill"),
        ([user("Hello"), assistant([use()])], "prefill"),
        ([user("Hello"), assistant([use()]), user("And?")], "without `tool_result`"),
        (
            [user("Hello"), assistant([use()]), user([{"type": "text", "text": "x"}, result()])],
            "without `tool_result`",
        ),
        ([user("Hello"), assistant([use()]), user([result("other")])], "without `tool_result`"),
        ([user("Hello"), assistant("Hi"), user([result()])], "unexpected `tool_use_id`"),
        ([user("Hello"), assistant([use(input="{}")]), user([result()])], "valid dictionary"),
        ([user("Hello"), assistant([use(), use()]), user([result()])], "unique"),
        (
            [user("Hello"), assistant([{"type": "thinking", "thinking": "a", "signature": "b"}]), user("x")],
            "signature",
        ),
    ],
)
def test_what_anthropic_would_refuse_is_refused(
    model: ModelServer, messages: list[Json], sentence: str
) -> None:
    answer = anthropic(model, *messages)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]
    assert model.refused == [answer.json()["error"]["message"]]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "too short"),
        ([user("")], "empty content"),
        ([user("Hello"), assistant(None)], "got null"),
        ([user("Hello"), assistant(None, tool_calls=[called()]), user("And?")], "did not have response"),
        ([user("Hello"), {"role": "tool", "tool_call_id": "c1", "content": "seen"}], "preceding message"),
        ([user("Hello"), assistant(None, tool_calls=[called(arguments="{bro")])], "no JSON object"),
    ],
)
def test_what_openai_would_refuse_is_refused(model: ModelServer, messages: list[Json], sentence: str) -> None:
    answer = openai(model, *messages)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        ([], "contents is not specified"),
        ([{"role": "user", "parts": [{"text": ""}]}], "must have one initialized field"),
        (
            [spoken("Go."), {"role": "model", "parts": [LOOKS]}, spoken("And?")],
            "number of function response parts",
        ),
        (
            [spoken("Go."), {"role": "model", "parts": [{**LOOKS, "thoughtSignature": None}]}, SEEN],
            "thought_signature",
        ),
    ],
)
def test_what_google_would_refuse_is_refused(model: ModelServer, contents: list[Json], sentence: str) -> None:
    answer = google(model, contents)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]["message"]


def test_google_takes_back_what_it_sealed(model: ModelServer) -> None:
    model.play(Turn("Seen."))
    answer = google(model, [spoken("Go."), {"role": "model", "parts": [LOOKS]}, SEEN])
    assert "Seen." in answer.text


def test_a_turn_can_be_held_until_it_is_let_go(model: ModelServer) -> None:
    model.play(Turn("Now.", hold="ready"))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(anthropic, model, user("Go."))
        with pytest.raises(TimeoutError):
            answer.result(0.1)
        model.let_go("ready")
        assert answer.result(10).json()["content"][0]["text"] == "Now."


def test_it_runs_as_a_process_of_its_own_until_its_input_ends() -> None:
    command = [sys.executable, "-m", "tests.support.model_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin
        assert process.stdout
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/v1/models").json()["data"][0]["id"] == "scripted"
        process.stdin.close()
        assert process.wait(10) == 0
