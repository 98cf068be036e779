"""One approval in the terminal: show it, read a key, collect what the answer needs, send it.

An answer may need a reason, a pattern for each rule, an edit in the person's editor, or a second key to confirm.
`keyboard` decides which key presses count.
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
from handrail.cli.commands.approvals import (
    NO_RULE,
    Answer,
    Edit,
    offered_suggestions,
    preview_edit,
    replace_pattern,
    rule_in_scope,
    send_answer,
    show_created_rules,
    suggested_rules,
)
from handrail.cli.commands.rules import describe_impact
from handrail.cli.exact import exact_line
from handrail.cli.failure import Code, Failure
from handrail.cli.interactive.keyboard import ApprovalKeys
from handrail.cli.render.approval_card import show_approval, show_edit
from handrail.cli.render.formats import Row, format_state
from handrail.cli.render.output import say

Choice = Literal["allow", "session", "rule", "edit", "original", "deny", "reason", "next"]

_KEYS: dict[str, Choice] = {
    "s": "session",
    "r": "rule",
    "e": "edit",
    "o": "original",
    "d": "deny",
    "D": "reason",
    "n": "next",
}


def choice_for_key(key: str, risk: str) -> Choice | None:
    """The answer that a key stands for; None for any other key."""
    return "allow" if is_allow_key(key, risk) else _KEYS.get(key)


def is_allow_key(key: str, risk: str) -> bool:
    return key == "A" or (key == "a" and risk in ("low", "medium"))


def key_line(risk: str, *, ruled: bool, edited: bool, editable: bool = True) -> str:
    """The line that lists the keys. `ruled`: a rule can allow it; `edited`: the person has edited it."""
    allow = "[a]llow" if risk in ("low", "medium") else "[A]llow (Shift)"
    lasting = "   [s]ession   [r]ule…" if ruled and not edited else ""
    edit = "   [e]dit again   [o]riginal" if edited else "   [e]dit…" if editable else ""
    return (
        f"{allow} {'as edited' if edited else 'once'}{lasting}{edit}   [d]eny   [D]eny with a reason   [n]ext"
    )


class Question:
    """An approval put to the person."""

    def __init__(self, hand: ApprovalKeys, asked: Row) -> None:
        self._hand = hand
        self._asked = asked
        self._edit: Edit | None = None
        self._stands = True
        self._verbs = {
            "allow": lambda: self._send(Answer(kind="allow", edit=self._edit)),
            "session": self._allow_for_session,
            "rule": self._allow_with_rule,
            "edit": self._change,
            "original": self._back_to_original,
            "deny": lambda: self._send(Answer(kind="deny")),
            "reason": self._deny_with_reason,
            "next": lambda: self._leave("Left for now; it still waits."),
        }

    def put(self) -> None:
        """Ask until it is answered here or elsewhere, or skipped. An outdated approval stays in the inbox."""
        say("")
        show_approval(self._asked)
        while self._stands:
            self._show_keys()
            chosen = self._hand.pressed(self._choice)
            try:
                if chosen is None:
                    self._leave("Answered elsewhere, or no longer needed.")
                else:
                    self._verbs[chosen]()
            except Failure as problem:
                if problem.code is Code.NO_DAEMON:
                    raise
                say((str(problem), "yellow"))

    @property
    def _risk(self) -> str:
        return (self._edit.view if self._edit else self._asked)["risk"]

    def _show_keys(self) -> None:
        words = ", ".join(exact_line(each["words"]) for each in offered_suggestions(self._asked))
        if words and self._edit is None:
            say((f"For the session, or by a rule, this would also be allowed: {words}", "dim"))
        editable = self._asked["can_edit"]
        say(key_line(self._risk, ruled=bool(words), edited=self._edit is not None, editable=editable))

    def _choice(self, key: str) -> Choice | None:
        if key == "a" and not is_allow_key(key, self._risk):
            say(("High risk: press Shift+A to allow it.", "yellow"))
        return choice_for_key(key, self._risk)

    def _send(self, answer: Answer) -> None:
        self._stands = False  # if the daemon refuses the answer, the approval may have changed: the caller loads it again
        answered, rules = send_answer(self._hand.link, self._asked, answer)
        self._hand.drop()
        say(format_state(answered["status"]), exact_line(f": {answer.reason}") if answer.reason else "")
        show_created_rules(self._asked, rules)

    def _leave(self, words: str) -> None:
        self._stands = False
        self._hand.drop()
        say((words, "dim"))

    def _deny_with_reason(self) -> None:
        reason = self._hand.line("Reason (the agent reads it; empty goes back):")
        if reason:
            self._send(Answer(kind="deny", reason=reason))

    def _allow_for_session(self) -> None:
        self._check_ruled()
        if self._risk in ("low", "medium") or self._is_meant("that hold for the session"):
            self._send(Answer(kind="allow", rules=suggested_rules(self._asked, "session")))

    def _allow_with_rule(self) -> None:
        self._check_ruled()
        rules = ask_for_rules(self._hand, self._asked)
        if rules and self._is_meant("the rule" if len(rules) == 1 else "these rules"):
            self._send(Answer(kind="allow", rules=rules))

    def _check_ruled(self) -> None:
        if self._edit is not None:
            raise Failure(
                "Rules are about what was asked. Press o to go back to that, or allow your edit once."
            )
        if not offered_suggestions(self._asked):
            raise Failure(NO_RULE)

    def _is_meant(self, what: str) -> bool:
        """Confirm with a second key, after the rules were shown; Shift+A for high risk."""
        key = "[a]" if self._risk in ("low", "medium") else "High risk: [A] (Shift)"
        say((f"{key} allows it and makes {what}; any other key goes back.", "bold"))
        return self._hand.pressed(lambda pressed: is_allow_key(pressed, self._risk)) is True

    def _change(self) -> None:
        """Let the person edit the input, and show the daemon's preview of it. The next key answers the edit."""
        if not self._asked["can_edit"]:
            raise Failure(self._asked["why_not_edit"])
        begun = self._edit.changes if self._edit else None
        editor = edit_in_editor if editor_command() else edit_on_one_line(self._hand.line)
        with self._hand.keyboard.lent():
            changed = edit_input(self._hand.link, self._asked, editor, begun)
        if changed is None:
            say("Nothing was changed.")
            return
        self._edit = preview_edit(self._hand.link, self._asked, changed)
        say("")
        show_edit(self._asked, self._edit.view)

    def _back_to_original(self) -> None:
        self._edit = None
        say("")
        show_approval(self._asked)


def ask_for_rules(hand: ApprovalKeys, asked: Row) -> tuple[Row, ...]:
    """Ask for the pattern of each suggested rule, and preview the rules. Raises Failure if one is invalid."""
    wanted = [_ask_for_rule(hand, asked, each) for each in offered_suggestions(asked)]
    rules = tuple(rule for rule in wanted if rule is not None)
    for rule in rules:
        _show_proposed(hand, asked, rule)
    return rules


def _ask_for_rule(hand: ApprovalKeys, asked: Row, suggestion: Row) -> Row | None:
    rule: Row = suggestion["rule"]
    pattern = exact_line(rule["command"] or rule["path"] or rule["host"] or "")
    typed = hand.line(f"Pattern of the rule, for this project. Enter: {pattern}   - : no such rule")
    if typed == "-":
        return None
    return rule_in_scope(replace_pattern(rule, typed) if typed else rule, asked, "project", None)


def _show_proposed(hand: ApprovalKeys, asked: Row, rule: Row) -> None:
    proposed: Row = hand.link.post("rules", "propose", body={"rule": rule, "approval": asked["id"]})
    if proposed["problem"]:
        raise Failure(exact_line(proposed["problem"]))
    say(("Would allow ", "green"), exact_line(proposed["words"]), f". {describe_impact(proposed)}".rstrip())


_USUAL_EDITORS = ("vi", "nano")
Editor = Callable[[str, str], str]
"""(text, file suffix) → edited text. Raises Failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The text of an approval that a person edits."""

    kind: Literal["command", "content", "input"]
    text: str
    suffix: str


def edit_input(link: Link, asked: Row, editor: Editor, begun: Row | None = None) -> Row | None:
    """Let the person edit the input; return the changes for an answer, or None if nothing was changed.

    `begun` is an earlier edit to continue from. Raises Failure.
    """
    draft = _build_draft(link, asked, begun or {})
    left = editor(draft.text, draft.suffix)
    if not draft.text.endswith("\n") and draft.kind != "content":
        left = left.removesuffix("\n")  # editors add a final newline
    return None if left == draft.text else _build_changes(asked, draft.kind, left)


def edit_in_editor(text: str, suffix: str) -> str:
    """Edit the text in the person's editor. Raises Failure."""
    argv = editor_command()
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


def edit_on_one_line(ask: Callable[[str], str]) -> Editor:
    """Fallback without an editor: type the whole line again."""

    def typed(text: str, _suffix: str) -> str:
        if "\n" in text:
            raise Failure(
                "There is no editor, and this is more than one line. Set EDITOR to the one you use."
            )
        return ask("Run this instead (empty leaves it as it is):") or text

    return typed


def editor_command() -> list[str] | None:
    """The command of the person's editor (VISUAL, EDITOR, or a usual one); None if there is none."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError:
        raise Failure(f"EDITOR is {named!r}, which is no command. Set it to the editor you use.") from None
    if words:
        return words
    found = next((path for path in map(shutil.which, _USUAL_EDITORS) if path), None)
    return [found] if found else None


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"What the editor left cannot be read: {error}. Nothing was changed.") from None


def _build_draft(link: Link, asked: Row, begun: Row) -> Draft:
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


def _build_changes(asked: Row, kind: Literal["command", "content", "input"], left: str) -> Row:
    match kind:
        case "content":
            return {"content": left}
        case "command":
            return {"input": {**asked["input"], "command": left}}
        case "input":
            return {"input": _parse_object(left)}


def _parse_object(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(f"That is not JSON: {error}. Nothing was changed.") from None
    if not isinstance(found, dict):
        raise Failure("A tool's input is a JSON object. Nothing was changed.")
    return cast("dict[str, Any]", found)
