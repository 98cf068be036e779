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
from handrail.store.events import FolderDistrusted, FolderTrusted, RuleAdded, RuleRemoved
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
