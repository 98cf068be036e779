"""The policy that a person accepted, against the policy that this daemon found when it started.

If they differ, the rules are suspended: everything asks until a person accepts the difference, or takes it back. The
accepted policy is remembered outside of the user's files (`keep`, the keeper's memory). Rules journals changes and
decides; this module only compares.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

import anyio

from handrail.errors import Conflict
from handrail.gate.rules.policy_snapshot import (
    Baseline,
    Part,
    PolicyChange,
    PolicySnapshot,
    compare_rules,
    compare_settings,
)
from handrail.gate.rules.rules import Rules
from handrail.lazy_dataclass import dataclass
from handrail.store.actor import Actor
from handrail.store.events import Entry, PolicyAccepted
from handrail.store.journal import Journal
from handrail.store.rules import RULE_KINDS, RuleEvent

CHANGED = (
    "Rules, trusted folders or settings changed without Handrail, and no person has accepted that yet, so it asks "
    "about everything."
)
UNKNOWN = (
    "Handrail started with nothing to compare its rules, trusted folders and settings with, and no person has "
    "accepted them yet, so it asks about everything."
)
STALE = "What you saw is out of date: the changes are others now. Look at them again, then decide."
TOO_LONG = "the list before is not known any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPolicy:
    """The policy that a daemon found at its start."""

    snapshot: PolicySnapshot
    baseline: Baseline | None
    """What the keeper remembered; None if nothing."""
    attended: bool
    """A person started this daemon. Without a baseline, what it found then counts as accepted."""
    faults: tuple[str, ...] = ()
    """What is wrong with the journal, each as a sentence."""


class AcceptedPolicy:
    """Compares, suspends the rules if needed, and follows later changes. Use it only on the event loop."""

    def __init__(
        self, rules: Rules, journal: Journal, found: FoundPolicy, keep: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self.known = found.baseline is not None
        """Whether there was something to compare with."""
        self.taken: tuple[PolicyChange, ...] = ()
        """Settings that this start took up, because a person had asked for it."""
        self.taken_by = ""
        self.kept_seq: int | None = None
        """The last event of the journal that the keeper knows; None if it knows none."""
        self.on_release: list[Callable[[], None]] = []
        """Called when the policy is in force again."""
        self._rules, self._journal, self._keep = rules, journal, keep
        self._current, self._faults = found.snapshot, found.faults
        self._baseline = found.baseline
        if self._baseline is None and found.attended:
            self._baseline = _baseline_of(found.snapshot)
        self._stale = anyio.Event()
        self._accept_expected()
        self.changes = tuple(self._compare())
        """Differences that no person has accepted; empty in normal operation."""
        if self.changes:
            rules.suspend(UNKNOWN if self._baseline is None else CHANGED)
        else:
            self._baseline = _baseline_of(found.snapshot)
        self._stale.set()
        rules.before_record = self._foresee
        rules.after_record = self._release_if_equal
        for kind in RULE_KINDS:
            journal.watch(kind, self._landed)

    @property
    def digest(self) -> str:
        """Identifies the differences that a person sees."""
        parts = [self._current.rules_hash, self._current.config_hash, *map(str, self.changes)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def holds_config(self) -> bool:
        """Whether settings of config.toml are not accepted."""
        return any(change.part == "config" for change in self.changes)

    @property
    def holds_journal(self) -> bool:
        return any(change.part == "journal" for change in self.changes)

    async def accept(self, digest: str, by: Actor) -> None:
        """Accept the differences with this digest, and take everything up. Raises Conflict or Unwritable."""
        if not self.changes:
            return
        if digest != self.digest:
            raise Conflict(STALE)
        event = PolicyAccepted(by=str(by), changes=tuple(map(str, self.changes)))
        await self._journal.committed(self._journal.append(event))
        self._faults = ()
        self._baseline = _baseline_of(self._current)
        self._release()
        await self.remember()

    async def expect_config(self, digest: str, by: Actor) -> None:
        """The next daemon takes up settings with this digest. Raises Conflict while the policy is suspended."""
        if self._baseline is None or self.changes:
            raise Conflict(self._rules.suspended)
        self._baseline = replace(self._baseline, next_config=digest, next_by=str(by))
        await self.remember()

    async def expect_setting(self, name: str, value: str | None) -> None:
        """Remember that a person is about to change one setting, so that a crash after it is written raises no alarm.

        Raises Conflict while the policy is suspended.
        """
        if self._baseline is None or self.changes:
            raise Conflict(self._rules.suspended)
        digest = self._current.with_setting(name, value).config_hash
        self._baseline = replace(self._baseline, next_config=digest, next_by="")
        await self.remember()

    async def take_setting(self, name: str, value: str | None, by: Actor) -> None:
        """Accept one setting that a person changed in config.toml through Handrail; None removes it.

        Whatever else changed in the file stays unaccepted.
        """
        before, self._current = self._current, self._current.with_setting(name, value)
        changes = tuple(map(str, compare_settings(before, self._current)))
        await self._journal.committed(self._journal.append(PolicyAccepted(by=str(by), changes=changes)))
        kept = self._baseline
        if kept is not None:
            snapshot = kept.snapshot and kept.snapshot.with_setting(name, value)
            config = self._current.config_hash
            self._baseline = replace(kept, config=config, next_config="", next_by="", snapshot=snapshot)
        await self.remember()

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of config.toml as this daemon knows them."""
        return self._current.settings

    async def change_settings(
        self, settings: Mapping[str, str], write: Callable[[], Awaitable[None]], by: Actor
    ) -> None:
        """Have a person's new settings written, and accept them. Raises Conflict while the policy is suspended.

        They are expected before `write` is called, so that a crash in between raises no alarm.
        """
        if self._baseline is None or self.changes:
            raise Conflict(self._rules.suspended)
        changed = replace(self._current, settings=settings)
        differences = tuple(map(str, compare_settings(self._current, changed)))
        self._baseline = replace(self._baseline, next_config=changed.config_hash, next_by=str(by))
        await self.remember()
        try:
            await write()
        except BaseException:
            self._baseline = replace(self._baseline, next_config="", next_by="")
            self._stale.set()
            raise
        self._current = replace(self._current, settings=settings)
        kept = self._baseline
        snapshot = kept.snapshot and replace(kept.snapshot, settings=settings)
        self._baseline = replace(
            kept, config=changed.config_hash, next_config="", next_by="", snapshot=snapshot
        )
        await self._journal.committed(self._journal.append(PolicyAccepted(by=str(by), changes=differences)))
        await self.remember()

    async def run(self) -> None:
        """Store the accepted policy after each change, until cancelled."""
        while True:
            await self._stale.wait()
            self._stale = anyio.Event()
            await self.remember()

    async def remember(self) -> None:
        """Store the accepted policy outside of the user's files."""
        if self._baseline is not None:
            await self._keep(self._baseline.encode())

    def _release_if_equal(self) -> None:
        """Take everything up if a person has taken back the last difference."""
        if self._rules.suspended and not self.changes:
            self._release()

    def _release(self) -> None:
        self.changes = ()
        self._rules.resume()
        for notify in self.on_release:
            notify()

    def _accept_expected(self) -> None:
        """Take up the settings that a person asked for with a restart."""
        kept, now = self._baseline, self._current
        if kept is None or kept.next_config != now.config_hash or kept.next_config == kept.config:
            return
        self.taken = tuple(compare_settings(kept.snapshot or PolicySnapshot(), now))
        self.taken_by = kept.next_by
        snapshot = kept.snapshot and replace(kept.snapshot, settings=now.settings)
        self._baseline = replace(kept, config=kept.next_config, next_config="", next_by="", snapshot=snapshot)

    def _compare(self) -> Sequence[PolicyChange]:
        changes = [PolicyChange(part="journal", change="changed", what=fault) for fault in self._faults]
        baseline, now = self._baseline, self._current
        if baseline is None:
            nothing = now.passive
            return [*compare_rules(nothing, now), *compare_settings(nothing, now), *changes]
        before = baseline.snapshot
        if now.rules_hash not in baseline.rules:
            found = list(compare_rules(before, now)) if before else []
            changes += found or [_unnamed("rules", f"rules and trusted folders; {TOO_LONG}")]
        if now.config_hash != baseline.config:
            found = list(compare_settings(before, now)) if before else []
            changes += found or [_unnamed("config", f"config.toml; {TOO_LONG}")]
        return changes

    async def _foresee(self, event: RuleEvent) -> None:
        """Remember a change before it is written, so that a crash right after the commit raises no alarm."""
        kept = self._baseline
        if kept is not None and kept.snapshot is not None:
            both = (kept.snapshot.rules_hash, kept.snapshot.apply(event).rules_hash)
            self._baseline = replace(kept, rules=both)
            await self.remember()

    def _landed(self, entry: Entry) -> None:
        """Follow a change by a person, in the accepted policy and in the current one."""
        if not isinstance(entry.event, RuleEvent):
            return
        self._current = self._current.apply(entry.event)
        kept = self._baseline
        if kept is not None and kept.snapshot is not None:
            snapshot = kept.snapshot.apply(entry.event)
            self._baseline = replace(kept, rules=(snapshot.rules_hash,), snapshot=snapshot)
        if self.changes:
            self.changes = tuple(self._compare())
        self._stale.set()


def _unnamed(part: Part, what: str) -> PolicyChange:
    return PolicyChange(part=part, change="changed", what=what)


def _baseline_of(snapshot: PolicySnapshot) -> Baseline:
    return Baseline(rules=(snapshot.rules_hash,), config=snapshot.config_hash, snapshot=snapshot)
