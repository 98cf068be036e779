"""Codex's transcripts: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-TIME-SESSION.jsonl`.

One JSON object per line: a type and a payload. Prompts come from the events, since the messages for the model also hold
generated instructions: `item_completed` with a UserMessage, in older versions `user_message`. Everything else comes
from the items of the Responses API.
"""

import re

from pydantic import JsonValue

from handrail.clients.transcripts.transcript import (
    Json,
    Transcript,
    TranscriptBuilder,
    get_list,
    get_object,
    get_text,
    join_texts,
    parse_json,
    parse_time,
    read_json_lines,
)

_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)
HEAD = 200
"""Characters at the beginning of a result in which its exit code stands."""
_OTHER_TYPES = frozenset(("session_meta", "turn_context", "world_state", "token_usage_record"))
_OTHER_ITEMS = frozenset(
    ("ghost_snapshot", "compaction", "compaction_summary", "web_search_call_output", "other")
)


def read_codex(content: bytes, *, shortened: bool = False) -> Transcript:
    """Parse a whole file."""
    builder = TranscriptBuilder()
    builder.shortened = shortened
    for record in read_json_lines(content, builder):
        if not _read_line(record, builder):
            builder.skipped += 1
    return builder.build()


def summarize_codex(content: bytes) -> tuple[str, str]:
    """The first prompt and the folder, from the beginning of a file."""
    prompt = folder = ""
    for record in read_json_lines(content, TranscriptBuilder()):
        payload = get_object(record, "payload")
        if record.get("type") == "session_meta":
            folder = folder or get_text(payload, "cwd")
        if record.get("type") == "event_msg":
            prompt = prompt or _get_prompt(payload)
        if prompt and folder:
            break
    return prompt, folder


def _read_line(record: Json, builder: TranscriptBuilder) -> bool:
    """Add a line; False if it is unknown."""
    payload, at = get_object(record, "payload"), parse_time(get_text(record, "timestamp"))
    match record.get("type"):
        case "event_msg":
            builder.add_prompt(_get_prompt(payload), at)
            if payload.get("type") == "turn_aborted":
                builder.add("note", "The turn was interrupted.", at)
            return True  # the other events repeat the items
        case "response_item":
            return _read_item(payload, builder, at)
        case "compacted":
            builder.add("note", "Codex summarised the conversation until here.", at)
            return True
        case kind:
            return kind in _OTHER_TYPES


def _get_prompt(event: Json) -> str:
    """What the person typed, if an event has it; else empty."""
    item = get_object(event, "item")
    if event.get("type") == "item_completed" and item.get("type") == "UserMessage":
        return join_texts(item.get("content"))
    return get_text(event, "message") if event.get("type") == "user_message" else ""


def _read_item(item: Json, builder: TranscriptBuilder, at: int) -> bool:
    call = get_text(item, "call_id") or get_text(item, "id")
    match item.get("type"):
        case "message":
            if item.get("role") == "assistant":
                builder.add("text", join_texts(item.get("content")), at)
        case "reasoning":
            builder.add("thought", join_texts(get_list(item, "summary")), at)
        case "function_call":
            arguments = get_text(item, "arguments")
            name = "__".join(filter(None, (get_text(item, "namespace"), get_text(item, "name"))))
            builder.add_call(call, name, parse_json(arguments) or arguments, at)
        case "custom_tool_call":
            builder.add_call(call, get_text(item, "name"), get_text(item, "input"), at)
        case "local_shell_call" | "web_search_call" | "tool_search_call":
            tool = str(item["type"]).removesuffix("_call")
            builder.add_call(call, tool, item.get("action") or item.get("arguments"), at)
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            output, failed = _read_output(item.get("output"))
            builder.add_result(call, output, failed=failed)
        case kind:
            return kind in _OTHER_ITEMS
    return True


def _read_output(output: JsonValue) -> tuple[str, bool]:
    """The text of a result and whether it failed. A shell's begins with its exit code; in older versions it is JSON."""
    inner = parse_json(output) if isinstance(output, str) and output.startswith("{") else output
    if not isinstance(inner, dict):
        text = join_texts(output)
        code = _EXIT_CODE.search(text, 0, HEAD)
        return text, code is not None and code[1] != "0"
    code = get_object(inner, "metadata").get("exit_code", 0)
    failed = code != 0 or inner.get("success") is False
    text = join_texts(inner.get("output")) or join_texts(inner.get("content"))
    return text or (output if isinstance(output, str) else ""), failed
