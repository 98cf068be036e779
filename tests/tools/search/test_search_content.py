"""list_files, search_files and search_content, and what they refuse."""

import os
import sysconfig
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.support.actors import PAGE
from tests.support.processes import command_lines
from tests.support.tool_runner import BOUND, ToolRunner, result_of

from handrail.gate import person_actions
from handrail.terminal import ripgrep
from handrail.tools.search import search_content
from handrail.tools.search.gitignore import Glob
from handrail.tools.search.list_files import ListFiles, ListFilesInput
from handrail.tools.search.search_content import SearchContent, SearchContentInput

pytestmark = pytest.mark.anyio

TREE = {
    ".gitignore": "*.log\nbuild/\n/anchored\nd/**\n**/deep/z\n\\#hash\nfoo[!x]\n{one,two}.txt\n# comment\n\n!keep.log\n",
    ".hidden": "needle hidden\n",
    "a.py": "import os\nneedle = 1\n\nend\n",
    "b.log": "needle ignored\n",
    "keep.log": "needle kept\n",
    "build/out.py": "needle built\n",
    "anchored": "needle\n",
    "sub/anchored": "needle two\nneedle three\n",
    "sub/.gitignore": "!b.log\nonly-here\n",
    "sub/b.log": "needle whitelisted\n",
    "sub/only-here": "needle\n",
    "sub/deep/z": "needle\n",
    "sub/deep/y": "Needle with a capital\n",
    "d/e/f": "needle\n",
    "#hash": "needle\n",
    "foox": "needle\n",
    "fooy": "needle\n",
    "one.txt": "needle\n",
    "dos.txt": "first\r\nneedle\r\n",
    "latin.txt": b"caf\xe9 needle\n",
    "spa ce.txt": "needle\n",
    "new\nline.txt": "needle\n",
    "binary.bin": b"needle\0\n",
    ".mcp.json": "needle secret\n",
    ".vscode/settings.json": "needle secret\n",
    "no-newline": "needle at the end",
}
SEEN = [
    ".gitignore", ".hidden", "a.py", "binary.bin", "dos.txt", "foox", "keep.log", "latin.txt", "new\nline.txt",
    "no-newline", "spa ce.txt", "sub/.gitignore", "sub/anchored", "sub/b.log", "sub/deep/y",
]  # fmt: skip


@pytest.fixture
def tree(root: Path) -> Path:
    for name, content in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (root / "link.py").symlink_to("a.py")
    os.mkfifo(root / "pipe")
    return root


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("git", [False, True])
async def test_a_listing_leaves_out_what_gitignore_hides_and_what_is_protected(
    desk: ToolRunner, git: bool
) -> None:
    if git:
        (desk.root / ".git").mkdir()
        (desk.root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    result = await desk.result("list_files", recursive=True)
    assert result.data == {"path": ".", "files": SEEN, "total": len(SEEN), "truncated": False}
    below = await desk.result("list_files", path="sub", recursive=True)
    hidden_above = [] if git else ["sub/deep/z"]
    assert below.data["files"] == ["sub/.gitignore", "sub/anchored", "sub/b.log", "sub/deep/y", *hidden_above]


async def test_rules_above_the_git_work_tree_do_not_count_and_an_inner_one_begins_afresh(
    desk: ToolRunner,
) -> None:
    (desk.root.parent / ".gitignore").write_text("*\n")
    for folder in (".git", "inner/.git"):
        (desk.root / folder).mkdir(parents=True)
    (desk.root / ".gitignore").write_text("*.log\n")
    for name in ("a.log", "a.txt", "inner/b.log"):
        (desk.root / name).touch()
    result = await desk.result("list_files", recursive=True)
    assert result.data["files"] == [".gitignore", "a.txt", "inner/b.log"]


@pytest.mark.usefixtures("tree")
async def test_one_level_shows_directories_with_a_slash(desk: ToolRunner) -> None:
    result = await desk.result("list_files")
    assert result.data["files"] == sorted([
        ".gitignore", ".hidden", ".mcp.json", ".vscode/", "a.py", "binary.bin", "d/", "dos.txt", "foox", "keep.log",
        "latin.txt", "link.py", "new\nline.txt", "no-newline", "pipe", "spa ce.txt", "sub/",
    ])  # fmt: skip
    assert (await desk.result("list_files", path="sub", pattern="*.log")).text == "sub/b.log"


@pytest.mark.usefixtures("tree")
async def test_a_pattern_without_a_slash_is_for_names_and_with_one_for_paths(desk: ToolRunner) -> None:
    for pattern, files in {
        "*.log": ["keep.log", "sub/b.log"],
        "sub/*": ["sub/.gitignore", "sub/anchored", "sub/b.log"],
        "sub/**": ["sub/.gitignore", "sub/anchored", "sub/b.log", "sub/deep/y"],
        "**/y": ["sub/deep/y"],
        "{a,foo}*": ["a.py", "foox", "sub/anchored"],
    }.items():
        assert (await desk.result("list_files", recursive=True, pattern=pattern)).data["files"] == files


async def test_files_are_found_newest_first(desk: ToolRunner) -> None:
    for age, name in enumerate(("newest.py", "sub/middle.py", "oldest.py", "other.txt")):
        path = desk.root / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    result = await desk.result("search_files", pattern="*.py")
    assert result.text == "newest.py\nsub/middle.py\noldest.py"


async def test_long_listings_are_cut_and_say_so(desk: ToolRunner) -> None:
    for number in range(1100):
        (desk.root / f"f{number:04}").touch()
    result = await desk.result("list_files", recursive=True)
    assert result.data["total"] == 1100
    assert result.text.endswith("f0999\n[1,000 of 1,100. Narrow it with path or pattern.]")
    assert (await desk.result("search_files", pattern="f*")).text.endswith(
        "[200 of 1,100. Narrow it with path or pattern.]"
    )


async def test_nothing_found_is_said(desk: ToolRunner) -> None:
    assert (await desk.result("list_files")).text == ". holds no file. What .gitignore hides is left out."
    assert "No file in . matches *.x." in (await desk.result("search_files", pattern="*.x")).text
    assert (await desk.result("search_content", pattern="x")).text == "Nothing in . matches x."


@pytest.mark.usefixtures("tree")
async def test_content_is_found_line_by_line_with_its_context(desk: ToolRunner) -> None:
    result = await desk.result("search_content", pattern="needle", file_pattern="*.py", context=1)
    assert result.text == "a.py\n     1- import os\n     2: needle = 1\n     3- "
    assert result.data["lines"] == [
        {"path": "a.py", "line": 1, "text": "import os", "match": False},
        {"path": "a.py", "line": 2, "text": "needle = 1", "match": True},
        {"path": "a.py", "line": 3, "text": "", "match": False},
    ]


MATCHING = {
    ".hidden": 1, "a.py": 1, "dos.txt": 1, "foox": 1, "keep.log": 1, "latin.txt": 1, "new\nline.txt": 1,
    "no-newline": 1, "spa ce.txt": 1, "sub/anchored": 2, "sub/b.log": 1,
}  # fmt: skip


@pytest.mark.usefixtures("tree")
async def test_files_and_counts_agree_with_the_lines_and_leave_out_protected_places(desk: ToolRunner) -> None:
    lines = await desk.result("search_content", pattern="needle")
    assert lines.data["files"] == list(MATCHING)
    assert lines.data["total"] == sum(MATCHING.values())
    files = await desk.result("search_content", pattern="needle", output_mode="files")
    assert files.data["files"] == list(MATCHING)
    counts = await desk.result("search_content", pattern="needle", output_mode="count")
    assert counts.data["counts"] == MATCHING
    assert "secret" not in lines.text


@pytest.mark.usefixtures("tree")
async def test_a_protected_place_is_searched_when_it_is_named_and_a_person_allowed_it(
    desk: ToolRunner,
) -> None:
    for path in (".vscode", ".mcp.json"):
        outcome = await desk.allowed("search_content", pattern="needle", path=path)
        assert result_of(outcome).data["total"] == 1


@pytest.mark.usefixtures("tree")
async def test_capitals_ends_of_lines_and_matches_over_lines(desk: ToolRunner) -> None:
    assert (await desk.result("search_content", pattern="NEEDLE with", case_insensitive=True)).data[
        "files"
    ] == ["sub/deep/y"]
    assert (await desk.result("search_content", pattern="needle$", path="dos.txt")).data["lines"] == [
        {"path": "dos.txt", "line": 2, "text": "needle", "match": True}
    ]
    over = await desk.result("search_content", pattern="import.*needle", multiline=True)
    assert [line["line"] for line in over.data["lines"]] == [1, 2]  # type: ignore[index]
    assert (await desk.result("search_content", pattern="import.*needle")).data["total"] == 0


async def test_one_file_can_be_searched_in_every_mode_even_an_ignored_one(desk: ToolRunner) -> None:
    (desk.root / ".gitignore").write_text("*.log\n")
    (desk.root / "a.log").write_text("x\nneedle\nneedle\n")
    for mode in ("content", "files", "count"):
        result = await desk.result("search_content", pattern="needle", path="a.log", output_mode=mode)
        assert result.data["files"] == ["a.log"]
    assert result.text == "     2 a.log"


async def test_too_many_matches_are_cut_and_said(desk: ToolRunner) -> None:
    (desk.root / "a.txt").write_text("needle\n" * 50)
    (desk.root / "b.txt").write_text("needle\n")
    result = await desk.result("search_content", pattern="needle", max_results=3)
    assert result.data["total"] == 3
    assert result.data["truncated"] is True
    assert result.text.endswith(
        "[Stopped at 3 matching lines; there are more. Narrow the search, or raise max_results.]"
    )
    files = await desk.result("search_content", pattern="needle", max_results=1, output_mode="files")
    assert files.text.startswith("a.txt\n[Stopped at 1 file; there are more.")


async def test_an_endless_line_costs_no_memory(desk: ToolRunner) -> None:
    (desk.root / "long.txt").write_text("needle" + "x" * (4 << 20) + "\nneedle\n")
    result = await desk.result("search_content", pattern="needle")
    assert result.text == "long.txt\n     2: needle\n[1 match in very long lines left out.]"
    (desk.root / "long.txt").write_text("needle" + "x" * 2000 + "\n")
    assert len((await desk.result("search_content", pattern="needle")).text) < 600


async def test_a_bad_pattern_gets_the_reason(desk: ToolRunner) -> None:
    said = await desk.refusal("search_content", pattern="f(")
    assert said.startswith("The pattern f( is not a regular expression that can be used here: ")
    assert "unclosed group" in said
    assert "`pattern`" in await desk.refusal("search_content", pattern="")
    assert "`pattern`" in await desk.refusal("search_content", pattern="x" * 10_001)
    assert "NUL" in await desk.refusal("search_content", pattern="a\0b")


@pytest.mark.parametrize("path", [".", "a.txt"])
async def test_look_around_is_refused_and_a_catastrophic_pattern_is_quick(
    desk: ToolRunner, path: str
) -> None:
    (desk.root / "a.txt").write_text("a" * (1 << 20) + "!\naaa\n")
    for pattern in ("a(?=b)", r"(a)\1"):
        said = await desk.refusal("search_content", pattern=pattern, path=path)
        assert "look-around and backreferences are not supported" in said
    with anyio.fail_after(BOUND):
        found = await desk.result("search_content", pattern="(a+)+$", path=path)
    assert found.data["files"] == ["a.txt"]


async def test_without_ripgrep_every_search_gets_a_sentence(
    desk: ToolRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(ripgrep, "ripgrep", ripgrep.ripgrep.__wrapped__)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr("handrail.launcher.trusted_programs.SYSTEM_FOLDERS", ())
    monkeypatch.setattr("sysconfig.get_path", partial(str.replace, str(tmp_path / "empty"), "\0"))
    for tool, asked in {
        "search_content": {"pattern": "x"},
        "search_files": {"pattern": "*"},
        "list_files": {"recursive": True},
    }.items():
        assert "rg (ripgrep) was not found" in await desk.refusal(tool, **asked)
    assert (await desk.result("list_files")).text, "one level needs no search"


@pytest.mark.usefixtures("tree")
async def test_a_pattern_is_never_an_option_or_a_shell_word(desk: ToolRunner) -> None:
    for pattern in ("--files", "-e", "$(touch pwned)", "; touch pwned"):
        await desk.outcome("search_content", pattern=pattern)
        await desk.outcome("search_files", pattern=pattern)
        await desk.outcome("search_content", pattern="x", file_pattern=pattern)
    assert not (desk.root / "pwned").exists()


@pytest.mark.usefixtures("tree")
async def test_places_that_cannot_be_searched_are_said(desk: ToolRunner) -> None:
    assert "There is no nowhere in the workspace" in await desk.refusal("list_files", path="nowhere")
    assert "a.py is a file, not a directory." in await desk.refusal("list_files", path="a.py")
    assert "binary.bin is a binary file" in await desk.refusal(
        "search_content", pattern="x", path="binary.bin"
    )
    assert "pipe is a named pipe" in await desk.refusal("search_content", pattern="x", path="pipe")


async def test_a_folder_outside_is_listed_only_after_a_person_allowed_it(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.txt").write_text("needle\n")
    assert result_of(await desk.allowed("list_files", path="../far", recursive=True)).text == str(
        tmp_path / "far/a.txt"
    )
    assert result_of(await desk.allowed("search_content", path="../far", pattern="needle")).data["total"] == 1


async def test_a_folder_swapped_for_a_link_between_planning_and_listing_is_refused(
    desk: ToolRunner, tmp_path: Path
) -> None:
    (desk.root / "sub").mkdir()
    tool = ListFiles()
    plan = await tool.plan(ListFilesInput(path="sub", recursive=True), desk.caller)
    (desk.root / "sub").rmdir()
    (desk.root / "sub").symlink_to(tmp_path)
    with pytest.raises(Exception, match="no longer what it was"):
        await tool.run(plan, desk.call("list_files"))


def _sleepers(program: Path) -> set[int]:
    """Living processes of the search that never ends."""
    return {pid for pid, arguments in command_lines() if str(program).encode() in arguments}


@pytest.fixture
def endless(desk: ToolRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ripgrep that finds a line and then never ends."""
    found = '{"type": "match", "data": {"path": {"text": "./a.txt"}, "lines": {"text": "found"}, "line_number": 1}}'
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\necho '{found}'\nsleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(ripgrep, "ripgrep", lambda: str(program))
    return program


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
async def test_a_cancelled_search_leaves_no_process_behind(desk: ToolRunner, endless: Path) -> None:
    reply = None
    async with anyio.create_task_group() as group:

        async def search() -> None:
            nonlocal reply
            reply = await desk.outcome("search_content", pattern="a")

        group.start_soon(search)
        with anyio.fail_after(BOUND):
            while not _sleepers(endless):
                await anyio.lowlevel.checkpoint()
        (call,) = desk.gate.open.values()
        person_actions.cancel(desk.gate, call, PAGE)
    assert reply is not None
    assert reply.ending == "cancelled"
    with anyio.fail_after(BOUND):
        while _sleepers(endless):
            await anyio.lowlevel.checkpoint()


@pytest.mark.usefixtures("endless")
async def test_a_search_that_takes_too_long_gives_what_it_found(
    desk: ToolRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_content, "SECONDS", 1.0)
    result = await desk.result("search_content", pattern="a")
    assert (result.data["truncated"], result.data["files"]) == (True, ["a.txt"])
    assert "[Stopped after" in result.text


def test_the_bundled_ripgrep_comes_first_and_none_in_a_folder_that_a_user_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "bin" / "rg"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    planted.parent.chmod(0o777)
    find = ripgrep.ripgrep.__wrapped__
    monkeypatch.setenv("PATH", str(planted.parent))
    assert find() == str(Path(sysconfig.get_path("scripts"), "rg"))

    def scripts(_: str) -> str:
        return str(tmp_path)

    monkeypatch.setattr("sysconfig.get_path", scripts)
    monkeypatch.setattr("handrail.launcher.trusted_programs.SYSTEM_FOLDERS", ())
    with pytest.raises(ripgrep.NoRipgrep, match="handrail doctor"):
        find()


def test_globs() -> None:
    for pattern, path, matches in [
        ("*.py", "a/b.py", True), ("*.py", "a.pyc", False), ("a/*.py", "a/b/c.py", False), ("a/**/c.py", "a/c.py", True),
        ("./a/*", "a/b", True), ("[a-c]x", "bx", True), ("[!a]x", "ax", False), ("a?", "ab", True), ("[", "[", True),
        ("{a", "{a", True), ("a,b", "a,b", True), ("\\*", "*", True), ("x{1,2}y", "x2y", True), ("**", "a/b", True),
    ]:  # fmt: skip
        assert Glob(pattern).matches(path) is matches, (pattern, path)


def test_their_lines_in_lists_cut_long_patterns() -> None:
    assert SearchContent().display(SearchContentInput(pattern="x" * 100)) == "Search for " + "x" * 59 + "…"
    assert ListFiles().display(ListFilesInput()) == "List ."
