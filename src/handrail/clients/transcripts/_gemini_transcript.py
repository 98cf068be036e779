"""Gemini CLI's transcripts: `~/.gemini/tmp/PROJECT/chats/session-TIME-ID.jsonl`, and `.json` of older versions.

JSON Lines: metadata first, then messages. A message with a known id replaces the earlier one, `$rewindTo` removes
messages from an id on, and `$set` changes the metadata, in older files also the messages. The file `.project_root`
beside `chats` names the project's folder.
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
    parse_json,
    parse_time,
    read_json_lines,
)

_NOT_TYPED = ("<session_context>",)
"""How texts begin that Gemini CLI writes in the person's name."""


def read_gemini(content: bytes, *, shortened: bool = False) -> Transcript:
    """Parse a whole file."""
    builder = TranscriptBuilder()
    builder.shortened = shortened
    for message in _read_messages(content, builder):
        if not _add_message(message, builder):
            builder.skipped += 1
    return builder.build()


def summarize_gemini(content: bytes) -> tuple[str, str]:
    """The first prompt and the session's id, from the beginning of a file."""
    builder = TranscriptBuilder()
    whole = parse_json(content)
    records = [whole] if isinstance(whole, dict) else read_json_lines(content, builder)
    session = next(filter(None, (get_text(record, "sessionId") for record in records)), "")
    messages = _read_messages(content, builder)
    prompts = (_get_prompt(message) for message in messages if message.get("type") == "user")
    return next(filter(None, prompts), ""), session


def _read_messages(content: bytes, builder: TranscriptBuilder) -> list[Json]:
    """The messages that are in force at the end of the file."""
    whole = parse_json(content)
    if isinstance(whole, dict) and "messages" in whole:
        return _objects(get_list(whole, "messages"))
    messages: dict[str, Json] = {}
    for record in read_json_lines(content, builder):
        if target := get_text(record, "$rewindTo"):
            _rewind(messages, target)
        elif key := get_text(record, "id"):
            messages[key] = record
        elif changed := _objects(get_list(get_object(record, "$set"), "messages")):
            messages = {get_text(message, "id"): message for message in changed}
        elif "$set" not in record and "sessionId" not in record:
            builder.skipped += 1
    return list(messages.values())


def _rewind(messages: dict[str, Json], target: str) -> None:
    """Remove a message and all later ones; all of them if it is unknown."""
    keys = list(messages)
    for key in keys[keys.index(target) :] if target in messages else keys:
        del messages[key]


def _add_message(message: Json, builder: TranscriptBuilder) -> bool:
    at = parse_time(get_text(message, "timestamp"))
    match message.get("type"):
        case "user":
            builder.add_prompt(_get_prompt(message), at)
        case "gemini":
            for thought in get_list(message, "thoughts"):
                words = (get_text(thought, "subject"), get_text(thought, "description"))
                builder.add("thought", "\n\n".join(filter(None, words)), at)
            builder.add("text", join_texts(message.get("content")), at)
            for call in _objects(get_list(message, "toolCalls")):
                _add_call(call, builder, at)
        case "info" | "warning" | "error":
            builder.add("note", join_texts(message.get("content")), at)
        case _:
            return False
    return True


def _get_prompt(message: Json) -> str:
    """What the person typed; empty for what Gemini CLI adds."""
    text = join_texts(message.get("displayContent")) or join_texts(message.get("content"))
    return "" if text.startswith(_NOT_TYPED) else text


def _add_call(call: Json, builder: TranscriptBuilder, at: int) -> None:
    key, status = get_text(call, "id"), get_text(call, "status")
    builder.add_call(key, get_text(call, "name"), get_object(call, "args"), at)
    if status in ("success", "error", "cancelled"):
        builder.add_result(key, _get_output(call), failed=status != "success")


def _get_output(call: Json) -> str:
    """The text for the model, else the text shown to the person."""
    result = call.get("result")
    blocks = result if isinstance(result, list) else [result]
    answers = [get_object(get_object(block, "functionResponse"), "response") for block in blocks]
    texts = [get_text(answer, "output") or get_text(answer, "error") for answer in answers]
    return "\n".join(filter(None, texts)) or get_text(call, "resultDisplay") or join_texts(result)


def _objects(values: list[JsonValue]) -> list[Json]:
    return [value for value in values if isinstance(value, dict)]
