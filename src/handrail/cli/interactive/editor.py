"""Editing what an agent asked for, in the person's own editor.

Owns what of a question is edited, how it gets to the editor and what comes back. It does not weigh the edit (the daemon
does), and nothing of it is kept on disk.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from handrail.cli.client import Link
from handrail.cli.failure import Failure
from handrail.cli.render.formats import Row

_USUAL = ("vi", "nano")
Editor = Callable[[str, str], str]
"""From a text and the ending of its file's name to the text as the person left it. Raises Failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The part of a question that a person edits."""

    kind: Literal["command", "content", "input"]
    text: str
    suffix: str


def changes(link: Link, asked: Row, editor: Editor, begun: Row | None = None) -> Row | None:
    """What the person would have instead, as an answer takes it; None when they left it as it was.

    `begun` is what they made of it before. Raises Failure.
    """
    draft = _draft(link, asked, begun or {})
    left = editor(draft.text, draft.suffix)
    if not draft.text.endswith("\n") and draft.kind != "content":
        left = left.removesuffix("\n")  # which editors add
    return None if left == draft.text else _change(asked, draft.kind, left)


def in_editor(text: str, suffix: str) -> str:
    """The text as the person leaves it in their editor. Raises Failure."""
    argv = command()
    if argv is None:
        raise Failure("There is no editor. Set EDITOR to the one you use.")
    with tempfile.TemporaryDirectory(prefix="handrail-") as folder:
        file = Path(folder, f"proposal{suffix}")
        file.write_bytes(text.encode(errors="surrogatepass"))
        try:
            ended = subprocess.run([*argv, str(file)], check=False).returncode
        except OSError as error:
            raise Failure(
                f"{argv[0]} cannot be started: {error.strerror}. Set EDITOR to one that can."
            ) from None
        if ended:
            raise Failure(f"{argv[0]} ended with {ended}, so nothing was changed.")
        return _read(file)


def on_one_line(ask: Callable[[str], str]) -> Editor:
    """Where there is no editor: the whole line is typed anew."""

    def typed(text: str, _suffix: str) -> str:
        if "\n" in text:
            raise Failure(
                "There is no editor, and this is more than one line. Set EDITOR to the one you use."
            )
        return ask("Run this instead (empty leaves it as it is):") or text

    return typed


def command() -> list[str] | None:
    """The person's editor; None where there is none."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError:
        raise Failure(f"EDITOR is {named!r}, which is no command. Set it to the editor you use.") from None
    if words:
        return words
    found = next((path for path in map(shutil.which, _USUAL) if path), None)
    return [found] if found else None


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"What the editor left cannot be read: {error}. Nothing was changed.") from None


def _draft(link: Link, asked: Row, begun: Row) -> Draft:
    if "content" in begun or ("input" not in begun and asked["reviewable"]):
        proposal: Row = link.get("approvals", asked["id"], "proposal")
        text: str | None = begun.get("content", proposal["after"])
        if text is not None:
            found = re.search(r"\.[A-Za-z0-9]{1,12}$", proposal["path"])
            return Draft(kind="content", text=text, suffix=found[0] if found else ".txt")
    given: Row = begun.get("input", asked["input"])
    if asked["tool"] == "execute_command" and isinstance(given.get("command"), str):
        return Draft(kind="command", text=given["command"], suffix=".sh")
    return Draft(kind="input", text=json.dumps(given, indent=2, ensure_ascii=False) + "\n", suffix=".json")


def _change(asked: Row, kind: Literal["command", "content", "input"], left: str) -> Row:
    match kind:
        case "content":
            return {"content": left}
        case "command":
            return {"input": {**asked["input"], "command": left}}
        case "input":
            return {"input": _object(left)}


def _object(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(f"That is not JSON: {error}. Nothing was changed.") from None
    if not isinstance(found, dict):
        raise Failure("A tool's input is a JSON object. Nothing was changed.")
    return cast("dict[str, Any]", found)
