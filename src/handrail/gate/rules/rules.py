"""All rules and trusted folders in memory, and the policy in force for a caller.

Adds and removes rules, journals each change, and combines them with the rules and settings of the person's config.toml
and of a project's file. Decisions are made in policy.py; usage counts are in the store.
"""

import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import anyio

from handrail.config import Config, config_error
from handrail.errors import Unwritable
from handrail.gate.call import new_id
from handrail.gate.rules.explanation import ListedRule, list_rules
from handrail.gate.rules.matching import NOT_TRUSTED, FolderState, OriginRule, explain_lapse
from handrail.gate.rules.pause import Pause
from handrail.gate.rules.policy import FolderSettings, Policy
from handrail.gate.rules.rule_builder import (
    BadRule,
    RuleBase,
    as_arguments,
    check_rule,
    place_pattern,
    rule_from_section,
)
from handrail.gate.rules.trust import Folders, FolderTrust, Project, TrustedFolder
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.events import (
    Entry,
    FolderDistrusted,
    FolderTrusted,
    RuleAdded,
    RuleDisabled,
    RuleEnabled,
    RuleRemoved,
    RulesOrdered,
)
from handrail.store.journal import Journal
from handrail.store.rules import RULE_KINDS, RuleEvent, apply_to_rules
from handrail.store.values import Caller, Effect, Rule, Scope

T = TypeVar("T")

_STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRules:
    """Rules and settings from the person's config.toml, for every folder."""

    rules: tuple[Rule, ...] = ()
    default: Effect = "ask"
    human_in_the_loop: bool = True
    allow_reading_commands: bool = True

    @classmethod
    def of(cls, config: Config, path: Path, home: str) -> "UserRules":
        """Build from the configuration read from `path`. Raises BadConfig, also if an example of a rule fails."""
        ground = RuleBase(root=None, home=home)
        rules: list[Rule] = []
        for section in config.rules:
            try:
                rules.append(rule_from_section(section, f"{path.name}:{section.line}", ground, "user"))
            except BadRule as problem:
                raise config_error(path, section.line, str(problem)) from None
        return cls(
            rules=tuple(rules),
            default=config.default_policy,
            human_in_the_loop=config.human_in_the_loop,
            allow_reading_commands=config.allow_reading_commands,
        )


def build_folder_settings(standing: UserRules, here: FolderState, project: Project) -> FolderSettings:
    """Settings for a folder. Its project file can only make them stricter, unless that file is trusted.

    While the policy is suspended, settings only make it stricter.
    """
    default, careful, reading = standing.default, standing.human_in_the_loop, standing.allow_reading_commands
    config = project.config
    if config.default_policy is not None and (
        here.file_trusted or _STRICTNESS[config.default_policy] > _STRICTNESS[default]
    ):
        default = config.default_policy
    if config.human_in_the_loop is not None and (here.file_trusted or config.human_in_the_loop):
        careful = config.human_in_the_loop
    reading = reading and config.allow_reading_commands
    if here.suspended:
        return FolderSettings(default="deny" if default == "deny" else "ask", distrust=here.suspended)
    return FolderSettings(
        default=default,
        human_in_the_loop=careful,
        allow_reading_commands=reading,
        trusted=here.trusted,
        distrust=f"This folder counts as untrusted: {project.problem}" if project.problem else NOT_TRUSTED,
    )


MOST_RULES = 5_000
"""Rules added by answers: bounds the memory and time to index them for each folder."""
_MOST_FOLDERS = 128
"""Size of the policy cache, to bound memory; an evicted policy is rebuilt."""
_NEARNESS: dict[Scope, int] = {"session": 0, "project": 1, "user": 2}


class UnknownRule(Exception):
    """No rule has this id."""


@dataclass(frozen=True, slots=True)
class _CachedPolicy:
    """A policy with the state it was built from, to detect that it is stale."""

    policy: Policy
    project: Project
    generation: int
    until: int | None


class Rules:
    """All rules and trusted folders. Use only on the event loop. `now` returns milliseconds since 1970."""

    def __init__(
        self,
        journal: Journal,
        standing: UserRules,
        kept: Iterable[Rule] = (),
        trusted: Iterable[TrustedFolder] = (),
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        home: str | None = None,
    ) -> None:
        self.standing = standing
        self.on_change: list[Callable[[], None]] = []
        """Called in a task after rules or trust changed, so that open approvals can be decided again."""
        self.on_apply: list[Callable[[], None]] = []
        """Called in the same step as the change, also outside of a task."""
        self.before_record: Callable[[RuleEvent], Awaitable[None]] | None = None
        """Awaited before a change is recorded."""
        self.after_record: Callable[[], None] | None = None
        """Called in a task after a change was recorded and applied."""
        self.suspended = ""
        """Why no rule, trusted folder or setting may allow anything, as a sentence; empty in normal operation."""
        self.pause = Pause(journal, self._report)
        """Whether agents are paused: then the rules of no folder allow anything."""
        self.home = os.path.realpath(Path.home() if home is None else home)
        self.now = now
        self._journal = journal
        # Session rules end with the daemon.
        self._kept = {rule.id: rule for rule in kept if rule.scope != "session"}
        self._folders = Folders(trusted, self.home)
        self._policies: dict[str | None, _CachedPolicy] = {}
        self._generation = self._reported = 0
        self._one_change = anyio.Lock()
        for kind in RULE_KINDS:
            journal.watch(kind, self._landed)

    @classmethod
    def with_default(cls, journal: Journal, default: Effect = "ask", trusted: Iterable[str] = ()) -> "Rules":
        """No rules except the default policy, with these folders trusted."""
        folders = [TrustedFolder(folder=os.path.realpath(folder), config=None) for folder in trusted]
        return cls(journal, UserRules(default=default), trusted=folders)

    def policy(self, caller: Caller, extra: Rule | None = None) -> Policy:
        """The policy in force for this caller now; `extra` adds a hypothetical rule."""
        root = None if caller.workspace is None else os.path.realpath(caller.workspace)
        project, now = self._folders.project(root), self.now()
        if extra is not None:
            return self._policy(root, project, now, [OriginRule(rule=extra, origin="answer")])
        cached = self._policies.get(root)
        if cached is None or not self._is_fresh(cached, project, now):
            if len(self._policies) >= _MOST_FOLDERS:
                self._policies.clear()
            policy = self._policy(root, project, now)
            ends = (rule.expires_at for rule in policy.rules)
            until = min((end for end in ends if end is not None), default=None)
            cached = self._policies[root] = _CachedPolicy(policy, project, self._generation, until)
        return cached.policy

    def build_rule(
        self,
        *,
        effect: Effect = "allow",
        tool: str | None = None,
        pattern: str | None = None,
        command: str | None = None,
        path: str | None = None,
        host: str | None = None,
        server: str | None = None,
        arguments: Mapping[str, str] | None = None,
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
        """Build a rule from a person's input: validated, not added. Raises BadRule."""
        command, path = place_pattern(tool, pattern, command, path)
        root = None if workspace is None or scope == "user" else os.path.realpath(workspace)
        rule = Rule(
            id=new_id("r"),
            effect=effect,
            tool=tool,
            command=command,
            path=path,
            host=host,
            server=server,
            arguments=as_arguments(arguments or {}),
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
        return check_rule(rule, RuleBase(root=root, home=self.home))

    async def add(self, rule: Rule, by: Actor, approval: str | None = None) -> int:
        """Add a rule; returns the event's sequence number. Raises BadRule or Unwritable.

        An allow rule is in force once its event is on disk. Any other rule is in force immediately, and is dropped again
        if the event is lost.
        """
        check_rule(rule, RuleBase(root=rule.workspace, home=self.home))
        if len(self._kept) >= MOST_RULES:
            raise BadRule(f"There are {MOST_RULES:,} rules already. Remove some that are not used.")
        event = RuleAdded(rule=rule, by=str(by), approval=approval)
        return await self._record(event, narrows=rule.effect != "allow")

    async def remove(self, id: str, by: Actor) -> int:
        """Remove a rule; returns the event's sequence number.

        Raises UnknownRule, BadRule for a rule from a file, or Unwritable; then the rule is still in force. An allow rule
        is out of force while the event is being written.
        """
        rule = self._own(id)
        return await self._record(RuleRemoved(rule=id, by=str(by)), narrows=rule.effect == "allow")

    async def switch(self, id: str, on: bool, by: Actor) -> int | None:
        """Enable or disable a rule; returns the event's sequence number, None if nothing changed.

        Raises as `remove` does. A change that only narrows the policy holds immediately, any other once it is on disk.
        """
        rule = self._own(id)
        if rule.disabled is not on:
            return None
        event = RuleEnabled(rule=id, by=str(by)) if on else RuleDisabled(rule=id, by=str(by))
        return await self._record(event, narrows=(rule.effect == "allow") is not on)

    async def move(self, id: str, before: str | None, by: Actor) -> int | None:
        """Put a rule before another one of its effect and scope, or behind all of them.

        The order decides which of several matching rules is named and counted. Returns and raises as `switch` does.
        """
        rule = self._own(id)
        alike = [each for each in self._ordered() if (each.effect, each.scope) == (rule.effect, rule.scope)]
        order = [each.id for each in alike if each.id != id]
        if before is not None and before not in order:
            self._own(before)
            raise BadRule(f"Rule {before} has another effect or scope, so it cannot stand next to rule {id}.")
        order.insert(len(order) if before is None else order.index(before), id)
        if order == [each.id for each in alike]:
            return None
        return await self._record(RulesOrdered(rules=tuple(order), by=str(by)))

    def _own(self, id: str) -> Rule:
        """A rule that a person made. Raises UnknownRule, or BadRule for a rule from a file."""
        rule = self._kept.get(id)
        if rule is not None:
            return rule
        known = next((each.rule for each in self.known() if each.rule.id == id), None)
        if known is None:
            raise UnknownRule(f"There is no rule {id}.")
        raise BadRule(f"Rule {id} stands in {known.source}. Change it there.")

    def _ordered(self) -> list[Rule]:
        """The rules that people made: those with a rank first, then in the order in which they were made."""
        return sorted(self._kept.values(), key=lambda rule: rule.rank or sys.maxsize)

    async def trust(self, folder: str, config: str | None, by: Actor) -> int:
        """Trust a folder with its file, by the hash the person saw; returns the sequence number.

        Raises Conflict or Unwritable. The folder is trusted once the event is on disk.
        """
        root = _real_path(folder)
        self._folders.check(root, config)
        return await self._record(FolderTrusted(folder=root, config=config, by=str(by)))

    async def distrust(self, folder: str, by: Actor) -> int:
        """Stop trusting a folder; returns the event's sequence number. Raises Unwritable; then it is still trusted."""
        root = _real_path(folder)
        return await self._record(FolderDistrusted(folder=root, by=str(by)), narrows=True)

    async def _record(self, event: RuleEvent, *, narrows: bool = False) -> int:
        """Append an event and wait for its commit, which applies it. One change at a time, in order.

        A change that only narrows the policy applies immediately, and is reverted if the event is lost.
        """
        before = dict(self._kept), dict(self._folders.trusted)
        if narrows:
            self._apply(event)
            self._notify()
        try:
            async with self._one_change:
                if self.before_record is not None:
                    await self.before_record(event)
                seq = self._journal.append(event)
                await self._journal.committed(seq)
        except Unwritable:
            if narrows:
                self._revert(event, *before)
            raise
        finally:
            self._notify()
        if self.after_record is not None:
            self.after_record()
        return seq

    def _landed(self, entry: Entry) -> None:
        if isinstance(entry.event, RuleEvent):
            self._apply(entry.event)

    def _apply(self, event: RuleEvent) -> None:
        before = dict(self._kept), dict(self._folders.trusted)
        match event:
            case FolderTrusted(folder=folder, config=config):
                self._folders.trusted[folder] = config
            case FolderDistrusted(folder=folder):
                self._folders.trusted.pop(folder, None)
            case _:
                apply_to_rules(self._kept, event)
        if before != (self._kept, self._folders.trusted):
            self._changed()

    def _revert(self, event: RuleEvent, kept: dict[str, Rule], trusted: dict[str, str | None]) -> None:
        """Restore the entry that the event changed, from before it."""
        match event:
            case (
                RuleAdded(rule=Rule(id=id))
                | RuleRemoved(rule=str(id))
                | RuleDisabled(rule=id)
                | RuleEnabled(rule=id)
            ):
                _restore(self._kept, kept, id)
            case RulesOrdered():
                pass  # it neither allows nor denies, so it is applied once it is written
            case FolderTrusted(folder=folder) | FolderDistrusted(folder=folder):
                _restore(self._folders.trusted, trusted, folder)
        self._changed()

    def replace_standing(self, standing: UserRules) -> None:
        """Take up the rules and settings of a config.toml that a person changed. Call it in a task."""
        self.standing = standing
        self._changed()
        self._notify()

    def suspend(self, why: str) -> None:
        """Ask about everything that is not always allowed, until `resume`. Rules that deny stay in force."""
        self.suspended = why
        self._changed()

    def resume(self) -> None:
        """Take up the rules, trusted folders and settings. Call it in a task."""
        self.suspended = ""
        self._changed()
        self._notify()

    def folder(self, folder: str) -> FolderTrust:
        """Current trust and config file of a folder."""
        return self._folders.folder(os.path.realpath(folder))

    def folders(self) -> list[FolderTrust]:
        """Trusted folders, and folders of recent callers."""
        return [self._folders.folder(root) for root in self._folders.known()]

    def known(self, root: str | None = None) -> list[OriginRule]:
        """Every rule, narrowest scope first; with the file rules of one folder, or of all known folders."""
        answers = [OriginRule(rule=rule, origin="answer") for rule in self._ordered()]
        files = [OriginRule(rule=rule, origin="project") for rule in self._folders.rules(root)]
        own = [OriginRule(rule=rule, origin="config") for rule in self.standing.rules]
        return sorted([*answers, *files, *own], key=_nearness)

    def listing(self, workspace: str | None = None) -> list[ListedRule]:
        """All rules in evaluation order, each as in force in `workspace`, or without one in its own folder."""
        root = None if workspace is None else os.path.realpath(workspace)
        here = None if root is None else self._here(root, self.now())
        point = (
            None if here is None else build_folder_settings(self.standing, here, self._folders.project(root))
        )
        return list_rules(
            self.known(root), lambda rule: here or self._home_of(rule), point or self._everywhere()
        )

    def _home_of(self, rule: Rule) -> FolderState:
        """The folder of a rule; for a rule without one, any trusted folder."""
        if rule.workspace is not None:
            return self._here(rule.workspace, self.now())
        return FolderState(
            root=None, trusted=True, file_trusted=True, now=self.now(), suspended=self.suspended
        )

    def _here(self, root: str | None, now: int) -> FolderState:
        here = self._folders.here(root, now)
        if not self.suspended:
            return here
        return replace(here, trusted=False, file_trusted=False, suspended=self.suspended)

    def _everywhere(self) -> FolderSettings:
        if self.suspended:
            default: Effect = "deny" if self.standing.default == "deny" else "ask"
            return FolderSettings(default=default, anywhere=True, distrust=self.suspended)
        return FolderSettings(
            default=self.standing.default,
            human_in_the_loop=self.standing.human_in_the_loop,
            allow_reading_commands=self.standing.allow_reading_commands,
            trusted=True,
            anywhere=True,
        )

    def _policy(
        self, root: str | None, project: Project, now: int, more: Iterable[OriginRule] = ()
    ) -> Policy:
        here = self._here(root, now)
        known = sorted([*more, *self.known(root)], key=_nearness)
        rules = [each.rule for each in known if not explain_lapse(each.rule, each.origin, here)]
        return Policy(rules, build_folder_settings(self.standing, here, project), root=root, home=self.home)

    def _is_fresh(self, cached: _CachedPolicy, project: Project, now: int) -> bool:
        in_time = cached.until is None or now < cached.until
        return cached.generation == self._generation and cached.project == project and in_time

    def _changed(self) -> None:
        self._generation += 1
        for notify in self.on_apply:
            notify()

    def _notify(self) -> None:
        """Report the changes since the last report."""
        if self._reported != self._generation:
            self._reported = self._generation
            self._report()

    def _report(self) -> None:
        for notify in self.on_change:
            notify()


def _restore(current: dict[str, T], before: dict[str, T], key: str) -> None:
    if key in before:
        current[key] = before[key]
    else:
        current.pop(key, None)


def _real_path(folder: str) -> str:
    return os.path.realpath(folder)


def _nearness(known: OriginRule) -> int:
    return _NEARNESS[known.rule.scope]
