"""An approval in full: all a person needs to decide, rendered from what will run.

Owns how it looks. Does not know how it is answered.
"""

from handrail.cli.exact import warning
from handrail.cli.show import Piece, say
from handrail.cli.words import Row, caller, risk


def show_approval(asked: Row) -> None:
    """All a person needs to decide, from what will run and not from what the agent says of it."""
    word, style = risk(asked["risk"])
    say((f"{asked['tool']}", "bold"), " · ", (word, style), f" · {caller(asked)} · {asked['id']}")
    if asked["reasons"]:
        say((f"Why {word.lower()}: ", style), " · ".join(asked["reasons"]))
    say("Why you are asked: ", asked["why"])
    preview: Row = asked["preview"] or {"kind": "input"}
    shown = _SHOWN[preview["kind"]](asked, preview)
    for line in shown:
        say(*line)
    hidden = warning("".join(text for line in shown for text in map(_text, line)))
    if hidden:
        say((f"⚠ {hidden}", "bold red"))


def _command(_asked: Row, preview: Row) -> list[list[Piece]]:
    names = preview["environment"]
    added: list[list[Piece]] = [[f"  with {', '.join(names)} set"]] if names else []
    return [[("\n" + _indented(preview["command"]) + "\n", "bold")], [f"  in {preview['cwd']}"], *added]


def _diff(_asked: Row, preview: Row) -> list[list[Piece]]:
    does = "creates" if preview["creates"] else "changes"
    head = f"{does} {preview['path']}  +{preview['added']} \N{MINUS SIGN}{preview['removed']}"
    notes: list[list[Piece]] = [[(f"  {note}", "yellow")] for note in preview["notes"]]
    return [
        [(head, "bold")],
        *([_coloured(line)] for line in preview["diff"].removesuffix("\n").split("\n")),
        *notes,
    ]


def _path(_asked: Row, preview: Row) -> list[list[Piece]]:
    return [[("  " + preview["path"], "bold")]]


def _input(asked: Row, preview: Row) -> list[list[Piece]]:
    if "text" in preview:
        return _typed(preview)
    return [[f"  {name}: ", (str(value), "bold")] for name, value in asked["input"].items()]


def _typed(preview: Row) -> list[list[Piece]]:
    """Keys stand by their names too: the characters they send say little."""
    text: str = preview["text"]
    line = text.removesuffix("\r")
    enter = " ⏎" if line != text else ""
    keys: list[list[Piece]] = [[f"  keys {' '.join(preview['keys'])}"]] if preview["keys"] else []
    return [
        [("\n" + _indented(line.replace("\r", "⏎\n")) + enter + "\n", "bold")],
        *keys,
        [f"  typed into {preview['name']} ({preview['terminal']}) of {preview['owner']}"],
        [f"  read by {preview['foreground'] or 'whatever reads there'}, in {preview['cwd']}"],
    ]


_SHOWN = {"command": _command, "diff": _diff, "path": _path, "input": _input}


def _coloured(line: str) -> Piece:
    return "  " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]
