"""Render an approval: risk, reasons, preview, and the decision for each claim.

The preview comes from the values that will run, never from the agent's description of them.
"""

import re
import shlex

from handrail.cli.exact import escape_line_breaks, hidden_warning
from handrail.cli.render.formats import Row, format_caller, format_effect, format_elapsed, format_risk
from handrail.cli.render.output import Piece, say

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


def show_approval(approval: Row) -> None:
    """Print all that a person needs to decide."""
    word, style = format_risk(approval["risk"])
    say(
        (approval["tool"], "bold"),
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
    _show_preview(approval)


def show_edit(approval: Row, edit: Row) -> None:
    """Print the daemon's preview of an edit: new risk, decision and claims."""
    word, style = format_risk(edit["risk"])
    say(("As you edited it", "bold"), " · ", (word, style), f" · {approval['id']}")
    for line in _risk_lines(edit):
        say(*line)
    say("New decision: ", format_effect(edit["effect"]), escape_line_breaks(f". {edit['why']}"))
    _show_preview({**approval, **edit})
    say("The agent will be told: ", indent(edit["tells"]).lstrip())


def _show_preview(approval: Row) -> None:
    lines = preview_lines(approval)
    for line in (*lines, *part_lines(approval)):
        say(*line)
    hidden = hidden_warning("".join(text for line in lines for text in map(_text, line)))
    if hidden:
        say((f"⚠ {hidden}", "bold red"))


def _about_lines(approval: Row) -> list[list[Piece]]:
    """The purpose of the tool, the usual duration, and the agent's own description."""
    purpose = escape_line_breaks(re.split(r"(?<=\.)\s", approval["description"], maxsplit=1)[0])
    usual: Row | None = approval["usual"]
    took = f"usually {format_elapsed(usual['median_ms'])}" if usual else ""
    about = " · ".join(filter(None, [purpose, took]))
    says = [escape_line_breaks(value) for name, value in approval["input"].items() if _is_prose(name, value)]
    return [
        *([[(about, "dim")]] if about else []),
        *([("Agent says: ", "dim"), f"“{each}”"] for each in says),
    ]


def _is_prose(name: str, value: object) -> bool:
    return name.lower() in _PROSE and isinstance(value, str) and bool(value.strip())


def _risk_lines(approval: Row) -> list[list[Piece]]:
    word, style = format_risk(approval["risk"])
    reasons = escape_line_breaks(" · ".join(approval["reasons"]))
    return [[(f"Why {word.lower()}: ", style), reasons]] if reasons else []


def _caller_remarks(approval: Row) -> list[str]:
    folder: str | None = approval["caller"]["workspace"]
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
}
_PLACED = {"read", "write", "delete", "run"}


def part_lines(approval: Row) -> list[list[Piece]]:
    """A line for each claim of an approval or an edit; empty for a single plain claim, which the preview shows."""
    claims: list[Row] = approval["claims"]
    if len(claims) < 2 and not any(claim["opaque"] or claim["protected"] for claim in claims):
        return []
    verdicts: dict[int, Row] = {verdict["claim"]: verdict for verdict in approval["verdicts"]}
    every_run = all(claim["action"] == "run" for claim in claims)
    return [
        _part_line(place, claim, verdicts.get(place), every_run, approval["why"])
        for place, claim in enumerate(claims)
    ]


def part_remarks(part: Row) -> list[str]:
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
    place: int, claim: Row, verdict: Row | None, every_run: bool, approval_why: str
) -> list[Piece]:
    does = "" if every_run else f"{action_verb(claim['action'])} "
    subject: list[Piece] = [f"  {place + 1}  {does}", (escape_line_breaks(claim["resource"]), "bold")]
    notes: list[Piece] = [(f"  · {escape_line_breaks(remark)}", "yellow") for remark in part_remarks(claim)]
    return [*subject, *_decision_pieces(claim, verdict, approval_why), *notes]


def _decision_pieces(claim: Row, verdict: Row | None, approval_why: str) -> list[Piece]:
    """The rule that decided a claim; or why it needs approval, unless that is already shown."""
    if verdict is None:
        return []
    word, style = format_effect(verdict["effect"])
    if verdict["effect"] != "ask":
        return [(f"  {word}", style), f" by {verdict['rule']}"]
    why = verdict["why"]
    is_shown = bool(claim["opaque"]) or why == approval_why
    return [(f"  {word}", style), "" if is_shown else f": {escape_line_breaks(why)}"]


def preview_lines(approval: Row) -> list[list[Piece]]:
    """The preview as lines; the plain input for tools without a preview."""
    preview: Row = approval["preview"] or {"kind": "input"}
    return _PREVIEWS[preview["kind"]](approval, preview)


def indent(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def style_diff_line(line: str) -> Piece:
    """Style a line of a diff."""
    return "  " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def diff_lines(diff: str) -> list[list[Piece]]:
    return [[style_diff_line(line)] for line in diff.removesuffix("\n").split("\n")]


def _command(_approval: Row, preview: Row) -> list[list[Piece]]:
    names = preview["environment"]
    added: list[list[Piece]] = [[f"  with {escape_line_breaks(', '.join(names))} set"]] if names else []
    return [
        [("\n" + indent(preview["command"]) + "\n", "bold")],
        [f"  in {escape_line_breaks(preview['cwd'])}"],
        *added,
    ]


def _diff(_approval: Row, preview: Row) -> list[list[Piece]]:
    does = "deletes" if preview["deletes"] else "creates" if preview["creates"] else "changes"
    head = f"{does} {escape_line_breaks(preview['path'])}  +{preview['added']} \N{MINUS SIGN}{preview['removed']}"
    notes: list[list[Piece]] = [[(f"  {escape_line_breaks(note)}", "yellow")] for note in preview["notes"]]
    return [[(head, "bold")], *diff_lines(preview["diff"]), *notes]


def _path(_approval: Row, preview: Row) -> list[list[Piece]]:
    return [[("  " + escape_line_breaks(preview["path"]), "bold")]]


def _input(approval: Row, preview: Row) -> list[list[Piece]]:
    if "text" in preview:
        return _typed(preview)
    return [
        [f"  {escape_line_breaks(name)}: ", (escape_line_breaks(str(value)), "bold")]
        for name, value in approval["input"].items()
    ]


def _typed(preview: Row) -> list[list[Piece]]:
    """Text typed into a terminal. Keys are also listed by name: their escape sequences are hard to read."""
    text: str = preview["text"]
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


def _form(approval: Row, preview: Row) -> list[list[Piece]]:
    """A form, field by field, with the values filled in so far."""
    fields: Row = preview["schema"].get("properties") or {}
    needed: list[str] = preview["schema"].get("required") or []
    values: Row = approval["input"].get("values") or {}
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


def _field_type(field: Row) -> str:
    allowed: list[object] = field.get("enum") or []
    return " | ".join(map(str, allowed)) or str(field.get("type") or "text")


_PREVIEWS = {"command": _command, "diff": _diff, "path": _path, "input": _input, "form": _form}
