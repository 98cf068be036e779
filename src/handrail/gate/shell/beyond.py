"""Commands that do more than their name says: by a flag, or to the shell that runs them.

Owns a small table of each. Nobody can list them all: a rule that allows a program by name trusts that program. These
are the ones by which everyday readers start other programs, write, or go elsewhere.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from handrail.gate.shell.characters import Checks

_SED_PRINTS = r"([0-9$]{1,9}(,[0-9$]{1,9})?|/[\w .^$*#-]*/)?[pdq]"
_SED_REPLACES = r"s(/[^/;{}\n]*/[^/;{}\n]*/|\|[^|;{}\n]*\|[^|;{}\n]*\|)[gpiI0-9]*"

FLAGS: Checks = {
    r"git -(?!-version|-help)": "changes where git works or what it starts, by an option before its sub-command",
    r"git .*--(ext|up|rece|exe|op|config|templ)": "lets git start another program",
    r"git (grep .*-O|rebase .*-x|bisect run|submodule foreach|filter-branch|difftool|clone (.* )?-[a-zA-Z]*[uc])": "lets git start another program",
    r"git ((.* )?--ou|(archive|format-patch) (.* )?-[a-zA-Z]*o)": "lets git write files",
    r"git config": "changes git's configuration, which can start programs",
    r"find (.* )?-(exec|ok)": "lets find start another program",
    r"find (.* )?-(delete|fprint|fls)": "lets find delete or write files",
    r"fd(find)? (.* )?(-x|-X|--exec)": "lets fd start another program",
    r"rg (.* )?(--pre|--hostname-bin)": "lets rg start another program",
    r"sed (.* )?(-[a-zA-Z]*[efi]|--(?!quiet|silent|regexp-extended))": "lets sed change files, or follow more than one script",
    rf"sed (?!(-[nErsuz]+ )*({_SED_PRINTS}|{_SED_REPLACES})( |$))": "gives sed a script that could write or start programs",
    r"[gmn]?awk .*(system|getline|[|>]|@)": "lets awk start another program or write files",
    r"[gmn]?awk (.* )?(-[fileE]|--(?!version|help))": "lets awk follow a program that is not shown",
    r"tar ([a-zA-Z]*[IF]|(.* )?(-[a-zA-Z]*[IF]|--(to-c|checkpoint-a|us|rs|rm|inf|new-v)))": "lets tar start another program",
    r"sort (.* )?(-[a-zA-Z]*o|--(o|co))": "lets sort write a file or start another program",
    r"rsync (.* )?(-[a-zA-Z]*e|--rs)": "lets rsync start another program",
    r"(scp|sftp) (.* )?-[a-zA-Z]*[SoFD]": "lets it start another program",
    r"curl (.* )?(-[a-zA-Z]*[KoO]|--(config|output|remote))": "lets curl write files",
    r"wget (.* )?(-[a-zA-Z]*[eO]|--(exec|use-ask|output))": "lets wget write files or start another program",
    r"man (.* )?(-[a-zA-Z]*[PH]|--(pa|ht))": "lets man start another program",
    r"make (.* )?(SHELL|MAKEFLAGS|\.SHELLFLAGS|-[a-zA-Z]*[fC]|--(eval|file|makefile|directory))": "tells make which lines to run, or by which program",
    r"(docker|podman|kubectl|nerdctl) (.* )?(exec|run)( |$)": "starts another program in a container",
    r"(\[|test) (.* )?-v": "reads a variable's name, which can hold a command",
    r"printf (-v|.*%[-+ #0-9.*'hlLjztq]*n)": "sets a variable for the commands after it",
    r"zip (.* )?(-[a-zA-Z]*T|--(te|un))": "lets zip start another program",
}
"""A program and a pattern over its other words, joined by blanks."""

STATE: Checks = {
    "alias": "changes what the commands after it mean",
    "bind": "changes what the commands after it mean",
    "compgen": "runs what it is given as an expression",
    "complete": "changes what the commands after it mean",
    "compopt": "changes what the commands after it mean",
    "declare": "changes what the commands after it mean",
    "disown": "ends or leaves the shell's work",
    "enable": "changes what the commands after it mean",
    "export": "changes what the commands after it mean",
    "fc": "runs or writes earlier lines",
    "getopts": "sets variables from what it reads",
    "hash": "changes what the commands after it mean",
    "history": "runs or writes earlier lines",
    "jobs": "starts another command",
    "let": "runs what it is given as an expression",
    "local": "changes what the commands after it mean",
    "mapfile": "sets variables from what it reads",
    "popd": "goes to a folder that is not known",
    "pushd": "goes to a folder that is not known",
    "read": "sets variables from what it reads",
    "readarray": "sets variables from what it reads",
    "readonly": "changes what the commands after it mean",
    "set": "changes what the commands after it mean",
    "shift": "changes what the commands after it mean",
    "shopt": "changes what the commands after it mean",
    "suspend": "ends or leaves the shell's work",
    "trap": "runs something later, or when something happens",
    "typeset": "changes what the commands after it mean",
    "ulimit": "changes what the commands after it mean",
    "umask": "changes what the commands after it mean",
    "unalias": "changes what the commands after it mean",
    "unset": "changes what the commands after it mean",
    "wait": "sets variables from what it reads",
}
"""The shell's own commands that do something to the shell."""


def beyond(words: Sequence[str]) -> Iterator[str]:
    """A sentence for each way in which this command does more than its name says."""
    name = posixpath.basename(words[0])
    if STATE.get(words[0]):
        yield STATE[words[0]]
    rows = _rows(name)
    if rows:
        rest = " ".join(words[1:])
        yield from (why for pattern, why in rows if why and pattern.match(rest))


@lru_cache(1024)
def _rows(name: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    pairs = ((*key.split(" ", 1), why) for key, why in FLAGS.items())
    return tuple(
        (re.compile(rest, re.DOTALL), why) for program, rest, why in pairs if re.fullmatch(program, name)
    )
