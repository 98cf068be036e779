"""What will run, be written, be opened or be typed, whole and as it is.

Owns how each kind of preview looks. Does not know who asks, nor what is decided.
"""

from handrail.cli.exact import flat
from handrail.cli.show import Piece
from handrail.cli.words import Row


def previewed(asked: Row) -> list[list[Piece]]:
    """The lines of what is asked, from what will run; from the input, where a tool shows nothing."""
    preview: Row = asked["preview"] or {"kind": "input"}
    return _SHOWN[preview["kind"]](asked, preview)


def indented(text: str) -> str:
    return "\n".join("  " + line for line in text.split("\n"))


def coloured(line: str) -> Piece:
    """A line of a diff."""
    return "  " + line, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def diff_lines(diff: str) -> list[list[Piece]]:
    return [[coloured(line)] for line in diff.removesuffix("\n").split("\n")]


def _command(_asked: Row, preview: Row) -> list[list[Piece]]:
    names = preview["environment"]
    added: list[list[Piece]] = [[f"  with {flat(', '.join(names))} set"]] if names else []
    return [[("\n" + indented(preview["command"]) + "\n", "bold")], [f"  in {flat(preview['cwd'])}"], *added]


def _diff(_asked: Row, preview: Row) -> list[list[Piece]]:
    does = "deletes" if preview["deletes"] else "creates" if preview["creates"] else "changes"
    head = f"{does} {flat(preview['path'])}  +{preview['added']} \N{MINUS SIGN}{preview['removed']}"
    notes: list[list[Piece]] = [[(f"  {flat(note)}", "yellow")] for note in preview["notes"]]
    return [[(head, "bold")], *diff_lines(preview["diff"]), *notes]


def _path(_asked: Row, preview: Row) -> list[list[Piece]]:
    return [[("  " + flat(preview["path"]), "bold")]]


def _input(asked: Row, preview: Row) -> list[list[Piece]]:
    if "text" in preview:
        return _typed(preview)
    return [[f"  {flat(name)}: ", (flat(str(value)), "bold")] for name, value in asked["input"].items()]


def _typed(preview: Row) -> list[list[Piece]]:
    """Keys stand by their names too: the characters they send say little."""
    text: str = preview["text"]
    line = text.removesuffix("\r")
    enter = " ⏎" if line != text else ""
    keys: list[list[Piece]] = [[f"  keys {' '.join(preview['keys'])}"]] if preview["keys"] else []
    return [
        [("\n" + indented(line.replace("\r", "⏎\n")) + enter + "\n", "bold")],
        *keys,
        [flat(f"  typed into {preview['name']} ({preview['terminal']}) of {preview['owner']}")],
        [flat(f"  read by {preview['foreground'] or 'whatever reads there'}, in {preview['cwd']}")],
    ]


def _form(asked: Row, preview: Row) -> list[list[Piece]]:
    """What is asked, field by field, with what is filled in so far."""
    fields: Row = preview["schema"].get("properties") or {}
    needed: list[str] = preview["schema"].get("required") or []
    values: Row = asked["input"].get("values") or {}
    lines: list[list[Piece]] = [[("\n" + indented(preview["message"]) + "\n", "bold")]]
    for name, field in fields.items():
        about = f"  {flat(str(field.get('title') or name))} ({_sort(field)}{', needed' if name in needed else ''}): "
        lines.append([flat(about), (flat(str(values[name])) if name in values else "—", "bold")])
    return [*lines, [("Fill it in by an edit: `values` of the input.", "dim")]]


def _sort(field: Row) -> str:
    allowed: list[object] = field.get("enum") or []
    return " | ".join(map(str, allowed)) or str(field.get("type") or "text")


_SHOWN = {"command": _command, "diff": _diff, "path": _path, "input": _input, "form": _form}
