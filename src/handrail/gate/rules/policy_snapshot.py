"""A snapshot of everything that decides: rules made by people, trusted folders and settings; and differences in words.

Pure: no files, no clock. A `Baseline` is the snapshot that a person accepted, in the form that the keeper remembers.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter

from handrail.flat_settings import hash_settings
from handrail.gate.rules.policy import describe_rule
from handrail.lazy_dataclass import dataclass
from handrail.store.events import FolderDistrusted, FolderTrusted, RuleAdded
from handrail.store.rules import RuleEvent, apply_to_rules, encode_rule
from handrail.store.values import Rule

T = TypeVar("T")

Part = Literal["rules", "config", "journal"]
"""rules: rules made by people, and trusted folders. config: settings of config.toml. journal: the record itself."""

PASSIVE = ("server.", "terminal.max_", "terminal.keep_", "command.wait_", "command.stop_", "undo.", "agent.")
"""Prefixes of settings that allow nothing and start nothing: sizes, times, the port, the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChange:
    """One difference between the accepted policy and the current one."""

    part: Part
    change: Literal["added", "removed", "changed"]
    what: str

    def __str__(self) -> str:
        return f"{self.change}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySnapshot:
    """Rules by id, trusted folders with the hash of their file, and settings by name."""

    rules: Mapping[str, Rule] = field(default_factory=dict[str, Rule])
    folders: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def rules_hash(self) -> str:
        """A digest of the rules and the trusted folders."""
        rules = [json.loads(encode_rule(rule)) for _, rule in sorted(self.rules.items())]
        text = json.dumps([rules, self.folders], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def config_hash(self) -> str:
        return hash_settings(self.settings)

    @property
    def passive(self) -> "PolicySnapshot":
        """Only the settings that allow nothing."""
        kept = {name: value for name, value in self.settings.items() if name.startswith(PASSIVE)}
        return PolicySnapshot(settings=kept)

    def apply(self, event: RuleEvent) -> "PolicySnapshot":
        """The snapshot after this event. Rules of a session end with the daemon, so they are not part of it."""
        match event:
            case FolderTrusted(folder=folder, config=config):
                return replace(self, folders={**self.folders, folder: config})
            case FolderDistrusted(folder=folder):
                return replace(self, folders=_without(self.folders, folder))
            case RuleAdded(rule=rule) if rule.scope == "session":
                return self
            case _:
                rules = dict(self.rules)
                apply_to_rules(rules, event)
                return replace(self, rules=rules)

    def with_setting(self, name: str, value: str | None) -> "PolicySnapshot":
        """The snapshot with another value of one setting; None removes it."""
        rest = _without(self.settings, name)
        return replace(self, settings=rest if value is None else {**rest, name: value})


def _without(values: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: value for name, value in values.items() if name != key}


def compare_rules(before: PolicySnapshot, now: PolicySnapshot) -> Iterator[PolicyChange]:
    """The differences of rules and trusted folders."""
    for name in sorted({*before.rules, *now.rules}):
        old, new = before.rules.get(name), now.rules.get(name)
        if old is None and new is not None:
            yield PolicyChange(part="rules", change="added", what=_describe(new))
        elif new is None and old is not None:
            yield PolicyChange(part="rules", change="removed", what=_describe(old))
        elif old is not None and new is not None and old != new:
            yield PolicyChange(part="rules", change="changed", what=f"{_describe(old)} → {_describe(new)}")
    for folder in sorted({*before.folders, *now.folders}):
        if folder not in before.folders:
            yield PolicyChange(part="rules", change="added", what=f"trust in {folder}")
        elif folder not in now.folders:
            yield PolicyChange(part="rules", change="removed", what=f"trust in {folder}")
        elif before.folders[folder] != now.folders[folder]:
            yield PolicyChange(
                part="rules", change="changed", what=f"the trusted .handrail/config.toml of {folder}"
            )


def compare_settings(before: PolicySnapshot, now: PolicySnapshot) -> Iterator[PolicyChange]:
    """The differences of settings."""
    for name in sorted({*before.settings, *now.settings}):
        old, new = before.settings.get(name), now.settings.get(name)
        if old is None and new is not None:
            yield PolicyChange(part="config", change="added", what=f"{name} = {new}")
        elif new is None and old is not None:
            yield PolicyChange(part="config", change="removed", what=f"{name} = {old}")
        elif old != new:
            yield PolicyChange(part="config", change="changed", what=f"{name}: {old} → {new}")


def _describe(rule: Rule) -> str:
    where = f", {rule.workspace}" if rule.workspace is not None else ""
    switch = ", disabled" if rule.disabled else ""
    return f"rule {rule.id}: {rule.effect} {describe_rule(rule)}{where}{switch}"


MOST_BYTES = 40_000
"""Longest baseline that the keeper's memo takes beside the sign-ins. A longer one keeps only its digests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The accepted policy, as the keeper remembers it."""

    rules: tuple[str, ...]
    """Accepted digests: of the rules in force, and of the same after a change that is being written."""
    config: str
    """The accepted digest of the settings."""
    next_config: str = ""
    """The digest of settings that a person asked to take up with the next start."""
    next_by: str = ""
    snapshot: PolicySnapshot | None = None
    """What was accepted, for a readable difference; None if it was too long to be remembered."""

    def encode(self) -> bytes:
        fields: dict[str, Any] = {
            "rules": self.rules,
            "config": self.config,
            "next_config": self.next_config,
            "next_by": self.next_by,
        }
        plain = zlib.compress(json.dumps(fields).encode())
        if self.snapshot is None:
            return plain
        known = json.loads(_snapshot.dump_json(self.snapshot))
        whole = zlib.compress(json.dumps({**fields, "snapshot": known}).encode())
        return whole if len(whole) <= MOST_BYTES else plain


_snapshot: TypeAdapter[PolicySnapshot] = TypeAdapter(PolicySnapshot)
_baseline: TypeAdapter[Baseline] = TypeAdapter(Baseline)


def decode_baseline(blob: bytes | None) -> Baseline | None:
    """The remembered baseline, or None."""
    return None if not blob else _baseline.validate_json(zlib.decompress(blob))
