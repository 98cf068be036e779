"""The shell line that an agent's request for a terminal means.

Owns reading `terminal/create`: a program and its words, or a whole line. It runs nothing.
"""

import os
import shlex
import shutil
from pathlib import Path

from handrail.agents.loose import records, text
from handrail.store.value import Json


def line_of(params: Json, cwd: str) -> str:
    """Exactly the words that were asked for; a command that names no program is a shell line."""
    command, args = text(params.get("command")), params.get("args")
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    if words:
        return shlex.join([command, *words])
    return shlex.quote(command) if _is_program(command, cwd) else command


def variables_of(params: Json) -> Json:
    """What it adds to the environment."""
    return {text(each.get("name")): text(each.get("value")) for each in records(params.get("env"))}


def _is_program(command: str, cwd: str) -> bool:
    if "\0" in command:
        return False
    if "/" in command:
        path = Path(cwd, command)
        return path.is_file() and os.access(path, os.X_OK)
    return bool(command) and shutil.which(command) is not None
