"""The places that are never touched without a person, whether or not they exist.

Owns their names. It does not know who asks or what for. A name is enough, in any letter case, because some
file systems do not tell cases apart.
"""

import os
from functools import lru_cache
from pathlib import Path

_FOLDERS = frozenset(
    {
        ".aws",
        ".azure",
        ".claude",
        ".codex",
        ".cursor",
        ".docker",
        ".gemini",
        ".gnupg",
        ".handrail",
        ".idea",
        ".kube",
        ".mozilla",
        ".oci",
        ".ssh",
        ".terraform.d",
        ".vscode",
        ".vscode-server",
    }
)
"""Keys, and settings of editors and agents that can start programs."""

_NAMES = frozenset(
    {
        ".bash_aliases",
        ".bash_login",
        ".bash_logout",
        ".bash_profile",
        ".bashrc",
        ".cshrc",
        ".envrc",
        ".git-credentials",
        ".gitconfig",
        ".inputrc",
        ".kshrc",
        ".login",
        ".mcp.json",
        ".mkshrc",
        ".netrc",
        ".npmrc",
        ".pam_environment",
        ".pgpass",
        ".profile",
        ".pypirc",
        ".tcshrc",
        ".vault-token",
        ".xinitrc",
        ".xprofile",
        ".xsession",
        ".yarnrc",
        ".zlogin",
        ".zlogout",
        ".zprofile",
        ".zshenv",
        ".zshrc",
        "authorized_keys",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
        "id_rsa",
    }
)
"""Shell start-up files, keys and credentials."""

_BRANCHES = (
    (".config", "autostart"),
    (".config", "environment.d"),
    (".config", "fish"),
    (".config", "gcloud"),
    (".config", "gh"),
    (".config", "git"),
    (".config", "handrail"),
    (".config", "op"),
    (".config", "systemd"),
    (".config", "zed"),
    (".config", "zsh"),
    (".local", "share", "handrail"),
    (".local", "share", "keyrings"),
    (".local", "state", "handrail"),
    ("library", "launchagents"),
    ("library", "keychains"),
)

_SYSTEM = (
    ("etc", "profile"),
    ("etc", "profile.d"),
    ("etc", "bash.bashrc"),
    ("etc", "bashrc"),
    ("etc", "zsh"),
    ("etc", "zshrc"),
    ("etc", "zshenv"),
    ("etc", "zprofile"),
    ("etc", "shadow"),
    ("etc", "gshadow"),
    ("etc", "sudoers"),
    ("etc", "sudoers.d"),
    ("etc", "pam.d"),
    ("etc", "ssh"),
    ("etc", "cron.d"),
    ("etc", "crontab"),
    ("etc", "ld.so.preload"),
)

_EXAMPLES = (".example", ".sample", ".template", ".dist", ".defaults")

_GIT = frozenset({"hooks", "config", "config.worktree", "commondir"})
"""What git runs, or reads to learn what to run; in sub-modules and work trees too."""


@lru_cache(256)
def is_protected(path: str, own: tuple[Path, ...]) -> bool:
    """Whether a real path lies in one of the places; `own` are Handrail's own files and folders."""
    whole = _parts(path)
    if any(_begins(whole, branch) for branch in _own(own)):
        return True
    parts = _in_work_tree(whole)
    return (
        not _FOLDERS.isdisjoint(parts)
        or not _NAMES.isdisjoint(parts[-1:])
        or _is_secret(parts[-1])
        or any(_contains(parts, branch) for branch in _BRANCHES)
        or any(_begins(parts, branch) for branch in _SYSTEM)
        or _is_git(parts)
    )


def _is_secret(name: str) -> bool:
    """`.env` and its kin, where people keep keys; not the examples that are meant to be read."""
    return name == ".env" or (name.startswith(".env.") and not name.endswith(_EXAMPLES))


@lru_cache(16)
def _own(places: tuple[Path, ...]) -> frozenset[tuple[str, ...]]:
    """As they are named, and where links lead."""
    return frozenset(_parts(name) for place in places for name in (str(place), os.path.realpath(place)))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.casefold().strip("/").split("/"))


def _in_work_tree(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Agents keep whole work trees under `.claude/worktrees/NAME`; below that, names count afresh."""
    for at in range(len(parts) - 3):
        if parts[at : at + 2] == (".claude", "worktrees"):
            return parts[at + 3 :]
    return parts


def _begins(parts: tuple[str, ...], branch: tuple[str, ...]) -> bool:
    return parts[: len(branch)] == branch


def _contains(parts: tuple[str, ...], branch: tuple[str, ...]) -> bool:
    return branch[0] in parts and any(parts[at : at + 2] == branch for at in range(len(parts) - 1))


def _is_git(parts: tuple[str, ...]) -> bool:
    if ".git" not in parts:
        return False
    below = parts[parts.index(".git") + 1 :]
    return not below or not _GIT.isdisjoint(below)
