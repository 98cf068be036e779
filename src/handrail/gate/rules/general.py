"""How general a rule about a command may be: `git push`, `npm run test`, `pytest`, or these very words.

Owns what is known of programs for that. It decides nothing: what is suggested is a person's to take, narrow or leave.
"""

from collections.abc import Sequence

from handrail.gate.risk import assess
from handrail.gate.rules.command_pattern import spell
from handrail.store.value import Claim


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SUBCOMMANDS = _names("""
    apt apt-get asdf brew bun bundle bunx cargo composer conda dart deno docker dotnet flutter gh git go gradle hatch helm hg
    just kubectl make mise mix mvn nix npm npx nx pdm pip pip3 pipenv pipx pnpm podman poetry pyenv rake rbenv rustup
    swift systemctl terraform turbo uv uvx yarn
""")
"""Programs whose first word says what they do."""
DEEPER = {
    "asdf": _names("exec"),
    "bun": _names("run x"),
    "bundle": _names("exec"),
    "conda": _names("run"),
    "dart": _names("run"),
    "deno": _names("run task"),
    "docker": _names("compose container image"),
    "gh": _names("issue pr release repo run"),
    "git": _names("bisect remote stash submodule worktree"),
    "go": _names("mod run tool"),
    "hatch": _names("run"),
    "mise": _names("exec run x"),
    "nix": _names("develop run shell"),
    "npm": _names("exec run x"),
    "nx": _names("run"),
    "pdm": _names("run"),
    "pipenv": _names("run"),
    "pipx": _names("run"),
    "pnpm": _names("dlx exec run"),
    "poetry": _names("run"),
    "pyenv": _names("exec"),
    "rbenv": _names("exec"),
    "rustup": _names("run"),
    "uv": _names("pip run tool"),
    "yarn": _names("dlx exec run workspace"),
}
"""Where the word after that does; without it, nobody knows what would be allowed."""
INTERPRETERS = _names("lua node perl php python python3 ruby Rscript")
DELETES = _names("rm rmdir shred truncate unlink")
WHOLE = DELETES | _names("""
    awk chgrp chmod chown cp curl dd find gawk install kill killall ln mv pkill psql rsync scp sed sqlite3 ssh tar tee
    wget zip
""")
"""Whose other words can mean anything: only exactly these words are suggested."""
_ROOTS = frozenset(
    (".", "..", "/", "~", "*", ".*", "./", "../", "./*", "/*", "~/", "~/*", "--no-preserve-root")
)


def pattern_of(claim: Claim) -> str | None:
    """A pattern that covers this command and others like it; None when none should be suggested."""
    words = claim.words
    if words[0] in DELETES and (not claim.inside or not _ROOTS.isdisjoint(words[1:])):
        return None
    count = _telling(words)
    if count is None or _adds_harm(claim, words[:count]):
        return spell(words, ends=True)
    return spell(words[:count])


def _telling(words: Sequence[str]) -> int | None:
    """How many of the words say what is done; None when all of them do."""
    program, first, second = words[0], *(*words[1:3], "", "")[:2]
    if program in WHOLE:
        return None
    if program in INTERPRETERS:
        if first == "-m" and second:
            return 3
        return 2 if first and not first.startswith("-") else None
    if program not in SUBCOMMANDS:
        return 1
    if first in DEEPER.get(program, ()):
        return 3 if second and not second.startswith("-") else None
    return 2 if first and not first.startswith("-") else None


def _adds_harm(claim: Claim, kept: Sequence[str]) -> bool:
    """Whether the words that are left out make it worse: `-f` after `git push`."""
    whole = assess((claim,))
    if whole.level != "high":
        return False
    short = Claim(action="run", resource=" ".join(kept), inside=True, words=tuple(kept))
    return not set(whole.reasons) <= set(assess((short,)).reasons)
