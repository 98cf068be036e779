"""The accepted policy against the one that a daemon found at its start: what is held back, and what releases it."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gate.rules.test_rules import Desk, desk
from tests.support.actors import ANN
from tests.support.policy_values import claim

from handrail.errors import Conflict
from handrail.gate.rules.accepted_policy import AcceptedPolicy, FoundPolicy
from handrail.gate.rules.policy_snapshot import Baseline, PolicySnapshot, decode_baseline
from handrail.gate.rules.rules import UserRules
from handrail.gate.rules.trust import TrustedFolder
from handrail.store.events import PolicyAccepted
from handrail.store.values import Rule

pytestmark = pytest.mark.anyio

FORGED = Rule(id="r6", effect="allow", command="make", scope="user")
DENIED = Rule(id="r7", effect="deny", command="rm", scope="user")
AUTO = {"default_policy": '"allow"'}


class Start:
    """One start of a daemon, and what it remembers for the next."""

    def __init__(self, at: Desk, found: FoundPolicy) -> None:
        self.at = at
        self.kept: list[bytes] = []
        self.policy = AcceptedPolicy(at.rules, at.journal, found, self._keep)

    async def _keep(self, blob: bytes) -> None:
        self.kept.append(blob)

    def remembered(self) -> Baseline | None:
        return decode_baseline(self.kept[-1]) if self.kept else None


def accepted(rules: Mapping[str, Rule] | None = None, settings: Mapping[str, str] | None = None) -> Baseline:
    snapshot = PolicySnapshot(rules=rules or {}, settings=settings or {})
    return Baseline(rules=(snapshot.rules_hash,), config=snapshot.config_hash, snapshot=snapshot)


@asynccontextmanager
async def start(
    path: Path,
    baseline: Baseline | None,
    *rules: Rule,
    trusts: bool = False,
    settings: Mapping[str, str] | None = None,
    attended: bool = False,
    faults: tuple[str, ...] = (),
) -> AsyncGenerator[Start]:
    root = str((path / "work").resolve())
    (path / "work").mkdir(exist_ok=True)
    trusted = [TrustedFolder(folder=root, config=None)] if trusts else []
    standing = UserRules(default="allow" if settings == AUTO else "ask")
    async with desk(path, standing, kept=rules, trusted=trusted) as at:
        snapshot = PolicySnapshot(
            rules={rule.id: rule for rule in rules},
            folders={each.folder: each.config for each in trusted},
            settings=settings or {},
        )
        yield Start(at, FoundPolicy(snapshot=snapshot, baseline=baseline, attended=attended, faults=faults))


async def test_the_same_policy_is_in_force(tmp_path: Path) -> None:
    async with start(tmp_path, accepted({"r6": FORGED}), FORGED) as now:
        assert (now.policy.changes, now.at.rules.suspended) == ((), "")


async def test_another_rule_asks_until_it_is_accepted(tmp_path: Path) -> None:
    async with start(tmp_path, accepted(), FORGED, DENIED, trusts=True) as now:
        assert [change.change for change in now.policy.changes] == ["added"] * 3
        assert now.at.effect("make") == "ask"
        assert now.at.effect("rm") == "deny", "what denies stays in force"
        assert now.at.effect(claim("read", "/w/x", inside=True)) == "allow", "reads need no rule"
        assert "no person has accepted" in now.at.rules.policy(now.at.caller).here.distrust
        with pytest.raises(Conflict):
            await now.policy.accept("0" * 64, ANN)
        assert now.at.effect("make") == "ask"
        await now.policy.accept(now.policy.digest, ANN)
        assert now.at.effect("make") == "allow"
        (event,) = [entry.event for entry in await now.at.journal.since(0)]
        assert isinstance(event, PolicyAccepted)
        assert (event.by, len(event.changes)) == ("ann", 3)
        assert (kept := now.remembered()) is not None
        assert kept.snapshot is not None
        assert set(kept.snapshot.rules) == {"r6", "r7"}


async def test_other_settings_ask_until_they_are_accepted(tmp_path: Path) -> None:
    async with start(tmp_path, accepted(), trusts=True, settings=AUTO) as now:
        assert now.policy.holds_config
        assert now.at.effect("make") == "ask"
        released: list[bool] = []
        now.policy.on_release.append(lambda: released.append(True))
        await now.policy.accept(now.policy.digest, ANN)
        assert (now.at.effect("make"), released) == ("allow", [True])


async def test_settings_that_a_person_changes_here_are_expected_before_they_are_written(
    tmp_path: Path,
) -> None:
    async with start(tmp_path, accepted()) as now:
        expected: list[str] = []

        async def write() -> None:
            kept = now.remembered()
            assert kept is not None
            expected.append(kept.next_config)

        await now.policy.change_settings(AUTO, write, ANN)
        digest = PolicySnapshot(settings=AUTO).config_hash
        assert (expected, now.policy.settings) == ([digest], AUTO)
        assert (kept := now.remembered()) is not None
        assert (kept.config, kept.next_config) == (digest, "")

        async def fail() -> None:
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            await now.policy.change_settings({}, fail, ANN)
        await now.policy.remember()
        assert (kept := now.remembered()) is not None
        assert (kept.config, kept.next_config) == (digest, "")
    async with start(tmp_path, accepted(), settings=AUTO) as now:
        with pytest.raises(Conflict):  # what is not accepted is not accepted by a change
            await now.policy.change_settings({}, fail, ANN)


async def test_a_default_that_denies_still_denies(tmp_path: Path) -> None:
    async with desk(tmp_path, UserRules(default="deny")) as at:
        at.rules.suspend("Changed.")
        assert at.effect("make") == "deny"


async def test_with_nothing_to_compare_a_person_who_starts_it_accepts_what_is_there(tmp_path: Path) -> None:
    async with start(tmp_path, None, FORGED, attended=True, settings=AUTO) as now:
        assert (now.policy.changes, now.policy.known) == ((), False)
        await now.policy.remember()
        assert (kept := now.remembered()) is not None
        assert kept.snapshot is not None
        assert kept.snapshot.settings == AUTO


async def test_with_nothing_to_compare_no_other_start_takes_anything_up(tmp_path: Path) -> None:
    settings = {"server.port": "8000", "human_in_the_loop": "false"}
    async with start(tmp_path, None, FORGED, settings=settings) as now:
        assert [change.what.split()[0] for change in now.policy.changes] == ["rule", "human_in_the_loop"]
        await now.policy.remember()
        assert now.kept == [], "what nobody accepted is not remembered"


async def test_with_nothing_that_allows_there_is_nothing_to_accept(tmp_path: Path) -> None:
    async with start(tmp_path, None, settings={"server.port": "8000"}) as now:
        assert now.policy.changes == ()
        await now.at.add(command="make")
        assert (kept := now.remembered()) is not None
        assert len(kept.rules) == 2, "the rules before and after, while the change is written"


async def test_faults_of_the_journal_are_held_back_even_if_nothing_else_differs(tmp_path: Path) -> None:
    async with start(tmp_path, None, FORGED, attended=True, faults=("Event 3 was altered.",)) as now:
        assert now.policy.holds_journal
        assert now.at.rules.suspended
        await now.policy.accept(now.policy.digest, ANN)
        assert not now.policy.holds_journal


async def test_a_person_who_removes_what_was_added_needs_to_accept_nothing(tmp_path: Path) -> None:
    async with start(tmp_path, accepted(), FORGED) as now:
        await now.at.rules.remove("r6", ANN)
        assert (now.policy.changes, now.at.rules.suspended) == ((), "")


async def test_a_rule_that_a_person_adds_meanwhile_is_accepted_but_not_in_force(tmp_path: Path) -> None:
    async with start(tmp_path, accepted(), FORGED) as now:
        mine = await now.at.add(command="npm test")
        assert [change.what.split(":")[0] for change in now.policy.changes] == ["rule r6"]
        assert now.at.effect("npm test") == "ask"
        await now.policy.accept(now.policy.digest, ANN)
        assert now.at.decides("npm test") == ("allow", mine.id)


async def test_a_crash_while_a_rule_is_written_raises_no_alarm_either_way(tmp_path: Path) -> None:
    async with start(tmp_path, accepted()) as now:
        mine = await now.at.add(command="npm test")
        kept = decode_baseline(now.kept[0])
    (tmp_path / "with").mkdir()
    async with start(tmp_path / "with", kept, mine) as later:
        assert later.policy.changes == ()
    (tmp_path / "without").mkdir()
    async with start(tmp_path / "without", kept) as later:
        assert later.policy.changes == ()
    (tmp_path / "other").mkdir()
    async with start(tmp_path / "other", kept, replace(mine, command="npm")) as later:
        assert later.policy.changes


async def test_settings_that_a_person_restarts_with_are_taken_up_and_named(tmp_path: Path) -> None:
    async with start(tmp_path, accepted()) as now:
        await now.policy.expect_config(PolicySnapshot(settings=AUTO).config_hash, ANN)
        kept = now.remembered()
    (tmp_path / "later").mkdir()
    async with start(tmp_path / "later", kept, settings=AUTO) as later:
        assert later.policy.changes == ()
        assert ([str(change) for change in later.policy.taken], later.policy.taken_by) == (
            ['added: default_policy = "allow"'],
            "ann",
        )
    (tmp_path / "else").mkdir()
    async with start(tmp_path / "else", kept, settings={"human_in_the_loop": "false"}) as later:
        assert later.policy.holds_config, "the restart was about other settings"


async def test_nothing_is_expected_while_changes_are_held_back(tmp_path: Path) -> None:
    async with start(tmp_path, accepted(), settings=AUTO) as now:
        with pytest.raises(Conflict):
            await now.policy.expect_config(PolicySnapshot(settings=AUTO).config_hash, ANN)


async def test_a_baseline_without_its_content_still_detects_a_change(tmp_path: Path) -> None:
    async with start(tmp_path, replace(accepted(), snapshot=None), FORGED, settings=AUTO) as now:
        assert [(change.part, change.change) for change in now.policy.changes] == [
            ("rules", "changed"),
            ("config", "changed"),
        ]
