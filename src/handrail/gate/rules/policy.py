"""The policy: decides about a call from the rules in force in one folder, the built-in rules and the default.

Pure: no files, no clock; rules.py selects the rules in force. Order for each claim: deny rules, floors, ask rules,
allow rules, built-in allows, late built-ins, default. Also describes rules in words for people.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence

from handrail.gate.risk import assess
from handrail.gate.rules.arguments import Arguments
from handrail.gate.rules.matching import NOT_TRUSTED, Index, find_arguments, find_server
from handrail.lazy_dataclass import dataclass
from handrail.store.values import Caller, Claim, Effect, Risk, Rule, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSettings:
    """Settings and trust of a folder, for the built-in rules."""

    default: Effect = "ask"
    human_in_the_loop: bool = True
    allow_reading_commands: bool = True
    trusted: bool = False
    anywhere: bool = False
    """For lists that are not about one folder; then `trusted` is meaningless."""
    distrust: str = NOT_TRUSTED
    """Why the folder is not trusted, as a sentence."""


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """One claim with its caller and settings, as input to the built-in rules."""

    claim: Claim
    caller: Caller
    here: FolderSettings

    @property
    def level(self) -> Risk:
        return assess((self.claim,)).level


@dataclass(frozen=True, slots=True, kw_only=True)
class Builtin:
    """A built-in rule."""

    name: str
    effect: Effect
    words: str
    why: str
    applies: Callable[[ClaimCase], bool]
    idle: Callable[[FolderSettings], str] = lambda _: ""
    """Why it never applies under these settings, as a sentence; empty if it can apply."""

    @property
    def rule(self) -> Rule:
        """The same as a `Rule`, for lists."""
        return Rule(id=self.name, effect=self.effect, source="built in", note=self.words)


OPAQUE = Builtin(
    name="not understood",
    effect="ask",
    words="a command, or a part of one, that cannot be analysed fully",
    why="A part of it is not fully understood, so no rule can allow it",
    applies=lambda case: case.claim.opaque != "",
)
FLOORS = (
    Builtin(
        name="protected place",
        effect="ask",
        words="keys, start-up files, settings that start programs, Handrail's own files, a person's terminal",
        why="It touches a protected place, which no rule can allow.",
        applies=lambda case: case.claim.protected,
    ),
    OPAQUE,
    Builtin(
        name="no workspace",
        effect="ask",
        words="everything of a caller without a workspace",
        why="The caller has no workspace, so everything asks.",
        applies=lambda case: case.caller.workspace is None and case.claim.action not in ("recall", "plan"),
    ),
)
"""No allow rule overrides these; only a deny rule comes before them."""

ALLOWS = (
    Builtin(
        name="own record",
        effect="allow",
        words="reading Handrail's record of calls",
        why="It only reads Handrail's record of calls.",
        applies=lambda case: case.claim.action == "recall",
    ),
    Builtin(
        name="own notes",
        effect="allow",
        words="an agent's own notes and plans, such as a to-do list",
        why="It touches nothing outside of the agent.",
        applies=lambda case: case.claim.action == "plan",
    ),
    Builtin(
        name="reads in the workspace",
        effect="allow",
        words="reading files in the workspace, but for protected ones",
        why="It only reads inside the workspace.",
        applies=lambda case: case.claim.action == "read" and case.claim.inside and not case.claim.server,
    ),
    Builtin(
        name="server resources",
        effect="allow",
        words="reading resources and prompts of the MCP servers in your configuration",
        why="It only reads a resource or a prompt of an MCP server in your configuration.",
        applies=lambda case: case.claim.action == "read" and case.claim.server != "",
    ),
    Builtin(
        name="own terminals",
        effect="allow",
        words="ending terminals that agents of this workspace opened",
        why="It only ends what agents of this workspace opened.",
        applies=lambda case: case.claim.action == "stop" and case.claim.inside,
    ),
)
"""Always allowed, even in an untrusted folder, because none of it runs anything."""

READING = Builtin(
    name="reading commands",
    effect="allow",
    words="commands that only read files in a trusted workspace: `ls`, `cat`, `grep`, `git status` …",
    why="It only reads files in the workspace, and `allow_reading_commands` is on.",
    applies=lambda case: (
        case.here.trusted
        and case.here.allow_reading_commands
        and case.claim.reads
        and case.claim.inside
        and case.claim.action == "run"
    ),
    idle=lambda here: (
        "`allow_reading_commands` is off."
        if not here.allow_reading_commands
        else ("" if here.trusted else "This folder is not trusted.")
    ),
)
"""Whether a command only reads is proven where its claims are made (tools/commands/reading_line.py)."""
UNTRUSTED = Builtin(
    name="untrusted folder",
    effect="ask",
    words="commands and changes in a folder that is not trusted",
    why="",
    applies=lambda case: not case.here.trusted and case.here.default != "deny",
    idle=lambda here: "This folder is trusted." if here.trusted and not here.anywhere else "",
)
LOW = Builtin(
    name="low risk",
    effect="allow",
    words="what is of low risk, where `human_in_the_loop` is false",
    why="It is of low risk, and `human_in_the_loop` is off.",
    applies=lambda case: case.here.trusted and not case.here.human_in_the_loop and case.level == "low",
    idle=lambda here: (
        "`human_in_the_loop` is on."
        if here.human_in_the_loop
        else ("" if here.trusted else "This folder is not trusted.")
    ),
)
HIGH = Builtin(
    name="high risk",
    effect="ask",
    words="what is of high risk, where the default policy allows",
    why="Auto-approve is on, but high risk always asks.",
    applies=lambda case: case.here.default == "allow" and case.level == "high",
    idle=lambda here: "" if here.default == "allow" else "The default policy does not allow.",
)
LATE = (READING, UNTRUSTED, LOW, HIGH)
"""Applied in this order if no rule matches, before the default policy."""

DEFAULT_WHY: dict[Effect, str] = {
    "allow": "No rule matches, and the default policy allows (auto-approve mode).",
    "ask": "No rule allows it, so you are asked.",
    "deny": "No rule allows it, and the default policy refuses.",
}


def default_of(here: FolderSettings) -> Builtin:
    """The default policy as a built-in rule."""
    return Builtin(
        name="default policy",
        effect=here.default,
        words="everything else",
        why=DEFAULT_WHY[here.default],
        applies=lambda _: True,
    )


def why_of(builtin: Builtin, case: ClaimCase) -> str:
    """Why a built-in rule decided, as a sentence."""
    if builtin is UNTRUSTED:
        return case.here.distrust
    if builtin is OPAQUE:
        return f"{builtin.why}: {case.claim.opaque.rstrip('.')}."
    return builtin.why


_VERB = {"allow": "allows", "ask": "asks about", "deny": "refuses"}


def describe_rule(rule: Rule) -> str:
    """Describe the subject and scope of a rule: ``git status …` in this project`."""
    by = f" by {rule.agent}" if rule.agent is not None else ""
    return f"{_about(rule)}{by} {_where(rule)}"


def explain_rule(rule: Rule) -> str:
    """Why a rule decided, as a sentence."""
    source = f" ({rule.source})" if rule.source else ""
    note = f" {rule.note.rstrip('.')}." if rule.note else ""
    return f"Rule {rule.id} {_VERB[rule.effect]} {describe_rule(rule)}{source}.{note}"


def _about(rule: Rule) -> str:
    tool = f"{rule.tool}: " if rule.tool not in (None, "execute_command") else ""
    if rule.command is not None:
        exact = rule.command.removesuffix("$").rstrip()
        return f"{tool}exactly `{exact}`" if exact != rule.command else f"{tool}`{rule.command} …`"
    if rule.path is not None:
        whose = f"files that {rule.server} is given: " if rule.server is not None else "files: "
        return f"{tool or whose}`{rule.path}`"
    if rule.host is not None:
        return f"{tool}connecting to `{rule.host}`"
    given = " and ".join(f"{name} = `{text}`" for name, text in rule.arguments)
    if rule.tool is not None:
        return f"{rule.tool} with {given}" if given else f"all of {rule.tool}"
    if rule.server is None:
        return "everything"
    return f"calls of the server {rule.server} with {given}" if given else f"all of the server {rule.server}"


def _where(rule: Rule) -> str:
    match rule.scope:
        case "session":
            return "in this session"
        case "project":
            return "in this project"
        case "user":
            return "in every trusted folder" if rule.effect == "allow" else "everywhere"


_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}
_FIRMNESS = {
    "default policy": 0,
    **{each.name: 1 for each in (*ALLOWS, *LATE)},
    **{each.name: 3 for each in FLOORS},
}
"""Ranks the built-in rules; a person's own rules rank 2."""
UNCERTAIN = "An argument that it names is a list, an object or a long or hidden text, so you are asked."
NOTHING_CLAIMED = "It does not say what it would touch, so you are asked."


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The policy's decision about a call."""

    effect: Effect
    rule: str
    """The deciding rule: its id, or the name of a built-in rule."""
    why: str
    verdicts: tuple[Verdict, ...] = ()
    """One per claim, in the order of the claims."""
    rules: tuple[str, ...] = ()
    """Every rule that decided some claim."""
    basis: str = ""
    """The policy's part of the digest: default and strict rules. An answer stays valid if more is allowed."""


class Policy:
    """The rules in force in one folder. The first match decides a claim; the strictest claim decides the call."""

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        here: FolderSettings | None = None,
        *,
        root: str | None = None,
        home: str = "/",
    ) -> None:
        """Relative paths in rules start from `root`. Raises BadPattern."""
        self.here = here or FolderSettings()
        self.rules = tuple(rules)
        """Rules in force, narrowest scope first."""
        self.root = root
        self.home = home
        self._whys = {rule.id: explain_rule(rule) for rule in self.rules}
        self._default = default_of(self.here)
        self._index = Index(self.rules, root, home)

    def decide(
        self, tool: str, claims: Sequence[Claim], caller: Caller, server: str | None = None
    ) -> Decision:
        """Decide about a call; `server` is the MCP server that an agent says would run it, if the claims name none."""
        if not claims:
            return self._without_claims()
        server, arguments = find_server(claims) or server, find_arguments(claims)
        strict: list[str] = []
        verdicts = tuple(
            self._verdict(place, tool, ClaimCase(claim, caller, self.here), server, arguments, strict)
            for place, claim in enumerate(claims)
        )
        first = max(verdicts, key=_weight)
        return Decision(
            effect=first.effect,
            rule=first.rule,
            why=first.why,
            verdicts=verdicts,
            rules=tuple(dict.fromkeys(verdict.rule for verdict in verdicts)),
            basis=self._basis(strict),
        )

    def _verdict(
        self,
        place: int,
        tool: str,
        case: ClaimCase,
        server: str | None,
        arguments: Arguments,
        strict: list[str],
    ) -> Verdict:
        """Decide one claim; adds to `strict` the name of every rule that prevents an allow."""
        matches = self._index.matching(tool, case.claim, case.caller, server, arguments)
        floor = next((each for each in FLOORS if each.applies(case)), None)
        strict += [rule.id for rule in matches if rule.effect != "allow"]
        if floor is not None:
            strict.append(floor.name)
        if (rule := _first(matches, "deny")) is not None:
            return self._by_rule(place, rule)
        if floor is not None:
            return _by_builtin(place, floor, case)
        if (rule := _first(matches, "ask") or _first(matches, "allow")) is not None:
            return self._by_rule(place, rule)
        last = next((each for each in (*ALLOWS, *LATE) if each.applies(case)), self._default)
        return _by_builtin(place, last, case)

    def _by_rule(self, place: int, rule: Rule) -> Verdict:
        why = self._whys[rule.id]
        if rule.effect == "ask" and self._denies(rule.id):
            why = f"{why} {UNCERTAIN}"
        return Verdict(claim=place, effect=rule.effect, rule=rule.id, why=why)

    def _denies(self, id: str) -> bool:
        return any(rule.id == id and rule.effect == "deny" for rule in self.rules)

    def _without_claims(self) -> Decision:
        if self.here.default == "deny":
            return Decision(
                effect="deny", rule=self._default.name, why=self._default.why, basis=self._basis([])
            )
        return Decision(effect="ask", rule="nothing claimed", why=NOTHING_CLAIMED, basis=self._basis([]))

    def _basis(self, strict: Sequence[str]) -> str:
        text = "\n".join([self.here.default, *sorted(set(strict))])
        return hashlib.sha256(text.encode()).hexdigest()


def _first(rules: Sequence[Rule], effect: Effect) -> Rule | None:
    return next((rule for rule in rules if rule.effect == effect), None)


def _by_builtin(place: int, builtin: Builtin, case: ClaimCase) -> Verdict:
    return Verdict(claim=place, effect=builtin.effect, rule=builtin.name, why=why_of(builtin, case))


def _weight(verdict: Verdict) -> tuple[int, int]:
    """Sort key: strictest effect, then the rule that is hardest to change, as the most informative reason."""
    return _STRICTNESS[verdict.effect], _FIRMNESS.get(verdict.rule, 2)
