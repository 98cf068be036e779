"""Render an approval: risk, reasons, preview, and the decision for each claim.

The preview comes from the values that will run, never from the agent's description of them.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from handrail.cli.exact import escape_line_breaks, hidden_warning
from handrail.cli.render.formats import format_caller, format_effect, format_elapsed, format_risk
from handrail.cli.render.output import Piece, say

if TYPE_CHECKING:
    from handrail.cli.wire import (
        ApprovalView,
        Claim,
        CommandPreview,
        DiffPreview,
        EditView,
        FormPreview,
        InputPreview,
        PartView,
        PathPreview,
        ResultPreview,
        Verdict,
    )

    Preview = CommandPreview | DiffPreview | PathPreview | InputPreview | FormPreview | ResultPreview

_PROSE = frozenset(
    (
        "description",
        "explanation",
        "reason",
        "why",
        "justification",
        "rationale",
        "summary",
        "comment",
        "purpose",
    )
)
"""Input fields in which agents describe a call. Shown as the agent's words, never as the thing that runs."""


def show_approval(approval: ApprovalView) -> None:
    """Print all that a person needs to decide."""
    word, style = format_risk(approval["risk"])
    say(
        (escape_line_breaks(tool_name(approval)), "bold"),
        " · ",
        (word, style),
        escape_line_breaks(f" · {format_caller(approval)} · {approval['id']}"),
    )
    for line in (
        *_about_lines(approval),
        *_risk_lines(approval),
        ["Why you are asked: ", escape_line_breaks(approval["why"])],
    ):
        say(*line)
    for remark in _caller_remarks(approval):
        say((remark, "dim"))
    _show_preview(approval, approval["input"], approval["tool"])


def tool_name(approval: ApprovalView) -> str:
    """The tool's name; for a client's own work, as the client calls it."""
    own = approval["input"].get("tool") if approval["tool"] == "client_work" else None
    return own if isinstance(own, str) and own else approval["tool"]


def show_edit(approval: ApprovalView, edit: EditView, input: dict[str, Any]) -> None:
    """Print the daemon's preview of an edit: new risk, decision and claims. `input` is the edited input."""
    word, style = format_risk(edit["risk"])
    say(("As you edited it", "bold"), " · ", (word, style), f" · {approval['id']}")
    for line in _risk_lines(edit):
        say(*line)
    say("New decision: ", format_effect(edit["effect"]), escape_line_breaks(f". {edit['why']}"))
    _show_preview(edit, input, approval["tool"])
    say("The agent will be told: ", indent(edit["tells"]).lstrip())


def is_told_later(approval: ApprovalView) -> bool:
    """Whether the reason of a denial reaches the agent only with a prompt: ACP's answer to a permission request has no
    place for it. Our own agent reads it there nevertheless."""
    caller = approval["caller"]
    return approval["tool"] == "agent_work" and caller["door"] == "acp" and caller["client"] != "handrail"


def _show_preview(approval: ApprovalView | EditView, input: dict[str, Any], tool: str) -> None:
    lines = preview_lines(approval["preview"], input, tool)
    for line in (*lines, *part_lines(approval)):
        say(*line)
    hidden = hidden_warning("".join(text for line in lines for text in map(_text, line)))
    if hidden:
        say((f"⚠ {hidden}", "bold red"))


def _about_lines(approval: ApprovalView) -> list[list[Piece]]:
    """The purpose of the tool, the usual duration, and the agent's own description."""
    purpose = escape_line_breaks(re.split(r"(?<=\.)\s", approval["description"], maxsplit=1)[0])
    usual = approval["usual"]
    took = f"usually {format_elapsed(usual['median_ms'])}" if usual else ""
    about = " · ".join(filter(None, [purpose, took]))
    tool, fields = approval["tool"], approval["input"].items()
    says = [escape_line_breaks(value) for name, value in fields if _is_prose(name, value, tool)]
    return [
        *([[(about, "dim")]] if about else []),
        *([("Agent says: ", "dim"), f"“{each}”"] for each in says),
    ]


def _is_prose(name: str, value: object, tool: str) -> bool:
    """Whether a field explains the call. All that a tool of another server gets has an effect there."""
    return (
        not _is_forwarded(tool) and name.lower() in _PROSE and isinstance(value, str) and bool(value.strip())
    )


def _is_forwarded(tool: str) -> bool:
    """Whether it is a tool of another server, in whose name `__` follows the server."""
    return "__" in tool


def _risk_lines(approval: ApprovalView | EditView) -> list[list[Piece]]:
    word, style = format_risk(approval["risk"])
    reasons = escape_line_breaks(" · ".join(approval["reasons"]))
    return [[(f"Why {word.lower()}: ", style), reasons]] if reasons else []


def _caller_remarks(approval: ApprovalView) -> list[str]:
    folder = approval["caller"]["workspace"]
    untrusted = folder is not None and not approval["trusted"]
    trust = f"Not trusted: `handrail trust {shlex.quote(folder or '')}` trusts this folder."
    gone = "The client is gone. The result is kept until it asks for it."
    return [*([escape_line_breaks(trust)] if untrusted else []), *([gone] if approval["client_gone"] else [])]


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]


_VERBS = {
    "read": "reads",
    "write": "writes",
    "delete": "deletes",
    "run": "runs",
    "connect": "connects to",
    "type": "types",
    "stop": "ends",
    "recall": "recalls",
    "plan": "notes",
}
_PLACED = {"read", "write", "delete", "run"}


def part_lines(approval: ApprovalView | EditView) -> list[list[Piece]]:
    """A line for each claim of an approval or an edit; empty for a single plain claim, which the preview shows."""
    claims = approval["claims"]
    if len(claims) < 2 and not any(claim["opaque"] or claim["protected"] for claim in claims):
        return []
    verdicts = {verdict["claim"]: verdict for verdict in approval["verdicts"]}
    every_run = all(claim["action"] == "run" for claim in claims)
    return [
        _part_line(place, claim, verdicts.get(place), every_run, approval["why"])
        for place, claim in enumerate(claims)
    ]


def part_remarks(part: Claim | PartView) -> list[str]:
    """Remarks on a claim: protected, outside the workspace, not fully understood."""
    outside = part["action"] in _PLACED and not part["inside"]
    return [
        *(["protected"] if part["protected"] else []),
        *(["outside the workspace"] if outside else []),
        *([f"not fully understood: {part['opaque']}"] if part["opaque"] else []),
    ]


def action_verb(action: str) -> str:
    return _VERBS.get(action, action)


def _part_line(
    place: int, claim: Claim, verdict: Verdict | None, every_run: bool, approval_why: str
) -> list[Piece]:
    does = "" if every_run else f"{action_verb(claim['action'])} "
    subject: list[Piece] = [f"  {place + 1}  {does}", (escape_line_breaks(claim["resource"]), "bold")]
    notes: list[Piece] = [(f"  · {escape_line_breaks(remark)}", "yellow") for remark in part_remarks(claim)]
    return [*subject, *_decision_pieces(claim, verdict, approval_why), *notes]


def _decision_pieces(claim: Claim, verdict: Verdict | None, approval_why: str) -> list[Piece]:
    """The rule that decided a claim; or why it needs approval, unless that is already shown."""
    if verdict is None:
        return []
    word, style = format_effect(verdict["effect"])
    if verdict["effect"] != "ask":
        return [(f"  {word}", style), f" by {verdict['rule']}"]
    why = verdict["why"]
    is_shown = bool(claim["opaque"]) or why == approval_why
    return [(f"  {word}", style), "" if is_shown else f": {escape_line_breaks(why)}"]


def preview_lines(  # noqa: PLR0911 - a line for each kind
    preview: Preview | None, input: dict[str, Any], tool: str = ""
) -> list[list[Piece]]:
    """The preview as lines; the plain input for tools without a preview."""
    if preview is None:
        return _input(input, tool)
    match preview["kind"]:
        case "command":
            return _command(preview)
        case "diff":
            return _definition(preview, input, tool) if _is_forwarded(tool) else _diff(preview)
        case "path":
            return _path(preview)
        case "input":
            return _typed(preview)
        case "form":
            return _form(preview, input)
        case "result":
            return _result(preview)


def indent(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def style_diff_line(line: str) -> Piece:
    """Style a line of a diff."""
    return "  " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def diff_lines(diff: str) -> list[list[Piece]]:
    return [[style_diff_line(line)] for line in diff.removesuffix("\n").split("\n")]


def _command(preview: CommandPreview) -> list[list[Piece]]:
    names = preview["environment"]
    added: list[list[Piece]] = [[f"  with {escape_line_breaks(', '.join(names))} set"]] if names else []
    return [
        [("\n" + indent(preview["command"]) + "\n", "bold")],
        [f"  in {escape_line_breaks(preview['cwd'])}"],
        *added,
    ]


def _definition(preview: DiffPreview, input: dict[str, Any], tool: str) -> list[list[Piece]]:
    """What a server says about its tool now, and the arguments of the call."""
    does = "new tool" if preview["creates"] else "changed tool"
    head = f"{does} {escape_line_breaks(preview['path'])}  +{preview['added']} \N{MINUS SIGN}{preview['removed']}"
    return [[(head, "bold")], *diff_lines(preview["diff"]), [("arguments", "bold")], *_input(input, tool)]


def _diff(preview: DiffPreview) -> list[list[Piece]]:
    does = "deletes" if preview["deletes"] else "creates" if preview["creates"] else "changes"
    head = f"{does} {escape_line_breaks(preview['path'])}  +{preview['added']} \N{MINUS SIGN}{preview['removed']}"
    notes: list[list[Piece]] = [[(f"  {escape_line_breaks(note)}", "yellow")] for note in preview["notes"]]
    return [[(head, "bold")], *diff_lines(preview["diff"]), *notes]


def _result(preview: ResultPreview) -> list[list[Piece]]:
    """What a server returned. Hidden characters are spelled out as everywhere."""
    word = "reports an error" if preview["is_error"] else "returned"
    head = f"{escape_line_breaks(preview['server'])} {word}; the agent has not got it yet"
    structured: list[list[Piece]] = (
        [["  structured content:"], [indent(preview["structured"]) + "\n"]] if preview["structured"] else []
    )
    notes: list[list[Piece]] = [[(f"  {escape_line_breaks(note)}", "yellow")] for note in preview["notes"]]
    return [[(head, "bold")], [("\n" + indent(preview["text"]) + "\n", "")], *structured, *notes]


def _path(preview: PathPreview) -> list[list[Piece]]:
    return [[("  " + escape_line_breaks(preview["path"]), "bold")]]


def _input(input: dict[str, Any], tool: str) -> list[list[Piece]]:
    return [
        [f"  {escape_line_breaks(name)}: ", (escape_line_breaks(_value_text(value)), "bold")]
        for name, value in input.items()
        if (value not in (None, [], {}) or _is_forwarded(tool)) and not _is_prose(name, value, tool)
    ]


def _value_text(value: object) -> str:
    """Text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _typed(preview: InputPreview) -> list[list[Piece]]:
    """Text typed into a terminal. Keys are also listed by name: their escape sequences are hard to read."""
    text = preview["text"]
    line = text.removesuffix("\r")
    enter = " ⏎" if line != text else ""
    keys: list[list[Piece]] = [[f"  keys {' '.join(preview['keys'])}"]] if preview["keys"] else []
    return [
        [("\n" + indent(line.replace("\r", "⏎\n")) + enter + "\n", "bold")],
        *keys,
        [escape_line_breaks(f"  typed into {preview['name']} ({preview['terminal']}) of {preview['owner']}")],
        [
            escape_line_breaks(
                f"  read by {preview['foreground'] or 'an unknown program'}, in {preview['cwd']}"
            )
        ],
    ]


def _form(preview: FormPreview, input: dict[str, Any]) -> list[list[Piece]]:
    """A form, field by field, with the values filled in so far."""
    fields: dict[str, dict[str, Any]] = preview["schema"].get("properties") or {}
    needed: list[str] = preview["schema"].get("required") or []
    values: dict[str, Any] = input.get("values") or {}
    lines: list[list[Piece]] = [[("\n" + indent(preview["message"]) + "\n", "bold")]]
    for name, field in fields.items():
        about = f"  {escape_line_breaks(str(field.get('title') or name))} ({_field_type(field)}{', needed' if name in needed else ''}): "
        lines.append(
            [
                escape_line_breaks(about),
                (escape_line_breaks(str(values[name])) if name in values else "—", "bold"),
            ]
        )
    return [*lines, [("To fill it in, edit `values` of the input.", "dim")]]


def _field_type(field: dict[str, Any]) -> str:
    allowed: list[object] = field.get("enum") or []
    return " | ".join(map(str, allowed)) or str(field.get("type") or "text")
