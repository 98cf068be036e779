"""Reading commands: programs, and the options with which they only read files and print.

A table of what is allowed, reviewed against the manuals of GNU, BSD and git; whatever is not in it is not a reading
command. The check is pure. Which files a command reads, which file its program is, and how a git repository is
configured, is checked in tools/commands/.

One rule makes the check independent of how a program parses its arguments: every word that begins with `-`, wherever it
stands, must be an allowed option, even after `--` or where another option expects its value.
"""

import posixpath
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import field

from handrail.gate.shell._git_options import GIT_READERS, GitReader
from handrail.gate.shell._printf import has_expressions
from handrail.lazy_dataclass import dataclass

_NUMBER = re.compile(r"-\d+")
_BINS = ("", "/bin", "/usr/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The options and operands with which one program only reads."""

    flags: str = ""
    """Short options without a value."""
    valued: str = ""
    """Short options with a value, which may be attached. Only for programs that parse clusters as getopt does."""
    exact: frozenset[str] = frozenset()
    """Words with one dash that are allowed as they are."""
    long: frozenset[str] = frozenset()
    """Long options, without the dashes and in full: an abbreviation is refused. A value may follow after `=`."""
    number: bool = False
    """A negative number is allowed: `head -5`, `head -n -5`."""
    globs: bool = True
    """Operands may be globs. Refused where the position of an operand matters."""
    check: Callable[[Sequence[str]], bool] = field(default=lambda _: True)
    """A further check of the arguments."""

    def accepts(self, arguments: Sequence[str], live: Set[int] = frozenset()) -> bool:
        """`live` are the positions of the arguments that the shell may expand."""
        if live and not self.globs:
            return False
        dashed = (word for word in arguments if word.startswith("-") and word not in ("-", "--"))
        return all(self._allows(word) for word in dashed) and self.check(arguments)

    def _allows(self, word: str) -> bool:
        if word.startswith("--"):
            return word[2:].partition("=")[0] in self.long
        if word in self.exact or (self.number and _NUMBER.fullmatch(word)):
            return True
        return self._allows_cluster(word[1:])

    def _allows_cluster(self, letters: str) -> bool:
        for letter in letters:
            if letter in self.valued:
                return True
            if letter not in self.flags:
                return False
        return True


def is_reading_command(words: Sequence[str], live: Set[int] = frozenset()) -> bool:
    """Whether a command, given its words, only reads files and prints; `live` are the words that the shell may expand."""
    folder, name = posixpath.split(words[0])
    if folder not in _BINS or 0 in live:
        return False
    arguments = words[1:]
    if name == "git":
        return not live and is_reading_git(arguments)
    reader = READERS.get(name)
    return reader is not None and reader.accepts(arguments, {at - 1 for at in live})


def is_reading_git(arguments: Sequence[str]) -> bool:
    reader = find_git_reader(arguments)
    return reader is not None and _accepts_git(reader, arguments[len(reader.words) :])


def find_git_reader(arguments: Sequence[str]) -> GitReader | None:
    """The row for a sub-command of git; for `stash list`, the longest that fits."""
    for length in (2, 1):
        reader = GIT_READERS.get(tuple(arguments[:length]))
        if reader is not None and len(arguments) >= length:
            return reader
    return None


def _accepts_git(reader: GitReader, arguments: Sequence[str]) -> bool:
    if any(_RUNS_BY_FORMAT.search(word) for word in arguments) or _sorts_by_program(arguments):
        return False
    if not reader.accepts_operands(arguments):
        return False
    row = Reader(flags=reader.flags, valued=reader.valued, long=reader.long, number=reader.number)
    return row.accepts(arguments)


def _sorts_by_program(arguments: Sequence[str]) -> bool:
    """Whether references are sorted by a field for which git starts a program."""
    return any(word.startswith("--sort") for word in arguments) and any(map(_PROGRAM_FIELD.search, arguments))


_PROGRAM_FIELD = re.compile(r"signature|describe", re.IGNORECASE)
_RUNS_BY_FORMAT = re.compile(r"%[-+ ]*(G|\([^)]*(signature|describe))", re.IGNORECASE)
"""Placeholders of `--format` for which git starts gpg, or itself once more. A `+`, `-` or blank may follow the percent sign."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _has_format_dates_only(arguments: Sequence[str]) -> bool:
    """An operand of date that is not a format sets the clock."""
    return all(word.startswith(("+", "-")) and word not in ("-", "--") for word in arguments)


def _has_one_operand(arguments: Sequence[str]) -> bool:
    """A second operand of uniq is a file that it writes; for BSD, also an option after the first operand."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "-":
        if arguments[at] == "--":
            return False
        if _UNIQ_VALUED.fullmatch(arguments[at]):
            at += 1
            if at < len(arguments) and not arguments[at].isdecimal():
                return False
        at += 1
    return len(arguments) - at <= 1


_UNIQ_VALUED = re.compile("-[cdDiuz]*[fsw]")
"""Takes the next word as its value."""

_PRINTF = re.compile(r"(?:[^%]|%%|%[-+ #0]*\d*(?:\.\d+)?[sbqdiouxXc])*", re.DOTALL)


def _has_plain_format(arguments: Sequence[str]) -> bool:
    if not arguments or arguments[0].startswith("-") or has_expressions(arguments):
        return False
    return _PRINTF.fullmatch(arguments[0]) is not None


def _is_plain_test(arguments: Sequence[str]) -> bool:
    match arguments:
        case [operator, operand]:
            return bool(re.fullmatch("-[edfrwxsLhnz]", operator)) and not operand.startswith("-")
        case [_, "=" | "!=", _]:
            return True
        case _:
            return False


_SED_PRINTS = re.compile(r"\d+(,(\d+|\$))?p|\$p")


def _prints_lines(arguments: Sequence[str]) -> bool:
    """`sed -n 1,5p FILE` and nothing else that sed can do."""
    return len(arguments) >= 2 and arguments[0] == "-n" and bool(_SED_PRINTS.fullmatch(arguments[1]))


def _looks_up(arguments: Sequence[str]) -> bool:
    """`command -v NAME`: any other use starts the command."""
    return len(arguments) >= 2 and arguments[0] in ("-v", "-V")


def _has_folder(arguments: Sequence[str]) -> bool:
    return len(arguments) == 1 and not arguments[0].startswith("-")


_FIND_TESTS = (
    *("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-type", "-maxdepth"),
    *("-mindepth", "-depth", "-not", "-and", "-or", "-a", "-o", "-print", "-print0", "-prune", "-quit", "-true", "-false"),
    *("-size", "-empty", "-mtime", "-mmin", "-atime", "-amin", "-ctime", "-cmin", "-newer", "-perm", "-user", "-group"),
    *("-links", "-readable", "-writable", "-executable", "-xdev", "-mount", "-ls", "-P"),
)  # fmt: skip
_FIND_AMOUNT = re.compile(r"-\d+[cwbkMG]?")


def _finds_names(arguments: Sequence[str]) -> bool:
    """Only tests and printing; amounts such as `-mtime -1` begin with a dash too."""
    dashed = (word for word in arguments if word.startswith("-"))
    return all(word in _FIND_TESTS or _FIND_AMOUNT.fullmatch(word) for word in dashed)


class _Find(Reader):
    """find takes an expression instead of options."""

    __slots__ = ()

    def accepts(self, arguments: Sequence[str], live: Set[int] = frozenset()) -> bool:
        return not live and _finds_names(arguments)


class _Text(Reader):
    """A builtin that prints its arguments, whatever they are."""

    __slots__ = ()

    def accepts(self, arguments: Sequence[str], live: Set[int] = frozenset()) -> bool:
        return (self.globs or not live) and self.check(arguments)


_CHECKSUM = Reader(flags="btz", long=_names("binary text tag zero"))
_GREP = Reader(
    flags="EFGPiyvwxcLlqsobHhnTUzarIZV",
    valued="emABC",
    number=True,
    long=_names(
        "extended-regexp fixed-strings basic-regexp perl-regexp regexp ignore-case no-ignore-case invert-match "
        "word-regexp line-regexp count color colour files-without-match files-with-matches max-count only-matching "
        "quiet silent no-messages byte-offset with-filename no-filename label line-number initial-tab null "
        "after-context before-context context text binary-files exclude exclude-dir include recursive "
        "line-buffered null-data"
    ),
)

READERS: dict[str, Reader] = {
    "ls": Reader(
        flags="aAbBcCdfFgGhiklmnNopqQrRsStuUvxX1",
        valued="ITw",
        long=_names(
            "all almost-all author escape block-size ignore-backups color directory classify file-type format "
            "full-time group-directories-first no-group human-readable si hide indicator-style inode ignore "
            "kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style "
            "reverse recursive size sort time time-style tabsize width zero"
        ),
    ),
    "cat": Reader(
        flags="AbeEnstTuv",
        long=_names(
            "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"
        ),
    ),
    "wc": Reader(flags="clLmw", long=_names("bytes chars lines max-line-length words total")),
    "head": Reader(
        flags="qvz", valued="cn", number=True, long=_names("bytes lines quiet silent verbose zero-terminated")
    ),
    "tail": Reader(
        flags="qvz", valued="cn", number=True, long=_names("bytes lines quiet silent verbose zero-terminated")
    ),
    "grep": _GREP,
    "rg": Reader(
        flags="isSvwxFnNcloUPpqHIa0",
        valued="egtTmABCMrjE",
        long=_names(
            "regexp glob iglob type type-not type-list files count count-matches files-with-matches "
            "files-without-match ignore-case case-sensitive smart-case invert-match word-regexp line-regexp "
            "fixed-strings line-number no-line-number heading no-heading color colors column context after-context "
            "before-context max-count max-depth max-columns max-filesize multiline only-matching replace sort sortr "
            "stats trim vimgrep with-filename no-filename json hidden no-ignore no-ignore-vcs no-messages pcre2 quiet "
            "null passthru no-config encoding text threads byte-offset"
        ),
    ),
    "nl": Reader(flags="p", valued="bdfhilnsvw"),
    "file": Reader(
        flags="bhikNr0", long=_names("brief mime mime-type mime-encoding no-dereference keep-going")
    ),
    "stat": Reader(flags="Lft", valued="c", long=_names("format printf file-system terse dereference")),
    "du": Reader(
        flags="abchkmsxS0",
        valued="dBt",
        long=_names(
            "all apparent-size bytes total max-depth human-readable si summarize one-file-system separate-dirs "
            "threshold block-size time exclude null"
        ),
    ),
    "df": Reader(flags="ahHiklmPT", long=_names("all human-readable si inodes local portability print-type")),
    "tree": Reader(
        flags="adfiqNQpsughDFvtcUrnCx",
        exact=_names("-L -I -P"),
        long=_names("dirsfirst filesfirst noreport prune filelimit matchdirs ignore-case du si inodes gitignore"),
    ),
    "find": _Find(),
    "pwd": Reader(flags="LP"),
    "cd": Reader(globs=False, check=_has_folder),
    "echo": _Text(),
    "true": _Text(),
    "false": _Text(),
    "printf": _Text(globs=False, check=_has_plain_format),
    "test": _Text(globs=False, check=_is_plain_test),
    "type": Reader(flags="aftpP", globs=False),
    "command": Reader(exact=_names("-v -V"), globs=False, check=_looks_up),
    "which": Reader(flags="a", globs=False),
    "basename": Reader(flags="az", valued="s", long=_names("multiple suffix zero")),
    "dirname": Reader(flags="z", long=_names("zero")),
    "realpath": Reader(
        flags="eLmPqsz",
        long=_names(
            "canonicalize-existing canonicalize-missing logical physical quiet relative-to relative-base strip "
            "no-symlinks zero"
        ),
    ),
    "readlink": Reader(flags="femnqsvz", long=_names("canonicalize canonicalize-existing canonicalize-missing")),
    "sort": Reader(
        flags="bdfgiMhnRrVcCmsuz",
        valued="kt",
        long=_names(
            "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
            "human-numeric-sort numeric-sort random-sort reverse sort version-sort check key merge stable "
            "field-separator unique zero-terminated parallel"
        ),
    ),
    "uniq": Reader(
        flags="cdDiuz",
        valued="fsw",
        long=_names("count repeated all-repeated group ignore-case unique zero-terminated"),
        globs=False,
        check=_has_one_operand,
    ),
    "cut": Reader(
        flags="nsz",
        valued="bcdf",
        long=_names(
            "bytes characters delimiter fields complement only-delimited output-delimiter zero-terminated"
        ),
    ),
    "tr": Reader(flags="cCdst", long=_names("complement delete squeeze-repeats truncate-set1")),
    "sed": Reader(flags="n", globs=False, check=_prints_lines),
    "diff": Reader(
        flags="aBbcdeEiNnpqrstTuwyZ",
        valued="CUIxFW",
        long=_names(
            "brief report-identical-files recursive side-by-side unified context ignore-case ignore-space-change "
            "ignore-all-space ignore-blank-lines ignore-trailing-space ignore-tab-expansion text strip-trailing-cr "
            "minimal speed-large-files new-file color suppress-common-lines suppress-blank-empty left-column width "
            "exclude show-c-function normal"
        ),
    ),
    "cmp": Reader(
        flags="bls", valued="in", long=_names("print-bytes verbose quiet silent bytes ignore-initial")
    ),
    "comm": Reader(flags="123z", long=_names("check-order nocheck-order output-delimiter total")),
    "date": Reader(
        flags="uR",
        exact=_names("-I -Idate -Ihours -Iminutes -Iseconds -Ins"),
        long=_names("utc universal rfc-email iso-8601 rfc-3339 date"),
        globs=False,
        check=_has_format_dates_only,
    ),
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum"), _CHECKSUM),
    "cksum": Reader(),
    "od": Reader(flags="abcdosxv", valued="AjNtw"),
    "fold": Reader(flags="bs", valued="w", long=_names("bytes spaces width")),
    "paste": Reader(flags="sz", valued="d", long=_names("serial delimiters")),
    "tac": Reader(flags="br", valued="s"),
    "rev": Reader(),
    "seq": Reader(
        flags="w", valued="fs", number=True, long=_names("equal-width format separator"), globs=False
    ),
    "id": Reader(flags="gGnru", globs=False),
    "whoami": Reader(globs=False),
    "uname": Reader(flags="asnrvmpio", globs=False),
    "nproc": Reader(long=_names("all"), globs=False),
}  # fmt: skip
"""Programs that read and print, and the options with which they do nothing else.

Left out on purpose, with any option: egrep and fgrep (scripts that start `grep` from the PATH), xxd (writes its second
file), env and printenv (print secrets), less and man (start other programs), awk.
"""
BUILTINS = frozenset(("cd", "command", "echo", "false", "printf", "pwd", "test", "true", "type"))
"""Of these, those that bash itself carries out."""
SCRIPTS = frozenset(("which",))
"""Of these, those that may be a script. Debian's `which` uses builtins of sh only."""
