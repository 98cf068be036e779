"""`handrail shell`: its options, and installing it as the default terminal profile of VS Code and its forks.

`door.shell` opens the shell. A profile is installed by editing the editor's settings.json. A backup and a record of the edit
make it possible to undo it, even if the file has changed since.
"""

import hashlib
import json
import os
import shlex
import sys
from dataclasses import asdict, dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

import handrail
from handrail.cli.command_help import add_command
from handrail.cli.failure import Failure
from handrail.cli.render.output import note, say
from handrail.clients.jsonc import NotAnObject, NotJson, parse, remove_member, set_member, value_text
from handrail.paths import Places

Editor = Literal["vscode", "insiders", "vscodium", "cursor"]
BACKUP = ".before-handrail"
TITLES: dict[Editor, str] = {
    "vscode": "VS Code",
    "insiders": "VS Code Insiders",
    "vscodium": "VSCodium",
    "cursor": "Cursor",
}
_FOLDERS: dict[Editor, tuple[str, str]] = {
    "vscode": ("Code", ".vscode-server"),
    "insiders": ("Code - Insiders", ".vscode-server-insiders"),
    "vscodium": ("VSCodium", ".vscodium-server"),
    "cursor": ("Cursor", ".cursor-server"),
}


@dataclass(frozen=True, slots=True)
class EditRecord:
    """What undo needs to know about one edited settings file."""

    wrote: str
    """Hash of the text we wrote. While the file still has it, undo restores the backup."""
    existed: bool
    profile: str | None
    """Source text of the previous profile entry and of the previous default; None if there was none."""
    default: str | None


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file, with its backup and the record of our edit."""

    path: Path

    @classmethod
    def find(cls, editor: Editor, named: Path | None) -> "SettingsFile":
        if named is not None:
            return cls(named.expanduser().absolute())
        places = _candidates(editor)
        path = next((path for path in places if path.parent.is_dir()), None)
        if path is None:
            raise Failure(
                f"{TITLES[editor]} was not found: there is no {places[0].parent}. Name its settings with --settings PATH."
            )
        return cls(path)

    @property
    def backup(self) -> Path:
        return self.path.with_name(self.path.name + BACKUP)

    def text(self) -> str:
        try:
            return self.path.read_bytes().decode()
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise Failure(f"{self.path} cannot be read: {error}. Nothing was changed.") from None

    def write(self, text: str) -> None:
        """Replace the file atomically. Follows symlinks and keeps the mode. Raises Failure."""
        target = Path(os.path.realpath(self.path))
        fresh = target.with_name(f"{target.name}.handrail-{os.getpid()}")
        try:
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
            fresh.touch(mode=mode)
            fresh.chmod(mode)
            fresh.write_bytes(text.encode())
            fresh.replace(target)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise Failure(f"{self.path} cannot be written: {error}. Nothing was changed.") from None

    def back_up(self) -> None:
        """Copy the file beside itself, unless it is the text we wrote: then the backup already has the original."""
        if self.our_record(self.text()) is not None:
            return
        if self.path.exists():
            try:
                self.backup.write_bytes(self.path.read_bytes())
                self.backup.chmod(0o600)
            except OSError as error:
                raise Failure(f"{self.backup} cannot be written: {error}. Nothing was changed.") from None

    def our_record(self, text: str) -> EditRecord | None:
        """The record of our edit, if this is exactly the text we wrote."""
        record = self.record()
        return record if record is not None and record.wrote == digest(text) else None

    def record(self) -> EditRecord | None:
        record = _read_records().get(str(self.path))
        return None if record is None else EditRecord(**record)

    def save_record(self, record: EditRecord) -> None:
        _write_records({**_read_records(), str(self.path): asdict(record)})

    def delete_record(self) -> None:
        self.backup.unlink(missing_ok=True)
        _write_records({path: known for path, known in _read_records().items() if path != str(self.path)})


def _candidates(editor: Editor) -> list[Path]:
    folder, server = _FOLDERS[editor]
    home = Path.home()
    if sys.platform == "darwin":
        own = home / "Library" / "Application Support" / folder
    else:
        own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / folder
    # The second is the settings file of a remote window (VS Code Server on this machine).
    return [own / "User" / "settings.json", home / server / "data" / "Machine" / "settings.json"]


def _read_records() -> dict[str, Any]:
    try:
        return json.loads(_records_file().read_text())
    except (OSError, ValueError):
        return {}


def _write_records(records: dict[str, Any]) -> None:
    file = _records_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(json.dumps(records, indent=2))
    except OSError as error:
        note(f"The record for undo could not be written: {error}. The backup exists.")


def _records_file() -> Path:
    return Places.find(os.environ).state / "profiles.json"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "shell",
        "handrail shell",
        "handrail shell -- make watch",
        "handrail shell --keep --name server -- npm run dev",
        "handrail shell --install-profile vscode",
        "handrail shell --install-profile vscode --undo",
        context_settings={"allow_interspersed_args": False},
    )(shell)


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- CMD", help="Run this command instead of your shell.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep running after this window is closed.")] = False,
    name: Annotated[str, typer.Option(help="Name shown in lists.")] = "",
    or_plain: Annotated[
        bool, typer.Option("--or-plain", help="Start a plain shell if Handrail is not available.")
    ] = False,
    install_profile: Annotated[
        Editor | None, typer.Option(help="Make this the default terminal of an editor; opens no shell.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="With --install-profile: remove it again.")] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="With --install-profile: only show the change.")
    ] = False,
    settings: Annotated[
        Path | None, typer.Option(help="With --install-profile: the editor's settings.json.")
    ] = None,
) -> None:
    """Open your shell in a terminal that agents can read. It survives restarts of the daemon.

    Size, colours, keys and environment are those of your own terminal. The exit status is that of the shell, or it ends
    with the same signal. 3: Handrail could not be started. 127: the command was not found.
    """
    if install_profile is None:
        if undo or only_print or settings:
            raise typer.BadParameter("--undo, --print and --settings belong to --install-profile.")
        _open_shell(command or [], keep, name, or_plain)

    if command or keep or name or or_plain:
        raise typer.BadParameter(
            "--install-profile opens no shell; leave out --keep, --name, --or-plain and the command."
        )
    act = remove_profile if undo else add_profile
    act(install_profile, settings, only_print=only_print)


def _open_shell(command: list[str], keep: bool, name: str, or_plain: bool) -> NoReturn:
    from handrail.door import shell as door  # noqa: PLC0415

    raise typer.Exit(door.run(door.ShellRequest(keep=keep, name=name, or_plain=or_plain, command=command)))


NAME = "handrail"
_SYSTEM = "osx" if sys.platform == "darwin" else "linux"
PROFILES = (f"terminal.integrated.profiles.{_SYSTEM}",)
PROFILE = (*PROFILES, NAME)
DEFAULT = (f"terminal.integrated.defaultProfile.{_SYSTEM}",)


def add_profile(editor: Editor, settings: Path | None, *, only_print: bool) -> None:
    """Make Handrail the default profile, or only show the change."""
    file = SettingsFile.find(editor, settings)
    before = file.text()
    try:
        after = set_member(set_member(before, PROFILE, build_profile()), DEFAULT, NAME)
    except (NotJson, NotAnObject) as problem:
        raise Failure(f"{file.path} cannot be read: {problem}. Nothing was changed.") from None
    if before == after:
        say(f"{file.path} already has the profile.")
        return
    _show_diff(file.path, before, after)
    if only_print:
        return
    record = _build_record(file, before, after)
    file.back_up()
    file.write(after)
    file.save_record(record)
    say(f"New terminals of {TITLES[editor]} are now opened by Handrail.")
    say(
        f"Undo it with `handrail shell --install-profile {editor} --undo`; the file as it was is {file.backup}."
    )


def remove_profile(editor: Editor, settings: Path | None, *, only_print: bool) -> None:
    """Restore the file. If it was changed since, remove only our settings."""
    file = SettingsFile.find(editor, settings)
    now = file.text()
    ours = file.our_record(now)
    if ours is None:
        then = _remove_our_settings(file, now)
    else:
        then = file.backup.read_bytes().decode() if ours.existed else ""
    if then == now:
        say(f"{file.path} has nothing of Handrail in it.")
        return
    _show_diff(file.path, now, then)
    if only_print:
        return
    if ours is not None and not ours.existed:
        file.path.unlink()
    else:
        file.write(then)
    file.delete_record()
    say(
        "It is as it was."
        if ours
        else "It was changed since, so only Handrail's own settings were taken out."
    )


def build_profile() -> dict[str, Any]:
    """The terminal profile. It runs `sh`, which falls back to a plain shell if Handrail was uninstalled."""
    main = Path(handrail.__file__).parent / "__main__.py"
    python = shlex.quote(sys.executable)
    options = " --or-plain" + (' -- "${SHELL:-/bin/zsh}" -l' if sys.platform == "darwin" else "")
    script = (
        f"[ -x {python} ] && [ -r {shlex.quote(str(main))} ] && exec {python} -P -m handrail shell{options}; "
        'echo "Not kept by Handrail: it is no longer installed where it was." >&2; exec "${SHELL:-/bin/sh}"'
    )
    settings: dict[str, Any] = {"path": "/bin/sh", "args": ["-c", script], "icon": "terminal"}
    home = os.environ.get("HANDRAIL_HOME")
    return {**settings, "env": {"HANDRAIL_HOME": str(Path(home).absolute())}} if home else settings


def _show_diff(path: Path, before: str, after: str) -> None:
    lines = unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in lines:
        say((line, styles.get(line[:1], "")))


def _build_record(file: SettingsFile, before: str, after: str) -> EditRecord:
    """The record of this edit. A second install keeps the original values of the first."""
    ours = file.our_record(before)
    if ours is not None:
        return EditRecord(digest(after), ours.existed, ours.profile, ours.default)
    return EditRecord(
        digest(after), file.path.exists(), value_text(before, PROFILE), value_text(before, DEFAULT)
    )


def _remove_our_settings(file: SettingsFile, text: str) -> str:
    """The text with our two settings removed or restored to their previous values."""
    record = file.record()
    try:
        if value_text(text, DEFAULT) == json.dumps(NAME):
            text = _restore_setting(text, DEFAULT, record and record.default)
        if value_text(text, PROFILE) is not None:
            text = _restore_setting(text, PROFILE, record and record.profile)
        return remove_member(text, PROFILES) if _is_empty(value_text(text, PROFILES)) else text
    except (NotJson, NotAnObject) as problem:
        raise Failure(f"{file.path} cannot be read: {problem}. Nothing was changed.") from None


def _restore_setting(text: str, path: tuple[str, ...], before: str | None) -> str:
    return remove_member(text, path) if before is None else set_member(text, path, parse(before).value)


def _is_empty(value: str | None) -> bool:
    return value is not None and value.strip("{} \t\r\n") == ""
