"""Which places a command touches: folders that are read whole, files that others obey, git directories."""

import subprocess
from pathlib import Path

import pytest

from handrail.gate.shell.shell_parser import parse
from handrail.tools.commands import secret_search
from handrail.tools.commands.command_claims import command_claims
from handrail.tools.workspace import Workspace

BIN = "/usr/local/bin:/usr/bin:/bin"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    for name in (
        "src/main.py",
        "deep/er/.env",
        "keys/id_rsa",
        ".git/config",
        ".git/HEAD",
        ".vscode/settings.json",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "plain").mkdir()
    (root / "plain" / "x.txt").touch()
    (tmp_path / "outside").mkdir()
    (root / "linked").mkdir()
    (root / "linked" / "out").symlink_to(tmp_path / "outside")
    return root


def is_protected(root: Path, line: str, cwd: str = ".", own: tuple[Path, ...] = ()) -> bool:
    workspace = Workspace(str(root), own)
    return any(claim.protected for claim in command_claims(parse(line), workspace.place(cwd), workspace, BIN))


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("grep -r x .", True),
        ("grep -rn x deep", True),
        ("grep --recursive x .", True),
        ("grep -d recurse x .", True),
        ("grep -r x", True),
        ("grep -re x", True),
        ("egrep -R x deep src", True),
        ("rgrep x deep", True),
        ("grep -r x *", True),
        ("timeout 5 grep -r x .", True),
        ("ls | grep -r x .", True),
        ("cd deep && grep -r x .", True),
        ("rg x", True),  # id_rsa is not hidden
        ("rg x deep", False),
        ("rg -uu x deep", True),
        ("rg --hidden x deep", True),
        ("rg -. x deep", True),
        ("cp -r deep plain", True),
        ("cp -a deep plain", True),
        ("tar czf out.tgz deep", True),
        ("tar -cf out.tar .", True),
        ("zip -r out.zip deep", True),
        ("rsync -a deep/ plain", True),
        ("diff -r deep plain", True),
        ("grep x src/main.py", False),
        ("grep -r x src", False),
        ("grep -r x src plain", False),
        ("rg x src", False),
        ("cp -r src plain", False),
        ("tar xf out.tar", False),
        ("find . -name x", False),
        ("ls -R .", False),
        ("cat src/*", False),
        ("grep -R x linked", True),
        ("grep -r x linked", False),
        ("rg -L x linked", True),
        # A glob or a type of ripgrep chooses hidden files too.
        ("rg -g '.e*' x deep", True),
        ("rg -g '*' x deep", True),
        ("rg -g '*.{py,env}' x deep", True),
        ("rg --iglob '.E*' x deep", True),
        ("rg --glob='**/er/**' x deep", True),
        ("rg -ng'.*' x deep", True),
        ("rg -t all x deep", False),
        ("rg -g '!*.py' x deep", False),
        ("rg -g '*.py' x deep", False),
        ("rg -tpy x deep", False),
        # The value of an option is not a path, so the working folder is read.
        ("grep -r -A 3 x", True),
        ("grep -r -m 1 -e x", True),
        ("grep -r --include '*.py' x", True),
        ("rg -A 3 x", True),
        ("grep -rn -A 3 x src", False),
        ("grep -r --line-number x src", False),
    ],
)
def test_a_command_that_reads_a_folder_with_secrets_asks(app: Path, line: str, asks: bool) -> None:
    assert is_protected(app, line) is asks


def test_an_ignore_file_that_excepts_a_hidden_secret_lets_ripgrep_read_it(app: Path) -> None:
    for name in ("deep/.ignore", "deep/er/.rgignore", ".gitignore"):
        (app / name).write_text("*.log\n!.env.example\n")
        assert not is_protected(app, "rg x deep")
        (app / name).write_text("*.log\n!.e*\n")
        assert is_protected(app, "rg x deep"), name
        (app / name).unlink()


def test_a_typed_hidden_secret_is_read_by_ripgrep(app: Path) -> None:
    (app / "deep/er/.env").rename(app / "deep/er/.env.py")
    assert not is_protected(app, "rg x deep")
    assert is_protected(app, "rg -tpy x deep")


def test_a_question_mark_may_stand_for_one_byte_of_a_character(app: Path) -> None:
    """In the C locale bash compares bytes, so that two of them are a letter such as é."""
    (app / "src" / "\u00e9").symlink_to("/etc/hostname")
    workspace = Workspace(str(app))
    for pattern, inside in (("src/??", False), ("src/main.p?", True)):
        claims = command_claims(parse(f"cat {pattern}"), workspace.place("."), workspace, BIN)
        assert all(claim.inside for claim in claims) is inside, pattern


def test_a_project_without_secrets_is_searched_as_before(app: Path) -> None:
    (app / "deep/er/.env").rename(app / "deep/er/.env.example")
    (app / "keys/id_rsa").unlink()
    for line in ("grep -rn x .", "rg -uu x", "tar czf out.tgz ."):
        assert not is_protected(app, line)


def test_a_folder_above_handrails_own_files_asks(app: Path) -> None:
    own = (app / "plain" / "state",)
    assert is_protected(app, "grep -r x plain", own=own)
    assert is_protected(app, "rg x plain", own=own)
    assert not is_protected(app, "rg x plain", own=(app / "plain" / ".state",))


def test_a_folder_that_is_too_large_to_look_through_asks(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_protected(app, "grep -r x plain")
    monkeypatch.setattr(secret_search, "MOST_WALKED", 0)
    assert is_protected(app, "grep -r x plain")


def test_many_globs_are_bounded_together(app: Path) -> None:
    many = app / "many"
    many.mkdir()
    for number in range(1000):
        (many / f"f{number}").touch()
    line = " ".join(["cat", *(f"many/f{number}*" for number in range(40))])
    workspace = Workspace(str(app))
    assert command_claims(parse("cat many/f1*"), workspace.place("."), workspace, BIN)[0].inside
    assert not command_claims(parse(line), workspace.place("."), workspace, BIN)[0].inside


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("touch AGENTS.md", True),
        ("cp x .husky/pre-commit", True),
        ("mv x .GitHub/workflows/ci.yml", True),
        ("cd .github/workflows && touch ci.yml", True),
        ("tee claude.md", True),
        ("git checkout main -- .husky/pre-commit", True),
        ("cat AGENTS.md", False),
        ("grep x CLAUDE.md", False),
        ("git add .github/workflows/ci.yml", False),
        ("git diff AGENTS.md", False),
        ("ls .husky", False),
        (".husky/pre-commit", False),
    ],
)
def test_a_command_that_may_change_what_other_programs_obey_asks(app: Path, line: str, asks: bool) -> None:
    assert is_protected(app, line) is asks


@pytest.mark.parametrize(
    ("line", "cwd"),
    [
        ("git status", "bare"),
        ("git status", "bare/refs/heads"),
        ("git status", "bare/sub"),
        ("cd bare && git status", "."),
        ("cd bare; make", "."),
        ("ls bare", "."),
        ("touch half/HEAD", "."),
        ("mkdir half/refs/x", "."),
    ],
)
def test_a_command_in_a_bare_repository_or_that_completes_one_asks(app: Path, line: str, cwd: str) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(app / "bare")], check=True, timeout=30)
    (app / "bare" / "sub").mkdir()
    (app / "half" / "objects").mkdir(parents=True)
    (app / "half" / ("HEAD" if "refs" in line else "refs")).mkdir()
    assert is_protected(app, line, cwd)
    assert not is_protected(app, "git status")
