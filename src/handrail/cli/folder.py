"""Which folder a command is about, as people name it: by its path, or by standing in it.

Owns how that becomes a workspace, just as the door does it for agents. Does not know what holds there.
"""

import os
from pathlib import Path

from handrail.cli.failure import Failure


def workspace(named: Path | None, option: str = "--workspace") -> Path | None:
    """The named folder, else that of an agent launched here; None where it would have none. Raises Failure."""
    asked = os.environ.get("HANDRAIL_WORKSPACE")
    if named is None and asked:
        named = Path(asked)
    folder = (named or Path.cwd()).expanduser().resolve()
    if not folder.is_dir():
        raise Failure(f"{folder} is not a directory. Name one that exists with {option}.")
    if named is None:
        folder = top_level(folder)
    return None if folder in (Path("/"), Path.home()) else folder


def project(named: Path | None, option: str = "--workspace") -> Path:
    """The same, where there has to be one."""
    folder = workspace(named, option)
    if folder is None:
        wide = (named or Path.cwd()).expanduser().resolve()
        raise Failure(f"{wide} is too wide for a workspace. Name a project with {option}.")
    return folder


def top_level(folder: Path) -> Path:
    """Of its git repository; itself where there is none."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
