"""Which rules are about a claim.

Owns what makes a rule fit one claim of one call, and an index that finds those that do without trying all. It does not
know what comes of a fit (rule.py), nor whether a rule holds here and now (force.py).

Tools that do the same thing by another door: a rule about one of them is about the others too.

Whether a rule holds in a folder at a moment.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from handrail.gate.rules.patterns import CommandPattern, Glob, PathPattern, host_glob
from handrail.store.values import Action, Caller, Claim, Rule

FILES = ("read", "write", "delete")
"""Actions on a path."""


class Matcher:
    """One rule, made ready for one folder. Raises BadPattern."""

    __slots__ = ("_agent", "_host", "_path", "_strict", "command", "rule")

    def __init__(self, rule: Rule, root: str | None, home: str) -> None:
        self.rule = rule
        self.command = None if rule.command is None else CommandPattern.of(rule.command)
        self._strict = rule.effect != "allow"
        # What may not be touched is not told apart by letter case: some file systems do not either.
        self._path = None if rule.path is None else PathPattern.of(rule.path, root, home, folds=self._strict)
        self._host = None if rule.host is None else host_glob(rule.host)
        self._agent = None if rule.agent is None else Glob.of(rule.agent)

    def matches(self, tool: str, claim: Claim, caller: Caller, server: str | None = None) -> bool:
        rule = self.rule
        if rule.tool is not None and rule.tool != tool and rule.tool not in alike(tool, claim.action):
            return False
        if rule.server is not None and rule.server != server:
            return False
        if rule.scope == "session" and rule.session != caller.key:
            return False
        if self._agent is not None and not self._agent.fits(caller.client):
            return False
        return (self._strict or not claim.opaque) and self._is_about(claim)

    def _is_about(self, claim: Claim) -> bool:
        if self.command is not None:
            return self._may_run(claim) and self._runs(self.command, claim.words)
        if self.rule.path is not None:
            return claim.action in FILES and self._touches(claim)
        if self._host is not None:
            return claim.action == "connect" and self._host.fits(claim.resource.casefold().rstrip("."))
        return self._strict or _is_common(claim)

    def _may_run(self, claim: Claim) -> bool:
        """A command; and, to whoever forbids it, one that is typed into a terminal."""
        return bool(claim.words) and (claim.action == "run" or (self._strict and claim.action == "type"))

    def _runs(self, command: CommandPattern, words: tuple[str, ...]) -> bool:
        if not self._strict:
            return command.fits(words)
        # `/usr/bin/git push` is a `git push` to whoever forbids it, but not to whoever allows it.
        named = (words, (_name(words[0]), *words[1:])) if "/" in words[0] else (words,)
        return any(command.may_fit(each) for one in named for each in _spellings(one, len(command.words)))

    def _touches(self, claim: Claim) -> bool:
        if claim.action == "delete" and not self._strict and self.rule.tool is None:
            return False  # who allows deletions must name the tool too
        return self._path is not None and self._path.fits(claim.resource)


class Index:
    """Rules by what they are about; within each effect in the order they were given."""

    def __init__(self, rules: Iterable[Rule], root: str | None, home: str) -> None:
        self._programs: dict[str, list[tuple[int, Matcher]]] = {}
        self._any_program: list[tuple[int, Matcher]] = []
        self._paths: list[tuple[int, Matcher]] = []
        self._hosts: list[tuple[int, Matcher]] = []
        self._whole: list[tuple[int, Matcher]] = []
        for place, rule in enumerate(rules):
            matcher = Matcher(rule, root, home)
            self._shelf(matcher).append((place, matcher))

    def matching(self, tool: str, claim: Claim, caller: Caller, server: str | None) -> list[Rule]:
        """Every rule about this claim."""
        found = [
            (place, matcher.rule)
            for place, matcher in self._candidates(claim)
            if matcher.matches(tool, claim, caller, server)
        ]
        if len(found) > 1:
            found.sort(key=_place)
        return [rule for _, rule in found]

    def _shelf(self, matcher: Matcher) -> list[tuple[int, Matcher]]:
        rule = matcher.rule
        if matcher.command is not None:
            program = matcher.command.program
            return self._any_program if program is None else self._programs.setdefault(program.casefold(), [])
        if rule.path is not None:
            return self._paths
        return self._hosts if rule.host is not None else self._whole

    def _candidates(self, claim: Claim) -> list[tuple[int, Matcher]]:
        if claim.words and claim.action in ("run", "type"):
            program = claim.words[0].casefold()
            found = self._whole + self._any_program + self._programs.get(program, [])
            return found + self._programs.get(_name(program), []) if "/" in program else found
        if claim.action in FILES:
            return self._whole + self._paths
        return self._whole + self._hosts if claim.action == "connect" else self._whole


def _spellings(words: tuple[str, ...], wanted: int) -> Iterator[tuple[str, ...]]:
    """The same command without options before what it is told to do: `npm --prefix x publish` is an `npm publish`."""
    yield words
    at = 1
    while wanted > 1 and at < len(words) and words[at].startswith("-"):
        at += 1
        yield words[:1] + words[at : at + wanted]
        if at < len(words) and not words[at].startswith("-"):  # it may be that option's value
            at += 1
            yield words[:1] + words[at : at + wanted]


def _is_common(claim: Claim) -> bool:
    """What a rule about all of a tool may allow: deletions, and files outside, need a path."""
    return claim.action != "delete" and (claim.inside or claim.action not in FILES)


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _place(found: tuple[int, Rule]) -> int:
    return found[0]


AGENT_WORK = "agent_work"
"""The tool by which agents ask about work of their own."""
COMMANDS = "execute_command"
"""The tool whose `pattern` is a command; that of any other is a path."""
_WRITERS = ("write_file", "edit_file", "apply_diff")
_ALIKE: dict[str, dict[Action, tuple[str, ...]]] = {
    AGENT_WORK: {
        "run": (COMMANDS,),
        "connect": (COMMANDS,),
        "read": ("read_file",),
        "write": _WRITERS,
        "delete": _WRITERS,
    },
    "read_text_file": {"read": ("read_file",)},
}


def alike(tool: str, action: Action) -> tuple[str, ...]:
    """The other tools whose rules are about this action of a tool."""
    found = _ALIKE.get(tool)
    return () if found is None else found.get(action, ())


def commonly(tool: str, action: Action) -> str:
    """The tool that a new rule about this had best name, so that it holds for all that are alike."""
    return COMMANDS if COMMANDS in alike(tool, action) else tool


Origin = Literal["answer", "config", "project"]
"""Made by a person for good or for a session; in their config.toml; or in a project's own file."""
UNTRUSTED = "This folder is not trusted, so whatever acts in it asks."
CHANGED = "The project's file is not the one that was trusted, so what it allows does not hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A rule and where it came from."""

    rule: Rule
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A folder at a moment."""

    root: str | None
    """Its real path; None where there is none."""
    trusted: bool
    file_trusted: bool
    """The folder is trusted, and its file is the very one that a person saw then."""
    now: int
    """Milliseconds since 1970."""


def lapse(rule: Rule, origin: Origin, here: Here) -> str:
    """Why a rule does not hold here and now, as a sentence; empty when it does."""
    if rule.expires_at is not None and rule.expires_at <= here.now:
        return "It expired."
    if rule.workspace is not None and rule.workspace != here.root:
        return f"It holds in {rule.workspace} only."
    if rule.effect != "allow":
        return ""
    if origin == "project":
        return "" if here.file_trusted else CHANGED if here.trusted else UNTRUSTED
    # What a person made for this very folder needs no trust in it.
    return "" if here.trusted or rule.workspace is not None else UNTRUSTED
