"""Answers as they are sent: with the digest of what was shown, with an edit, with rules that go along.

Owns which rules come of `session` and `always`, and telling which were made. Does not know how a person is asked, and
decides nothing: the daemon weighs an edit and checks a rule.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from handrail.cli.failure import Code, Failure
from handrail.cli.link import Link
from handrail.cli.rule_words import flattened
from handrail.cli.words import Row

Scope = Literal["session", "project", "user"]

NO_RULE = (
    "No rule can decide this one: what is not fully understood, and places that are never allowed without a person, "
    "always ask."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a person would have instead, and what it comes to as the daemon weighed it."""

    changes: Row
    """`input`, or the `content` of the file."""
    view: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a person says to a question they have seen."""

    kind: Literal["allow", "deny"]
    reason: str = ""
    edit: Edit | None = None
    rules: tuple[Row, ...] = ()


def send(link: Link, asked: Row, answer: Answer) -> tuple[Row, list[Row]]:
    """The question as it is then, and the rules made. Raises Failure: another was first, or it is out of date."""
    seq: int = link.get("state")["seq"] if answer.rules else 0
    body: Row = {"answer": answer.kind, "digest": asked["digest"], "reason": answer.reason}
    if answer.edit is not None:
        body |= {**answer.edit.changes, "digest": answer.edit.view["digest"]}
    if answer.rules:
        body["rule"] = list(answer.rules)
    answered: Row = link.post("approvals", asked["id"], "answer", body=body)
    return answered, _made(link, asked["id"], seq) if answer.rules else []


def weigh(link: Link, asked: Row, changes: Row) -> Edit:
    """What an edit comes to. Raises Failure when it cannot be."""
    return Edit(changes=changes, view=link.post("approvals", asked["id"], "edit", body=changes))


def offered(asked: Row) -> list[Row]:
    """The first suggestion for each part of a question: the rules it takes for this not to be asked again."""
    covered: set[int] = set()
    found: list[Row] = []
    for suggestion in asked["suggestions"]:
        if not suggestion["claims"] or not covered.issuperset(suggestion["claims"]):
            found.append(suggestion)
        covered.update(suggestion["claims"])
    return found


def beyond(asked: Row) -> list[str]:
    """Parts that ask and for which no rule is offered: such a call will be asked about again."""
    covered = {place for each in offered(asked) for place in each["claims"]}
    asking = (verdict["claim"] for verdict in asked["verdicts"] if verdict["effect"] != "allow")
    return [asked["claims"][place]["resource"] for place in asking if place not in covered]


def suggested(asked: Row, scope: Scope, expires_in: int | None = None) -> tuple[Row, ...]:
    """A rule for each part. Raises Failure where no rule can decide it."""
    found = tuple(reaching(each["rule"], asked, scope, expires_in) for each in offered(asked))
    if not found:
        raise Failure(f"{NO_RULE} `handrail approve {asked['id']}` allows it once.")
    return found


def patterned(asked: Row, pattern: str, scope: Scope, expires_in: int | None = None) -> Row:
    """A rule of what a person wrote, about the same kind of thing that is suggested."""
    first = offered(asked)[:1]
    rule = with_pattern(first[0]["rule"], pattern) if first else {"tool": asked["tool"], "pattern": pattern}
    return reaching(rule, asked, scope, expires_in)


def with_pattern(rule: Row, pattern: str) -> Row:
    about = next((name for name in ("command", "path", "host") if rule[name]), "pattern")
    return {**rule, about: pattern}


def reaching(rule: Row, asked: Row, scope: Scope, expires_in: int | None) -> Row:
    """The same rule, as far and as long as is wanted."""
    workspace = None if scope == "user" else asked["caller"]["workspace"]
    return {**rule, "scope": scope, "workspace": workspace, "expires_in": expires_in}


def still_asks(link: Link, asked: Row, rule: Row) -> str:
    """Why such a call would be asked about all the same, had this rule been there; empty when it would not."""
    caller: Row = asked["caller"]
    tried = {**rule, "scope": "project" if rule["scope"] == "session" else rule["scope"]}
    body: dict[str, Any] = {
        "tool": asked["tool"],
        "input": asked["input"],
        "workspace": caller["workspace"],
        "agent": caller["client"] or None,
        "rule": tried,
    }
    try:
        told: Row = link.post("rules", "test", body=body)
    except Failure as problem:
        if problem.code is Code.NO_DAEMON:
            raise
        return ""  # it cannot be tried; whether it can be made, the answer will tell
    return "" if told["effect"] == "allow" else told["why"]


def _made(link: Link, approval: str, seq: int) -> list[Row]:
    """The rules that were made with an answer, as they hold now."""
    ids: set[str] = set()
    with suppress(Failure):  # it is answered; that we cannot tell more does not change it
        entries: list[Row] = link.get("events", after=seq)["entries"]
        while entries:
            ids |= {each["event"]["rule"]["id"] for each in entries if _is_of(each["event"], approval)}
            entries = link.get("events", after=entries[-1]["seq"])["entries"]
        return [flattened(view) for view in link.get("rules")["rules"] if view["rule"]["id"] in ids]
    return []


def _is_of(event: Row, approval: str) -> bool:
    return event["kind"] == "RuleAdded" and event["approval"] == approval
