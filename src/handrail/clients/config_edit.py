"""Edits of one value in a JSON, JSONC, TOML or YAML text that leave every other character as it is.

A pointer is the path of keys to a value. Every edit is checked: the edited text is parsed, and must hold the old values and
the new one and nothing else. YAML is not parsed; only members of a top-level mapping in block style are edited.
"""

import copy
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeGuard

from handrail.clients import jsonc

Format = Literal["json", "toml", "yaml", "text"]
Pointer = tuple[str, ...]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""There is no value at the pointer; unlike None, which JSON has as a value."""


class BadFile(Exception):
    """A configuration file cannot be parsed, or not edited without a risk to the rest of it."""


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if is_list(value) else []


def get_value(format: Format, text: str, pointer: Pointer) -> Any:
    """The value at the pointer, or ABSENT. Raises BadFile."""
    if format == "yaml":
        return _get_yaml(text, pointer)
    value = load(format, text)
    for key in pointer:
        if not is_object(value) or key not in value:
            return ABSENT
        value = value[key]
    return value


def load(format: Format, text: str) -> Any:
    """All values of a JSON or TOML text, not to be changed; an empty text has none. Raises BadFile."""
    try:
        if format == "toml":
            return _load_toml(text)
        return jsonc.parse(text).value if text.strip("\ufeff \t\r\n") else {}
    except (jsonc.NotJson, tomllib.TOMLDecodeError) as problem:
        raise BadFile(str(problem)) from None


_load_toml = lru_cache(16)(tomllib.loads)


def set_value(format: Format, text: str, pointer: Pointer, value: Any) -> str:
    """Set the member at the pointer; create missing objects on the way. Raises BadFile."""
    if format == "yaml":
        return _set_yaml(text, pointer, value)
    expected = _with_value(load(format, text), pointer, value)
    if format == "json":
        return _check(format, expected, [_edit_json(jsonc.set_member, text, pointer, value)])
    is_new = is_object(value) and get_value(format, text, pointer) is ABSENT
    block = _append_block(text, _render_table(pointer, value)) if is_new else None
    return _check(format, expected, [block, _edit_with_tomlkit(text, pointer, value)])


def remove_value(format: Format, text: str, pointer: Pointer) -> str:
    """Remove the member at the pointer, if it exists. Raises BadFile."""
    if get_value(format, text, pointer) is ABSENT:
        return text
    if format == "yaml":
        return _remove_yaml(text, pointer)
    expected = _without_value(load(format, text), pointer)
    if format == "json":
        return _check(format, expected, [_edit_json(jsonc.remove_member, text, pointer)])
    header = f"[{_toml_path(pointer)}"
    cut = _cut_blocks(text, lambda line: line.startswith((header + "]", header + ".")))
    return _check(format, expected, [cut, _edit_with_tomlkit(text, pointer, ABSENT)])


def append_item(format: Format, text: str, pointer: Pointer, value: Any) -> str:
    """Append an item to the list at the pointer; create a missing list. Raises BadFile."""
    current = get_value(format, text, pointer)
    items: Any = [] if current is ABSENT else current
    if not is_list(items):
        raise BadFile(f"{'.'.join(pointer)} is not a list")
    expected = _with_value(load(format, text), pointer, [*items, value])
    if format == "json":
        return _check(format, expected, [_edit_json(jsonc.append_item, text, pointer, value)])
    block = _append_block(text, _render_table(pointer, value, is_item=True))
    return _check(format, expected, [block, _edit_with_tomlkit(text, pointer, [*items, value])])


def remove_item(format: Format, text: str, pointer: Pointer, value: Any) -> str:
    """Remove the last item that equals the value from the list at the pointer, if there is one. Raises BadFile."""
    items = get_value(format, text, pointer)
    if not is_list(items) or value not in items:
        return text
    last = len(items) - 1 - items[::-1].index(value)
    rest = [*items[:last], *items[last + 1 :]]
    expected = _with_value(load(format, text), pointer, rest)
    if format == "json":
        return _check(format, expected, [_edit_json(jsonc.remove_item, text, pointer, value)])
    cut = _cut_item(text, _toml_path(pointer), last)
    return _check(format, expected, [cut, _edit_with_tomlkit(text, pointer, rest or ABSENT)])


def _check(format: Format, expected: Any, texts: Sequence[str | None]) -> str:
    """The first text with the expected content. Raises BadFile."""
    for text in texts:
        try:
            if text is not None and _prune(load(format, text)) == _prune(expected):
                return text
        except BadFile:
            continue
    raise BadFile("the change cannot be made without changing other parts of the file")


def _prune(value: Any) -> Any:
    """The value without empty objects and lists, which may stay behind where something was removed."""
    if not is_object(value):
        return value
    kept = {key: _prune(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in ({}, [])}


def _with_value(data: Any, pointer: Pointer, value: Any) -> Any:
    data = copy.deepcopy(data)
    here = data
    for key in pointer[:-1]:
        if not is_object(here):
            break
        here = here.setdefault(key, {})
    if not is_object(here):
        raise BadFile(f"{'.'.join(pointer)} has no place: {json.dumps(here)[:40]} stands in its way")
    here[pointer[-1]] = value
    return data


def _without_value(data: Any, pointer: Pointer) -> Any:
    data = copy.deepcopy(data)
    here = data
    for key in pointer[:-1]:
        here = here[key]
    del here[pointer[-1]]
    return data


def _edit_json(edit: Any, *arguments: Any) -> str:
    try:
        return edit(*arguments)
    except (jsonc.NotJson, jsonc.NotAnObject) as problem:
        raise BadFile(str(problem)) from None


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _append_block(text: str, lines: Sequence[str]) -> str:
    newline = newline_of(text)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def _cut_blocks(text: str, is_header: Callable[[str], bool]) -> str:
    """The text without the blocks that begin with such a header, and without the empty line before each.

    A block ends at an empty line, a comment or the next header, so that comments of the user stay.
    """
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        words = line.strip()
        if words.startswith("["):
            is_inside = is_header(words)
            if is_inside and kept and not kept[-1].strip():
                kept.pop()
        elif not words or words.startswith("#"):
            is_inside = False
        if not is_inside:
            kept.append(line)
    return "".join(kept)


def _cut_item(text: str, name: str, index: int) -> str | None:
    """The text without one item of an array of tables, with its own tables, and without the empty line before it.

    Comments before the next table stay: they are about that one.
    """
    lines = text.splitlines(keepends=True)
    headers = [at for at, line in enumerate(lines) if line.lstrip().startswith("[")]
    items = [at for at in headers if lines[at].lstrip().startswith(f"[[{name}]]")]
    if index >= len(items):
        return None
    start, own = items[index], (f"[{name}.", f"[[{name}.")
    end = next((at for at in headers if at > start and not lines[at].lstrip().startswith(own)), len(lines))
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    start -= start > 0 and not lines[start - 1].strip()
    return "".join([*lines[:start], *lines[end:]])


def _render_table(pointer: Pointer, value: Mapping[str, Any], *, is_item: bool = False) -> list[str]:
    name = _toml_path(pointer)
    plain = {key: each for key, each in value.items() if not isinstance(each, dict)}
    lines = [f"[[{name}]]" if is_item else f"[{name}]"]
    lines += [f"{_toml_key(key)} = {_toml_value(each)}" for key, each in plain.items()]
    for key, each in value.items():
        if is_object(each):
            lines += ["", *_render_table((*pointer, key), each)]
    return lines


def _toml_path(pointer: Pointer) -> str:
    return ".".join(map(_toml_key, pointer))


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _toml_value(value: Any) -> str:
    """Strings, numbers, booleans and lists of them are the same in TOML and JSON, except for one control character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _edit_with_tomlkit(text: str, pointer: Pointer, value: Any) -> str | None:
    """Edit a layout in which appending or cutting a block is not enough, such as inline tables."""
    import tomlkit  # noqa: PLC0415 - rarely needed, and slow to import
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document: Any = tomlkit.parse(text)
        here = document
        for key in pointer[:-1]:
            here = here.setdefault(key, tomlkit.table())
        if value is ABSENT:
            del here[pointer[-1]]
        else:
            here[pointer[-1]] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, KeyError, TypeError, AttributeError):
        return None


def _get_yaml(text: str, pointer: Pointer) -> Any:
    """The lines of the member, without indent; or ABSENT."""
    lines = text.splitlines()
    span = _find_yaml(lines, pointer)
    return ABSENT if span is None else [line.strip() for line in lines[span[0] : span[1]] if line.strip()]


def render_yaml(name: str, value: Mapping[str, Any], indent: str = "  ") -> list[str]:
    """A member of a mapping in block style, whose values are scalars or lists of strings."""
    lines = [f"{name}:"]
    for key, each in value.items():
        if is_list(each) and each:
            lines += [f"{indent}{key}:", *(f"{indent}- {json.dumps(item)}" for item in each)]
        else:
            lines.append(f"{indent}{key}: {json.dumps(each)}")
    return lines


def _set_yaml(text: str, pointer: Pointer, value: Mapping[str, Any]) -> str:
    top, name = pointer
    text = _remove_yaml(text, pointer)
    lines = text.splitlines(keepends=True)
    newline = newline_of(text)
    at = _find_top(lines, top)
    if at is None:
        block = [f"{top}:", *(f"  {line}" for line in render_yaml(name, value))]
        return text + (newline if text and not text.endswith("\n") else "") + newline.join(block) + newline
    below = next((line for line in lines[at + 1 :] if line.strip() and not line.lstrip().startswith("#")), "")
    indent = below[: len(below) - len(below.lstrip(" "))] or "  "
    block = [f"{indent}{line}{newline}" for line in render_yaml(name, value)]
    head = re.sub(r":\s*\{\s*\}", ":", lines[at].rstrip("\r\n")) + newline
    return "".join([*lines[:at], head, *block, *lines[at + 1 :]])


def _find_top(lines: Sequence[str], top: str) -> int | None:
    for at, line in enumerate(lines):
        if re.match(rf"{re.escape(top)}\s*:", line):
            if not re.fullmatch(rf"{re.escape(top)}\s*:\s*(?:\{{\s*\}})?\s*(?:#.*)?", line.rstrip("\r\n")):
                raise BadFile(f"line {at + 1}: {top} is not in block style, which is all that can be edited")
            return at
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise BadFile(f"line {at + 1}: YAML allows no tab here")
    return None


def _find_yaml(lines: Sequence[str], pointer: Pointer) -> tuple[int, int] | None:
    top, name = pointer
    at = _find_top(lines, top)
    if at is None:
        return None
    inside = [*_indented(lines, at + 1, 0)]
    starts = [each for each in inside if re.match(rf" +{re.escape(name)}\s*:", lines[each])]
    if not starts:
        return None
    depth = len(lines[starts[0]]) - len(lines[starts[0]].lstrip(" "))
    last = [starts[0], *_indented(lines, starts[0] + 1, depth)][-1]
    return starts[0], last + 1


def _indented(lines: Sequence[str], start: int, depth: int) -> Iterator[int]:
    """The lines from `start` on that are deeper than `depth`; comments and empty lines between them do not count."""
    for at in range(start, len(lines)):
        words = lines[at].strip()
        if not words or words.startswith("#"):
            continue
        if len(lines[at]) - len(lines[at].lstrip(" ")) <= depth:
            return
        yield at


def _remove_yaml(text: str, pointer: Pointer) -> str:
    lines = text.splitlines(keepends=True)
    span = _find_yaml(lines, pointer)
    return text if span is None else "".join([*lines[: span[0]], *lines[span[1] :]])
