"""One approval in the terminal: show it, read a key, collect what the answer needs, send it.

An answer may need a reason, a pattern for each rule, an edit in the person's editor, or a second key to confirm.
`keyboard` decides which key presses count.
"""

from __future__ import annotations

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
from typing import TYPE_CHECKING, Any, Literal, cast

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
from handrail.cli.render.approval_card import is_told_later, show_approval, show_edit
from handrail.cli.render.formats import format_state
from handrail.cli.render.output import say

if TYPE_CHECKING:
    from handrail.cli.wire import ApprovalView, EditBody, RuleBody, Suggestion

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

    def __init__(self, keys: ApprovalKeys, approval: ApprovalView) -> None:
        self._keys = keys
        self._approval = approval
        self._edit: Edit | None = None
        self._is_open = True
        self._actions = {
            "allow": lambda: self._send(Answer(kind="allow", edit=self._edit)),
            "session": self._allow_for_session,
            "rule": self._allow_with_rule,
            "edit": self._edit_input,
            "original": self._back_to_original,
            "deny": lambda: self._send(Answer(kind="deny")),
            "reason": self._deny_with_reason,
            "next": lambda: self._leave("Left for now; it still waits."),
        }

    def ask(self) -> None:
        """Ask until it is answered here or elsewhere, or skipped. An outdated approval stays in the inbox."""
        say("")
        show_approval(self._approval)
        while self._is_open:
            self._show_keys()
            chosen = self._keys.wait_for_key(self._choice)
            try:
                if chosen is None:
                    self._leave("Answered elsewhere, or no longer needed.")
                else:
                    self._actions[chosen]()
            except Failure as problem:
                if problem.code is Code.NO_DAEMON:
                    raise
                say((str(problem), "yellow"))

    @property
    def _risk(self) -> str:
        return (self._edit.view if self._edit else self._approval)["risk"]

    def _show_keys(self) -> None:
        words = ", ".join(exact_line(each["words"]) for each in offered_suggestions(self._approval))
        if words and self._edit is None:
            say((f"For the session, or by a rule, this would also be allowed: {words}", "dim"))
        editable = self._approval["can_edit"]
        say(key_line(self._risk, ruled=bool(words), edited=self._edit is not None, editable=editable))

    def _choice(self, key: str) -> Choice | None:
        if key == "a" and not is_allow_key(key, self._risk):
            say(("High risk: press Shift+A to allow it.", "yellow"))
        return choice_for_key(key, self._risk)

    def _send(self, answer: Answer) -> None:
        self._is_open = False  # if the daemon refuses the answer, the caller loads the approval again
        answered, rules = send_answer(self._keys.link, self._approval, answer)
        self._keys.drop()
        say(format_state(answered["status"]), exact_line(f": {answer.reason}") if answer.reason else "")
        show_created_rules(self._approval, rules)

    def _leave(self, message: str) -> None:
        self._is_open = False
        self._keys.drop()
        say((message, "dim"))

    def _deny_with_reason(self) -> None:
        when = (
            "the agent reads it with its next prompt"
            if is_told_later(self._approval)
            else "the agent reads it"
        )
        reason = self._keys.line(f"Reason ({when}; empty goes back):")
        if reason:
            self._send(Answer(kind="deny", reason=reason))

    def _allow_for_session(self) -> None:
        self._check_ruled()
        if self._risk in ("low", "medium") or self._confirm("that hold for the session"):
            self._send(Answer(kind="allow", rules=suggested_rules(self._approval, "session")))

    def _allow_with_rule(self) -> None:
        self._check_ruled()
        rules = ask_for_rules(self._keys, self._approval)
        if rules and self._confirm("the rule" if len(rules) == 1 else "these rules"):
            self._send(Answer(kind="allow", rules=rules))

    def _check_ruled(self) -> None:
        if self._edit is not None:
            raise Failure(
                "Rules are about what was asked. Press o to go back to that, or allow your edit once."
            )
        if not offered_suggestions(self._approval):
            raise Failure(NO_RULE)

    def _confirm(self, rules: str) -> bool:
        """Confirm with a second key, after the rules were shown; Shift+A for high risk."""
        key = "[a]" if self._risk in ("low", "medium") else "High risk: [A] (Shift)"
        say((f"{key} allows it and makes {rules}; any other key goes back.", "bold"))
        return self._keys.wait_for_key(lambda pressed: is_allow_key(pressed, self._risk)) is True

    def _edit_input(self) -> None:
        """Let the person edit the input, and show the daemon's preview of it. The next key answers the edit."""
        if not self._approval["can_edit"]:
            raise Failure(self._approval["why_not_edit"])
        earlier = self._edit.changes if self._edit else None
        editor = edit_in_editor if editor_command() else edit_on_one_line(self._keys.line)
        with self._keys.keyboard.normal_mode():
            changes = edit_input(self._keys.link, self._approval, editor, earlier)
        if changes is None:
            say("Nothing was changed.")
            return
        self._edit = preview_edit(self._keys.link, self._approval, changes)
        say("")
        show_edit(self._approval, self._edit.view, self._edit.input)

    def _back_to_original(self) -> None:
        self._edit = None
        say("")
        show_approval(self._approval)


def ask_for_rules(keys: ApprovalKeys, approval: ApprovalView) -> tuple[RuleBody, ...]:
    """Ask for the pattern of each suggested rule, and preview the rules. Raises Failure if one is invalid."""
    answers = [_ask_for_rule(keys, approval, each) for each in offered_suggestions(approval)]
    rules = tuple(rule for rule in answers if rule is not None)
    for rule in rules:
        _show_proposed(keys, approval, rule)
    return rules


def _ask_for_rule(keys: ApprovalKeys, approval: ApprovalView, suggestion: Suggestion) -> RuleBody | None:
    rule = suggestion["rule"]
    pattern = exact_line(rule.get("command") or rule.get("path") or rule.get("host") or "")
    line = keys.line(f"Pattern of the rule, for this project. Enter: {pattern}   - : skip this rule")
    if line == "-":
        return None
    return rule_in_scope(replace_pattern(rule, line) if line else rule, approval, "project", None)


def _show_proposed(keys: ApprovalKeys, approval: ApprovalView, rule: RuleBody) -> None:
    proposed = keys.link.post("rules", "propose", body={"rule": rule, "approval": approval["id"]})
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


def edit_input(
    link: Link, approval: ApprovalView, editor: Editor, earlier: EditBody | None = None
) -> EditBody | None:
    """Let the person edit the input; return the changes for an answer, or None if nothing was changed.

    `earlier` holds the changes of a previous edit, to continue from. Raises Failure.
    """
    draft = _build_draft(link, approval, earlier or {})
    text = editor(draft.text, draft.suffix)
    if not draft.text.endswith("\n") and draft.kind != "content":
        text = text.removesuffix("\n")  # editors add a final newline
    return None if text == draft.text else _build_changes(approval, draft.kind, text)


def edit_in_editor(text: str, suffix: str) -> str:
    """Edit the text in the person's editor. Raises Failure."""
    argv = editor_command()
    if argv is None:
        raise Failure("There is no editor. Set EDITOR to the one you use.")
    with tempfile.TemporaryDirectory(prefix="handrail-") as folder:
        file = Path(folder, f"proposal{suffix}")
        file.write_bytes(text.encode(errors="surrogatepass"))
        try:
            exit_code = subprocess.run([*argv, str(file)], check=False).returncode
        except OSError as error:
            raise Failure(
                f"{argv[0]} cannot be started: {error.strerror}. Set EDITOR to one that can."
            ) from None
        if exit_code:
            raise Failure(f"{argv[0]} ended with {exit_code}, so nothing was changed.")
        return _read(file)


def edit_on_one_line(ask: Callable[[str], str]) -> Editor:
    """Fallback without an editor: type the whole line again."""

    def edit(text: str, _suffix: str) -> str:
        if "\n" in text:
            raise Failure(
                "There is no editor, and this is more than one line. Set EDITOR to the one you use."
            )
        return ask("Run this instead (empty leaves it as it is):") or text

    return edit


def editor_command() -> list[str] | None:
    """The command of the person's editor (VISUAL, EDITOR, or a usual one); None without one."""
    setting = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(setting)
    except ValueError:
        raise Failure(f"EDITOR is {setting!r}, which is no command. Set it to the editor you use.") from None
    if words:
        return words
    editor = next((path for path in map(shutil.which, _USUAL_EDITORS) if path), None)
    return [editor] if editor else None


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"What the editor left cannot be read: {error}. Nothing was changed.") from None


def _build_draft(link: Link, approval: ApprovalView, earlier: EditBody) -> Draft:
    if "content" in earlier or ("input" not in earlier and approval["reviewable"]):
        proposal = link.get("approvals", approval["id"], "proposal")
        text = earlier.get("content", proposal["after"])
        if text is not None:
            suffix = re.search(r"\.[A-Za-z0-9]{1,12}$", proposal["path"])
            return Draft(kind="content", text=text, suffix=suffix[0] if suffix else ".txt")
    edited = earlier.get("input")
    values = approval["input"] if edited is None else edited
    if approval["tool"] == "execute_command" and isinstance(values.get("command"), str):
        return Draft(kind="command", text=values["command"], suffix=".sh")
    return Draft(kind="input", text=json.dumps(values, indent=2, ensure_ascii=False) + "\n", suffix=".json")


def _build_changes(
    approval: ApprovalView, kind: Literal["command", "content", "input"], text: str
) -> EditBody:
    match kind:
        case "content":
            return {"content": text}
        case "command":
            return {"input": {**approval["input"], "command": text}}
        case "input":
            return {"input": _parse_object(text)}


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Failure(f"That is not JSON: {error}. Nothing was changed.") from None
    if not isinstance(value, dict):
        raise Failure("A tool's input is a JSON object. Nothing was changed.")
    return cast("dict[str, Any]", value)
