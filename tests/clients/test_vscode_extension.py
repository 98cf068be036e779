"""The extension is installed by the command of each editor that is found."""

import json
import os
from pathlib import Path

import pytest

from handrail import __version__
from handrail.clients.client_facts import Machine
from handrail.clients.vscode_extension import VSIX, EditorProgram, NotInstalled, find_editors, run_editor

MANIFEST = Path(__file__).parents[2] / "editors" / "vscode" / "package.json"


def add_program(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    environ = {"PATH": f"{tmp_path / 'bin'}:{os.defpath}", "HOME": str(tmp_path)}
    return Machine(tmp_path, environ, tmp_path)


def test_an_editor_is_found_by_its_command(machine: Machine, tmp_path: Path) -> None:
    assert find_editors(machine) == []
    paths = [add_program(tmp_path / "bin", name, "true") for name in ("code", "codium")]
    assert find_editors(machine) == [EditorProgram(str(path)) for path in paths]


def test_its_command_gets_the_file_of_this_installation(machine: Machine, tmp_path: Path) -> None:
    add_program(tmp_path / "bin", "code", f'printf "%s\\n" "$@" > {tmp_path}/words')
    (editor,) = find_editors(machine)
    run_editor(editor.install, machine)
    assert (tmp_path / "words").read_text().split() == ["--install-extension", str(VSIX), "--force"]
    run_editor(editor.remove, machine)
    assert (tmp_path / "words").read_text().split() == ["--uninstall-extension", "handrail.handrail"]


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("first\nno room left", "no room left"),
        (
            "[dump] [\n  let a=1;\n  SyntaxError: too old a Node\n    at run\n]error Got error",
            "SyntaxError: too old a Node",
        ),
        ("", "status 3"),
    ],
    ids=["last line", "error above a dump", "no words"],
)
def test_a_command_that_fails_is_named_with_its_reason(
    printed: str, reason: str, machine: Machine, tmp_path: Path
) -> None:
    add_program(
        tmp_path / "bin", "code", f"echo out; printf '{printed}' >&2; exit 3" if printed else "exit 3"
    )
    (editor,) = find_editors(machine)
    with pytest.raises(NotInstalled, match=f"failed: {reason}$"):
        run_editor(editor.install, machine)


def test_a_folder_cannot_choose_the_program_or_the_daemon_and_needs_no_trust() -> None:
    """The extension works in a folder that is not trusted, so nothing that it starts may come from the folder."""
    manifest = json.loads(MANIFEST.read_text())
    assert manifest["capabilities"]["untrustedWorkspaces"] == {"supported": True}
    settings = manifest["contributes"]["configuration"]["properties"]
    assert {name for name, each in settings.items() if each.get("scope") != "machine"} == {
        "handrail.notifications"
    }


def test_it_uses_only_the_public_api_of_the_oldest_editor_that_it_allows() -> None:
    """Cursor and VSCodium follow VS Code with a delay. The type check sees no newer API than that of these declarations."""
    manifest = json.loads(MANIFEST.read_text())
    oldest = manifest["engines"]["vscode"].removeprefix("^")
    assert manifest["devDependencies"]["@types/vscode"] == oldest == "1.100.0"
    assert "enabledApiProposals" not in manifest
    assert "extensionDependencies" not in manifest


def test_it_has_the_version_of_handrail() -> None:
    """By which a window tells its person which of the two to update."""
    assert json.loads(MANIFEST.read_text())["version"] == __version__
