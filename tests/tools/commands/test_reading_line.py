"""Lines that only read: the corpus from the manuals, what surrounds a line, and a fuzz of its options.

A line that passes runs without a question in a trusted folder, so the passing lines are run here, between programs that
leave a mark, and nothing may have changed.
"""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.policy_values import policy
from tests.support.reading_folder import (
    ASKS,
    BIN,
    OPTIONAL,
    READS,
    ReadingFolder,
    add_canary,
    build_reading_folder,
)
from tests.support.shell_corpus import LINES as SHELL_LINES

from handrail.gate.shell.reading_commands import READERS, is_reading_command
from handrail.gate.shell.shell_parser import parse
from handrail.store.values import Caller
from handrail.tools.commands.reading_line import has_plain_environment, without_index_writes

BOUND = 20.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> ReadingFolder:
    return build_reading_folder(tmp_path_factory.mktemp("reading"))


@pytest.fixture(autouse=True)
def _own_home(folder: ReadingFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def test_the_corpus_is_large_and_has_no_line_twice() -> None:
    lines = [*READS, *OPTIONAL, *ASKS]
    assert len(lines) == len(set(lines))
    assert len(READS) >= 200
    assert len(ASKS) >= 300


def test_a_line_that_only_reads_passes(folder: ReadingFolder) -> None:
    assert [line for line in READS if not folder.reads(line)] == []


def test_a_program_that_may_be_missing_is_known_by_its_words() -> None:
    parts = [part for line in OPTIONAL for part in parse(line).parts]
    assert [part.text for part in parts if not is_reading_command(part.words, part.live)] == []


def test_a_line_that_may_do_more_does_not_pass(folder: ReadingFolder) -> None:
    assert [line for line in ASKS if folder.reads(line)] == []


def test_the_policy_allows_exactly_the_lines_that_pass_and_only_in_a_trusted_folder(
    folder: ReadingFolder,
) -> None:
    who = Caller(door="stdio", client="one", key="one", workspace=str(folder.root))
    root = str(folder.root)
    trusted, off = policy(root=root), policy(root=root, allow_reading_commands=False)
    untrusted = policy(root=root, trusted=False)
    for line in [*READS, *ASKS]:
        claims = folder.claims(line)
        effects = [each.decide("execute_command", claims, who).effect for each in (trusted, off, untrusted)]
        assert effects == ["allow" if line in READS else "ask", "ask", "ask"], line


@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "printf %d 'path[$(touch mark)]'"),
        ("zsh", "exit 'path[$(touch mark)]'"),
        ("zsh", "cat **/.env | grep -q SECRET && touch mark"),
        ("zsh", "ls =touch && touch mark"),
        ("zsh", 'test ""~ = "$HOME" && touch mark'),
        ("fish", "echo 'a\\'' ; touch mark #'"),
        ("fish", "cat \\x2eenv && touch mark"),
        ("fish", "cat { .gitignore,.env } && touch mark"),
    ],
)
def test_lines_that_zsh_and_fish_read_otherwise_do_what_this_test_says(
    folder: ReadingFolder, shell: str, line: str
) -> None:
    """The reason for those rows of the corpus: bash does something else, and none of them passes."""
    argv = {"zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    marked: list[bool] = []
    for program in (argv, ["bash", "-c"]):
        subprocess.run(
            [*program, line],
            cwd=folder.root,
            env=folder.env(),
            capture_output=True,
            timeout=BOUND,
            check=False,
        )
        marked.append((folder.root / "mark").exists())
        (folder.root / "mark").unlink(missing_ok=True)
    assert marked == [True, False]
    assert not folder.reads(line.replace("touch mark", "id"))
    assert not parse(line).plain or "**" in line


def test_the_lines_that_pass_change_nothing_and_start_no_other_program(folder: ReadingFolder) -> None:
    """Git refreshes its index where it finds a changed file time, so each line runs after such a change."""
    env = {**without_index_writes(folder.env()), "PATH": f"{folder.canaries}:{BIN}"}
    for line in READS:
        assert folder.reads(line), line
        (folder.root / "README.md").touch()
        before = folder.snapshot()
        done = subprocess.run(
            ["/bin/bash", "-c", "--", line],
            cwd=folder.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BOUND,
            check=False,
        )
        assert done.returncode in (0, 1, 2), (line, done)
        assert b"unrecognized option" not in done.stderr + done.stdout, (line, done.stderr)
        assert folder.snapshot() == before, line
        assert not folder.mark.exists(), (line, folder.mark.read_text())


def test_no_line_of_the_shell_corpus_passes_unless_its_words_are_in_the_table(folder: ReadingFolder) -> None:
    """The corpus has the expected decision under wide rules: what they ask about or refuse never passes here."""
    passing = [line for line, effect in SHELL_LINES if folder.reads(line) and effect != "allow"]
    assert passing == []


def programs_of(line: str) -> Iterator[str]:
    return (part.words[0] for part in parse(line).parts)


def test_a_program_first_on_the_path_is_not_trusted_by_its_name(
    folder: ReadingFolder, tmp_path: Path
) -> None:
    for line in READS:
        for name in {*programs_of(line)} - {
            "cd",
            "echo",
            "printf",
            "pwd",
            "test",
            "true",
            "false",
            "type",
            "command",
        }:
            if "/" not in name:
                add_canary(folder, tmp_path / name)
    path = f"{tmp_path}:{BIN}"
    outside_shell = [
        line
        for line in READS
        if any("/" not in name and (tmp_path / name).exists() for name in programs_of(line))
    ]
    assert len(outside_shell) > 150
    assert [line for line in outside_shell if folder.reads(line, path)] == []


@pytest.mark.parametrize(
    ("setting", "passing", "asking"),
    [
        ("core.fsmonitor=./fsmonitor", (), ("git status", "git log", "git diff")),
        ("core.hooksPath=hooks", (), ("git status", "git log")),
        ("core.worktree=/etc", (), ("git status",)),
        ("core.pager=./canary", (), ("git log",)),
        ("pager.log=./canary", (), ("git log",)),
        ("diff.external=./canary", (), ("git diff", "git log -p")),
        ("diff.x.textconv=./textconv", (), ("git diff", "git show", "git blame README.md")),
        ("filter.x.clean=./canary", (), ("git status", "git diff")),
        ("include.path=/tmp/more", (), ("git log",)),
        ("includeIf.gitdir:/.path=/tmp/more", (), ("git log",)),
        ("log.showSignature=true", (), ("git log",)),
        ("gpg.program=./canary", (), ("git log",)),
        ("format.pretty=%G?", (), ("git log",)),
        ("pretty.x=%G?", (), ("git log --pretty=x",)),
        ("remote.origin.promisor=true", (), ("git log",)),
        ("extensions.partialClone=origin", (), ("git log",)),
        ("trace2.eventTarget=/tmp/trace", (), ("git log",)),
        ("submodule.recurse=true", (), ("git ls-files",)),
        ("alias.status=!./canary", (), ("git status",)),
        ("branch.main.remote=origin", ("git status", "git log"), ()),
        ("user.name=Ann", ("git status", "git log"), ()),
    ],
)
def test_settings_of_a_repository_that_can_start_programs_ask(
    tmp_path: Path, setting: str, passing: tuple[str, ...], asking: tuple[str, ...]
) -> None:
    folder = build_reading_folder(tmp_path)
    name, _, value = setting.partition("=")
    folder.git("config", "--local", name, value)
    assert [line for line in passing if not folder.reads(line)] == []
    assert [line for line in asking if folder.reads(line)] == []


@pytest.mark.parametrize(
    ("text", "passing", "asking"),
    [
        ("[core]\n\tpager = delta\n[alias]\n\tst = status\n", ("git status", "git log"), ()),
        ('[filter "lfs"]\n\tclean = git-lfs clean\n', ("git log", "git branch"), ("git status", "git diff")),
        ('[diff "x"]\n\ttextconv = x\n', ("git status",), ("git diff", "git show", "git log -p")),
        ("[include]\n\tpath = more\n", (), ("git status", "git log")),
        ("[core] fsmonitor = x\n", (), ("git status",)),
        ("[core]\n\teditor = a \\\nfsmonitor = x\n", (), ("git status",)),
        ("[core.x]\n\tfsmonitor = x\n", (), ("git status",)),
        ("\x00", (), ("git status",)),
    ],
)
def test_the_persons_own_git_settings_are_read_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    passing: tuple[str, ...],
    asking: tuple[str, ...],
) -> None:
    folder = build_reading_folder(tmp_path)
    monkeypatch.setenv("HOME", str(folder.home))
    (folder.home / ".gitconfig").write_text(text)
    assert [line for line in passing if not folder.reads(line)] == []
    assert [line for line in asking if folder.reads(line)] == []


def test_a_hook_another_repository_a_link_and_a_submodule_ask(tmp_path: Path) -> None:
    folder = build_reading_folder(tmp_path)
    git = folder.root / ".git"
    for name in ("hooks/post-index-change", "objects/info/alternates", "commondir", "sharedindex.1"):
        assert folder.reads("git log"), name
        (git / name).write_text("x")
        assert not folder.reads("git log"), name
        (git / name).unlink()
    git.rename(folder.base / "moved")
    assert not folder.reads("git log")
    git.symlink_to(folder.base / "moved")
    assert not folder.reads("git log")
    git.unlink()
    git.write_text(f"gitdir: {folder.base / 'moved'}\n")
    assert not folder.reads("git log")


@pytest.mark.parametrize("head", ["", "no reference\n", "ref: outside\n", None])
def test_a_folder_that_git_does_not_take_for_a_repository_asks(tmp_path: Path, head: str | None) -> None:
    """Git goes on to the folder above, whose settings may start programs."""
    folder = build_reading_folder(tmp_path)
    add_canary(folder, folder.canaries / "fsmonitor")
    folder.git("config", "core.fsmonitor", str(folder.canaries / "fsmonitor"))
    inner = folder.root / "src" / ".git"
    for name in ("objects", "refs") if head is not None else ():
        (inner / name).mkdir(parents=True)
    inner.mkdir(exist_ok=True)
    (inner / "config").write_text("[core]\n\tbare = false\n")
    if head is not None:
        (inner / "HEAD").write_text(head)
    assert not folder.reads("cd src && git status")
    folder.git("-C", "src", "status")
    assert folder.mark.exists()  # git has used the settings above


def test_a_relative_folder_on_the_path_is_searched_in_each_folder_of_the_line(
    folder: ReadingFolder, tmp_path: Path
) -> None:
    path = f"bin:{BIN}"
    (folder.root / "docs" / "bin").mkdir()
    add_canary(folder, folder.root / "docs" / "bin" / "ls")
    assert folder.reads("ls", path)
    assert not folder.reads("cd docs && ls", path)


def test_a_submodule_asks_where_git_would_start_itself_in_it(tmp_path: Path) -> None:
    folder = build_reading_folder(tmp_path)
    folder.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},inner")
    assert not folder.reads("git status")
    assert not folder.reads("git diff")
    assert folder.reads("git log")


def test_a_tracked_secret_asks_where_git_would_print_it(tmp_path: Path) -> None:
    folder = build_reading_folder(tmp_path)
    folder.git("add", "-f", ".env")
    assert folder.reads("git status")
    for line in ("git diff", "git show", "git log -p", "git grep x"):
        assert not folder.reads(line), line


def test_a_workspace_below_a_repository_asks_because_git_reads_above_it(folder: ReadingFolder) -> None:
    inner = ReadingFolder(folder.base, folder.root / "src", folder.home, folder.canaries, folder.mark)
    assert inner.reads("ls")
    assert not inner.reads("git status")


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "LD_PRELOAD",
        "BASH_ENV",
        "BASH_FUNC_ls%%",
        "CDPATH",
        "RIPGREP_CONFIG_PATH",
    ],
)
def test_a_variable_that_reading_programs_obey_is_not_plain(folder: ReadingFolder, name: str) -> None:
    assert has_plain_environment(folder.env())
    assert not has_plain_environment({**folder.env(), name: "x"})


def test_a_setting_of_git_in_the_environment_is_not_plain(folder: ReadingFolder) -> None:
    env = {**folder.env(), "GIT_CONFIG_KEY_0": "core.fsmonitor"}
    assert not has_plain_environment(env)
    assert not has_plain_environment(without_index_writes(folder.env()))


WRITES = {
    "sort": ("-o", "--output", "-T", "--compress-program"),
    "uniq": ("out",),
    "date": ("-s", "--set", "010112002030"),
    "tree": ("-o", "-R", "-H"),
    "file": ("-C", "--compile", "-p", "-z"),
    "find": ("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"),
    "tail": ("-f", "-F", "--follow"),
    "diff": ("-l", "--paginate"),
    "rg": ("--pre", "-z", "--hostname-bin"),
    "sed": ("-i", "--in-place", "-e", "-f"),
    "grep": ("-f", "-R"),
}
"""Words that make a program write or start something, wherever they stand."""
FILLERS = (
    "README.md",
    "-n",
    "-r",
    "-u",
    "--",
    "-",
    "5",
    "-5",
    "1p",
    "-c",
    "-k2",
    "-L",
    "-name",
    "x",
    "+%F",
    "-fw",
    "*",
)


@given(data=st.data())
@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_order_of_words_hides_one_that_writes(data: st.DataObject) -> None:
    program = data.draw(st.sampled_from(sorted(WRITES)))
    word = data.draw(st.sampled_from(WRITES[program]))
    before = data.draw(st.lists(st.sampled_from(FILLERS), max_size=4))
    after = data.draw(st.lists(st.sampled_from(FILLERS), max_size=3))
    if program == "uniq":  # its output file comes after any other operand
        before.append("README.md")
    words = [program, *before, word, *after]
    assert not is_reading_command(words), shlex.join(words)


ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@given(
    st.sampled_from(sorted({*READERS} - {"echo", "true", "false", "printf"})),
    st.text(ALPHABET, min_size=1, max_size=4),
    st.text(ALPHABET + "-=", min_size=2, max_size=12),
)
@settings(max_examples=600, deadline=None)
def test_an_option_passes_only_if_the_table_has_it(program: str, cluster: str, name: str) -> None:
    reader = READERS[program]
    if is_reading_command([program, f"--{name}"]):
        assert name.partition("=")[0] in reader.long
    if is_reading_command([program, f"-{cluster}"]) and f"-{cluster}" not in reader.exact:
        known = reader.flags + reader.valued + ("0123456789" if reader.number else "")
        assert cluster[0] in known or program == "find"


@given(
    st.sampled_from(READS),
    st.sampled_from([" > out", " & rm x", "; rm x", " | tee out", " $(id)", " `id`", "\nrm x"]),
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_adding_an_effect_to_a_line_that_reads_makes_it_ask(
    folder: ReadingFolder, line: str, more: str
) -> None:
    assert not folder.reads(line + more)
