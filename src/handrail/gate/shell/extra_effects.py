"""Commands that do more than their name: by an option, by a second file, or to the state of the shell.

A rule for the program alone does not allow these. An option that only reads, or that the program is used for, is not here.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from handrail.gate.shell.characters import Checks

_BEFORE_DASHES = r"(?:(?!-- )[^ ]* )*"
"""Words before `--`: those after it belong to the script that is started."""
_CURL_FLAGS = r"[#0-46aBfgGiIjJkLlMnNOpqRsSvVZ:]*"
"""Short options of curl without a value, which can stand before another in one word."""
_SQLITE_PLAIN = (
    "tables|schema|indexes|indices|databases|mode|headers?|help|dump|fullschema|show|stats|timer|width|nullvalue|"
    "separator|quit|exit|version|dbinfo|sha3sum|eqp|explain|echo|bail|changes"
)
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
    r"tar (.* )?--(ind|vol|listed|remove)": "lets tar write or delete other files",
    r"sort (.* )?(-[a-zA-Z]*o|--(o|co))": "lets sort write a file or start another program",
    r"rsync (.* )?(-[a-zA-Z]*e|--rs)": "lets rsync start another program",
    r"rsync (.* )?--(log-f|write-b|only-w)": "lets rsync write other files",
    r"(scp|sftp) (.* )?-[a-zA-Z]*[SoFDb]": "lets it start another program",
    rf"curl (.* )?(-{_CURL_FLAGS}[KoODcJ]|--(conf|out|rem|du|cookie-|std|lib|et|hs|al|ssl-se|create-d|trace(?!-[it])))": "lets curl write files",
    r"curl .*%output\{": "lets curl write files",
    r"wget (.* )?(-[a-zA-Z]*[eOoaP]|--(exec|use-ask|output|append|directory-p|save-c|warc|hsts|rejected))": "lets wget write files or start another program",
    r"man (.* )?(-[a-zA-Z]*[PH]|--(pa|ht))": "lets man start another program",
    r"g?make (.* )?(SHELL|MAKE\w*=|GNUMAKEFLAGS|\.SHELLFLAGS|-[a-zA-Z]*[fCEI]|--(ev|f|mak|di|inc))": "tells make which lines to run, or by which program",
    r"g?make (?=.*=)(?=.*[$`;|&<>()])": "gives make a value that it would run",
    r"(docker|podman|kubectl|nerdctl) (.* )?(exec|run)( |$)": "starts another program in a container",
    r"(\[|test) (.* )?-v": "reads a variable's name, which can hold a command",
    r"printf (-v|.*%[-+ #0-9.*'hlLjztq]*n)": "sets a variable for the commands after it",
    r"zip (.* )?(-[a-zA-Z]*T|--(te|un))": "lets zip start another program",
    rf"(npm|npx|pnpm|pnpx|yarn|yarnpkg|bunx?) {_BEFORE_DASHES}--?(no-)?(scr|node-o|onload|userc|globalc|shell|editor|viewer|git=|init|pnpmf|config\.)": "tells it by which program its scripts run, or where its settings are",
    rf"np[mx] {_BEFORE_DASHES}(-c|--ca)": "runs a line that it is given",
    r"split (.* )?--f": "lets split start another program",
    r"sqlite3 (.* )?-?-(cmd|init)": "gives sqlite3 commands that could write or start programs",
    rf"sqlite3 (.*\s)?\.(?!({_SQLITE_PLAIN})(\s|$))[a-zA-Z]": "gives sqlite3 commands that could write or start programs",
    r"sqlite3 .*(?i:writefile|readfile|edit|load_extension)\s*\(": "lets sqlite3 write files or load programs",
    r"psql .*(\\(?![dl])|(?i:\bprogram\b))": "lets psql write files or start programs",
    r"(vim?|nvim|view|gvim|gview|rvim|ex|vimdiff) (.* )?(\+(?!\d*( |$))|-[a-zA-Z]*[cSsuUwW]|--(cmd|start|listen|remote|server|log))": "gives the editor commands that could write or start programs",
    r"(emacs|emacsclient|xemacs) (.* )?--?(ev|e( |$)|ex|l( |$|o)|f( |$|u)|b|sc|d)": "gives the editor commands that could write or start programs",
    r"(less|more) (.* )?(\+(?![0-9FG]*( |$))|-[a-zA-Z]*[oOk]|--(log|LOG|lesskey))": "lets the pager write files or start programs",
    r"([\w.]+-)*(gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(-[\d.]+)? (.* )?(-wrapper|-f(pass-)?plugin|-?-specs|-B|-Xclang|--config|@|-fuse-ld|-Wl,-+plugin)": "lets the compiler start another program",
    r"rustc (.* )?(-C|--codegen|-Z)": "lets the compiler start another program",
    r"(apt|apt-get|apt-cache|apt-config|apt-mark|aptitude) (.* )?(-[a-zA-Z]*[oc]|--(op|con))": "changes the settings of apt, which can start programs",
    r"pip[\d.]* (.* )?(-[td]( |$)|--(log|ta|prefi|roo|sr|report|cac|py))": "lets pip write other files or start another program",
    r"openssl (.* )?--?(out|write|keyout|CAcreate|CAserial|eng|prov|conf|sess_out|keylogfile)": "lets openssl write files or load programs",
    r"ssh-keygen (?!-l[vE]*f? \S+$)(.* )?-[a-zA-Z]*[fDwsO]": "lets ssh-keygen write files or load programs",
    r"(u?ctags|etags|ctags-exuberant) (.* )?(-[a-zA-Z]*[of]|--(out|opt))": "lets ctags write other files",
    r"patch (.* )?(-[a-zA-Z]*[oerd]|--(o|e|rej|di))": "lets patch write other files, or follow a script",
    r"(shuf|iconv|tree|sdiff|gpg2?|xmllint) (.* )?(-[a-zA-Z]*o|--ou)": "writes a file",
    r"yq (.* )?(-[a-zA-Z]*i|--in)": "changes files in place",
    r"file (.* )?(-[a-zA-Z]*C|--comp)": "writes a file",
    r"go (.* )?--?(exec|toolexec|vettool|overlay|modfile)( |=|$)": "lets go start another program",
    r"go env (.* )?--?[wu]( |$)": "changes go's settings, which can start programs",
    rf"cargo {_BEFORE_DASHES}--conf": "changes cargo's settings, which can start programs",
    r"gradlew? (.* )?(-[Ibcp]( |$)|--(init|build-f|settings|project-d|gradle-u|include))": "tells gradle which scripts to run",
    r"mvnw? (.* )?(-[fs]( |$)|-gs|--(file|settings|global-s)|-D(exec|maven\.ext|jvm|argLine))": "tells maven which project or program to run",
    r"ninja (.* )?-[a-zA-Z]*f": "tells ninja which lines to run",
    r"cmake (.* )?(-[PEC]|-DCMAKE_\w*(COMPILER|LAUNCHER|LINKER|TOOLCHAIN))": "lets cmake start another program",
    r"gh (.* )?(alias|extensions?|ext) (set|import|install|exec|create)": "lets gh start another program",
    r"(kubectl|oc) (.* )?--kubec": "follows settings that can start programs",
    r"helm (.* )?--post-r": "lets helm start another program",
    r"(ack|ag|bat|batcat|delta) (.* )?--pa": "lets it start another program",
    r"fzf (.* )?--(pre|bi|exec|listen|walker)": "lets fzf start another program",
    r"(nc|ncat|netcat) (.* )?(-[a-zA-Z]*[ec]|--(ex|sh|lua))": "lets it start another program",
    r"tcpdump (.* )?-[a-zA-Z]*[zwW]": "lets tcpdump write files or start another program",
    r"hg (.* )?--conf": "changes the settings of hg, which can start programs",
    r"svn (.* )?--(config|diff-cmd|diff3-cmd|editor-cmd)": "changes the settings of svn, which can start programs",
    r"gpg2? (.* )?--(\w+-program|exec-p|photo-v|opt)": "lets gpg start another program",
    r"ip (.* )?(netns|vrf) e": "starts another program",
}
"""Key: a pattern for the program, a space, and a pattern for its arguments, joined by spaces."""

SECOND_FILE: Checks = {
    "uniq fsw": "writes its second file",
    "xxd cglnosR": "writes its second file",
}
"""Key: a program and the letters of its short options that take the next word as their value."""

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
"""Shell builtins that change the state of the shell."""


def find_extra_effects(words: Sequence[str]) -> Iterator[str]:
    """A sentence for each extra effect of this command: on the shell's state, or by a flag."""
    name = posixpath.basename(words[0])
    if STATE.get(words[0]):
        yield STATE[words[0]]
    rows = _rows(name)
    if rows:
        rest = " ".join(words[1:])
        yield from (why for pattern, why in rows if why and pattern.match(rest))
    for key, why in SECOND_FILE.items():
        program, valued = key.split()
        if why and program == name and _count_operands(words[1:], valued) > 1:
            yield why


def _count_operands(words: Sequence[str], valued: str) -> int:
    """The number of words that are neither options nor values of them; all words after `--` are."""
    count = at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return count + len(words) - at - 1
        if not word.startswith("-") or word == "-":
            count += 1
        elif len(word) == 2 and word[1] in valued:
            at += 1
        at += 1
    return count


@lru_cache(1024)
def _rows(name: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    pairs = ((*key.split(" ", 1), why) for key, why in FLAGS.items())
    return tuple(
        (re.compile(rest, re.DOTALL), why) for program, rest, why in pairs if re.fullmatch(program, name)
    )
