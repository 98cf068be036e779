"""Text comes in pieces that may end in the middle of a character, and is whole all the same."""

from hypothesis import given
from hypothesis import strategies as st

from handrail.store.threads.message import Message, clean, clean_json
from handrail.store.values import Json


def a_message() -> Message:
    return Message(
        lambda message: message.rev + 1,
        lambda _: None,
        id="m1",
        thread="h1",
        n=1,
        role="assistant",
        agent="demo",
    )


def in_halves(text: str) -> list[str]:
    """As JavaScript cuts it: between the two halves of a character as well."""
    raw = text.encode("utf-16-le")
    return [raw[at : at + 2].decode("utf-16-le", "surrogatepass") for at in range(0, len(raw), 2)]


@given(st.text())
def test_a_text_that_comes_in_halves_of_characters_is_whole(text: str) -> None:
    part = a_message().add("text")
    for piece in in_halves(text):
        part.grow(piece)
    assert part.text == text
    assert part.length == len(text)


@given(st.lists(st.text(st.characters(categories=["Cs", "L"]))))
def test_whatever_comes_can_be_kept_and_sent(pieces: list[str]) -> None:
    part = a_message().add("text")
    for piece in pieces:
        part.grow(piece)
        part.text.encode()
        assert part.length == len(part.text)


@given(st.text(st.characters(categories=["Cs", "L"])))
def test_halves_in_data_become_marks_and_the_rest_stays(text: str) -> None:
    given: Json = {"a": [text, 1, None], text: {"b": text}}
    cleaned = clean_json(given)
    str(cleaned).encode()
    assert cleaned == {"a": [clean(text), 1, None], clean(text): {"b": clean(text)}}


def test_what_can_be_kept_stays_as_it_is() -> None:
    assert clean("naïve 🪁\0\n") == "naïve 🪁\0\n"
