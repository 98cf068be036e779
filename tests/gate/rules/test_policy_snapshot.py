"""Snapshots of the policy: differences in words, and the form that the keeper remembers."""

from dataclasses import replace

import pytest

from handrail.gate.rules.policy_snapshot import (
    MOST_BYTES,
    Baseline,
    PolicySnapshot,
    compare_rules,
    compare_settings,
    decode_baseline,
)
from handrail.store.events import (
    FolderDistrusted,
    FolderTrusted,
    RuleAdded,
    RuleDisabled,
    RuleEnabled,
    RuleRemoved,
    RulesOrdered,
)
from handrail.store.values import Rule

MAKE = Rule(id="r1", effect="allow", command="make", scope="project", workspace="/w")
SNAPSHOT = PolicySnapshot(rules={"r1": MAKE}, folders={"/w": None}, settings={"default_policy": '"ask"'})


def baseline(snapshot: PolicySnapshot) -> Baseline:
    return Baseline(rules=(snapshot.rules_hash,), config=snapshot.config_hash, snapshot=snapshot)


def test_every_difference_of_rules_and_folders_is_named() -> None:
    now = PolicySnapshot(
        rules={"r1": replace(MAKE, effect="deny"), "r2": Rule(id="r2", effect="allow", tool="x")},
        folders={"/w": "sha", "/v": None},
    )
    assert [str(change) for change in compare_rules(SNAPSHOT, now)] == [
        "changed: rule r1: allow `make …` in this project, /w → rule r1: deny `make …` in this project, /w",
        "added: rule r2: allow all of x in every trusted folder",
        "added: trust in /v",
        "changed: the trusted .handrail/config.toml of /w",
    ]
    assert [change.change for change in compare_rules(now, PolicySnapshot())] == ["removed"] * 4
    assert list(compare_rules(SNAPSHOT, SNAPSHOT)) == []


def test_every_difference_of_settings_is_named() -> None:
    now = PolicySnapshot(settings={"default_policy": '"allow"', "rules[1]": "{}"})
    assert [str(change) for change in compare_settings(SNAPSHOT, now)] == [
        'changed: default_policy: "ask" → "allow"',
        "added: rules[1] = {}",
    ]


def test_events_change_the_snapshot_as_they_change_the_rules() -> None:
    session = Rule(id="r9", effect="allow", command="ls", scope="session", session="k")
    after = SNAPSHOT
    for event in (
        RuleAdded(rule=session, by="ann"),
        RuleRemoved(rule="r1", by="ann"),
        RuleRemoved(rule="unknown", by="ann"),
        FolderTrusted(folder="/v", config="sha", by="ann"),
        FolderDistrusted(folder="/w", by="ann"),
    ):
        after = after.apply(event)
    assert (dict(after.rules), dict(after.folders)) == ({}, {"/v": "sha"})
    assert after.settings == SNAPSHOT.settings


def test_a_disabled_rule_and_the_order_of_rules_are_part_of_the_snapshot() -> None:
    disabled = SNAPSHOT.apply(RuleDisabled(rule="r1", by="ann"))
    assert disabled.rules_hash != SNAPSHOT.rules_hash
    (change,) = compare_rules(disabled, SNAPSHOT)
    was = "changed: rule r1: allow `make …` in this project, /w"
    assert str(change).startswith(f"{was}, disabled → rule r1: ")
    assert disabled.apply(RuleEnabled(rule="r1", by="ann")).rules_hash == SNAPSHOT.rules_hash
    assert SNAPSHOT.apply(RulesOrdered(rules=("r1",), by="ann")).rules_hash != SNAPSHOT.rules_hash
    assert SNAPSHOT.apply(RuleDisabled(rule="unknown", by="ann")) == SNAPSHOT


def test_the_digest_of_rules_is_that_of_versions_without_a_switch() -> None:
    """The keeper's baseline outlives an upgrade: a new field must not make every accepted policy a changed one."""
    rules = PolicySnapshot(rules={"r1": Rule(id="r1", effect="deny", command="git push")})
    assert rules.rules_hash == "8fdea8d07367d7c937a29eb0328fd7678d768fbc6b0e4baf6a4077f267a64af1"


@pytest.mark.parametrize(
    "other",
    [
        PolicySnapshot(folders={"/w": None}),
        PolicySnapshot(rules={"r1": MAKE}),
        PolicySnapshot(rules={"r1": replace(MAKE, command="make x")}, folders={"/w": None}),
        PolicySnapshot(rules={"r1": MAKE}, folders={"/w": "sha"}),
    ],
)
def test_any_change_of_a_rule_or_of_trust_changes_the_digest(other: PolicySnapshot) -> None:
    assert other.rules_hash != SNAPSHOT.rules_hash


def test_a_baseline_survives_its_encoding() -> None:
    kept = replace(baseline(SNAPSHOT), next_config="n", next_by="ann")
    assert decode_baseline(kept.encode()) == kept
    assert (decode_baseline(None), decode_baseline(b"")) == (None, None)


def test_a_baseline_that_is_too_long_keeps_its_digests_only() -> None:
    noise = {f"r{n}": replace(MAKE, id=f"r{n}", note=f"{n**9:x}" * 40) for n in range(1, 2000)}
    kept = baseline(PolicySnapshot(rules=noise))
    blob = kept.encode()
    assert len(blob) < MOST_BYTES
    assert decode_baseline(blob) == replace(kept, snapshot=None)


def test_only_settings_that_allow_or_start_nothing_are_passive() -> None:
    settings = {"server.port": "1", "default_policy": "x", "command.env_pass": "x", "terminal.shell": "x"}
    assert set(PolicySnapshot(settings=settings).passive.settings) == {"server.port"}
