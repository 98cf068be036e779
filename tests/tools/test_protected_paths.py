"""Which paths are protected: by name, in any letter case, and git directories by their content."""

import subprocess
from itertools import permutations
from pathlib import Path

import pytest
from tests.support.tool_runner import ToolRunner

from handrail.store.actor import PERSON
from handrail.store.values import Rule
from handrail.tools.protected_paths import is_in_bare_repository, is_protected
from handrail.tools.workspace import Workspace

pytestmark = pytest.mark.anyio

OBEYED = (
    *(".husky/pre-commit", ".pre-commit-config.yaml", ".github/workflows/ci.yml", ".gitlab-ci.yml"),
    *(
        ".devcontainer/devcontainer.json",
        ".zed/tasks.json",
        "app.code-workspace",
        ".nvim.lua",
        ".exrc",
        ".vimrc",
    ),
    *(
        ".emacs",
        ".dir-locals.el",
        ".gdbinit",
        ".tmux.conf",
        ".cargo/config.toml",
        ".yarnrc.yml",
        ".pnpmfile.cjs",
    ),
    *("mise.toml", ".direnvrc", ".config/direnv/direnvrc", ".config/nvim/init.lua", ".local/bin/git"),
    *(".cline/hooks/PreToolUse", ".copilot/hooks/handrail.json", ".kimi-code/config.toml", ".claude.json"),
    *(".config/opencode/plugin/handrail.js", ".config/goose/config.yaml", ".codeium/windsurf/hooks.json"),
    *(".local/share/dbus-1/services/x.service", "AGENTS.md", "sub/CLAUDE.md", "GEMINI.md", ".cursorrules"),
    *(".github/copilot-instructions.md", "opencode.json", ".opencode/agent/x.md", ".continue/config.yaml"),
    *(".windsurf/rules", ".kiro/steering/x.md", ".roo/rules", ".qwen/settings.json", ".amazonq/rules/x.md"),
    *(".goosehints", ".aider.conf.yml", ".factory/x", ".vibe/config.toml", ".crush.json"),
)
SECRET = (
    *(".local/share/keyrings/login.keyring", "x/.local/share/handrail/x", ".local/state/handrail/x"),
    *(".git/info/attributes", ".git/modules/x/info/attributes", ".hg/hgrc", ".curlrc", ".wgetrc"),
    *(".cargo/credentials.toml", "Library/Keychains/x"),
)


@pytest.mark.parametrize("path", SECRET)
def test_each_part_of_a_protected_path_is_compared_in_any_letter_case(root: Path, path: str) -> None:
    for spelling in (path, path.upper(), path.title()):
        assert Workspace(str(root)).place(spelling).protected, spelling


@pytest.mark.parametrize("path", [".local/share/x", "share/keyrings/x", ".local/keyrings", "keyrings"])
def test_a_part_of_a_protected_path_alone_is_ordinary(root: Path, path: str) -> None:
    assert not Workspace(str(root)).place(path).protected


@pytest.mark.parametrize("path", OBEYED)
def test_a_file_that_other_programs_obey_is_read_freely_and_protected_from_changes(
    root: Path, path: str
) -> None:
    for spelling in (path, path.upper(), path.lower()):
        place = Workspace(str(root)).place(spelling)
        protected = [place.claim(action).protected for action in ("read", "write", "delete")]
        assert protected == [False, True, True], spelling


async def test_a_rule_that_allows_every_write_asks_before_a_file_that_other_programs_obey(
    desk: ToolRunner,
) -> None:
    await desk.gate.rules.add(Rule(id="r1", effect="allow", path="**", scope="user"), PERSON)
    assert (await desk.outcome("write_file", path="plain.txt", content="x")).ending == "done"
    for path in OBEYED:
        assert (await desk.waiting("write_file", path=path, content="x")).status == "waiting"


REPOSITORY = {"HEAD": "ref: refs/heads/x\n", "config": "[core]\n", "objects/x": "", "refs/heads/x": ""}


@pytest.mark.parametrize("order", list(permutations(REPOSITORY)), ids=" ".join)
def test_no_order_of_writes_plants_a_repository_unasked(root: Path, order: tuple[str, ...]) -> None:
    """The red team wrote these four files under a rule that allows every write."""
    asked: list[str] = []
    for name in order:
        place = Workspace(str(root)).place(f"bare/{name}")
        if place.claim("write").protected:
            asked.append(name)
        Path(place.path).parent.mkdir(parents=True, exist_ok=True)
        Path(place.path).write_text(REPOSITORY[name])
    last = [name for name in order if name != "config"][-1]
    assert asked == ([last, "config"] if order[-1] == "config" else [last])


def plant(folder: Path, without: str = "") -> Path:
    """A bare repository, as git makes it."""
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True, timeout=30)
    if without:
        (folder / without).rename(folder / f"{without}.away")
    return folder


@pytest.mark.parametrize("missing", ["HEAD", "objects", "refs"])
def test_the_write_that_would_complete_a_repository_is_protected(root: Path, missing: str) -> None:
    plant(root / "bare", missing)
    workspace = Workspace(str(root))
    assert workspace.place(f"bare/{missing}").protected
    assert workspace.place(f"bare/{missing.lower()}/x/y").protected
    assert not workspace.place("bare/config").protected
    assert not workspace.place("bare").protected


def test_a_repository_is_protected_with_what_configures_it_wherever_it_lies(root: Path) -> None:
    plant(root / "deep" / "bare")
    workspace = Workspace(str(root))
    protected = (
        "",
        "config",
        "CONFIG",
        "hooks/pre-commit",
        "commondir",
        "config.worktree",
        "info/attributes",
    )
    assert all(workspace.place(f"deep/bare/{name}").protected for name in protected)
    ordinary = ("HEAD", "refs/heads/main", "objects/00/x", "description", "info/exclude", "main/src/config")
    assert not any(workspace.place(f"deep/bare/{name}").protected for name in ordinary)


def test_a_common_directory_makes_a_repository_too(root: Path) -> None:
    (root / "tree").mkdir()
    (root / "tree" / "HEAD").write_text("ref: refs/heads/x\n")
    assert Workspace(str(root)).place("tree/commondir").protected


def test_ordinary_folders_of_such_names_are_ordinary(root: Path) -> None:
    for name in ("src/hooks/useX.ts", "app/config", "objects/a", "refs/b"):
        assert not Workspace(str(root)).place(name).protected


def test_git_finds_a_bare_repository_where_this_says_so(root: Path) -> None:
    bare = plant(root / "bare")
    (bare / "sub" / ".git").mkdir(parents=True)
    plain = root / "plain"
    subprocess.run(["git", "init", "-q", str(plain)], check=True, timeout=30)
    (plain / "src").mkdir()
    for folder in (bare, bare / "refs" / "heads", bare / "sub", plain, plain / "src", root):
        asked = ["git", "rev-parse", "--is-bare-repository"]
        env = {"PATH": "/usr/bin:/bin", "HOME": str(root), "GIT_CEILING_DIRECTORIES": str(root.parent)}
        done = subprocess.run(
            asked, cwd=folder, env=env, capture_output=True, text=True, timeout=30, check=False
        )
        assert is_in_bare_repository(str(folder)) is (done.stdout.strip() == "true"), folder


def test_three_part_names_are_found_at_the_end_of_a_path() -> None:
    assert is_protected("/w/.local/share/keyrings", ())
    assert not is_protected("/w/.local/share", ())
