"""The profile for VS Code: put into its settings, taken back, and never in the way of a shell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.pty_session import PtySession
from tests.support.scripted_daemon import BOUND, SRC

from handrail.cli.command_line import run
from handrail.cli.commands.shell_profile import BACKUP, build_profile
from handrail.clients.jsonc import parse

SYSTEM, BASE = ("osx", "Library/Application Support") if sys.platform == "darwin" else ("linux", ".config")
PROFILES = f"terminal.integrated.profiles.{SYSTEM}"
DEFAULT = f"terminal.integrated.defaultProfile.{SYSTEM}"
SETTINGS = f"""\
{{
    // how I like it
    "editor.fontSize": 13,
    "{DEFAULT}": "zsh", // the old way
    "{PROFILES}": {{
        "zsh": {{ "path": "zsh" }},
    }},
}}
"""


@pytest.fixture
def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where VS Code of a person with this home keeps its settings; there are none yet."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    folder = home / BASE / "Code" / "User"
    folder.mkdir(parents=True)
    return folder / "settings.json"


def install(*more: str) -> int:
    return run(["shell", "--install-profile", "vscode", *more])


def test_it_is_put_in_beside_what_is_there_and_the_change_is_shown(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write_text(SETTINGS)
    assert install() == 0
    made = settings.read_text()
    value = parse(made).value
    assert value["editor.fontSize"] == 13
    assert value[PROFILES]["zsh"] == {"path": "zsh"}
    assert value[PROFILES]["handrail"]["path"] == "/bin/sh"
    assert value[DEFAULT] == "handrail"
    assert "// how I like it" in made
    assert "// the old way" in made
    shown = capsys.readouterr().out
    assert f'-    "{DEFAULT}": "zsh", // the old way\n+    "{DEFAULT}": "handrail", // the old way\n' in shown
    assert settings.with_name(f"settings.json{BACKUP}").read_text() == SETTINGS


@pytest.mark.parametrize("before", [SETTINGS, "", "{}", SETTINGS.replace("\n", "\r\n"), "\ufeff{ }"])
def test_an_undo_gives_back_every_byte(settings: Path, before: str) -> None:
    settings.write_bytes(before.encode())
    settings.chmod(0o640)
    assert install() == 0
    assert settings.read_bytes() != before.encode()
    assert install() == 0  # a second time changes nothing
    assert install("--undo") == 0
    assert settings.read_bytes() == before.encode()
    assert settings.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]


def test_a_file_that_was_not_there_is_gone_again(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install() == 0
    assert parse(settings.read_text()).value[DEFAULT] == "handrail"
    assert install("--undo") == 0
    assert list(settings.parent.iterdir()) == []
    capsys.readouterr()
    assert install("--undo") == 0
    assert "has nothing of Handrail" in capsys.readouterr().out


def test_what_a_person_changed_since_stays(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text(SETTINGS)
    install()
    settings.write_text(settings.read_text().replace("13", "15"))
    assert install("--undo") == 0
    assert settings.read_text() == SETTINGS.replace("13", "15")
    assert "only Handrail's own settings" in capsys.readouterr().out


def test_a_default_that_a_person_chose_since_stays(settings: Path) -> None:
    settings.write_text("{\n}\n")
    install()
    settings.write_text(settings.read_text().replace('"handrail"\n', '"fish"\n'))
    assert install("--undo") == 0
    assert parse(settings.read_text()).value == {DEFAULT: "fish"}


def test_an_undo_needs_no_memory(settings: Path, home: Path) -> None:
    settings.write_text('{\n    "a": 1\n}\n')
    install()
    (home / "profiles.json").unlink()
    assert install("--undo") == 0
    assert settings.read_text() == '{\n    "a": 1\n}\n'


def test_printing_changes_nothing(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text(SETTINGS)
    assert install("--print") == 0
    assert '+    "terminal.integrated' in capsys.readouterr().out
    assert settings.read_text() == SETTINGS
    assert [path.name for path in settings.parent.iterdir()] == ["settings.json"]


def test_a_file_that_cannot_be_read_is_left_alone(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings.write_text('{\n  "a": 1\n  "b": 2\n}\n')
    assert install() == 1
    assert f"{settings} cannot be read: line 3, column 3" in capsys.readouterr().err
    assert settings.read_text() == '{\n  "a": 1\n  "b": 2\n}\n'
    settings.write_bytes(b"\xff")
    assert install() == 1


def test_a_linked_file_stays_a_link(settings: Path, home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}\n")
    settings.symlink_to(real)
    assert install() == 0
    assert settings.is_symlink()
    assert "handrail" in real.read_text()
    assert install("--undo") == 0
    assert (settings.is_symlink(), real.read_text()) == (True, "{}\n")


def test_another_file_and_another_editor_can_be_named(
    settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "settings.json"
    assert install("--settings", str(other)) == 0
    assert "handrail" in other.read_text()
    assert not settings.exists()
    assert run(["shell", "--install-profile", "cursor"]) == 1
    assert "Cursor was not found" in capsys.readouterr().err
    assert run(["shell", "--install-profile", "emacs"]) == 2
    assert run(["shell", "--undo"]) == 2
    assert install("--keep") == 2


def command(broken: Path | None = None) -> list[str]:
    """What VS Code would run; with `broken`, after that folder took the place of the installation."""
    made = build_profile()
    script = made["args"][1]
    return [made["path"], "-c", script.replace(sys.executable, str(broken)) if broken else script]


def test_a_person_gets_a_shell_when_handrail_is_gone(home: Path) -> None:
    env = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh"}
    with PtySession(command(home / "gone" / "python"), env) as person:
        person.sees(b"Not kept by Handrail: it is no longer installed where it was.")
        person.type(b"echo $((40 + 2)); exit 3\n")
        assert person.ends() == 3
        assert b"42\r\n" in person.seen


def test_a_person_gets_a_shell_when_handrail_cannot_start(home: Path) -> None:
    blocked = home / "blocked"
    blocked.write_text("no folder can be made here")
    env = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh", "HANDRAIL_HOME": str(blocked)}
    with PtySession(command(), env) as person:
        person.sees(b"Not kept by Handrail: The Handrail daemon is not running")
        person.type(b"echo $((40 + 2)); exit 3\n")
        assert person.ends() == 3
        assert b"42\r\n" in person.seen


def test_a_folder_that_holds_a_package_of_the_same_name_is_not_run(home: Path) -> None:
    (home / "handrail").mkdir()
    (home / "handrail" / "__main__.py").write_text("print('owned')")
    (home / "handrail" / "__init__.py").write_text("print('owned')")
    (home / "blocked").touch()
    done = subprocess.run(
        command(),
        cwd=home,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SRC), "HANDRAIL_HOME": str(home / "blocked")},
        input=b"echo shell\n",
        capture_output=True,
        timeout=BOUND,
        check=False,
    )
    assert done.stdout == b"shell\n"


def test_the_home_goes_along(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_profile()["env"] == {"HANDRAIL_HOME": str(home)}
    monkeypatch.delenv("HANDRAIL_HOME")
    assert "env" not in build_profile()
    assert json.dumps(build_profile())
    assert shutil.which(build_profile()["path"])
