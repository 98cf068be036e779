"""Protected paths: keys, credentials, shell start-up files, editor and agent settings.

A call that touches one always needs a person's approval. Matching is by name only, whether or not the file
exists, and ignores letter case because some file systems do.
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
"""Folders of keys, and of editor and agent settings that can start programs."""

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
"""Parts of `.git` that git executes or that configure what it executes; in submodules and worktrees too."""


@lru_cache(256)
def is_protected(path: str, own: tuple[Path, ...]) -> bool:
    """Whether a real path is protected; `own` are Handrail's own files and folders."""
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
    """Whether it is `.env` or a variant such as `.env.local`; templates such as `.env.example` are not."""
    return name == ".env" or (name.startswith(".env.") and not name.endswith(_EXAMPLES))


@lru_cache(16)
def _own(places: tuple[Path, ...]) -> frozenset[tuple[str, ...]]:
    """The parts of each path, both as given and with symlinks resolved."""
    return frozenset(_parts(name) for place in places for name in (str(place), os.path.realpath(place)))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.casefold().strip("/").split("/"))


def _in_work_tree(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts below an agent's worktree, `.claude/worktrees/NAME`, which is not itself protected."""
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
