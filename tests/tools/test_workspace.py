"""Where paths lead: containment, links, protected places."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tool_runner import refusal_of

from handrail.tools import open_beneath
from handrail.tools.workspace import Workspace


def test_a_path_inside_is_relative_to_the_workspace(root: Path) -> None:
    (root / "a.txt").touch()
    place = Workspace(str(root)).place("./sub/../a.txt")
    assert (place.path, place.shown, place.inside, place.linked) == (
        str(root / "a.txt"),
        "a.txt",
        True,
        False,
    )


def test_a_name_that_only_begins_like_the_workspace_is_outside(root: Path) -> None:
    evil = root.with_name(root.name + "-evil")
    evil.mkdir()
    assert not Workspace(str(root)).place(str(evil / "a")).inside
    assert not Workspace(str(root)).place(f"../{evil.name}/a").inside


def test_a_link_that_stays_inside_is_inside_and_one_that_leads_out_is_outside(root: Path) -> None:
    (root / "real").mkdir()
    (root / "in").symlink_to("real")
    (root / "out").symlink_to(root.parent)
    workspace = Workspace(str(root))
    inside, outside = workspace.place("in/a"), workspace.place("out/a")
    assert (inside.inside, inside.shown, inside.linked) == (True, "real/a", True)
    assert (outside.inside, outside.path) == (False, str(root.parent / "a"))


def test_a_workspace_given_by_a_link_is_the_folder_behind_it(root: Path) -> None:
    alias = root.with_name("alias")
    alias.symlink_to(root)
    assert Workspace(str(alias)).place(str(root / "a")).inside
    assert Workspace(str(alias)).place("a").path == str(root / "a")


def test_a_look_later_follows_no_link_that_was_put_there_meanwhile(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("12345")
    (root / "sub").mkdir()
    place, last = Workspace(str(root)).place("sub/file"), Workspace(str(root)).place("file")
    assert place.look() is None
    (root / "sub/file").write_text("123")
    found = place.look()
    assert found is not None
    assert found.st_size == 3
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(outside)
    (root / "file").symlink_to(outside / "file")
    assert place.look() is None
    link = last.look()
    assert link is None or link.st_ino == (root / "file").lstat().st_ino


def test_a_link_to_itself_is_refused(root: Path) -> None:
    (root / "loop").symlink_to("loop")
    assert "leads back to itself" in refusal_of(lambda: Workspace(str(root)).place("loop"))


def test_a_magic_link_is_the_kernels_or_what_it_leads_to(root: Path) -> None:
    workspace = Workspace(str(root))
    assert workspace.place("/proc/self/root/etc/passwd").path == "/etc/passwd"
    assert "the kernel's" in refusal_of(lambda: workspace.place("/proc/self/maps"))


def test_the_home_directory_can_be_named(root: Path) -> None:
    place = Workspace(str(root)).place("~/.ssh/id_rsa")
    assert (place.path, place.inside, place.protected) == (
        os.path.realpath(Path.home() / ".ssh/id_rsa"),
        False,
        True,
    )


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit", ".GIT/Hooks/pre-push", ".git/config", ".git", ".git/modules/x/hooks/y",
        ".bashrc", "sub/.ZSHRC", ".profile", ".vscode/tasks.json", ".VSCode/x", ".mcp.json", ".Claude/settings.json",
        ".env", "deploy/.ENV.production",
        ".handrail/config.toml", ".ssh/id_ed25519", ".aws/credentials", ".gnupg/x", ".config/gcloud/x", ".kube/config",
        ".config/Fish/config.fish", "/etc/profile.d/x.sh", ".netrc",
    ],
)  # fmt: skip
def test_a_protected_place_is_protected_in_any_letter_case_whether_or_not_it_exists(
    root: Path, path: str
) -> None:
    assert Workspace(str(root)).place(path).protected


@pytest.mark.parametrize(
    "path",
    [
        ".gitignore",
        ".git/HEAD",
        "src/config",
        "hooks/a",
        "ssh/id",
        ".github/workflows/x.yml",
        "a.claude/b",
        ".env.example",
        "env",
    ],
)
def test_an_ordinary_place_is_not_protected(root: Path, path: str) -> None:
    assert not Workspace(str(root)).place(path).protected


def test_a_work_tree_kept_under_an_agents_folder_is_ordinary_but_what_it_protects_is_not(root: Path) -> None:
    workspace = Workspace(str(root))
    assert not workspace.place(".claude/worktrees/one/src/a.py").protected
    assert workspace.place(".claude/worktrees/one/.bashrc").protected
    assert workspace.place(".claude/worktrees/one").protected


def test_handrails_own_files_are_protected(root: Path, tmp_path: Path) -> None:
    own = (tmp_path / "state", root / "handrail.db")
    workspace = Workspace(str(root), own)
    assert workspace.place("../state/daemon.json").protected
    assert workspace.place("HANDRAIL.db").protected
    assert not workspace.place("../state-of-mind").protected


def test_handrails_own_files_are_protected_when_their_home_is_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    workspace = Workspace(str(root), (tmp_path / "home",))
    assert workspace.place("../home/handrail.db").protected
    assert workspace.place("../real/handrail.db").protected


def test_a_link_to_a_protected_place_is_protected(root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / "harmless").symlink_to(".git/hooks")
    assert Workspace(str(root)).place("harmless/pre-commit").protected


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_both_ways_of_opening_refuse_every_link_and_every_way_up(
    root: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "walk":
        monkeypatch.setattr(open_beneath, "has_openat2", lambda: False)
    elif not open_beneath.has_openat2():
        pytest.skip("this kernel has no openat2")
    (root / "sub").mkdir()
    (root / "sub" / "a").write_text("a")
    (root / "link").symlink_to("sub")
    (root / "sub" / "b").symlink_to("a")
    descriptor = open_beneath.open_beneath(str(root), "sub/a", os.O_RDONLY)
    assert os.read(descriptor, 9) == b"a"
    os.close(descriptor)
    for rest in ("link/a", "sub/b", "../project/sub/a", "sub/../../project/sub/a", "missing"):
        with pytest.raises(OSError):  # noqa: PT011 - which error differs by kernel
            open_beneath.open_beneath(str(root), rest, os.O_RDONLY)
    os.close(open_beneath.open_beneath(str(root), ".", os.O_RDONLY))


_PARTS = st.lists(st.sampled_from(["..", ".", "a", "in", "out", "up", "deep", "x"]), min_size=1, max_size=7)


@settings(deadline=None)
@given(parts=_PARTS, absolute=st.booleans())
def test_inside_means_beneath_whatever_links_and_dots_say(
    parts: list[str], absolute: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.getbasetemp() / "tree" / "work"
    if not root.exists():
        (root / "a" / "deep").mkdir(parents=True)
        (root.with_name("work-evil") / "x").mkdir(parents=True)
        (root / "in").symlink_to("a/deep")
        (root / "out").symlink_to("../work-evil")
        (root / "a" / "up").symlink_to("../..")
    path = "/".join([str(root), *parts] if absolute else parts)
    place = Workspace(str(root)).place(path)
    truth = Path(os.path.realpath(root / "/".join(parts)))
    assert place.path == str(truth)
    assert place.inside == truth.is_relative_to(root)


def test_only_a_real_path_has_a_status_without_resolving_it(root: Path) -> None:
    if not open_beneath.has_openat2():
        pytest.skip("this kernel has no openat2")
    (root / "sub").mkdir()
    (root / "sub/a").touch()
    (root / "to_folder").symlink_to("sub")
    (root / "sub/to_file").symlink_to("a")
    os.mkfifo(root / "pipe")
    for real in (root, root / "sub/a", root / "pipe"):
        assert open_beneath.stat_real(str(real)) == os.lstat(real)
    for other in ("to_folder/a", "sub/to_file", "sub/../pipe", "sub/", "missing", "nul\0"):
        assert open_beneath.stat_real(f"{root}/{other}") is None
    assert open_beneath.stat_real("sub/a") is None
    assert open_beneath.stat_real("/proc/self/cwd") is None
