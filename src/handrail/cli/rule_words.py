"""Rules as the command line speaks of them: cells of a table, sentences, and the command that would make one.

Pure. Does not know how a rule decides, nor where the facts come from.
"""

import shlex
from datetime import UTC, datetime

from handrail.cli.exact import exact_line
from handrail.cli.show import Piece
from handrail.cli.words import Row, ago, count, effect

WIDE = 120
"""Columns from which a table of rules has one for each thing there is to know."""
_ALLOWED = {"allow": "allows", "ask": "asks about", "deny": "refuses"}


def flattened(view: Row) -> Row:
    """A rule with what is known of it, all on one level."""
    return {**view["rule"], **{name: value for name, value in view.items() if name != "rule"}}


def columns(wide: bool) -> tuple[str, ...]:
    if wide:
        return ("ID", "EFFECT", "SCOPE", "HITS", "LAST USE", "SOURCE", "WHAT")
    return ("ID", "EFFECT", "USED", "WHAT")


def cells(row: Row, now: int, wide: bool) -> tuple[Piece, ...]:
    """Of a rule, as `flattened` gives it; where there is little room, its source stands with what it is about."""
    last = ago(row["last_used_at"], now) if row["last_used_at"] or not row["builtin"] else ""
    hits = str(row["hits"]) if row["hits"] else ""
    style = "" if row["in_force"] else "dim"
    if not wide:
        used = f"{hits}, {last}" if hits else last
        return row["id"], effect(row["effect"]), used, (f"{what(row)} · {source(row)}", style)
    scope = "" if row["builtin"] else row["scope"]
    return row["id"], effect(row["effect"]), scope, hits, last, source(row), (what(row), style)


def what(row: Row) -> str:
    """What it is about, until when, why, and whether it holds."""
    told = [
        row["words"],
        f"until {day(row['expires_at'])}" if row["expires_at"] else "",
        f"({row['note']})" if row["note"] and not row["builtin"] else "",
        f"· not in force: {row['says']}" if not row["in_force"] else "",
    ]
    return " ".join(filter(None, told))


def source(row: Row) -> str:
    """A file and its line; or where the person sat who made it."""
    by = (row["added_by"] or "").removeprefix("a person on the ")
    return row["source"] or (f"{by}, {day(row['added_at'])}" if row["added_at"] else by)


def made(row: Row) -> tuple[Piece, ...]:
    """What a new rule does, and how it is taken back."""
    does = f" {_ALLOWED[row['effect']]} {what(row)}. "
    return "Rule ", (row["id"], "bold"), exact_line(does), f"`handrail rules remove {row['id']}` removes it."


def judged(proposed: Row) -> str:
    """What a rule would have done; empty where there is no past to tell it by."""
    told: list[str] = []
    if proposed["calls"]:
        told.append(f"matches {proposed['matches']} of the last {count(proposed['calls'], 'call')}")
    if proposed["prompts"]:
        told.append(
            f"would have decided {proposed['decided']} of your last {count(proposed['prompts'], 'prompt')}"
        )
    return "It " + " and ".join(told) + "." if told else ""


def command(body: Row) -> str:
    """The command that makes a rule of a suggestion."""
    about = body["command"] or body["pattern"]
    options = [(name, body[name]) for name in ("path", "host", "agent") if body[name]]
    tool = body["tool"] if body["tool"] != "execute_command" or about is None else None
    words = ["handrail", "rules", "add", body["effect"]]
    words += [about] if about else []
    for name, value in [*([("tool", tool)] if tool else []), *options]:
        words += [f"--{name}", value]
    words += ["--user"] if body["scope"] == "user" else ["--workspace", body["workspace"] or "."]
    return shlex.join(words)


def day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
