"""Work that an agent does itself claims what the agent says of it, so that rules about commands, paths and hosts decide."""

from pathlib import Path
from typing import Any

import pytest

from handrail.gate.tool import Refusal
from handrail.store.values import Caller, CommandPreview, DiffPreview, PathPreview
from handrail.tools.agent_work import UNCLEAR, UNSTATED, AgentWork, AgentWorkInput, WorkPlan

pytestmark = pytest.mark.anyio

PATH = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def tool(home: Path) -> AgentWork:
    return AgentWork((home,), {"PATH": PATH})


async def plan(tool: AgentWork, caller: Caller, **said: Any) -> WorkPlan:
    return await tool.plan(AgentWorkInput.model_validate(said), caller)


def claimed(plan: WorkPlan) -> list[tuple[str, str, bool]]:
    return [(claim.action, claim.resource, claim.inside) for claim in plan.claims]


async def test_a_command_claims_what_it_would_if_it_were_ours(
    tool: AgentWork, caller: Caller, root: Path
) -> None:
    found = await plan(
        tool, caller, sort="execute", input={"command": "git status && rm -r /etc/x"}, title="t"
    )
    assert [(claim.words, claim.inside) for claim in found.claims] == [
        (("git", "status"), True),
        (("rm", "-r", "/etc/x"), False),
    ]
    assert found.preview == CommandPreview(
        command="git status && rm -r /etc/x", cwd=str(root), program="test, by itself"
    )


async def test_a_command_given_as_words_is_read_as_those_words(tool: AgentWork, caller: Caller) -> None:
    found = await plan(tool, caller, sort="execute", input={"command": ["git", "commit", "-m", "a b"]})
    assert [claim.words for claim in found.claims] == [("git", "commit", "-m", "a b")]


async def test_a_shell_within_the_words_is_looked_into(tool: AgentWork, caller: Caller) -> None:
    found = await plan(tool, caller, sort="execute", input={"command": ["bash", "-lc", "git push"]})
    assert any(claim.words[:2] == ("git", "push") for claim in found.claims)


async def test_a_command_runs_where_the_agent_says(
    tool: AgentWork, caller: Caller, root: Path, tmp_path: Path
) -> None:
    (root / "sub").mkdir()
    here = await plan(tool, caller, sort="execute", input={"command": "ls", "cwd": str(root / "sub")})
    assert isinstance(here.preview, CommandPreview)
    assert here.preview.cwd == str(root / "sub")
    outside = await plan(tool, caller, sort="execute", input={"command": "ls"}, cwd=str(tmp_path))
    assert [claim.opaque for claim in outside.claims if claim.opaque] == ["runs outside the workspace"]


@pytest.mark.parametrize(
    ("sort", "actions"),
    [
        ("read", ["read"]),
        ("search", ["read"]),
        ("edit", ["write"]),
        ("delete", ["delete"]),
        ("move", ["write", "delete"]),
    ],
)
async def test_work_on_files_claims_the_places_it_names(
    tool: AgentWork, caller: Caller, root: Path, sort: str, actions: list[str]
) -> None:
    found = await plan(tool, caller, sort=sort, locations=[{"path": str(root / "a.py"), "line": 3}])
    assert claimed(found) == [(action, str(root / "a.py"), True) for action in actions]


async def test_a_place_outside_or_protected_is_claimed_as_such(
    tool: AgentWork, caller: Caller, root: Path, home: Path
) -> None:
    paths = [{"path": "/etc/hosts"}, {"path": str(root / ".env")}, {"path": f"file://{home}/x"}]
    found = await plan(tool, caller, sort="read", locations=paths)
    assert [(claim.inside, claim.protected) for claim in found.claims] == [
        (False, False),
        (True, True),
        (False, True),
    ]


async def test_a_diff_claims_its_file_and_is_shown_as_the_agents_word(
    tool: AgentWork, caller: Caller, root: Path
) -> None:
    said = {"path": str(root / "a.py"), "old": "x = 1\n", "new": "x = 2\n"}
    found = await plan(tool, caller, sort="edit", diffs=[said], locations=[{"path": str(root / "a.py")}])
    assert claimed(found) == [("write", str(root / "a.py"), True)]
    assert isinstance(found.preview, DiffPreview)
    assert found.preview.diff.endswith("-x = 1\n+x = 2\n")
    assert (found.preview.added, found.preview.removed) == (1, 1)
    assert found.preview.notes == ("As the agent says it; Handrail has not looked at the file.",)


async def test_several_diffs_are_all_shown_and_claimed(tool: AgentWork, caller: Caller, root: Path) -> None:
    said = [{"path": str(root / name), "new": f"{name}\n"} for name in "ab"]
    found = await plan(tool, caller, sort="edit", diffs=said)
    assert len(found.claims) == 2
    assert isinstance(found.preview, DiffPreview)
    assert "+a\n" in found.preview.diff
    assert "+b\n" in found.preview.diff
    assert found.preview.notes[0] == "Changes 2 files."


async def test_a_path_in_the_agents_own_input_will_do(tool: AgentWork, caller: Caller, root: Path) -> None:
    found = await plan(tool, caller, sort="edit", input={"file_path": str(root / "a.py"), "old_string": "x"})
    assert claimed(found) == [("write", str(root / "a.py"), True)]
    assert found.preview == PathPreview(path=str(root / "a.py"))


async def test_a_fetch_claims_the_machine(tool: AgentWork, caller: Caller) -> None:
    found = await plan(tool, caller, sort="fetch", input={"url": "https://user@Example.org:8443/x?y"})
    assert claimed(found) == [("connect", "example.org", True)]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"title": "Think hard", "sort": "think"},
        {"sort": "execute", "input": {"command": "  "}},
        {"sort": "execute", "input": "rm -rf /"},
        {"sort": "execute", "input": {"command": 7}},
        {"sort": "execute", "input": {"command": "ls \0"}},
        {"sort": "execute", "input": {"command": "x" * 200_000}},
        {"sort": "edit"},
        {"sort": "fetch", "input": {"query": "weather"}},
        {"sort": "of_no_known_kind", "locations": [{"path": "a"}]},
    ],
)
async def test_what_says_too_little_is_one_claim_that_no_rule_can_allow(
    tool: AgentWork, caller: Caller, said: dict[str, Any]
) -> None:
    found = await plan(tool, caller, **said)
    assert [claim.opaque for claim in found.claims] == [UNSTATED]
    assert found.preview is None


async def test_what_is_no_plain_command_is_forbidden_like_one_but_never_allowed(
    tool: AgentWork, caller: Caller
) -> None:
    found = await plan(tool, caller, sort="other", input={"command": "git push"}, title="deploy.run")
    assert [(claim.words, claim.opaque) for claim in found.claims] == [(("git", "push"), ""), ((), UNSTATED)]


@pytest.mark.parametrize("path", ["", "a\0b", "/proc/self/environ", "x" * 5000])
async def test_a_path_that_leads_nowhere_is_not_understood(
    tool: AgentWork, caller: Caller, path: str
) -> None:
    found = await plan(tool, caller, sort="read", locations=[{"path": path}])
    assert [bool(claim.opaque) for claim in found.claims] == [True]


async def test_a_line_that_nobody_could_judge_is_refused(tool: AgentWork, caller: Caller) -> None:
    with pytest.raises(Refusal, match="nobody could judge"):
        await plan(tool, caller, sort="execute", input={"command": "ls;" * 5000})


def test_its_line_in_a_list_is_the_command_or_what_the_agent_calls_it(tool: AgentWork) -> None:
    run = AgentWorkInput(sort="execute", title="Run it", input={"command": "make  test"})
    assert tool.display(run) == "make  test"
    assert tool.display(AgentWorkInput(sort="edit", title="Edit a.py")) == "Edit a.py"
    assert tool.display(AgentWorkInput()) == "other"


@pytest.mark.parametrize(
    ("said", "worst"),
    [
        ({"sort": "read", "input": {"command": "rm -rf ."}}, ("run", ("rm", "-rf", "."))),
        ({"sort": "read", "input": {"file_path": "/etc/shadow"}}, ("read", ())),
        ({"sort": "read", "diffs": [{"path": "/etc/passwd", "new": "x"}]}, ("write", ())),
        ({"sort": "fetch", "input": {"url": "https://a.org", "path": "/etc/x"}}, ("write", ())),
        (
            {"sort": "execute", "input": {"command": "ls"}, "diffs": [{"path": "/x", "new": ""}]},
            ("write", ()),
        ),
    ],
)
async def test_a_word_that_understates_takes_nothing_from_another(
    tool: AgentWork, caller: Caller, root: Path, said: dict[str, Any], worst: tuple[str, Any]
) -> None:
    found = await plan(tool, caller, **{"locations": [{"path": str(root / "a.py")}], **said})
    assert worst in [(claim.action, claim.words) for claim in found.claims]
    assert any(claim.opaque or not claim.inside for claim in found.claims)


async def test_what_was_said_before_counts_and_what_was_left_out_is_not_understood(
    tool: AgentWork, caller: Caller, root: Path
) -> None:
    here: dict[str, Any] = {"sort": "read", "locations": [{"path": str(root / "a.py")}]}
    assert not any(claim.opaque for claim in (await plan(tool, caller, **here)).claims)
    before = await plan(tool, caller, **here, before={"sort": "execute", "input": {"command": "git push"}})
    assert ("git", "push") in [claim.words for claim in before.claims]
    assert before.preview is None
    partly = await plan(tool, caller, **here, partly=True)
    assert [claim.opaque for claim in partly.claims] == ["", UNCLEAR]
    nothing = await plan(tool, caller, sort="edit", before=here)
    assert UNSTATED in [claim.opaque for claim in nothing.claims]
