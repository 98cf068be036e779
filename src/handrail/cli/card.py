"""An approval in full: all a person needs to decide, rendered from what will run.

Owns how it looks. Does not know how it is answered.
"""

import re
import shlex

from handrail.cli.exact import flat, warning
from handrail.cli.parts import parts
from handrail.cli.preview import indented, previewed
from handrail.cli.show import Piece, say
from handrail.cli.words import Row, caller, effect, elapsed, risk

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
"""Names under which agents speak about a call; never what will run."""


def show_approval(asked: Row) -> None:
    """All a person needs to decide, from what will run and not from what the agent says of it."""
    word, style = risk(asked["risk"])
    say((asked["tool"], "bold"), " · ", (word, style), flat(f" · {caller(asked)} · {asked['id']}"))
    for line in (*_about(asked), *_weighed(asked), ["Why you are asked: ", flat(asked["why"])]):
        say(*line)
    for remark in _remarks(asked):
        say((remark, "dim"))
    _show_what(asked)


def show_edit(asked: Row, edit: Row) -> None:
    """What a person's edit comes to: weighed anew, with all its parts."""
    word, style = risk(edit["risk"])
    say(("As you edited it", "bold"), " · ", (word, style), f" · {asked['id']}")
    for line in _weighed(edit):
        say(*line)
    say("Decided anew: ", effect(edit["effect"]), flat(f". {edit['why']}"))
    _show_what({**asked, **edit})
    say("The agent will be told: ", indented(edit["tells"]).lstrip())


def _show_what(asked: Row) -> None:
    shown = previewed(asked)
    for line in (*shown, *parts(asked)):
        say(*line)
    hidden = warning("".join(text for line in shown for text in map(_text, line)))
    if hidden:
        say((f"⚠ {hidden}", "bold red"))


def _about(asked: Row) -> list[list[Piece]]:
    """What the tool is for, how long such calls take, and what the agent says of this one."""
    purpose = flat(re.split(r"(?<=\.)\s", asked["description"], maxsplit=1)[0])
    usual: Row | None = asked["usual"]
    took = f"usually {elapsed(usual['median_ms'])}" if usual else ""
    about = " · ".join(filter(None, [purpose, took]))
    says = [flat(value) for name, value in asked["input"].items() if _is_prose(name, value)]
    return [
        *([[(about, "dim")]] if about else []),
        *([("Agent says: ", "dim"), f"“{each}”"] for each in says),
    ]


def _is_prose(name: str, value: object) -> bool:
    return name.lower() in _PROSE and isinstance(value, str) and bool(value.strip())


def _weighed(asked: Row) -> list[list[Piece]]:
    word, style = risk(asked["risk"])
    reasons = flat(" · ".join(asked["reasons"]))
    return [[(f"Why {word.lower()}: ", style), reasons]] if reasons else []


def _remarks(asked: Row) -> list[str]:
    folder: str | None = asked["caller"]["workspace"]
    untrusted = folder is not None and not asked["trusted"]
    trust = f"Not trusted: `handrail trust {shlex.quote(folder or '')}` trusts this folder."
    gone = "The client is gone; what comes of it is kept for when it asks."
    return [*([flat(trust)] if untrusted else []), *([gone] if asked["client_gone"] else [])]


def _text(piece: Piece) -> str:
    return piece if isinstance(piece, str) else piece[0]
