"""Sub-commands of git that only read, with their options; part of the table in reading_commands.py."""

from collections.abc import Sequence
from typing import Literal

from handrail.lazy_dataclass import dataclass

Operands = Literal["any", "none", "one", "listed", "show"]
GitUse = Literal["tree", "drivers", "content"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitReader:
    """The options with which one sub-command of git only reads."""

    words: tuple[str, ...]
    flags: str = ""
    valued: str = ""
    """Short options with an attached value."""
    long: frozenset[str] = frozenset()
    number: bool = False
    operands: Operands = "any"
    """`listed`: only with an option that makes it list; otherwise the operand names a branch or tag to create."""
    uses: frozenset[GitUse] = frozenset()
    """What it depends on: `tree`: the working tree, through filters and submodules; `drivers`: diff drivers;
    `content`: it prints the content of tracked files."""

    def accepts_operands(self, arguments: Sequence[str]) -> bool:
        operands = [word for word in arguments if not word.startswith("-") or word == "-"]
        match self.operands:
            case "any":
                return True
            case "none":
                return not operands
            case "one":
                return len(operands) <= 1
            case "listed":
                return not operands or any(word.partition("=")[0] in _LISTS for word in arguments)
            case "show":
                return not operands or operands[0] == "show" == arguments[0]


_LISTS = frozenset(("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"))
"""Options with which `branch` and `tag` list. `-l` created a branch in old versions."""

_DIFF = """
    stat shortstat numstat name-only name-status summary patch no-patch raw color no-color color-words word-diff
    word-diff-regex unified minimal patience histogram diff-algorithm ignore-space-change ignore-all-space
    ignore-space-at-eol ignore-blank-lines ignore-cr-at-eol check full-index binary abbrev find-renames no-renames
    find-copies find-copies-harder diff-filter pickaxe-all pickaxe-regex relative no-relative text exit-code quiet
    no-ext-diff no-textconv inter-hunk-context function-context ws-error-highlight no-prefix src-prefix dst-prefix
    compact-summary dirstat color-moved no-color-moved indent-heuristic no-indent-heuristic patch-with-stat
"""
"""Left out: output (writes a file), ext-diff and textconv (start programs), no-index, submodule (starts git)."""
_LOG = """
    oneline graph all branches tags remotes decorate no-decorate since until after before author committer grep
    max-count skip reverse merges no-merges first-parent follow format pretty date abbrev-commit no-abbrev-commit
    topo-order date-order author-date-order full-history simplify-by-decoration left-right cherry-pick cherry-mark
    left-only right-only all-match invert-grep regexp-ignore-case extended-regexp fixed-strings perl-regexp no-walk
    source parents children boundary ancestry-path no-notes full-diff relative-date min-parents max-parents count
    cc root
"""
"""Left out: show-signature (starts gpg), remerge-diff (writes objects), stdin."""
_DIFF_FLAGS, _DIFF_VALUED = "pusabwzRWMCB", "UMCBlSG"
_REF_LIST = "list contains no-contains merged no-merged points-at sort format color no-color column no-column ignore-case"


def _names(*texts: str) -> frozenset[str]:
    return frozenset(name for text in texts for name in text.split())


_NOTHING: frozenset[GitUse] = frozenset()
_TREE: frozenset[GitUse] = frozenset(("tree",))
_DRIVERS: frozenset[GitUse] = frozenset(("drivers", "content"))


def _log_row(*words: str, operands: Operands = "any", uses: frozenset[GitUse] = _DRIVERS) -> GitReader:
    return GitReader(
        words=words,
        flags=f"{_DIFF_FLAGS}giEFPmcrt",
        valued=f"n{_DIFF_VALUED}L",
        long=_names(_LOG, _DIFF),
        number=True,
        operands=operands,
        uses=uses,
    )


def _blame_row(word: str) -> GitReader:
    return GitReader(
        words=(word,),
        flags="cbltfnesw",
        valued="LMC",
        long=_names("porcelain line-porcelain show-email show-name show-number date root abbrev since"),
        uses=_TREE | _DRIVERS,
    )


_ROWS = (
    GitReader(words=("--version",), operands="none"),
    GitReader(words=("version",), operands="none"),
    GitReader(
        words=("status",),
        flags="sbz",
        valued="u",
        long=_names(
            "short branch porcelain long show-stash untracked-files ignored renames no-renames find-renames column "
            "no-column ahead-behind no-ahead-behind null"
        ),
        uses=_TREE,
    ),
    GitReader(
        words=("diff",),
        flags=_DIFF_FLAGS,
        valued=_DIFF_VALUED,
        long=_names(_DIFF, "cached staged merge-base"),
        number=True,
        uses=_TREE | _DRIVERS,
    ),
    _log_row("log"),
    _log_row("show"),
    _log_row("rev-list", uses=_NOTHING),
    _log_row("stash", "list"),
    _log_row("reflog", operands="show"),
    GitReader(
        words=("shortlog",),
        flags="nsec",
        number=True,
        long=_names("summary numbered email committer group no-merges since until after before all"),
    ),
    GitReader(
        words=("branch",),
        flags="avr",
        long=_names(_REF_LIST, "all remotes verbose show-current abbrev no-abbrev"),
        operands="listed",
    ),
    GitReader(words=("tag",), long=_names(_REF_LIST), operands="listed"),
    GitReader(words=("tag", "-l"), valued="n", long=_names(_REF_LIST)),
    GitReader(words=("for-each-ref",), long=_names("format sort count points-at merged no-merged contains")),
    GitReader(words=("remote",), flags="v", long=_names("verbose"), operands="none"),
    GitReader(words=("remote", "get-url"), long=_names("all push"), operands="one"),
    GitReader(
        words=("rev-parse",),
        flags="q",
        long=_names(
            "show-toplevel git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir "
            "is-bare-repository abbrev-ref short verify quiet show-prefix show-cdup symbolic symbolic-full-name all "
            "branches tags remotes revs-only no-revs flags no-flags show-object-format"
        ),
    ),
    GitReader(
        words=("ls-files",),
        flags="cdmoiskuztv",
        valued="x",
        long=_names(
            "cached deleted modified others ignored stage unmerged killed exclude exclude-standard directory "
            "no-empty-directory error-unmatch full-name abbrev deduplicate eol"
        ),
        uses=_TREE,
    ),
    GitReader(
        words=("ls-tree",),
        flags="drtlz",
        long=_names("name-only name-status long full-name full-tree abbrev object-only"),
    ),
    GitReader(
        words=("grep",),
        flags="nilLcwvEFGPhHIaWqz",
        valued="eABCm",
        number=True,
        long=_names(
            "line-number ignore-case files-with-matches files-without-match name-only count word-regexp "
            "extended-regexp fixed-strings basic-regexp perl-regexp cached heading break show-function "
            "function-context and or not all-match max-depth column only-matching quiet color no-color "
            "after-context before-context context invert-match full-name"
        ),
        uses=frozenset(("tree", "content")),
    ),
    _blame_row("blame"),
    _blame_row("annotate"),
    GitReader(
        words=("describe",),
        long=_names("tags all always long abbrev match exclude contains exact-match first-parent candidates"),
    ),
    GitReader(words=("merge-base",), flags="a", long=_names("all is-ancestor octopus independent")),
    GitReader(words=("cat-file",), flags="tpes", uses=frozenset(("content",))),
    GitReader(words=("check-ignore",), flags="vnq", long=_names("verbose non-matching no-index quiet")),
    GitReader(words=("symbolic-ref",), flags="q", long=_names("short quiet"), operands="one"),
    GitReader(words=("worktree", "list"), flags="vz", long=_names("verbose porcelain"), operands="none"),
    GitReader(words=("count-objects",), flags="vH", long=_names("verbose human-readable"), operands="none"),
)

GIT_READERS: dict[tuple[str, ...], GitReader] = {row.words: row for row in _ROWS}
