"""`handrail trust`: trust a folder, so that its `.handrail/config.toml` and the user's allow rules apply there.

The file is read once: the text shown comes from the same bytes whose hash is sent to the daemon.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handrail.cli.client import Link, reach
from handrail.cli.command_help import add_command
from handrail.cli.exact import escape_line_breaks
from handrail.cli.failure import Failure
from handrail.cli.folder import project, top_level
from handrail.cli.interactive.keyboard import confirm
from handrail.cli.render.formats import format_minute
from handrail.cli.render.output import Piece, note, print_json, print_table, say
from handrail.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from handrail.cli.wire import FolderBody, FolderView
    from handrail.config import ProjectConfig, RuleSection


FILE = ".handrail/config.toml"
LARGEST = 256 * 1024
"""Maximum bytes of a project file; the daemon reads less."""
_ABOUT = ("tool", "pattern", "command", "path", "host", "server", "agent")
_DEFAULTS = {
    "allow": "allow everything else, except high risk (default_policy = allow)",
    "ask": "ask about calls that no rule matches, even if your own default denies them (default_policy = ask)",
}


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project's config file and the hash of its bytes."""

    sha: str
    config: ProjectConfig


def read_project_file(folder: Path) -> ProjectFile | None:
    """Read the folder's config file; None without one. Raises Failure if it is unreadable or invalid."""
    from handrail.config import BadConfig, load_project  # noqa: PLC0415 - pydantic, which most commands do without

    path = folder / FILE
    try:
        raw = _read_bytes(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(
            f"{path} cannot be read: {error.strerror}. Make it a plain file, or remove it."
        ) from None
    if len(raw) > LARGEST:
        raise Failure(f"{path} is larger than {LARGEST:,} bytes. Make it smaller, or remove it.")
    try:
        return ProjectFile(hashlib.sha256(raw).hexdigest(), load_project(path, raw.decode()))
    except (BadConfig, UnicodeDecodeError) as problem:
        raise Failure(f"{folder} cannot be trusted while its file is wrong: {problem}") from None


def _read_bytes(path: Path) -> bytes:
    """Read the file without following a symlink, as the daemon does."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(LARGEST + 1)


def describe_allowances(config: ProjectConfig) -> list[str]:
    """Describe everything that the file allows; rules with their line numbers."""
    settings = [
        *([_DEFAULTS[config.default_policy]] if config.default_policy in _DEFAULTS else []),
        *(["allow low risk (human_in_the_loop = false)"] if config.human_in_the_loop is False else []),
    ]
    return [*settings, *(_describe_allow_rule(rule) for rule in config.rules if rule.effect == "allow")]


def _describe_allow_rule(rule: RuleSection) -> str:
    fields = [f"{name} {getattr(rule, name)}" for name in _ABOUT if getattr(rule, name) is not None]
    until = f", until {rule.expires}" if rule.expires else ""
    remark = f"   ({rule.note})" if rule.note else ""
    return escape_line_breaks(f"allow {', '.join(fields)}{until}{remark}   (line {rule.line})")


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(app: typer.Typer) -> None:
    add_command(
        app,
        "trust",
        "handrail trust",
        "handrail trust ~/code/api",
        "handrail trust --undo ~/code/api",
        "handrail trust --list",
    )(trust)


def trust(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder; default: the current project.")
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Stop trusting the folder.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="List known folders.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json_: AsJson = False,
) -> None:
    """Trust a folder: your allow rules for all folders apply there.

    The allow rules in the folder's own .handrail/config.toml apply too, until that file changes.
    """
    if listed and (undo or folder is not None):
        raise typer.BadParameter("--list shows every folder; give no other options.")
    if listed:
        _list_folders(as_json_)
        return
    here = project(folder, "handrail trust DIR")
    body: FolderBody = {"folder": str(here)}
    with reach("person") as link:
        if undo:
            _show_result(link.post("folders", "distrust", body=body), as_json_)
            return
        file = read_project_file(here)
        if not as_json_:
            _show_effects(link, here, file)
        if not (yes or as_json_ or confirm(f"Trust {escape_line_breaks(str(here))}?")):
            raise Failure("Nothing was changed.")
        body["config"] = file.sha if file else None
        _show_result(link.post("folders", "trust", body=body), as_json_)
    if not as_json_ and (top := top_level(here)) != here:
        note(
            escape_line_breaks(
                f"Agents started in it have the workspace {top}, which this does not trust: run `handrail trust {top}`."
            )
        )


def _list_folders(for_programs: bool) -> None:
    with reach("read") as link:
        rows = link.get("folders")
    if for_programs:
        print_json(rows)
    elif rows:
        print_table(("TRUSTED", "SINCE", "PROBLEM", "FOLDER"), [_cells(row) for row in rows])
    else:
        note("No folder is known yet. `handrail trust` trusts the current one.")


def _cells(row: FolderView) -> tuple[Piece, ...]:
    trusted = ("✓ trusted", "green") if row["trusted"] else ("● not trusted", "yellow")
    since = format_minute(row["trusted_at"]) if row["trusted"] and row["trusted_at"] else ""
    return (
        trusted,
        since,
        ("⚠", "yellow") if row["problem"] else "",
        f"{row['folder']}  {row['problem']}".rstrip(),
    )


def _show_effects(link: Link, folder: Path, file: ProjectFile | None) -> None:
    """Show everything that trusting the folder would allow."""
    say((escape_line_breaks(str(folder)), "bold"))
    say("This applies to this folder only, not to folders below it.")
    lines = describe_allowances(file.config) if file else []
    if lines:
        say(f"Its {FILE} would from then on, until it changes:")
        for line in lines:
            say(("  " + line, "yellow"))
    elif file:
        say(f"Its {FILE} allows nothing. What it denies already applies.")
    else:
        say("It brings no rules of its own.")
    say("Commands that only read its files run without a question (`allow_reading_commands` in config.toml).")
    for line in _describe_user_rules(link, folder):
        say(line)


def _describe_user_rules(link: Link, folder: Path) -> list[str]:
    """Describe the user's allow rules for all folders that are not in force here yet."""
    answer = link.get("rules", workspace=str(folder))
    waiting = [
        view
        for view in answer["rules"]
        if not view["builtin"] and not view["in_force"] and view["rule"]["effect"] == "allow"
        if view["rule"]["workspace"] is None
    ]
    lines = [escape_line_breaks(f"  allow {view['words']}   ({view['rule']['id']})") for view in waiting]
    return ["Your rules for all folders would also apply in it:", *lines] if lines else []


def _show_result(folder: FolderView, for_programs: bool) -> None:
    if for_programs:
        print_json(folder)
        return
    trusted = ("✓ trusted", "green") if folder["trusted"] else ("● not trusted", "yellow")
    say(trusted, escape_line_breaks(f"  {folder['folder']}"))
    if folder["trusted"]:
        note(("`handrail trust --undo` takes it back.", "dim"))
    else:
        note(
            (
                "Calls that change something need your approval, unless a rule for this folder allows them.",
                "dim",
            )
        )
