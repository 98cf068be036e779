"""`session/request_permission`: the agent's description of its own work, and the option that answers it.

Each agent describes a tool call in its own way: in the request, in earlier updates, in the title or in a text.
This module collects what was said into the input of `agent_work`; it judges nothing. Where two descriptions
differ, both are passed on, so that the person and the rules see both.
"""

import json
import re
from typing import cast

from pydantic import JsonValue

from handrail.agents.lenient_json import bounded, cut, number, record, records, text
from handrail.agents.requests.request_context import Quirks
from handrail.gate.call import Outcome
from handrail.store.values import Json

MOST = 200
"""Locations or diffs of one question; more cannot be reviewed."""
_TITLE = 1000
_EXPLANATION = 4000
"""Characters of the agent's own text on the card; more would push the command out of sight."""


def permission_input(params: Json, known: Json, cwd: str, quirks: Quirks) -> Json:
    """The input of `agent_work`; `known` holds the earlier updates about that tool call.

    The request may omit or contradict them, so differing earlier values are shown as `before`.
    """
    update = record(params.get("toolCall"))
    # An empty list takes nothing away: opencode announces the folder of a command as its location, and asks without.
    merged: Json = {**known, **{name: value for name, value in update.items() if value not in (None, [])}}
    merged["rawInput"] = _merge_inputs(known.get("rawInput"), update.get("rawInput"))
    said = _join_texts(update) or _join_texts(known)
    if merged["rawInput"] is None:
        merged["rawInput"] = _input_by_quirk(merged, known, said, quirks)
    work, before = _describe_work(merged), _describe_work(known)
    arguments: Json = {**work, "title": text(merged.get("title"))[:_TITLE], "cwd": cwd}
    if any(not _is_repeated(name, before[name], work[name]) for name in _NO_WORK):
        arguments["before"] = before
    if said and said != arguments["title"]:
        arguments["explanation"] = cut(said, _EXPLANATION)
    if not _is_complete(merged) or not _is_complete(known):
        arguments["partly"] = True
    return arguments


def _merge_inputs(earlier: JsonValue, later: JsonValue) -> JsonValue:
    """The later input, completed by earlier fields if none of them differs."""
    if isinstance(earlier, dict) and isinstance(later, dict) and _is_part(earlier, later):
        return {**earlier, **later}
    return earlier if later is None else later


def _is_part(earlier: Json, later: Json) -> bool:
    return all(later.get(name, value) == value for name, value in earlier.items())


def _is_repeated(name: str, before: JsonValue, now: JsonValue) -> bool:
    """Whether an earlier value is missing, or is contained in the present one."""
    if name == "input" and isinstance(before, dict) and isinstance(now, dict):
        return all(key in now and now[key] == value for key, value in before.items())
    return before in (now, _NO_WORK[name])


def _input_by_quirk(merged: Json, known: Json, said: str, quirks: Quirks) -> JsonValue:
    """The tool input of an agent that sends none, from where this agent puts it; None if that is unclear."""
    if quirks.title_is_command and merged.get("kind") == "execute":
        title = text(merged.get("title"))
        return _input_from_title(title, said) if known.get("title") in (None, "", title) else None
    if quirks.input_in_content:
        return _input_from_content(known, said)
    return None


_FOLDER = re.compile(r"\[(?:in (?P<folder>[^\[\]]+)|current working directory [^\[\]]+)\](?= \(| \[|$)")


def _input_from_title(title: str, said: str) -> JsonValue:
    """Gemini CLI: the title is the whole line, and the text begins with the folder, if that is another one."""
    place = _FOLDER.match(said)
    if place is None or not title.strip():
        return None
    folder = place.group("folder")
    return {"command": title} if folder is None else {"command": title, "dir_path": folder}


_ACTION = re.compile(r"Requesting approval to (?:Running|Starting background): (?P<line>.*)", re.DOTALL)


def _input_from_content(known: Json, said: str) -> JsonValue:
    """Kimi Code: the announced text is the input as JSON. Its request repeats the beginning of a command."""
    texts = _texts(known)
    try:
        parsed = json.loads(texts[0]) if len(texts) == 1 else None
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    described = cast("Json", parsed)
    line = described.get("command")
    repeated = _ACTION.match(said)
    if line is not None and not (
        isinstance(line, str) and repeated and _is_beginning(repeated.group("line"), line)
    ):
        return None
    return described


def _is_beginning(shown: str, line: str) -> bool:
    """Whether a text is the line, or the beginning of it with an ellipsis."""
    return shown == line or (shown.endswith("…") and len(shown) > 1 and line.startswith(shown[:-1]))


def _texts(tool_call: Json) -> list[str]:
    """The texts in the content of a tool call."""
    blocks = [record(each.get("content")) for each in records(tool_call.get("content"))]
    return [words for block in blocks if (words := text(block.get("text")).strip())]


def _join_texts(tool_call: Json) -> str:
    return "\n".join(_texts(tool_call))


def _describe_work(tool_call: Json) -> Json:
    diffs = [each for each in records(tool_call.get("content")) if each.get("type") == "diff"]
    return {
        "sort": _kind(tool_call),
        "input": bounded(tool_call.get("rawInput")),
        "locations": [_location(each) for each in records(tool_call.get("locations"))[:MOST]],
        "diffs": [_diff(each) for each in diffs[:MOST]],
    }


def _kind(tool_call: Json) -> str:
    """The kind. goose sends none for its tool that writes a file; tools of MCP servers have their server in the title."""
    kind, entry = text(tool_call.get("kind")) or "other", record(tool_call.get("rawInput"))
    is_write = entry.keys() == {"path", "content"} and tool_call.get("title") == f"write · {entry['path']}"
    return "edit" if kind == "other" and is_write else kind


_NO_WORK: Json = {"sort": "other", "input": None, "locations": [], "diffs": []}


def _is_complete(tool_call: Json) -> bool:
    """Whether the input holds everything: no list was cut, and no entry was malformed."""
    diffs = [each for each in records(tool_call.get("content")) if each.get("type") == "diff"]
    return (
        len(diffs) <= MOST
        and all(isinstance(each.get("path"), str) for each in diffs)
        and _all_records(tool_call.get("content"))
        and _all_records(tool_call.get("locations"))
        and len(records(tool_call.get("locations"))) <= MOST
    )


def _all_records(value: object) -> bool:
    entries = cast("list[object]", value) if isinstance(value, list) else None
    return value is None or (entries is not None and len(records(entries)) == len(entries))


def _location(location: Json) -> Json:
    return {"path": text(location.get("path")), "line": number(location.get("line"))}


def _diff(diff: Json) -> Json:
    old = diff.get("oldText")
    return {
        "path": text(diff.get("path")),
        "old": cut(old) if isinstance(old, str) else None,
        "new": cut(text(diff.get("newText"))),
    }


def permission_answer(params: Json, outcome: Outcome | None) -> Json:
    """The option that matches the outcome; `cancelled` if the agent offered none."""
    options = [each for each in records(params.get("options")) if each.get("optionId") is not None]
    match outcome and outcome.ending:
        case "done":
            chosen = _find_option(options, "allow")
        case "denied" | "failed":
            chosen = _find_option(options, "reject")
            if chosen is not None and _is_ambiguous(options, chosen):
                chosen = None
        case _:
            chosen = None
    answer: Json = {"outcome": {"outcome": "cancelled"}}
    if chosen is not None:
        answer = {"outcome": {"outcome": "selected", "optionId": chosen.get("optionId")}}
    if outcome is not None and outcome.ending != "done" and outcome.message:
        answer["_meta"] = {"handrail": {"reason": outcome.message, "by": str(outcome.by)}}
    return answer


def _find_option(options: list[Json], verb: str) -> Json | None:
    """Prefer `_once` to `_always`; also accept unknown kinds with the same prefix."""
    for kind in (f"{verb}_once", f"{verb}_always", verb):
        for option in options:
            if option.get("kind") == kind or (kind == verb and text(option.get("kind")).startswith(verb)):
                return option
    return None


def _is_ambiguous(options: list[Json], chosen: Json) -> bool:
    """Whether the chosen id also stands for an option that does not reject."""
    alike = [each for each in options if each.get("optionId") == chosen.get("optionId")]
    return not all(text(each.get("kind")).startswith("reject") for each in alike)
