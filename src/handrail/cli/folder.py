"""Find the workspace of a command, from an option or the current directory.

The result is the same as for an agent that is launched there (see `door`).
"""

import os
from pathlib import Path

from handrail.cli.failure import Failure


def workspace(named: Path | None, option: str = "--workspace") -> Path | None:
    """The named folder, else HANDRAIL_WORKSPACE, else the git top level of the current directory.

    None for `/` and the home directory, which are too wide. Raises Failure if it is not a directory.
    """
    variable = os.environ.get("HANDRAIL_WORKSPACE")
    if named is None and variable:
        named = Path(variable)
    folder = (named or Path.cwd()).expanduser().resolve()
    if not folder.is_dir():
        raise Failure(f"{folder} is not a directory. Name one that exists with {option}.")
    if named is None:
        folder = top_level(folder)
    return None if folder in (Path("/"), Path.home()) else folder


def project(named: Path | None, option: str = "--workspace") -> Path:
    """Like `workspace`, but raises Failure instead of returning None."""
    folder = workspace(named, option)
    if folder is None:
        wide = (named or Path.cwd()).expanduser().resolve()
        raise Failure(f"{wide} is too wide for a workspace. Name a project with {option}.")
    return folder


def top_level(folder: Path) -> Path:
    """The top level of the git repository; the folder itself outside a repository."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
