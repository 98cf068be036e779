"""A model is chosen as people write it."""

import pytest

from handrail.own_agent.models.model import Choice, ModelError, parse_choice


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("anthropic:claude-sonnet-5-5", Choice("anthropic", "claude-sonnet-5-5")),
        (" ollama:qwen3:8b ", Choice("ollama", "qwen3:8b")),
        ("openai:org/model:free", Choice("openai", "org/model:free")),
        ("claude-opus-5-5", Choice("anthropic", "claude-opus-5-5")),
        ("gpt-6.1-sol", Choice("openai", "gpt-6.1-sol")),
        ("gemini-4-argon", Choice("google", "gemini-4-argon")),
    ],
)
def test_a_choice_is_read_and_written_alike(text: str, choice: Choice) -> None:
    assert parse_choice(text) == choice
    assert parse_choice(str(choice)) == choice


@pytest.mark.parametrize("text", ["", "anthropic:", "nobody:model", "qwen3:8b", ":"])
def test_what_nobody_could_mean_is_refused_with_the_form_it_should_have(text: str) -> None:
    with pytest.raises(ModelError, match="anthropic, openai, google, ollama"):
        parse_choice(text)
