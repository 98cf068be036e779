"""What each key answers, and how the keys are shown.

Pure. High risk, and a risk we do not know, is allowed by a capital A alone, whatever else is pressed before it.
"""

from typing import Literal

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


def choice(key: str, risk: str) -> Choice | None:
    """What a key means; None when it means nothing here."""
    return "allow" if allows(key, risk) else _KEYS.get(key)


def allows(key: str, risk: str) -> bool:
    return key == "A" or (key == "a" and risk in ("low", "medium"))


def keys(risk: str, *, ruled: bool, edited: bool, editable: bool = True) -> str:
    """The keys of a question; `ruled` where a rule can decide it, `edited` once a person changed it, if they may."""
    allow = "[a]llow" if risk in ("low", "medium") else "[A]llow (Shift)"
    lasting = "   [s]ession   [r]ule…" if ruled and not edited else ""
    edit = "   [e]dit again   [o]riginal" if edited else "   [e]dit…" if editable else ""
    return (
        f"{allow} {'as edited' if edited else 'once'}{lasting}{edit}   [d]eny   [D]eny with a reason   [n]ext"
    )
