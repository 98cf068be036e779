"""All rules in the order of evaluation: what holds here, what does not, and why."""

from pathlib import Path

from tests.gate.rules.test_rules import ALLOWS_MAKE, DENIES_PUSH, desk

from handrail.gate.rules.rules import UserRules
from handrail.store.values import Rule


async def test_rules_are_listed_as_they_are_evaluated_with_those_built_in(tmp_path: Path) -> None:
    own = (Rule(id="r1", effect="deny", command="rm"), Rule(id="r2", effect="allow", tool="t"))
    async with desk(tmp_path, UserRules(rules=own)) as at:
        made = await at.add(effect="ask", command="npm")
        found = at.rules.listing(str(at.root))
        assert [each.rule.id for each in found] == [
            "r1",
            "protected place",
            "not understood",
            "no workspace",
            made.id,
            "r2",
            "own record",
            "own notes",
            "reads in the workspace",
            "server resources",
            "own terminals",
            "reading commands",
            "untrusted folder",
            "low risk",
            "high risk",
            "default policy",
        ]
        assert [each.rule.id for each in found if each.removable] == [made.id]
        assert all(each.words for each in found)
        assert {each.rule.id: each.says for each in found if not each.in_force} == {
            "r2": "This folder is not trusted, so commands and changes in it ask.",
            "reading commands": "This folder is not trusted.",
            "low risk": "`human_in_the_loop` is on.",
            "high risk": "The default policy does not allow.",
        }


async def test_what_a_projects_file_allows_is_not_in_force_until_it_is_trusted(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.writes(f"{DENIES_PUSH}{ALLOWS_MAKE}")

        def files() -> list[tuple[str, bool]]:
            listed = at.rules.listing(str(at.root))
            return [(each.rule.effect, each.in_force) for each in listed if ".handrail" in each.rule.source]

        assert files() == [("deny", True), ("allow", False)]
        await at.trust()
        assert files() == [("deny", True), ("allow", True)]


async def test_without_a_folder_each_rule_is_looked_at_where_it_is_meant_to_hold(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        here, everywhere = await at.add(command="make"), await at.add(command="npm", scope="user")
        elsewhere = await at.add(command="cargo", workspace=str(tmp_path))
        listed = {each.rule.id: each.in_force for each in at.rules.listing()}
        assert [listed[each.id] for each in (here, everywhere, elsewhere)] == [True, True, True]
        there = {each.rule.id: each.says for each in at.rules.listing(str(at.root))}
        assert there[elsewhere.id] == f"It holds in {elsewhere.workspace} only."


async def test_without_a_folder_none_is_called_trusted(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        await at.trust()
        (everywhere,) = [each for each in at.rules.listing() if each.rule.id == "untrusted folder"]
        assert (everywhere.in_force, everywhere.says) == (True, "")
        (here,) = [each for each in at.rules.listing(str(at.root)) if each.rule.id == "untrusted folder"]
        assert (here.in_force, here.says) == (False, "This folder is trusted.")
