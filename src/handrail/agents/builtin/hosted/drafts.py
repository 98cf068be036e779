"""What a call of ours would write, as editors show it: a diff.

Owns that reading of our own tools' input. The person's answer may change what is written; the result says what was.
"""

from pathlib import Path

from handrail.agents.builtin.tools.tool import Json


def drafts(tool: str, input: Json, cwd: Path) -> list[Json]:
    """As the protocol has it; nothing for a tool that writes no file, or for an input that is none."""
    match tool, input:
        case "write_file", {"path": str(path), "content": str(new)}:
            return [_diff(cwd / path, None, new)]
        case "edit_file", {"path": str(path), "old_string": str(old), "new_string": str(new)}:
            return [_diff(cwd / path, old, new)]
        case _:
            return []


def _diff(path: Path, old: str | None, new: str) -> Json:
    return {"type": "diff", "path": str(path), "newText": new, **({} if old is None else {"oldText": old})}
