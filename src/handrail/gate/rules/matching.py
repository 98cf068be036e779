"""Matching of rules: which rules match a claim, and whether a rule is in force in a folder at a given time.

`Index` finds the matching rules without trying all. Equivalent tools share rules (`alike`). The effect of a match is
decided in policy.py.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from handrail.gate.rules.arguments import Arguments, TextGlob, check_arguments, fit_arguments
from handrail.gate.rules.patterns import CommandPattern, Glob, PathPattern, host_glob
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Action, Caller, Claim, Effect, Rule

FILES = ("read", "write", "delete")
"""Actions on a path."""


class Matcher:
    """One rule, compiled for one folder. The constructor raises BadPattern."""

    __slots__ = ("_agent", "_arguments", "_host", "_path", "_strict", "command", "rule")

    def __init__(self, rule: Rule, root: str | None, home: str) -> None:
        self.rule = rule
        self.command = None if rule.command is None else CommandPattern.of(rule.command)
        self._strict = rule.effect != "allow"
        # Strict rules ignore letter case, because some file systems do.
        self._path = None if rule.path is None else PathPattern.of(rule.path, root, home, folds=self._strict)
        self._host = None if rule.host is None else host_glob(rule.host)
        self._agent = None if rule.agent is None else Glob.of(rule.agent)
        check_arguments(dict(rule.arguments))
        self._arguments = {name: TextGlob.of(text, folds=self._strict) for name, text in rule.arguments}

    def effect_on(
        self, tool: str, claim: Claim, caller: Caller, server: str | None = None, arguments: Arguments = ()
    ) -> Effect | None:
        """The rule's effect on a claim, None if it does not match. An argument that cannot be compared asks."""
        if not self.matches(tool, claim, caller, server):
            return None
        fit = fit_arguments(self._arguments, arguments) if self._arguments else "yes"
        if fit == "uncertain" and self._strict:
            return "ask"
        return self.rule.effect if fit == "yes" else None

    def matches(self, tool: str, claim: Claim, caller: Caller, server: str | None = None) -> bool:
        """Whether it matches, apart from the arguments."""
        rule = self.rule
        if (
            rule.tool is not None
            and rule.tool != tool
            and rule.tool not in equivalent_tools(tool, claim.action)
        ):
            return False
        if rule.server is not None and not self._is_server(rule.server, tool, server):
            return False
        if rule.scope == "session" and rule.session != caller.key:
            return False
        if self._agent is not None and not self._agent.fits(caller.client):
            return False
        return (self._strict or not claim.opaque) and self._is_about(claim)

    def _is_server(self, name: str, tool: str, server: str | None) -> bool:
        """Whether the call is one of this server. An agent's own servers may have any name: only a strict rule matches."""
        return name == server and (self._strict or tool not in _ALIKE)

    def _is_about(self, claim: Claim) -> bool:
        if self.command is not None:
            return self._may_run(claim) and self._runs(self.command, claim.words)
        if self.rule.path is not None:
            return claim.action in FILES and self._touches(claim)
        if self._host is not None:
            return claim.action == "connect" and self._host.fits(claim.resource.casefold().rstrip("."))
        return self._strict or _is_common(claim)

    def _may_run(self, claim: Claim) -> bool:
        """Whether the claim is a command; for a strict rule, also a command typed into a terminal."""
        return bool(claim.words) and (claim.action == "run" or (self._strict and claim.action == "type"))

    def _runs(self, command: CommandPattern, words: tuple[str, ...]) -> bool:
        if not self._strict:
            return command.fits(words)
        # `/usr/bin/git push` matches a strict rule for `git push`, but not an allow rule.
        variants = (words, (_name(words[0]), *words[1:])) if "/" in words[0] else (words,)
        return any(command.may_fit(each) for one in variants for each in _spellings(one, len(command.words)))

    def _touches(self, claim: Claim) -> bool:
        if claim.action == "delete" and not self._strict and self.rule.tool is None:
            return False  # a rule that allows deletions must name the tool too
        return self._path is not None and self._path.fits(claim.resource)


class Index:
    """Rules indexed by subject. Results keep the order in which the rules were given."""

    def __init__(self, rules: Iterable[Rule], root: str | None, home: str) -> None:
        self._programs: dict[str, list[tuple[int, Matcher]]] = {}
        self._any_program: list[tuple[int, Matcher]] = []
        self._paths: list[tuple[int, Matcher]] = []
        self._hosts: list[tuple[int, Matcher]] = []
        self._whole: list[tuple[int, Matcher]] = []
        for place, rule in enumerate(rules):
            matcher = Matcher(rule, root, home)
            self._bucket(matcher).append((place, matcher))

    def matching(
        self, tool: str, claim: Claim, caller: Caller, server: str | None, arguments: Arguments = ()
    ) -> list[Rule]:
        """Every rule that matches this claim, in order, with the effect that it has on it."""
        matches = [
            (place, matcher.rule if effect == matcher.rule.effect else replace(matcher.rule, effect=effect))
            for place, matcher in self._candidates(claim)
            if (effect := matcher.effect_on(tool, claim, caller, server, arguments)) is not None
        ]
        if len(matches) > 1:
            matches.sort(key=_position)
        return [rule for _, rule in matches]

    def _bucket(self, matcher: Matcher) -> list[tuple[int, Matcher]]:
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
            entries = self._whole + self._any_program + self._programs.get(program, [])
            return entries + self._programs.get(_name(program), []) if "/" in program else entries
        if claim.action in FILES:
            return self._whole + self._paths
        return self._whole + self._hosts if claim.action == "connect" else self._whole


def find_server(claims: Iterable[Claim]) -> str | None:
    """The MCP server behind the gate that would do this; None if Handrail or the agent does it."""
    return next((claim.server for claim in claims if claim.server), None)


def find_arguments(claims: Iterable[Claim]) -> Arguments:
    """What the MCP server behind the gate is given, as rules match it."""
    return next((claim.arguments for claim in claims if claim.arguments), ())


def _spellings(words: tuple[str, ...], length: int) -> Iterator[tuple[str, ...]]:
    """The command without leading options, cut to `length`: `npm --prefix x publish` also as `npm publish`."""
    yield words
    at = 1
    while length > 1 and at < len(words) and words[at].startswith("-"):
        at += 1
        yield words[:1] + words[at : at + length]
        if at < len(words) and not words[at].startswith("-"):  # this may be the value of that option
            at += 1
            yield words[:1] + words[at : at + length]


def _is_common(claim: Claim) -> bool:
    """Whether a rule about a whole tool can allow this: deletions and files outside need a rule with a path."""
    return claim.action != "delete" and (claim.inside or claim.action not in FILES)


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _position(entry: tuple[int, Rule]) -> int:
    return entry[0]


AGENT_WORK = "agent_work"
"""The advisory tool, for work that an agent does itself."""
CLIENT_WORK = "client_work"
"""The same, for work that a client's hook reports."""
COMMANDS = "execute_command"
"""The tool whose `pattern` is a command; for all other tools it is a path."""
_WRITERS = ("write_file", "edit_file", "apply_diff")
_ADVISORY: dict[Action, tuple[str, ...]] = {
    "run": (COMMANDS,),
    "connect": (COMMANDS,),
    "read": ("read_file",),
    "write": _WRITERS,
    "delete": _WRITERS,
}
_ALIKE: dict[str, dict[Action, tuple[str, ...]]] = {
    AGENT_WORK: _ADVISORY,
    CLIENT_WORK: _ADVISORY,
    "read_text_file": {"read": ("read_file",)},
}


def equivalent_tools(tool: str, action: Action) -> tuple[str, ...]:
    """Other tools whose rules also match this action of `tool`."""
    tools = _ALIKE.get(tool)
    return () if tools is None else tools.get(action, ())


def common_tool(tool: str, action: Action) -> str:
    """The tool that a new rule should name, so that it matches all equivalent tools."""
    return COMMANDS if COMMANDS in equivalent_tools(tool, action) else tool


Origin = Literal["answer", "config", "project"]
"""Added by a person; from their config.toml; or from a project's own file."""
NOT_TRUSTED = "This folder is not trusted, so commands and changes in it ask."
DISABLED = "It is disabled."
CHANGED = "The project's file is not the one that was trusted, so what it allows does not hold."


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRule:
    """A rule and its origin."""

    rule: Rule
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderState:
    """A folder and its trust at one moment."""

    root: str | None
    """Its real path; None without a folder."""
    trusted: bool
    file_trusted: bool
    """The folder is trusted, and its config file is unchanged since then."""
    now: int
    """Milliseconds since 1970."""
    suspended: str = ""
    """Why no rule may allow anything, as a sentence; empty in normal operation."""


def explain_lapse(rule: Rule, origin: Origin, here: FolderState) -> str:  # noqa: PLR0911 - one return for each reason
    """Why a rule is not in force here and now, as a sentence; empty if it is."""
    if rule.disabled:
        return DISABLED
    if rule.expires_at is not None and rule.expires_at <= here.now:
        return "It expired."
    if rule.workspace is not None and rule.workspace != here.root:
        return f"It holds in {rule.workspace} only."
    if rule.effect != "allow":
        return ""
    if here.suspended:
        return here.suspended
    if origin == "project":
        return "" if here.file_trusted else CHANGED if here.trusted else NOT_TRUSTED
    # A rule that a person made for this folder needs no trust in the folder.
    return "" if here.trusted or rule.workspace is not None else NOT_TRUSTED
