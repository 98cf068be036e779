"""Making a rule of what somebody wrote: a person on a card, or a file.

Owns what a rule must say to be one, its id, and the check of its examples. It keeps no rules (rules.py).
"""

import hashlib
import json
import shlex
from dataclasses import asdict, replace
from datetime import date, datetime, time, timedelta

from handrail.config import RuleSection
from handrail.gate.rules.alike import COMMANDS
from handrail.gate.rules.command_pattern import CommandPattern
from handrail.gate.rules.example import Ground, unmet
from handrail.gate.rules.matching import Matcher
from handrail.gate.rules.pattern import BadPattern
from handrail.gate.shell.shell import parse
from handrail.store.value import Rule, Scope

NO_SERVERS = "Handrail does not call other MCP servers yet, so a rule with `server` would never match. Remove `server`."


class BadRule(Exception):
    """A rule that cannot be; the sentence says why and what to do."""


def checked(rule: Rule, ground: Ground) -> Rule:
    """The rule, if it makes sense and its examples hold. Raises BadRule."""
    try:
        matcher = Matcher(rule, ground.base, ground.home)
    except BadPattern as problem:
        raise BadRule(str(problem)) from None
    if problem := _nonsense(rule, matcher.command) or _homeless(rule):
        raise BadRule(problem)
    if problem := unmet(matcher, ground):
        raise BadRule(problem)
    return rule


def placed(
    tool: str | None, pattern: str | None, command: str | None, path: str | None
) -> tuple[str | None, str | None]:
    """The command and the path that are meant, once `pattern` is known to be one of them. Raises BadRule."""
    if pattern is None:
        return command, path
    if command is not None or path is not None:
        raise BadRule("A rule has a pattern, or a command, or a path; not two of them.")
    if tool is None:
        raise BadRule(
            "A pattern needs a tool to be about. Name the tool, or write `command` or `path` instead."
        )
    return (pattern, None) if tool == COMMANDS else (None, pattern)


def from_file(section: RuleSection, source: str, ground: Ground, scope: Scope) -> Rule:
    """The rule that a file's `[[rules]]` says. Raises BadRule."""
    command, path = placed(section.tool, section.pattern, section.command, section.path)
    rule = Rule(
        id="",
        effect=section.effect,
        tool=section.tool,
        command=command,
        path=path,
        host=section.host,
        server=section.server,
        agent=section.agent,
        scope=scope,
        workspace=ground.root if scope == "project" else None,
        expires_at=_moment(section.expires),
        note=section.note,
        match=section.match,
        not_match=section.not_match,
    )
    return checked(replace(rule, id=_id_of(rule), source=source), ground)


def _id_of(rule: Rule) -> str:
    """The same for the same content, over restarts and wherever it stands in its file."""
    content = json.dumps(asdict(rule), sort_keys=True)
    return f"r{hashlib.sha256(content.encode()).hexdigest()[:10]}"


def _moment(expires: datetime | date | None) -> int | None:
    """Milliseconds since 1970; a day ends with its last moment here."""
    if expires is None:
        return None
    if not isinstance(expires, datetime):
        expires = datetime.combine(expires + timedelta(days=1), time.min)
    return int(expires.astimezone().timestamp() * 1000)


def _nonsense(rule: Rule, command: CommandPattern | None) -> str:
    """Why it can mean nothing, or too much; empty when it can be meant."""
    about = [name for name in ("command", "path", "host") if getattr(rule, name) is not None]
    if rule.server is not None:
        return NO_SERVERS
    if len(about) > 1:
        return f"A rule is about one thing, not {' and '.join(about)}. Make two rules."
    if not about and rule.tool is None and rule.agent is None:
        return "The rule does not say what it is about. Name a tool, a command, a path, a host or an agent."
    if rule.effect != "allow":
        return ""
    return (
        _too_much(rule, command)
        if about or rule.tool is not None
        else "This would allow everything. Name a tool too."
    )


def _too_much(rule: Rule, command: CommandPattern | None) -> str:
    if command is not None and command.program is None:
        return (
            f"`{rule.command}` would allow many programs. Name one: a rule that allows begins with a program."
        )
    if command is not None and not _stands_alone(command):
        told = f"`{command.program}` is there to start other commands, so that no rule can allow it by its own name."
        return f"{told} Write the rule about what it starts."
    if rule.path is not None and rule.path.startswith("/") and rule.path.strip("/*") == "":
        return f"`{rule.path}` would allow the whole machine. Name a folder."
    return ""


def _stands_alone(command: CommandPattern) -> bool:
    """Whether a line that begins like this is judged by these very words, and not by what they start."""
    words = tuple("x".join(word.pieces) for word in command.words)
    lines = (shlex.join(words), shlex.join((*words, "x")))
    return any(part.words[: len(words)] == words for line in lines for part in parse(line).parts)


def _homeless(rule: Rule) -> str:
    if rule.scope == "project" and rule.workspace is None:
        return "A rule of scope project needs a folder. Name it as `workspace`, or choose scope user."
    if rule.scope == "session" and rule.session is None:
        return "A rule of scope session needs a client it is about. Make it from a question of that client's."
    return ""
