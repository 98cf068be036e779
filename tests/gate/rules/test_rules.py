"""All rules together: who may make them, where and how long they hold, and what trust changes."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.support.actors import ANN, BOB
from tests.support.gate_world import full_disk
from tests.support.policy_values import RUN, brief, claim, runs

from handrail.errors import Conflict, Unwritable
from handrail.gate.rules.rule_builder import BadRule
from handrail.gate.rules.rules import Rules, UnknownRule, UserRules
from handrail.gate.rules.trust import TrustedFolder
from handrail.store.events import (
    FolderDistrusted,
    FolderTrusted,
    RuleAdded,
    RuleDisabled,
    RuleEnabled,
    RuleRemoved,
)
from handrail.store.journal import Journal, open_journal
from handrail.store.values import Caller, Claim, Effect, Rule

DENIES_PUSH = '[[rules]]\neffect = "deny"\ncommand = "git push"\n'
ALLOWS_MAKE = '[[rules]]\neffect = "allow"\ncommand = "make"\n'


class Clock:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


class Desk:
    """Rules in a workspace, and a caller who sits in it."""

    def __init__(self, journal: Journal, root: Path, rules: Rules, clock: Clock) -> None:
        self.journal = journal
        self.root = root
        self.rules = rules
        self.clock = clock
        self.caller = Caller(door="stdio", client="one", key="one@desk", workspace=str(root))

    def decides(self, what: str | Claim, caller: Caller | None = None) -> tuple[Effect, str]:
        who = caller or self.caller
        claims = runs(what) if isinstance(what, str) else [what]
        return brief(self.rules.policy(who).decide(RUN, claims, who))

    def effect(self, what: str | Claim, caller: Caller | None = None) -> Effect:
        return self.decides(what, caller)[0]

    def writes(self, text: str) -> str | None:
        """Write the project's file; its SHA-256 as the rules see it."""
        (self.root / ".handrail").mkdir(exist_ok=True)
        (self.root / ".handrail" / "config.toml").write_text(text)
        return self.rules.folder(str(self.root)).config

    async def trust(self) -> None:
        await self.rules.trust(str(self.root), self.rules.folder(str(self.root)).config, ANN)

    async def add(self, **fields: Any) -> Rule:
        wanted: dict[str, Any] = {"workspace": str(self.root), **fields}
        rule = self.rules.build_rule(**wanted)
        await self.rules.add(rule, ANN)
        return rule


@asynccontextmanager
async def desk(path: Path, standing: UserRules | None = None, **given: Any) -> AsyncGenerator[Desk]:
    root = path / "work"
    root.mkdir(exist_ok=True)
    clock = Clock()
    async with open_journal(path / "handrail.db", path / "handrail.head") as journal:
        rules = Rules(journal, standing or UserRules(), now=clock, home=str(path / "home"), **given)
        yield Desk(journal, root.resolve(), rules, clock)


async def facts(journal: Journal) -> list[Any]:
    await journal.committed(journal.head)
    return [entry.event for entry in await journal.since(0)]


async def test_a_rule_holds_from_its_making_until_its_removal_and_both_are_facts(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        assert at.effect("make") == "ask"
        rule = await at.add(command="make")
        assert at.decides("make") == ("allow", rule.id)
        await at.rules.remove(rule.id, BOB)
        assert at.effect("make") == "ask"
        assert await facts(at.journal) == [
            RuleAdded(rule=rule, by="ann"),
            RuleRemoved(rule=rule.id, by="bob"),
        ]


async def test_whoever_watches_is_told_of_every_change(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        told: list[str] = []
        at.rules.on_change.append(lambda: told.append(at.effect("make")))
        rule = await at.add(command="make")
        await at.rules.remove(rule.id, ANN)
        await at.trust()
        await at.rules.distrust(str(at.root), ANN)
        assert told == ["allow", "ask", "ask", "ask"]


async def test_a_rule_of_a_session_is_forgotten_with_the_daemon_and_others_are_kept(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        mine = await at.add(command="make", scope="session", session=at.caller.key)
        kept = await at.add(command="npm test")
        assert at.decides("make") == ("allow", mine.id)
        other = Caller(door="stdio", client="two", key="two@desk", workspace=str(at.root))
        assert at.effect("make", other) == "ask"
    (tmp_path / "again").mkdir()
    async with desk(tmp_path / "again", kept=[mine, kept]) as later:
        assert [each.rule for each in later.rules.known()] == [kept]


async def test_a_rule_about_a_server_from_an_old_journal_is_listed_and_can_be_removed(tmp_path: Path) -> None:
    old = Rule(id="r1", effect="deny", server="github")
    async with desk(tmp_path, kept=[old]) as at:
        assert [each.rule for each in at.rules.known()] == [old]
        assert at.effect("make") == "ask"
        await at.rules.remove("r1", ANN)
        assert at.rules.known() == []


async def test_a_rule_of_a_project_holds_in_that_folder_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.add(command="make")
        elsewhere = tmp_path / "else"
        elsewhere.mkdir()
        other = Caller(door="stdio", client="one", key="k", workspace=str(elsewhere))
        inner = at.root / "inner"
        inner.mkdir()
        below = Caller(door="stdio", client="one", key="k", workspace=str(inner))
        assert (at.effect("make"), at.effect("make", other), at.effect("make", below)) == (
            "allow",
            "ask",
            "ask",
        )


async def test_a_folder_is_the_same_by_whatever_link_it_is_reached(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        (tmp_path / "link").symlink_to(at.root)
        linked = Caller(door="stdio", client="one", key="k", workspace=str(tmp_path / "link"))
        await at.add(command="make", workspace=str(tmp_path / "link"))
        assert at.effect("make", linked) == "allow"
        assert at.effect("make") == "allow"


async def test_a_rule_of_the_user_allows_in_trusted_folders_and_forbids_everywhere(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.add(command="make", scope="user")
        await at.add(command="git push", scope="user", effect="deny")
        assert at.decides("make") == ("ask", "untrusted folder")
        assert at.effect("git push") == "deny"
        await at.trust()
        assert at.effect("make") == "allow"
        await at.rules.distrust(str(at.root), ANN)
        assert at.effect("make") == "ask"
        assert [type(fact) for fact in await facts(at.journal)][-2:] == [FolderTrusted, FolderDistrusted]


async def test_a_disabled_rule_decides_nothing_until_it_is_enabled(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        allows = await at.add(command="make")
        denies = await at.add(command="git push", effect="deny")
        await at.rules.switch(allows.id, False, ANN)
        await at.rules.switch(denies.id, False, ANN)
        assert (at.effect("make"), at.effect("git push")) == ("ask", "ask")
        assert [each.says for each in at.rules.listing() if each.rule.command] == ["It is disabled."] * 2
        assert await at.rules.switch(allows.id, False, ANN) is None
        await at.rules.switch(allows.id, True, ANN)
        await at.rules.switch(denies.id, True, ANN)
        assert (at.effect("make"), at.effect("git push")) == ("allow", "deny")
        switches = [RuleDisabled, RuleDisabled, RuleEnabled, RuleEnabled]
        assert [type(fact) for fact in await facts(at.journal)][-4:] == switches
        with pytest.raises(UnknownRule):
            await at.rules.switch("r0", True, ANN)


async def test_the_order_says_which_matching_rule_decides(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        first, second = await at.add(command="make"), await at.add(command="make test")
        denies = await at.add(command="git push", effect="deny")
        assert at.decides("make test") == ("allow", first.id)
        await at.rules.move(second.id, first.id, ANN)
        assert at.decides("make test") == ("allow", second.id)
        third = await at.add(command="make all")
        order = [
            each.rule.id for each in at.rules.listing() if each.rule.effect == "allow" and each.rule.command
        ]
        assert order == [second.id, first.id, third.id]
        await at.rules.move(second.id, None, ANN)
        assert at.decides("make test") == ("allow", first.id)
        assert await at.rules.move(second.id, None, ANN) is None
        with pytest.raises(BadRule, match="another effect"):
            await at.rules.move(second.id, denies.id, ANN)


async def test_a_rule_ends_at_its_hour(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.add(command="make", expires_in=60)
        at.clock.now += 59_999
        assert at.effect("make") == "allow"
        at.clock.now += 1
        assert at.effect("make") == "ask"
        assert [each.says for each in at.rules.listing() if each.rule.command] == ["It expired."]


async def test_auto_approve_and_low_risk_need_a_trusted_folder(tmp_path: Path) -> None:
    async with desk(tmp_path, UserRules(default="allow", human_in_the_loop=False)) as at:
        assert at.decides("make") == ("ask", "untrusted folder")
        assert at.effect(claim("read", str(at.root / "a"))) == "allow"
        await at.trust()
        assert at.decides("make") == ("allow", "default policy")
        assert at.decides(claim("write", "/etc/a", inside=False)) == ("ask", "high risk")


async def test_a_projects_file_only_tightens_until_its_folder_is_trusted(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        sha = at.writes(f"{DENIES_PUSH}{ALLOWS_MAKE}")
        assert sha is not None
        assert at.effect("git push") == "deny"
        assert at.decides("make") == ("ask", "untrusted folder")
        await at.rules.trust(str(at.root), sha, ANN)
        assert at.effect("git push") == "deny"
        assert at.effect("make") == "allow"


async def test_a_projects_file_that_changed_since_allows_nothing_and_the_folder_stays_trusted(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path) as at:
        at.writes(ALLOWS_MAKE)
        await at.trust()
        assert at.effect("make") == "allow"
        at.writes(f'{ALLOWS_MAKE}{DENIES_PUSH}[[rules]]\neffect = "allow"\ncommand = "rm"\n')
        assert at.decides("make") == ("ask", "default policy")
        assert at.effect("rm x") == "ask"
        assert at.effect("git push") == "deny"
        folder = at.rules.folder(str(at.root))
        assert (folder.trusted, "not the one that was trusted" in folder.problem) == (True, True)
        await at.trust()
        assert at.effect("make") == "allow"


async def test_a_file_that_appears_after_the_folder_was_trusted_allows_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.trust()
        at.writes(ALLOWS_MAKE)
        assert at.effect("make") == "ask"


async def test_the_same_content_again_is_trusted_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.writes(ALLOWS_MAKE)
        await at.trust()
        at.writes("# nothing\n")
        assert at.effect("make") == "ask"
        at.writes(ALLOWS_MAKE)
        assert at.effect("make") == "allow"


@pytest.mark.parametrize(
    ("own", "theirs", "untrusted", "trusted"),
    [
        (UserRules(default="ask"), 'default_policy = "allow"', "ask", "allow"),
        (UserRules(default="allow"), 'default_policy = "ask"', "ask", "ask"),
        (UserRules(default="ask"), 'default_policy = "deny"', "deny", "deny"),
        (UserRules(default="deny"), 'default_policy = "ask"', "deny", "ask"),
        (UserRules(human_in_the_loop=False), "human_in_the_loop = true", "ask", "ask"),
    ],
)
async def test_a_projects_settings_only_tighten_until_they_are_trusted(
    tmp_path: Path, own: UserRules, theirs: str, untrusted: Effect, trusted: Effect
) -> None:
    async with desk(tmp_path, own) as at:
        at.writes(theirs)
        assert at.effect("make") == untrusted
        await at.trust()
        assert at.effect("make") == trusted


async def test_reading_commands_can_be_switched_off_by_the_person_and_by_a_project(tmp_path: Path) -> None:
    cases = (
        (UserRules(), "", "reading commands"),
        (UserRules(allow_reading_commands=False), "", "default policy"),
        (UserRules(), "allow_reading_commands = false", "default policy"),
        (UserRules(allow_reading_commands=False), "allow_reading_commands = true", "default policy"),
    )
    for number, (own, theirs, rule) in enumerate(cases):
        (tmp_path / str(number)).mkdir()
        async with desk(tmp_path / str(number), own) as at:
            at.writes(theirs)
            reading = Claim(action="run", resource="ls", inside=True, words=("ls",), reads=True)
            assert at.decides(reading) == ("ask", "untrusted folder")
            await at.trust()
            assert at.decides(reading)[1] == rule
            assert at.decides(replace(reading, inside=False))[1] == "default policy"


async def test_a_file_that_was_not_trusted_takes_no_human_out_of_the_loop(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.trust()
        at.writes("human_in_the_loop = false")
        assert at.decides("ls") == ("ask", "default policy")
        await at.trust()
        assert at.decides("ls") == ("allow", "low risk")


async def test_a_rule_is_checked_again_when_it_is_added(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        with pytest.raises(BadRule, match="many programs"):
            await at.rules.add(Rule(id="r1", effect="allow", command="*"), ANN)


async def test_a_folder_whose_file_is_wrong_counts_as_untrusted_and_says_why(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.add(command="make", scope="user")
        await at.trust()
        assert at.effect("make") == "allow"
        at.writes('[[rules]]\neffect = "maybe"\n')
        decision = at.rules.policy(at.caller).decide(RUN, runs("make"), at.caller)
        assert (decision.effect, decision.rule) == ("ask", "untrusted folder")
        assert "line 2" in decision.why
        assert not at.rules.folder(str(at.root)).trusted
        with pytest.raises(Conflict, match="while its file is wrong"):
            await at.trust()


async def test_a_rule_made_for_an_untrusted_folder_by_a_person_holds_in_it(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.writes('[[rules]]\neffect = "maybe"\n')
        await at.add(command="make")
        assert at.effect("make") == "allow"


async def test_what_a_person_did_not_see_is_not_trusted(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        sha = at.writes(ALLOWS_MAKE)
        at.writes(f"{ALLOWS_MAKE}# more\n")
        with pytest.raises(Conflict, match="not as you saw it"):
            await at.rules.trust(str(at.root), sha, ANN)
        assert not at.rules.folder(str(at.root)).trusted


@pytest.mark.parametrize("where", ["/", "home", "nowhere"])
async def test_the_root_the_home_and_what_is_no_folder_cannot_be_trusted(tmp_path: Path, where: str) -> None:
    async with desk(tmp_path) as at:
        (tmp_path / "home").mkdir()
        with pytest.raises(Conflict, match="cannot be trusted"):
            await at.rules.trust("/" if where == "/" else str(tmp_path / where), None, ANN)


async def test_trust_of_the_past_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "work"
    trusted = [TrustedFolder(folder=str(root.resolve()), config=None)]
    async with desk(tmp_path, UserRules(default="allow"), trusted=trusted) as at:
        assert at.effect("make") == "allow"
        assert [(each.folder, each.trusted) for each in at.rules.folders()] == [(str(at.root), True)]


async def test_a_rule_that_stands_in_a_file_is_removed_there(tmp_path: Path) -> None:
    own = Rule(id="r1", effect="allow", command="make", source="config.toml:3")
    async with desk(tmp_path, UserRules(rules=(own,))) as at:
        with pytest.raises(BadRule, match=r"config\.toml:3"):
            await at.rules.remove("r1", ANN)
        with pytest.raises(UnknownRule):
            await at.rules.remove("r2", ANN)


async def test_a_policy_is_made_once_and_anew_when_something_changed(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        first = at.rules.policy(at.caller)
        assert at.rules.policy(at.caller) is first
        await at.add(command="make")
        assert at.rules.policy(at.caller) is not first


async def test_a_rule_that_is_only_thought_about_changes_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        rule = at.rules.build_rule(command="make", workspace=str(at.root))
        thought = at.rules.policy(at.caller, rule)
        assert thought.decide(RUN, runs("make"), at.caller).effect == "allow"
        assert at.effect("make") == "ask"


async def test_an_allow_rule_that_cannot_be_recorded_is_never_in_force(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.rules.on_change.append(lambda: pytest.fail("nothing has changed"))
        with full_disk(tmp_path), pytest.raises(Unwritable):
            await at.add(command="make")
        assert at.effect("make") == "ask"
        assert at.rules.known() == []


async def test_trust_that_cannot_be_recorded_is_not_given(tmp_path: Path) -> None:
    async with desk(tmp_path, UserRules(default="allow")) as at:
        with full_disk(tmp_path), pytest.raises(Unwritable):
            await at.trust()
        assert not at.rules.folder(str(at.root)).trusted
        assert at.effect("make") == "ask"


async def test_an_allow_rule_is_in_force_only_after_its_commit(tmp_path: Path) -> None:
    async with desk(tmp_path) as at, anyio.create_task_group() as group:
        rule = at.rules.build_rule(command="make", workspace=str(at.root))
        group.start_soon(at.rules.add, rule, ANN)
        while at.journal.head == 0:
            await anyio.lowlevel.checkpoint()
            assert at.effect("make") == "ask" or at.journal.durable == 1
        await at.journal.committed(1)
        assert at.decides("make") == ("allow", rule.id)


async def test_a_change_that_narrows_holds_immediately_and_is_reverted_if_it_cannot_be_recorded(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, UserRules(default="allow")) as at:
        await at.trust()
        rule = await at.add(command="make")
        with full_disk(tmp_path):
            with pytest.raises(Unwritable):
                await at.add(effect="deny", command="make")
            with pytest.raises(Unwritable):
                await at.rules.remove(rule.id, ANN)
            with pytest.raises(Unwritable):
                await at.rules.distrust(str(at.root), ANN)
        assert at.decides("make") == ("allow", rule.id)
        assert at.effect("npm test") == "allow", "the folder is still trusted"


async def test_plain_rules_are_a_default_and_trusted_folders(tmp_path: Path) -> None:
    async with open_journal(tmp_path / "a.db", tmp_path / "a.head") as journal:
        rules = Rules.with_default(journal, "allow", ["/w"])
        here = Caller(door="stdio", client="one", key="k", workspace="/w")
        assert rules.policy(here).decide(RUN, runs("make"), here).effect == "allow"


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "does not say what it is about"),
    ({"agent": "claude"}, "allow everything"),
    ({"command": "*"}, "many programs"),
    ({"command": "git && npm"}, "one command at a time"),
    ({"command": "git", "path": "src"}, "not command and path"),
    ({"command": "sudo make"}, "start other commands"),
    ({"command": "timeout 5 make"}, "start other commands"),
    ({"command": "bash"}, "start other commands"),
    ({"path": "/**"}, "whole machine"),
    ({"path": "../x"}, "without"),
    ({"host": "*"}, "no host"),
    ({"pattern": "git"}, "needs a tool"),
    ({"pattern": "git", "command": "git", "tool": RUN}, "not two of them"),
    ({"command": "git", "scope": "session"}, "needs a client"),
    ({"command": "git", "workspace": None}, "needs a folder"),
    ({"command": "git status", "match": ("git push",)}, "does not match it: `git push` does not fit"),
    ({"command": "git status", "match": ("git status > x",)}, "redirects"),
    ({"command": "git", "not_match": ("git push",)}, "the rule matches it: `git push` fits"),
    ({"path": "src/**", "match": ("doc/a",)}, "does not match it"),
    ({"tool": "t", "match": ("x",)}, "takes no examples"),
    ({"server": "github", "command": "git"}, "takes no command and no host"),
    ({"server": "github", "effect": "deny", "host": "example.org"}, "takes no command and no host"),
]


@pytest.mark.parametrize(("fields", "sentence"), BAD)
async def test_a_rule_that_cannot_be_meant_is_refused_with_a_sentence(
    tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    async with desk(tmp_path) as at:
        with pytest.raises(BadRule) as caught:
            await at.add(**fields)
        assert sentence in str(caught.value)
        assert await facts(at.journal) == []


GOOD: list[dict[str, Any]] = [
    {
        "command": "git status",
        "match": ("git status -s", "git status && git status"),
        "not_match": ("git statusx",),
    },
    {
        "command": "rm",
        "effect": "deny",
        "match": ("ls; rm x", "timeout 3 rm x", "/bin/rm x"),
        "not_match": ("ls",),
    },
    {"path": "src/**", "scope": "user", "match": ("src/a/b",), "not_match": ("doc/a", "/etc/src/a")},
    {"path": "~/notes/*", "match": ("~/notes/a",), "not_match": ("~/a",)},
    {"host": "*.example.org", "match": ("a.example.org",), "not_match": ("example.org",)},
    {"tool": RUN, "pattern": "git status"},
    {"tool": "write_file", "pattern": "src/**"},
    {"agent": "codex", "effect": "deny"},
    {"command": "sudo", "effect": "deny", "match": ("sudo make",)},
    {"command": "npm run test:* $"},
    {"command": "git commit -m 'a; b' *"},
    {"command": "sed -n"},
    {"server": "github"},
    {"server": "github", "effect": "deny", "tool": "github__create_issue"},
    {"server": "github", "path": "src/**"},
]


@pytest.mark.parametrize("fields", GOOD)
async def test_a_rule_that_makes_sense_and_whose_examples_hold_is_made(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    async with desk(tmp_path) as at:
        rule = await at.add(**fields)
        assert rule.id.startswith("r")
        assert (rule.command, rule.path) != (None, None) or rule.host or rule.agent or rule.server


async def test_a_pattern_is_a_command_or_a_path_as_the_tool_takes_it(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        make: Callable[..., Rule] = at.rules.build_rule
        assert make(tool=RUN, pattern="git", workspace="/w").command == "git"
        assert make(tool="edit_file", pattern="git", workspace="/w").path == "git"
