"""Text that can be kept and sent: half of a character, which JSON can hold and UTF-8 cannot, is replaced.

Pure.
"""

from typing import TypeVar, cast

from pydantic import JsonValue

T = TypeVar("T", bound=JsonValue)


def clean(text: str) -> str:
    """The text; halves of one character that stand side by side are joined, a lone half becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def ends_in_half(text: str) -> bool:
    """The other half of its last character may come with the next text."""
    return "\ud800" <= text[-1:] <= "\udbff"


def clean_json(value: T) -> T:
    """The same, of every text in it."""
    match value:
        case str():
            return cast("T", clean(value))
        case dict():
            items = cast("dict[str, JsonValue]", value).items()
            return cast("T", {clean(name): clean_json(one) for name, one in items})
        case list():
            return cast("T", [clean_json(one) for one in cast("list[JsonValue]", value)])
        case _:
            return value
