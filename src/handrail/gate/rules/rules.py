"""The rules: all standing answers, which folders are trusted, and the policy that follows for a caller.

Owns what is known of them in memory, and the facts that change it. It decides nothing (rule.py), and does not know how
often a rule was used (store/).

What a person's own config.toml says about deciding, and what a project's file makes of that.
"""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from handrail.config import Config, at_fault
from handrail.gate.call import new_id
from handrail.gate.rules.explanation import Listed, listed
from handrail.gate.rules.matching import UNTRUSTED, Here, Known, lapse
from handrail.gate.rules.policy import Policy, Standpoint
from handrail.gate.rules.rule_builder import BadRule, Ground, checked, from_file, placed
from handrail.gate.rules.trust import Folder, Folders, Project, Trusted
from handrail.store.actor import Actor
from handrail.store.events import FolderDistrusted, FolderTrusted, RuleAdded, RuleRemoved
from handrail.store.journal import Journal
from handrail.store.values import Caller, Effect, Rule, Scope

_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The settings that hold in every folder."""

    rules: tuple[Rule, ...] = ()
    default: Effect = "ask"
    human_in_the_loop: bool = True

    @classmethod
    def of(cls, config: Config, path: Path, home: str) -> "Standing":
        """Of the configuration that was read from `path`. Raises BadConfig, also for an example that does not hold."""
        ground = Ground(root=None, home=home)
        rules: list[Rule] = []
        for section in config.rules:
            try:
                rules.append(from_file(section, f"{path.name}:{section.line}", ground, "user"))
            except BadRule as problem:
                raise at_fault(path, section.line, str(problem)) from None
        return cls(
            rules=tuple(rules), default=config.default_policy, human_in_the_loop=config.human_in_the_loop
        )


def standpoint(standing: Standing, here: Here, project: Project) -> Standpoint:
    """The settings in a folder; its own file may only tighten them, unless that very file is trusted."""
    default, careful = standing.default, standing.human_in_the_loop
    asked = project.config
    if asked.default_policy is not None and (
        here.file_trusted or _STRICTNESS[asked.default_policy] > _STRICTNESS[default]
    ):
        default = asked.default_policy
    if asked.human_in_the_loop is not None and (here.file_trusted or asked.human_in_the_loop):
        careful = asked.human_in_the_loop
    return Standpoint(
        default=default,
        human_in_the_loop=careful,
        trusted=here.trusted,
        distrust=f"This folder counts as untrusted: {project.problem}" if project.problem else UNTRUSTED,
    )


MOST_RULES = 5_000
"""Made by answers: each is tried or indexed for every folder."""
_MOST_FOLDERS = 128
"""Whose policies are kept ready; what is forgotten is made again."""
_NEARNESS: dict[Scope, int] = {"session": 0, "project": 1, "user": 2}


class NoRule(Exception):
    """There is no rule of this id."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A policy, and what it was made of."""

    policy: Policy
    project: Project
    generation: int
    until: int | None


class Rules:
    """All of them. Belongs to the event loop; `now` gives milliseconds since 1970."""

    def __init__(
        self,
        journal: Journal,
        standing: Standing,
        kept: Iterable[Rule] = (),
        trusted: Iterable[Trusted] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        home: str | None = None,
    ) -> None:
        self.standing = standing
        self.on_change: list[Callable[[], None]] = []
        """Told after rules or trust changed; open questions may be decided by now."""
        self.home = os.path.realpath(Path.home() if home is None else home)
        self.now = now
        self._journal = journal
        # What was made for a session ends with the daemon that knew it.
        self._kept = {rule.id: rule for rule in kept if rule.scope != "session"}
        self._folders = Folders(trusted, self.home)
        self._held: dict[str | None, _Held] = {}
        self._generation = 0

    @classmethod
    def plain(cls, journal: Journal, default: Effect = "ask", trusted: Iterable[str] = ()) -> "Rules":
        """No rules but the default policy, with these folders trusted."""
        folders = [Trusted(folder=os.path.realpath(folder), config=None) for folder in trusted]
        return cls(journal, Standing(default=default), trusted=folders)

    def policy(self, caller: Caller, extra: Rule | None = None) -> Policy:
        """What holds for this caller now; with `extra`, as if that rule were there too."""
        root = None if caller.workspace is None else os.path.realpath(caller.workspace)
        project, now = self._folders.project(root), self.now()
        if extra is not None:
            return self._policy(root, project, now, [Known(rule=extra, origin="answer")])
        held = self._held.get(root)
        if held is None or not self._still(held, project, now):
            if len(self._held) >= _MOST_FOLDERS:
                self._held.clear()
            policy = self._policy(root, project, now)
            ends = (rule.expires_at for rule in policy.rules)
            until = min((end for end in ends if end is not None), default=None)
            held = self._held[root] = _Held(policy, project, self._generation, until)
        return held.policy

    def make(
        self,
        *,
        effect: Effect = "allow",
        tool: str | None = None,
        pattern: str | None = None,
        command: str | None = None,
        path: str | None = None,
        host: str | None = None,
        server: str | None = None,
        agent: str | None = None,
        scope: Scope = "project",
        workspace: str | None = None,
        session: str | None = None,
        expires_in: int | None = None,
        note: str = "",
        match: tuple[str, ...] = (),
        not_match: tuple[str, ...] = (),
        source: str = "",
    ) -> Rule:
        """A rule of what a person wrote, checked but not added. Raises BadRule."""
        command, path = placed(tool, pattern, command, path)
        root = None if workspace is None or scope == "user" else os.path.realpath(workspace)
        rule = Rule(
            id=new_id("r"),
            effect=effect,
            tool=tool,
            command=command,
            path=path,
            host=host,
            server=server,
            agent=agent,
            scope=scope,
            workspace=root,
            session=session if scope == "session" else None,
            expires_at=None if expires_in is None else self.now() + expires_in * 1000,
            source=source,
            note=note,
            match=match,
            not_match=not_match,
        )
        return checked(rule, Ground(root=root, home=self.home))

    def add(self, rule: Rule, by: Actor, approval: str | None = None) -> int:
        """Have a rule hold from now on; the fact's number. Raises BadRule."""
        checked(rule, Ground(root=rule.workspace, home=self.home))
        if len(self._kept) >= MOST_RULES:
            raise BadRule(f"There are {MOST_RULES:,} rules already. Remove some that are not used.")
        seq = self._journal.append(RuleAdded(rule=rule, by=str(by), approval=approval))
        self._kept[rule.id] = rule
        self._changed()
        return seq

    def remove(self, id: str, by: Actor) -> int:
        """Have a rule hold no longer; the fact's number. Raises NoRule, or BadRule for one that is not an answer."""
        if id not in self._kept:
            known = next((each.rule for each in self.known() if each.rule.id == id), None)
            if known is None:
                raise NoRule(f"There is no rule {id}.")
            raise BadRule(f"Rule {id} stands in {known.source}. Remove it there.")
        seq = self._journal.append(RuleRemoved(rule=id, by=str(by)))
        self.drop(id)
        return seq

    def drop(self, id: str) -> None:
        """Forget a rule whose fact could not be kept."""
        if self._kept.pop(id, None) is not None:
            self._changed()

    def trust(self, folder: str, config: str | None, by: Actor) -> int:
        """Trust a folder with its file as the person saw it; the fact's number. Raises Conflict."""
        root = os.path.realpath(folder)
        self._folders.check(root, config)
        seq = self._journal.append(FolderTrusted(folder=root, config=config, by=str(by)))
        self._folders.trusted[root] = config
        self._changed()
        return seq

    def distrust(self, folder: str, by: Actor) -> int:
        """Trust a folder no longer; the fact's number."""
        root = os.path.realpath(folder)
        seq = self._journal.append(FolderDistrusted(folder=root, by=str(by)))
        self._folders.trusted.pop(root, None)
        self._changed()
        return seq

    def folder(self, folder: str) -> Folder:
        """A folder as it stands now."""
        return self._folders.folder(os.path.realpath(folder))

    def folders(self) -> list[Folder]:
        """Those that are trusted, and those that callers were in of late."""
        return [self._folders.folder(root) for root in self._folders.known()]

    def known(self, root: str | None = None) -> list[Known]:
        """Every rule, nearest first; of one folder's file, or of all that are known."""
        answers = [Known(rule=rule, origin="answer") for rule in self._kept.values()]
        files = [Known(rule=rule, origin="project") for rule in self._folders.rules(root)]
        own = [Known(rule=rule, origin="config") for rule in self.standing.rules]
        return sorted([*answers, *files, *own], key=_nearness)

    def listing(self, workspace: str | None = None) -> list[Listed]:
        """All there is in the order of evaluation; as it holds in one folder, or each where it is meant to."""
        root = None if workspace is None else os.path.realpath(workspace)
        here = None if root is None else self._folders.here(root, self.now())
        point = None if here is None else standpoint(self.standing, here, self._folders.project(root))
        return listed(self.known(root), lambda rule: here or self._home_of(rule), point or self._everywhere())

    def _home_of(self, rule: Rule) -> Here:
        """Where a rule is meant to hold; one for all folders is looked at as in a trusted one."""
        if rule.workspace is not None:
            return self._folders.here(rule.workspace, self.now())
        return Here(root=None, trusted=True, file_trusted=True, now=self.now())

    def _everywhere(self) -> Standpoint:
        return Standpoint(
            default=self.standing.default,
            human_in_the_loop=self.standing.human_in_the_loop,
            trusted=True,
            anywhere=True,
        )

    def _policy(self, root: str | None, project: Project, now: int, more: Iterable[Known] = ()) -> Policy:
        here = self._folders.here(root, now)
        held = sorted([*more, *self.known(root)], key=_nearness)
        rules = [each.rule for each in held if not lapse(each.rule, each.origin, here)]
        return Policy(rules, standpoint(self.standing, here, project), root=root, home=self.home)

    def _still(self, held: _Held, project: Project, now: int) -> bool:
        in_time = held.until is None or now < held.until
        return held.generation == self._generation and held.project == project and in_time

    def _changed(self) -> None:
        self._generation += 1
        for tell in self.on_change:
            tell()


def _nearness(known: Known) -> int:
    return _NEARNESS[known.rule.scope]
