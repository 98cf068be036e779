"""Protected paths: keys, credentials, shell start-up files, git directories, editor and agent settings.

A call that touches a protected path always needs a person's approval. Obeyed paths are files that other programs
execute or follow, such as git hooks and CI workflows: a change needs an approval, reading does not. Both are matched
by name, whether or not the file exists, and in any letter case because some file systems ignore it. Only a git
directory under another name than `.git` is recognised by its content.
"""

import os
from collections.abc import Callable
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
        ".curlrc",
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
        ".wgetrc",
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
    (".cargo", "credentials"),
    (".cargo", "credentials.toml"),
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
    (".hg", "hgrc"),
    ("library", "launchagents"),
    ("library", "keychains"),
)

_OBEYED_FOLDERS = frozenset(
    (
        *(
            ".agent",
            ".agents",
            ".amazonq",
            ".augment",
            ".clinerules",
            ".continue",
            ".factory",
            ".goose",
            ".junie",
        ),
        *(".cline", ".codeium", ".copilot", ".kimi-code"),
        *(".kilocode", ".kiro", ".opencode", ".qwen", ".roo", ".trae", ".vibe", ".windsurf"),
        *(
            ".buildkite",
            ".circleci",
            ".devcontainer",
            ".fleet",
            ".helix",
            ".husky",
            ".lefthook",
            ".woodpecker",
            ".zed",
        ),
    )
)
"""Folders of agents, editors, git hooks and CI: what lies in them is executed or followed."""

_OBEYED_NAMES = frozenset(
    (
        *(
            "agents.md",
            "agents.override.md",
            "claude.md",
            "claude.local.md",
            "gemini.md",
            "qwen.md",
            ".rules",
        ),
        *(".aider.conf.yml", ".clinerules", ".crush.json", "crush.json", ".cursorrules", ".goosehints"),
        *(".claude.json", "opencode.json", "opencode.jsonc", ".windsurfrules"),
        *(
            ".drone.yml",
            ".gitlab-ci.yml",
            ".pre-commit-config.yaml",
            ".travis.yml",
            ".woodpecker.yml",
            "jenkinsfile",
        ),
        *(
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            "lefthook.yml",
            ".lefthook.yml",
            ".devcontainer.json",
        ),
        *(".dir-locals.el", ".emacs", ".exrc", ".gvimrc", ".ideavimrc", ".nvim.lua", ".nvimrc", ".vimrc"),
        *(
            ".bazelrc",
            ".bunfig.toml",
            "bunfig.toml",
            ".condarc",
            ".direnvrc",
            ".irbrc",
            ".mailcap",
            ".mise.toml",
        ),
        *("mise.toml", ".pnpmfile.cjs", ".pryrc", ".pythonrc", ".pythonstartup", ".rprofile", ".yarnrc.yml"),
        *(".gdbinit", ".lldbinit", ".psqlrc", ".screenrc", ".sqliterc", ".tmux.conf"),
    )
)
"""Instructions of agents, CI pipelines, and start-up files of editors, package managers and debuggers."""

_OBEYED_BRANCHES = (
    (".cargo", "config"),
    (".cargo", "config.toml"),
    (".config", "direnv"),
    (".config", "goose"),
    (".config", "helix"),
    (".config", "mise"),
    (".config", "nvim"),
    (".config", "opencode"),
    (".config", "pip"),
    (".config", "tmux"),
    (".config", "zed"),
    (".forgejo", "workflows"),
    (".gitea", "workflows"),
    (".github", "actions"),
    (".github", "agents"),
    (".github", "chatmodes"),
    (".github", "copilot-instructions.md"),
    (".github", "hooks"),
    (".github", "instructions"),
    (".github", "prompts"),
    (".github", "workflows"),
    (".gradle", "init.d"),
    (".gradle", "init.gradle"),
    (".local", "bin"),
    (".local", "share", "applications"),
    (".local", "share", "dbus-1"),
    (".local", "share", "systemd"),
)

_SECRET_FOLDERS = frozenset(
    (
        *(
            ".aws",
            ".azure",
            ".docker",
            ".gnupg",
            ".handrail",
            ".kube",
            ".mozilla",
            ".oci",
            ".ssh",
            ".terraform.d",
        ),
        *("gcloud", "gh", "handrail", "keychains", "keyrings", "op"),
    )
)
_SECRET_NAMES = frozenset(
    (
        *(".credentials.json", ".curlrc", ".git-credentials", ".netrc", ".npmrc", ".pgpass", ".pypirc"),
        *(".vault-token", ".wgetrc", "authorized_keys", "id_dsa", "id_ecdsa", "id_ed25519", "id_rsa"),
        *("oauth_creds.json", "credentials.toml"),
    )
)
"""Of the protected names, those that hold secrets. The others are protected from changes rather than from reading."""

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
_GIT_ATTRIBUTES = ("info", "attributes")
_GIT_PARTS = ("HEAD", "objects", "refs", "commondir")
"""Git takes a folder for a repository by these names: the first three, or the first and the last."""


@lru_cache(256)
def is_protected(path: str, own: tuple[Path, ...]) -> bool:
    """Whether a real path is protected by its name; `own` are Handrail's own files and folders."""
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


@lru_cache(256)
def is_obeyed(path: str) -> bool:
    """Whether other programs execute or follow the file, so that a change of it needs an approval."""
    parts = _in_work_tree(_parts(path))
    return (
        not _OBEYED_FOLDERS.isdisjoint(parts)
        or parts[-1] in _OBEYED_NAMES
        or parts[-1].endswith(".code-workspace")
        or any(_contains(parts, branch) for branch in _OBEYED_BRANCHES)
    )


def may_hold_secrets(name: str) -> bool:
    """Whether an entry of this name is a candidate for `is_protected` when a command reads a whole folder."""
    name = name.casefold()
    return name in _SECRET_FOLDERS or name in _SECRET_NAMES or _is_secret(name)


def has_own_below(folder: str, own: tuple[Path, ...], *, hidden: bool) -> bool:
    """Whether Handrail's own files lie in this folder or below; without `hidden`, only outside of hidden folders."""
    parts = _parts(folder) if folder != "/" else ()
    below = [each[len(parts) :] for each in _own(own) if _begins(each, parts)]
    return any(hidden or not any(name.startswith(".") for name in each) for each in below)


GitNames = Callable[[str], frozenset[str]]


def git_names(folder: str) -> frozenset[str]:
    """The names in a folder by which git recognises a repository."""
    return frozenset(name.casefold() for name in _GIT_PARTS if os.path.lexists(f"{folder}/{name}"))


def is_repository(folder: str) -> bool:
    """Whether git takes a folder for a repository by its content."""
    return os.path.lexists(f"{folder}/HEAD") and _is_repository(git_names(folder))


def is_repository_part(path: str, names_in: GitNames = git_names) -> bool:
    """Whether a real path configures a git directory that is not called `.git`, or would complete one."""
    parts = path.rstrip("/").split("/")
    for at in range(1, len(parts)):
        name = parts[at].casefold()
        configures = name in _GIT or (name == "info" and parts[-1].casefold() == "attributes")
        if (configures or name in _GIT_NAMES) and parts[at - 1].casefold() != ".git":
            found = names_in("/".join(parts[:at]) or "/")
            if _is_repository(found | {name}) and (configures or not _is_repository(found)):
                return True
    return False


def is_in_bare_repository(folder: str) -> bool:
    """Whether git would take a folder, or one above, for a repository by its content. Searches as git does."""
    while True:
        inner = f"{folder.rstrip('/')}/.git"
        if os.path.isfile(inner) or is_repository(inner):  # noqa: PTH113 - runs for every command
            return False
        if is_repository(folder):
            return True
        if folder in ("/", ""):
            return False
        folder = os.path.dirname(folder)  # noqa: PTH120 - runs for every command


_GIT_NAMES = frozenset(name.casefold() for name in _GIT_PARTS)


def _is_repository(names: frozenset[str]) -> bool:
    return "head" in names and ("commondir" in names or {"objects", "refs"} <= names)


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
    size = len(branch)
    return branch[0] in parts and any(parts[at : at + size] == branch for at in range(len(parts) - size + 1))


def _is_git(parts: tuple[str, ...]) -> bool:
    if ".git" not in parts:
        return False
    below = parts[parts.index(".git") + 1 :]
    return not below or not _GIT.isdisjoint(below) or _contains(below, _GIT_ATTRIBUTES)
