"""The greeting on the daemon's socket, as the daemon hears it.

Owns what a door or the command line says of itself, and which workspace follows from it. What they are let do is
decided in local.py.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Hello(BaseModel):
    """The first line of whoever connects. Later versions may say more."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    handrail: int
    want: Literal["mcp", "person", "read"]
    version: str = ""
    cwd: Annotated[str, Field(max_length=4096)] = "/"
    workspace: Annotated[str | None, Field(max_length=4096)] = None
    door: Annotated[str, Field(max_length=64)] = ""
    credential: Annotated[str, Field(max_length=200)] = ""
    """Lent to an agent that we started ourselves: its calls belong to a thread."""


def workspace_of(hello: Hello) -> str | None:
    """The named folder, else the folder it stands in widened to its git top level; home, and what it lies in, count as none."""
    asked = hello.workspace or hello.cwd
    folder = Path(asked).expanduser()
    if not folder.is_absolute():
        folder = Path(hello.cwd) / folder
    folder = folder.resolve()
    if hello.workspace is None:
        folder = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    return None if is_too_wide(folder) or not folder.is_dir() else str(folder)


def is_too_wide(folder: Path) -> bool:
    """Whether it is the person's home, or holds it: no workspace for anybody."""
    return Path.home().resolve().is_relative_to(folder)
