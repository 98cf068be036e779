"""Claude Code's transcripts: `~/.claude/projects/FOLDER/SESSION.jsonl`.

One JSON object per line; `type` is user or assistant for the conversation, and the message has the shape of the
Messages API. A tool's result is a block of a user message.
"""

from pydantic import JsonValue

from handrail.clients.transcripts.transcript import (
    Json,
    Transcript,
    TranscriptBuilder,
    get_list,
    get_object,
    get_text,
    join_texts,
    parse_time,
    read_json_lines,
)

_OTHER_TYPES = frozenset(
    (
        *("system", "summary", "progress", "attachment", "queue-operation", "file-history-snapshot"),
        *("api-request", "api-request-blob", "api-request-shape", "tools-used", "cost-state", "atis-latch"),
        *("ai-title", "custom-title", "agent-name", "last-prompt", "permission-mode", "mode", "tag"),
    )
)
"""Types of lines that hold no part of the conversation."""
_NOT_TYPED = ("<command-", "<local-command", "<task-notification", "<system-reminder", "Caveat: ")
"""How texts begin that Claude Code writes in the person's name."""


def read_claude(content: bytes, *, shortened: bool = False) -> Transcript:
    """Parse a whole file."""
    builder = TranscriptBuilder()
    builder.shortened = shortened
    for record in read_json_lines(content, builder):
        if not _read_line(record, builder):
            builder.skipped += 1
    return builder.build()


def summarize_claude(content: bytes) -> tuple[str, str]:
    """The first prompt and the folder, from the beginning of a file."""
    prompt = folder = ""
    for record in read_json_lines(content, TranscriptBuilder()):
        folder = folder or get_text(record, "cwd")
        prompt = prompt or _get_prompt(record)
        if prompt and folder:
            break
    return prompt, folder


def _read_line(record: Json, builder: TranscriptBuilder) -> bool:
    """Add a line; False if it is unknown."""
    at = parse_time(get_text(record, "timestamp"))
    match record.get("type"):
        case "user" if not record.get("isSidechain"):
            builder.add_prompt(_get_prompt(record), at)
            for block in get_list(get_object(record, "message"), "content"):
                _read_result(block, builder)
            return True
        case "assistant" if not record.get("isSidechain"):
            blocks = get_list(get_object(record, "message"), "content")
            unknown = [block for block in blocks if not _read_block(block, builder, at)]
            return not unknown
        case "user" | "assistant":
            return True  # of a subagent: its call shows the result
        case kind:
            return kind in _OTHER_TYPES


def _get_prompt(record: Json) -> str:
    """What the person typed in a user line; empty for results and for what Claude Code adds."""
    if record.get("type") != "user" or record.get("isMeta") or record.get("isSidechain"):
        return ""
    content = get_object(record, "message").get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [_describe_block(block) for block in blocks]
    return "\n".join(text for text in texts if text and not text.lstrip().startswith(_NOT_TYPED))


def _describe_block(block: JsonValue) -> str:
    if isinstance(block, dict) and block.get("type") == "image":
        return "[image]"
    return join_texts(block)


def _read_result(block: JsonValue, builder: TranscriptBuilder) -> None:
    if isinstance(block, dict) and block.get("type") == "tool_result":
        output = join_texts(block.get("content"))
        builder.add_result(get_text(block, "tool_use_id"), output, failed=block.get("is_error") is True)


def _read_block(block: JsonValue, builder: TranscriptBuilder, at: int) -> bool:
    match get_text(block, "type"):
        case "text":
            builder.add("text", get_text(block, "text"), at)
        case "thinking":
            builder.add("thought", get_text(block, "thinking"), at)
        case "redacted_thinking":
            pass
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            builder.add_call(get_text(block, "id"), get_text(block, "name"), get_object(block, "input"), at)
        case _:
            return False
    return True
