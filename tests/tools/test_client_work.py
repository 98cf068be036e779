"""A client's own work claims what it would touch, shows edits as diffs of the files on disk, and ends as it is reported."""

from pathlib import Path
from typing import Any

import pytest

from handrail.clients.hook_event import Edit, HookEvent, Json, Work
from handrail.clients.open_work import OpenWork, OpenWorks
from handrail.gate.risk import assess_call
from handrail.gate.tool import Refusal
from handrail.store.blobs import Blobs
from handrail.store.values import Caller, CommandPreview, DiffPreview
from handrail.tools.client_work import GONE, NO_ADDRESS, UNKNOWN_TOOL, ClientPlan, ClientWork, ClientWorkInput

pytestmark = pytest.mark.anyio


class Desk:
    """The tool, and the work that hooks hold open."""

    def __init__(self, home: Path, caller: Caller, root: Path) -> None:
        self.works: OpenWorks = {}
        self.tool = ClientWork(self.works, (home,), {"PATH": "/usr/bin:/bin"}, Blobs(home / "blobs"))
        self.caller = caller
        self.root = root

    def open(self, work: Work, tool: str = "Tool", **more: Any) -> ClientWorkInput:
        event = HookEvent(kind="before", session="s", cwd=str(self.root), tool=tool, work=work)
        held = OpenWork(event, lambda _input: work, "", None)
        self.works[held.id] = held
        fields: Json = {"client": "claude", "tool": tool, "input": {}, "cwd": str(self.root), "work": held.id}
        return ClientWorkInput.model_validate({**fields, **more})

    async def plan(self, **work: Any) -> ClientPlan:
        return await self.tool.plan(self.open(Work(**work)), self.caller)

    def title(self, **work: Any) -> str:
        return self.tool.display(self.open(Work(**work)))


@pytest.fixture
def desk(home: Path, caller: Caller, root: Path) -> Desk:
    return Desk(home, caller, root)


async def test_commands_are_judged_like_our_own(desk: Desk, root: Path) -> None:
    plan = await desk.plan(sort="command", commands=("git status && rm -r /etc/x", "curl https://a.example/"))
    assert [(claim.words[:1], claim.inside) for claim in plan.claims if claim.words] == [
        (("git",), True),
        (("rm",), False),
        (("curl",), True),
    ]
    assert [claim.resource for claim in plan.claims if claim.action == "connect"] == ["a.example"]
    assert plan.preview == CommandPreview(
        command="git status && rm -r /etc/x\ncurl https://a.example/",
        cwd=str(root),
        program="claude, by itself",
    )


async def test_a_command_runs_in_the_folder_that_its_input_names(desk: Desk, root: Path) -> None:
    (root / "sub").mkdir()
    plan = await desk.plan(sort="command", commands=("ls",), cwd="sub")
    assert isinstance(plan.preview, CommandPreview)
    assert plan.preview.cwd == str(root / "sub")
    outside = await desk.plan(sort="command", commands=("ls",), cwd="/")
    assert "runs outside the workspace" in [claim.opaque for claim in outside.claims]


async def test_replacements_are_shown_as_a_diff_of_the_file(desk: Desk, root: Path) -> None:
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    edit = Edit(path="a.txt", replacements=(("one", "1"), ("three", "3")))
    plan = await desk.plan(sort="edit", edits=(edit,))
    assert [(claim.action, claim.resource) for claim in plan.claims] == [("write", str(root / "a.txt"))]
    assert isinstance(plan.preview, DiffPreview)
    assert plan.preview.diff.endswith("-one\n+1\n two\n-three\n+3\n")
    assert [change.path for change in plan.files] == [str(root / "a.txt")]
    assert plan.old_contents == (b"one\ntwo\nthree\n",)


async def test_several_edits_of_one_file_are_one_change(desk: Desk, root: Path) -> None:
    (root / "a.txt").write_text("one\n")
    edits = (Edit(path="a.txt", content="two\n"), Edit(path="./a.txt", content="three\n", appended=True))
    plan = await desk.plan(sort="edit", edits=edits)
    assert isinstance(plan.preview, DiffPreview)
    assert plan.preview.diff.endswith("-one\n+two\n+three\n")
    assert len(plan.files) == 1


async def test_a_new_file_a_deletion_and_a_move_claim_what_they_do(desk: Desk, root: Path) -> None:
    (root / "old").write_text("x\n")
    (root / "gone").write_text("y\n")
    edits = (
        Edit(path="new", content="n\n"),
        Edit(path="gone", delete=True),
        Edit(path="old", move_to="moved"),
    )
    plan = await desk.plan(sort="edit", edits=edits)
    named = {(claim.action, Path(claim.resource).name) for claim in plan.claims}
    assert named == {("write", "new"), ("delete", "gone"), ("delete", "old"), ("write", "moved")}
    assert isinstance(plan.preview, DiffPreview)
    assert plan.preview.notes[0] == "Changes 4 files."
    assert {"+n", "-y", "-x", "+x"} <= set(plan.preview.diff.splitlines())


@pytest.mark.parametrize(
    ("content", "edit", "note"),
    [
        (b"one\n", Edit(path="a", replacements=(("two", "2"),)), "was not found"),
        (b"\0\1", Edit(path="a", replacements=(("two", "2"),)), "binary"),
        (b"one\n", Edit(path="a"), "does not show the new content"),
        (b"one\n", Edit(path="a", content="\0"), "NUL"),
        (b"one\n", Edit(path="a", replacements=(("", "2"),)), "empty text"),
    ],
)
async def test_an_edit_that_cannot_be_shown_is_claimed_with_a_note(
    desk: Desk, root: Path, content: bytes, edit: Edit, note: str
) -> None:
    (root / "a").write_bytes(content)
    plan = await desk.plan(sort="edit", edits=(edit,))
    assert [claim.action for claim in plan.claims] == ["write"]
    assert isinstance(plan.preview, DiffPreview)
    assert note in plan.preview.notes[0]
    assert plan.files == ()


async def test_protected_and_outside_files_are_claimed_as_such(desk: Desk, root: Path) -> None:
    plan = await desk.plan(sort="read", paths=("/etc/hosts", ".env", "~/.ssh/id_rsa"))
    assert [(claim.inside, claim.protected) for claim in plan.claims] == [
        (False, False),
        (True, True),
        (False, True),
    ]


@pytest.mark.parametrize(
    ("globs", "asks"),
    [
        ((".env",), True),
        (("*.py, .env",), True),
        ((".e*",), True),
        (("**/.env",), True),
        (("*",), True),
        (("*.{py,env}",), True),
        (("*.py",), False),
        (("**/*.ts", "!.env"), False),
        ((), False),
    ],
)
async def test_a_search_that_names_a_secret_by_a_glob_asks(
    desk: Desk, root: Path, globs: tuple[str, ...], asks: bool
) -> None:
    (root / "deep").mkdir()
    (root / "deep" / ".env").touch()
    for paths in ((), ("deep",)):
        plan = await desk.plan(sort="read", paths=paths, globs=globs)
        assert [claim.protected for claim in plan.claims] == [asks]


async def test_a_path_that_no_file_can_have_asks(desk: Desk) -> None:
    plan = await desk.plan(sort="edit", edits=(Edit(path="a\0b", content="x"),))
    assert "NUL" in plan.claims[0].opaque


async def test_reading_nothing_in_particular_reads_the_folder(desk: Desk, root: Path) -> None:
    plan = await desk.plan(sort="read")
    assert [(claim.action, claim.resource) for claim in plan.claims] == [("read", str(root))]


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (Work(sort="other"), UNKNOWN_TOOL),
        (Work(sort="other", warning="It can do anything."), "It can do anything."),
        (Work(sort="fetch"), NO_ADDRESS),
        (Work(sort="fetch", urls=("not an address",)), NO_ADDRESS),
        (
            Work(sort="command", commands=("ls",), warning="Outside of its sandbox."),
            "Outside of its sandbox.",
        ),
    ],
)
async def test_what_cannot_be_judged_is_opaque(desk: Desk, work: Work, why: str) -> None:
    plan = await desk.tool.plan(desk.open(work), desk.caller)
    assert [claim.opaque for claim in plan.claims if claim.opaque] == [why]


async def test_a_call_to_another_server_names_it_for_rules(desk: Desk) -> None:
    plan = await desk.plan(sort="mcp", server="github", server_tool="create_issue")
    assert (plan.server, plan.claims[0].resource, plan.preview) == ("github", "github create_issue", None)


async def test_harmless_work_touches_nothing(desk: Desk) -> None:
    plan = await desk.plan(sort="harmless")
    assert [claim.action for claim in plan.claims] == ["plan"]
    assert (plan.acts, assess_call(plan.claims).level) == (False, "low")


def test_titles_say_what_would_be_done(desk: Desk, root: Path) -> None:
    assert desk.title(sort="command", commands=("git push",)) == "git push"
    edit = Edit(path=str(root / "src" / "a.py"), replacements=(("a", "b"),))
    assert desk.title(sort="edit", edits=(edit, edit)) == "Edit src/a.py and 1 more file"
    assert desk.title(sort="edit", edits=(Edit(path="b", content=""),)) == "Write b"
    assert desk.title(sort="fetch", urls=("https://a.example/",)) == "Fetch https://a.example/"
    assert desk.title(sort="mcp", server="github", server_tool="list") == "github: list"
    assert desk.title(sort="other") == "Tool"


async def test_work_that_is_no_longer_open_is_refused(desk: Desk) -> None:
    asked = desk.open(Work(sort="command", commands=("ls",)))
    desk.works.clear()
    with pytest.raises(Refusal, match=GONE[:30]):
        await desk.tool.plan(asked, desk.caller)
    assert desk.tool.display(asked) == "Tool"
