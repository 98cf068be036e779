"""Validation of rules: from a person's input or a file's `[[rules]]` section to a checked `Rule`.

Checks the patterns, rejects rules that are empty or too broad, and runs the rule's own examples (`match`, `not_match`).
It stores no rules (rules.py).
"""

import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import date, datetime, time, timedelta

from handrail.config import RuleSection
from handrail.gate.rules.matching import COMMANDS, Matcher
from handrail.gate.rules.patterns import BadPattern, CommandPattern
from handrail.gate.rules.policy import describe_rule
from handrail.gate.shell.shell_parser import parse
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Action, Caller, Claim, Rule, Scope

_NOBODY = Caller(door="cli", client="", key="", workspace=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBase:
    """The folders that paths in a rule are relative to."""

    root: str | None
    """Real path of the folder for relative paths; None for a rule that applies in every folder."""
    home: str

    @property
    def base(self) -> str:
        """`root`, or a placeholder folder for the examples of a rule that applies in every folder."""
        return self.root or "/workspace"


def find_failed_example(matcher: Matcher, ground: RuleBase) -> str:
    """Error sentence for the first example that fails; empty if all pass."""
    rule = matcher.rule
    examples = [*((each, True) for each in rule.match), *((each, False) for each in rule.not_match)]
    if examples and rule.command is None and rule.path is None and rule.host is None:
        return "A rule about all of a tool takes no examples. Remove `match` and `not_match`."
    problems = (_check_example(matcher, example, expected, ground) for example, expected in examples)
    return next((problem for problem in problems if problem), "")


def _check_example(matcher: Matcher, example: str, expected: bool, ground: RuleBase) -> str:
    claims = list(_claims_of(matcher.rule, example, ground))
    tool = matcher.rule.tool or COMMANDS
    asker = replace(_NOBODY, key=matcher.rule.session or "", client=matcher.rule.agent or "")
    fits = [matcher.matches(tool, claim, asker, matcher.rule.server) for claim in claims]
    covered = any(fits) and (all(fits) or matcher.rule.effect != "allow")
    if covered == expected:
        return ""
    listed, does = ("match", "does not match") if expected else ("not_match", "matches")
    details = _describe_claims(matcher.rule, claims, fits)
    return f"`{listed}` has the example `{example}`, but the rule {does} it: {details}"


def _claims_of(rule: Rule, example: str, ground: RuleBase) -> Iterable[Claim]:
    """The claims of a call that does what the example shows."""
    if rule.command is not None:
        line = parse(example)
        for part in line.parts:
            yield Claim(action="run", resource=part.text, inside=True, words=part.words)
        for opaque in line.opaque:
            yield Claim(
                action="run", resource=opaque.text, inside=True, words=opaque.words, opaque=opaque.why
            )
    elif rule.path is not None:
        base = "" if example.startswith("/") else f"{ground.base}/"
        yield _example("write", ground.home + example[1:] if example.startswith("~/") else base + example)
    elif rule.host is not None:
        yield _example("connect", example)


def _example(action: Action, resource: str) -> Claim:
    return Claim(action=action, resource=resource, inside=True)


def _describe_claims(rule: Rule, claims: list[Claim], fits: list[bool]) -> str:
    if not claims:
        return "there is no command in it."
    details = [_describe_claim(claim, fit) for claim, fit in zip(claims, fits, strict=True)]
    return f"{'; '.join(details)}. The rule is about {describe_rule(rule)}."


def _describe_claim(claim: Claim, fit: bool) -> str:
    if claim.opaque:
        return f"`{claim.resource}` is not fully understood ({claim.opaque.rstrip('.')})"
    return f"`{claim.resource}` {'fits' if fit else 'does not fit'}"


class BadRule(Exception):
    """An invalid rule; the message explains why and how to fix it."""


def check_rule(rule: Rule, ground: RuleBase) -> Rule:
    """Validate a rule and its examples; returns the rule. Raises BadRule."""
    try:
        matcher = Matcher(rule, ground.base, ground.home)
    except BadPattern as problem:
        raise BadRule(str(problem)) from None
    if problem := _check_subject(rule, matcher.command) or _check_scope(rule):
        raise BadRule(problem)
    if problem := find_failed_example(matcher, ground):
        raise BadRule(problem)
    return rule


def place_pattern(
    tool: str | None, pattern: str | None, command: str | None, path: str | None
) -> tuple[str | None, str | None]:
    """The command and the path of a rule: `pattern` is a command or a path, depending on the tool. Raises BadRule."""
    if pattern is None:
        return command, path
    if command is not None or path is not None:
        raise BadRule("A rule has a pattern, or a command, or a path; not two of them.")
    if tool is None:
        raise BadRule(
            "A pattern needs a tool to be about. Name the tool, or write `command` or `path` instead."
        )
    return (pattern, None) if tool == COMMANDS else (None, pattern)


def rule_from_section(section: RuleSection, source: str, ground: RuleBase, scope: Scope) -> Rule:
    """Build the rule of one `[[rules]]` section of a file. Raises BadRule."""
    command, path = place_pattern(section.tool, section.pattern, section.command, section.path)
    rule = Rule(
        id="",
        effect=section.effect,
        tool=section.tool,
        command=command,
        path=path,
        host=section.host,
        server=section.server,
        arguments=as_arguments(section.arguments),
        agent=section.agent,
        scope=scope,
        workspace=ground.root if scope == "project" else None,
        expires_at=_moment(section.expires),
        note=section.note,
        match=section.match,
        not_match=section.not_match,
    )
    return check_rule(replace(rule, id=_id_of(rule), source=source), ground)


def as_arguments(arguments: Mapping[str, str | int | bool]) -> tuple[tuple[str, str], ...]:
    """Arguments of a rule in an order that does not change, each as the text that it is compared with."""
    texts = {name: json.dumps(text) if isinstance(text, int) else text for name, text in arguments.items()}
    return tuple(sorted(texts.items()))


def _id_of(rule: Rule) -> str:
    """Id from a hash of the content: stable over restarts and when the rule moves within its file."""
    fields = {name: value for name, value in asdict(rule).items() if name != "arguments" or value}
    content = json.dumps(fields, sort_keys=True)
    return f"r{hashlib.sha256(content.encode()).hexdigest()[:10]}"


def _moment(expires: datetime | date | None) -> int | None:
    """Expiry in milliseconds since 1970; a date expires at the end of that day, local time."""
    if expires is None:
        return None
    if not isinstance(expires, datetime):
        expires = datetime.combine(expires + timedelta(days=1), time.min)
    return int(expires.astimezone().timestamp() * 1000)


def _check_subject(rule: Rule, command: CommandPattern | None) -> str:
    """Error sentence for a rule without a subject, with two, or too broad; empty if it is valid."""
    about = [name for name in ("command", "path", "host") if getattr(rule, name) is not None]
    if rule.server is not None and (rule.command is not None or rule.host is not None):
        return "A rule about a server takes no command and no host. Name one of its tools, as `server__tool`, or a path."
    if rule.arguments and (about or (rule.server is None and "__" not in (rule.tool or ""))):
        return "A rule about arguments names a tool of an MCP server, as `server__tool`, or a server, and nothing else."
    if len(about) > 1:
        return f"A rule is about one thing, not {' and '.join(about)}. Make two rules."
    if not about and rule.tool is None and rule.agent is None and rule.server is None:
        return "The rule does not say what it is about. Name a tool, a command, a path, a host, a server or an agent."
    if rule.effect != "allow":
        return ""
    return (
        _check_breadth(rule, command)
        if about or rule.tool is not None or rule.server is not None
        else "This would allow everything. Name a tool too."
    )


def _check_breadth(rule: Rule, command: CommandPattern | None) -> str:
    if command is not None and command.program is None:
        return (
            f"`{rule.command}` would allow many programs. Name one: a rule that allows begins with a program."
        )
    if command is not None and not _stands_alone(command):
        why = f"`{command.program}` is there to start other commands, so that no rule can allow it by its own name."
        return f"{why} Write the rule about what it starts."
    if rule.path is not None and rule.path.startswith("/") and rule.path.strip("/*") == "":
        return f"`{rule.path}` would allow the whole machine. Name a folder."
    return ""


def _stands_alone(command: CommandPattern) -> bool:
    """Whether the parser keeps these words as a command: not so for a wrapper, which becomes the command it starts."""
    words = tuple("x".join(word.pieces) for word in command.words)
    lines = (shlex.join(words), shlex.join((*words, "x")))
    return any(part.words[: len(words)] == words for line in lines for part in parse(line).parts)


def _check_scope(rule: Rule) -> str:
    if rule.scope == "project" and rule.workspace is None:
        return "A rule of scope project needs a folder. Name it as `workspace`, or choose scope user."
    if rule.scope == "session" and rule.session is None:
        return "A rule of scope session needs a client it is about. Make it from a question of that client's."
    return ""
