import pytest

from handrail.own_agent.models.catalog import OfferedModel
from handrail.own_agent.slash_commands import NoSuchOption, Options

OFFERED = (
    OfferedModel(name="openai:small", title="Small"),
    OfferedModel(name="ollama:llama:7b", title="llama:7b"),
)


def options() -> Options:
    made = Options(None, "default")
    made.offered, made.otherwise = OFFERED, "openai:small"
    return made


def test_the_model_is_an_option_once_one_is_known() -> None:
    unknown = Options(None, "default")
    assert [each["id"] for each in unknown.listed()] == ["thought_level"]
    model, thought = options().listed()
    assert (model["category"], model["currentValue"]) == ("model", "openai:small")
    assert [each["value"] for each in model["options"]] == ["openai:small", "ollama:llama:7b"]
    assert (thought["category"], thought["currentValue"]) == ("thought_level", "default")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("openai:small", "openai:small"),
        ("small", "openai:small"),
        ("llama:7b", "ollama:llama:7b"),
        ("anthropic:whatever-9", "anthropic:whatever-9"),
        ("claude-some", "anthropic:claude-some"),
    ],
)
def test_a_model_is_chosen_by_its_name_with_or_without_its_provider(said: str, meant: str) -> None:
    made = options()
    assert made.set("model", said) == meant
    assert made.current == meant
    assert meant in [each["value"] for each in made.listed()[0]["options"]]


@pytest.mark.parametrize(
    ("option", "value"),
    [("model", "something"), ("thought_level", "max"), ("thought_level", True), ("hat", "red")],
)
def test_what_cannot_be_set_is_refused_and_nothing_changes(option: str, value: object) -> None:
    made = options()
    with pytest.raises(NoSuchOption):
        made.set(option, value)
    assert (made.current, made.level) == ("openai:small", "default")


def test_thinking_is_left_to_the_provider_unless_it_is_set() -> None:
    made = options()
    assert made.thought_level is None
    made.set("thought_level", "off")
    assert made.thought_level == "off"
