"""Text that can be kept and sent: half of a character, which JSON can hold and UTF-8 cannot, is replaced.

Pure.
"""

from pydantic import JsonValue

from handrail.store.value import Json


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


def clean_json(data: Json) -> Json:
    """The same, of every text in it."""
    return {clean(name): _cleaned(one) for name, one in data.items()}


def _cleaned(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return clean(value)
        case dict():
            return clean_json(value)
        case list():
            return [_cleaned(one) for one in value]
        case _:
            return value
