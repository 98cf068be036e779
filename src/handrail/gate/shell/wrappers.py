"""Wrappers (commands that start other commands), and options by which a command does more than its name suggests.

A wrapper is never judged by its own name: either the command inside is judged, or the wrapper is opaque with a reason.
A line inside (`sh -c`) is parsed by shell_parser.py.

`find_extra_effects` knows options and arguments that start a program, write a file or change the state of the shell.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from handrail.gate.shell._printf import has_expressions
from handrail.gate.shell.bash_reader import Word
from handrail.lazy_dataclass import dataclass

Words = tuple[Word, ...]
Checks = dict[str, str]
"""Check name → sentence reported when the check finds something; an empty sentence disables the check."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The arguments of a wrapper before the command that it starts."""

    flags: str = ""
    """Options without a value, separated by spaces."""
    valued: str = ""
    """Options with a value, in the next word or attached."""
    operands: int = 0
    """Number of positional arguments before the command."""
    odd: str = ""
    """Options that change how the command inside runs."""


Shapes = dict[str, Shape]

TRANSPARENT: Shapes = {
    "builtin": Shape(),
    "command": Shape("-p", odd="-p"),
    "env": Shape(),
    "exec": Shape("-l", "-a", odd="-a"),
    "ionice": Shape("-t", "-c -n"),
    "nice": Shape("", "-n --adjustment"),
    "setsid": Shape("-w --wait -f --fork -c --ctty"),
    "stdbuf": Shape("", "-i -o -e --input --output --error"),
    "time": Shape("-p"),
    "timeout": Shape("--foreground --preserve-status -v --verbose", "-k -s --kill-after --signal", 1),
}
"""Wrappers that run the command inside unchanged."""

LINES: Shapes = {
    "bash": Shape("-e -u -x -l -eu -ex -ux -eux --norc --noprofile"),
    "dash": Shape("-e -u -x -l -eu -ex -ux -eux"),
    "sh": Shape("-e -u -x -l -eu -ex -ux -eux"),
}
"""Shells that take a line after `-c`. Other shells have another syntax and are in `CLOSED`."""

CLOSED: Checks = {
    ".": "runs the lines of a file in this shell",
    "ash": "runs another shell",
    "at": "runs it later",
    "batch": "runs it later",
    "busybox": "starts another program by name",
    "bwrap": "runs it in another space",
    "caffeinate": "runs it under another program",
    "capsh": "runs as another user or group (capsh)",
    "catchsegv": "runs it under another program",
    "cgexec": "runs it in another space",
    "chpst": "runs as another user or group (chpst)",
    "chronic": "runs it under another program",
    "chroot": "runs it in another root folder",
    "chrt": "runs it with another priority",
    "concurrently": "starts another program by name",
    "cpulimit": "runs it under another program",
    "cross-env": "sets variables for the command",
    "csh": "runs another shell",
    "daemonize": "runs it where it is not seen",
    "dbus-run-session": "runs it under another program",
    "doas": "runs as root (doas)",
    "dotenv": "sets variables for the command",
    "dumb-init": "runs it under another program",
    "eatmydata": "runs it under another program",
    "entr": "runs it again and again",
    "expect": "types for a person",
    "fakeroot": "runs it under another program",
    "faketime": "runs it under another program",
    "firejail": "runs it in another space",
    "fish": "runs another shell",
    "flock": "runs it while it holds a lock",
    "gdb": "runs it under another program",
    "gosu": "runs as another user or group (gosu)",
    "gtimeout": "runs it under another program",
    "gxargs": "adds words that are not known yet",
    "hyperfine": "runs it again and again",
    "ifne": "runs it under another program",
    "ksh": "runs another shell",
    "linux32": "runs it under another program",
    "linux64": "runs it under another program",
    "ltrace": "runs it under another program",
    "mksh": "runs another shell",
    "mosh": "runs it on another machine",
    "mpiexec": "runs it again and again",
    "mpirun": "runs it again and again",
    "newgrp": "runs as another user or group (newgrp)",
    "nodemon": "runs it again and again",
    "nohup": "writes what it prints to a file, wherever a link of that name leads",
    "nsenter": "runs it in another space",
    "nsjail": "runs it in another space",
    "numactl": "runs it on chosen processors",
    "parallel": "adds words that are not known yet",
    "pee": "starts another program by name",
    "perf": "runs it under another program",
    "pkexec": "runs as root (pkexec)",
    "prlimit": "runs it under another program",
    "proot": "runs it in another space",
    "proxychains": "runs it under another program",
    "proxychains4": "runs it under another program",
    "rlwrap": "runs it under another program",
    "rr": "runs it under another program",
    "rsh": "runs it on another machine",
    "run-parts": "runs every program of a folder",
    "runcon": "runs as another user or group (runcon)",
    "runuser": "runs as another user or group (runuser)",
    "schroot": "runs it in another space",
    "screen": "runs it where it is not seen",
    "script": "runs it under another program",
    "setarch": "runs it under another program",
    "setpriv": "runs as another user or group (setpriv)",
    "sg": "runs as another user or group (sg)",
    "socat": "starts another program by name",
    "source": "runs the lines of a file in this shell",
    "ssh": "runs it on another machine",
    "sshpass": "runs it under another program",
    "start-stop-daemon": "runs it where it is not seen",
    "strace": "runs it under another program",
    "su": "runs as another user or group (su)",
    "su-exec": "runs as another user or group (su-exec)",
    "sudo": "runs as root (sudo)",
    "systemd-inhibit": "runs it under another program",
    "systemd-run": "runs it where it is not seen",
    "taskset": "runs it on chosen processors",
    "tcsh": "runs another shell",
    "tini": "runs it under another program",
    "tmux": "runs it where it is not seen",
    "torify": "runs it under another program",
    "torsocks": "runs it under another program",
    "toybox": "starts another program by name",
    "uftrace": "runs it under another program",
    "unbuffer": "runs it under another program",
    "unshare": "runs it in another space",
    "valgrind": "runs it under another program",
    "watch": "runs it again and again",
    "watchexec": "runs it again and again",
    "xargs": "adds words that are not known yet",
    "xvfb-run": "runs it under another program",
    "zsh": "runs another shell",
}
"""Wrappers that change how the command inside runs, so that it cannot be judged on its own: always opaque."""

INNER: Shapes = {
    "chroot": Shape("", "--userspec --groups", 1),
    "doas": Shape("-n -s", "-u -C"),
    "flock": Shape("-n -x -s -e -u -o", "-w -E", 1),
    "ssh": Shape("-t -T -n -q -A -x", "-p -i -l -o -F -J -L -R -D", 1),
    "strace": Shape("-f -c -t", "-e -o -p -s -u"),
    "sudo": Shape("-n -E -H -i -s -b -k -S", "-u -g -h -p -C -D -R -T"),
    "taskset": Shape("-a", "", 1),
    "watch": Shape("-d -t -c -x -g", "-n --interval"),
    "xargs": Shape("-0 -r -t -p -x", "-I -n -P -L -d -a -E -s"),
}
"""The arguments of some of those, so that a deny rule can match the command inside."""

BUILTINS = frozenset((".", "builtin", "command", "eval", "exec", "source"))
"""Wrappers that bash carries out itself, without a program."""

SYSTEM = ("/bin", "/usr/bin")
"""Folders in which a wrapper's name can be trusted."""

WRAPPED: Checks = {
    "shell": "runs a script, or lines it reads, which are not shown here",
    "variables": "sets variables for the command",
    "options": "starts another command in a way that is not understood",
    "path": "names what starts another command by a path, where anything may lie under that name",
}


@dataclass(frozen=True, slots=True)
class Inside:
    """The command inside a wrapper, as words or as a line; `why` is set if it cannot be judged by them alone."""

    words: Words = ()
    line: str | None = None
    why: str = ""


def unwrap(words: Words) -> Inside | None:
    """The command inside a wrapper; None if the command is not a wrapper."""
    folder, name = posixpath.split(words[0].text)
    if name == "git" and len(words) > 2 and words[1].text == "--no-pager":
        return Inside((words[0], *words[2:]))  # the same command for every rule
    inside = _look(name, words)
    if inside is None or not folder or folder in SYSTEM:
        return inside
    return replace(inside, why=inside.why or WRAPPED["path"])


def _look(name: str, words: Words) -> Inside | None:
    if name == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
        return None
    if name == "eval":
        return _eval(words[1:])
    if name in LINES:
        return _shell(words[1:], LINES[name])
    if name in TRANSPARENT:
        return _transparent(words[1:], TRANSPARENT[name])
    if CLOSED.get(name):
        rest = _skip(words[1:], INNER.get(name, Shape()))
        return Inside(_after_options(words[1:]) if rest is None else rest, why=CLOSED[name])
    return None


def find_started(words: Words) -> Iterator[Words]:
    """The commands that `find` starts for each file."""
    begin = None
    for at, word in enumerate(words):
        if begin is None and word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            begin = at + 1
        elif begin is not None and word.text in (";", "+"):
            yield words[begin:at]
            begin = None


def _transparent(words: Words, shape: Shape) -> Inside:
    rest = _skip(words, shape)
    if rest is None or any(word.live for word in words[: len(words) - len(rest)]):
        return Inside(_after_options(words), why=WRAPPED["options"])
    if rest and "=" in rest[0].text:
        return Inside(_after_options(rest), why=WRAPPED["variables"])
    if any(
        word.text.startswith(odd) for word in words[: len(words) - len(rest)] for odd in shape.odd.split()
    ):
        return Inside(rest, why=WRAPPED["options"])
    return Inside(rest) if rest else Inside(why=WRAPPED["options"])


def _skip(words: Words, shape: Shape) -> Words | None:
    """The words after the wrapper's arguments; None if its arguments do not have the expected shape."""
    flags, valued = shape.flags.split(), shape.valued.split()
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text in flags:
            at += 1
        elif text in valued:
            at += 2
        elif any(_holds(text, option) for option in valued):
            at += 1
        else:
            return None
    return words[at + shape.operands :] if at + shape.operands <= len(words) else None


def _holds(text: str, option: str) -> bool:
    """Whether the word is this option with its value attached."""
    return text.startswith(f"{option}=" if option.startswith("--") else option)


def _shell(words: Words, shape: Shape) -> Inside:
    """The line of `sh -c`: the first word after `-c` that is not an option. Later words are only used by expansions."""
    flags = shape.flags.split()
    has_line, known, ended = False, True, False
    for word in words:
        if word.text == "--" and not ended:
            known = known and has_line  # before `-c`, it makes `-c` the name of a script
            ended = has_line
        elif not ended and (word.text.startswith(("-", "+")) or (not has_line and not known)):
            takes_line = word.text == "-c" or (word.text[:-1] in flags and word.text.endswith("c"))
            has_line = has_line or takes_line
            known = known and (takes_line or word.text in flags) and not word.live
        elif has_line and not word.live:
            return Inside(line=word.text, why="" if known else WRAPPED["shell"])
        else:
            break
    return Inside(why=WRAPPED["shell"])


def _eval(words: Words) -> Inside:
    words = words[1:] if words and words[0].text == "--" else words
    known = words and not any(word.live for word in words) and not words[0].text.startswith("-")
    return Inside(line=" ".join(word.text for word in words), why="" if known else WRAPPED["shell"])


def _after_options(words: Words) -> Words:
    """A guess at the command after unknown options, for deny rules."""
    at = 0
    while at < len(words) and (words[at].text.startswith("-") or "=" in words[at].text):
        at += 1
    return words[at:]


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
    r"git (mergetool|send-email|hook run|instaweb|daemon|shell|grep .*-O|rebase .*-x|bisect run|submodule foreach|filter-branch|difftool|clone (.* )?-[a-zA-Z]*[uc])": "lets git start another program",
    r"git ((.* )?--ou|(archive|format-patch) (.* )?-[a-zA-Z]*o)": "lets git write files",
    r"git config": "changes git's configuration, which can start programs",
    r"find (.* )?-(exec|ok)": "lets find start another program",
    r"find (.* )?-(delete|fprint|fls)": "lets find delete or write files",
    r"fd(find)? (.* )?(-x|-X|--exec)": "lets fd start another program",
    r"rg (.* )?(--pre|--hostname-bin)": "lets rg start another program",
    r"sed (.* )?(-[a-zA-Z]*[efi]|--(?!quiet|silent|regexp-extended))": "lets sed change files, or follow more than one script",
    rf"sed (?!(-[nErsuz]+ )*({_SED_PRINTS}|{_SED_REPLACES})( |$))": "gives sed a script that could write or start programs",
    r"[gmn]?awk .*(system|getline|[|>]|@)": "lets awk start another program or write files",
    r"[gmn]?awk (.* )?(-[fileEW]|--(?!version|help))": "lets awk follow a program that is not shown",
    r"tar ([a-zA-Z]*[IF]|(.* )?(-[a-zA-Z]*[IF]|--(to-c|checkpoint-a|us|rs|rm|inf|new-v)))": "lets tar start another program",
    r"tar (.* )?--(ind|vol|listed|remove)": "lets tar write or delete other files",
    r"sort (.* )?(-[a-zA-Z]*o|--(o|co))": "lets sort write a file or start another program",
    r"rsync (.* )?(-[a-zA-Z]*[eM]|--(rs|remote-o|conf|daemon))": "lets rsync start another program",
    r"rsync (.* )?(-[a-zA-Z]*T|--(log-f|write-b|only-w|backup-d|temp|partial-d))": "lets rsync write other files",
    r"(scp|sftp) (.* )?-[a-zA-Z]*[SoFDb]": "lets it start another program",
    rf"curl (.* )?(-{_CURL_FLAGS}[KoODcJ]|--(conf|out|rem|du|cookie-|std|lib|et|hs|al|ssl-se|create-d|trace(?!-[it])))": "lets curl write files",
    r"curl .*%output\{": "lets curl write files",
    r"wget (.* )?(-[a-zA-Z]*[eOoaP]|--(exec|use-ask|output|append|directory-p|save-c|warc|hsts|rejected|conf))": "lets wget write files or start another program",
    r"man (.* )?(-[a-zA-Z]*[PHC]|--(pa|ht|con))": "lets man start another program",
    r"g?make (.* )?(SHELL|MAKE\w*=|GNUMAKEFLAGS|\.SHELLFLAGS|-[a-zA-Z]*[fCEI]|--(ev|f|mak|di|inc))": "tells make which lines to run, or by which program",
    r"g?make (?=.*=)(?=.*[$`;|&<>()])": "gives make a value that it would run",
    r"(docker|podman|kubectl|nerdctl) (.* )?(exec|run)( |$)": "starts another program in a container",
    r"(\[|test) (.* )?(-v|-t (?!\d+( |$)))": "reads a variable's name, or an expression, which can hold a command",
    r"(exit|return|break|continue|logout) (?!-?\d+$)": "gives some shells an expression, which can hold a command",
    r"printf (-v|.*%[-+ #0-9.*'hlLjztq]*n)": "sets a variable for the commands after it",
    r"zip (.* )?(-[a-zA-Z]*T|--(te|un))": "lets zip start another program",
    rf"(npm|npx|pnpm|pnpx|yarn|yarnpkg|bunx?) {_BEFORE_DASHES}(-C|--?(no-)?(pref|cwd|dir|scr|node-o|onload|userc|globalc|shell|editor|viewer|git=|init|pnpmf|config\.))": "tells it by which program its scripts run, or where its scripts and settings are",
    rf"np[mx] {_BEFORE_DASHES}(-c|--ca)": "runs a line that it is given",
    r"split (.* )?--f": "lets split start another program",
    r"sqlite3 (.* )?-?-(cmd|init)": "gives sqlite3 commands that could write or start programs",
    rf"sqlite3 (.*\s)?\.(?!({_SQLITE_PLAIN})(\s|$))[a-zA-Z]": "gives sqlite3 commands that could write or start programs",
    r"sqlite3 .*(?i:writefile|readfile|edit|load_extension)\s*\(": "lets sqlite3 write files or load programs",
    r"psql .*(\\(?![dl])|(?i:\bprogram\b)|(?<= )(-[a-zA-Z]*[foL]|--(fi|ou|log))|^-[a-zA-Z]*[foL])": "lets psql write files or start programs",
    r"(vim?|nvim|view|gvim|gview|rvim|ex|vimdiff) (.* )?(\+(?!\d*( |$))|-[a-zA-Z]*[cSsuUwW]|--(cmd|start|listen|remote|server|log))": "gives the editor commands that could write or start programs",
    r"(emacs|emacsclient|xemacs) (.* )?--?(ev|e( |$)|ex|l( |$|o)|f( |$|u)|b|sc|d)": "gives the editor commands that could write or start programs",
    r"(less|more) (.* )?(\+(?![0-9FG]*( |$))|-[a-zA-Z]*[oOk]|--(log|LOG|lesskey))": "lets the pager write files or start programs",
    r"([\w.]+-)*(gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(-[\d.]+)? (.* )?(-wrapper|-f(pass-)?plugin|-?-specs|-B|-Xclang|--config|@|-fuse-ld|-Wl,-+plugin)": "lets the compiler start another program",
    r"rustc (.* )?(-C|--codegen|-Z|--sysroot|@)": "lets the compiler start another program",
    r"(apt|apt-get|apt-cache|apt-config|apt-mark|aptitude) (.* )?(-[a-zA-Z]*[oc]|--(op|con))": "changes the settings of apt, which can start programs",
    r"pip[\d.]* (.* )?(-[td]( |$)|--(log|ta|prefi|roo|sr|report|cac|py))": "lets pip write other files or start another program",
    r"openssl (.* )?--?(out|write|keyout|CAcreate|CAserial|eng|prov|conf|sess_out|keylogfile)": "lets openssl write files or load programs",
    r"ssh-keygen (?!-l[vE]*f? \S+$)(.* )?-[a-zA-Z]*[fDwsO]": "lets ssh-keygen write files or load programs",
    r"(u?ctags|etags|ctags-exuberant) (.* )?(-[a-zA-Z]*[of]|--(out|opt))": "lets ctags write other files",
    r"patch (.* )?(-[a-zA-Z]*[oerd]|--(o|e|rej|di))": "lets patch write other files, or follow a script",
    r"(shuf|iconv|tree|sdiff|gpg2?|xmllint) (.* )?(-[a-zA-Z]*o|--ou)": "writes a file",
    r"yq (.* )?(-[a-zA-Z]*i|--in)": "changes files in place",
    r"file (.* )?(-[a-zA-Z]*C|--comp)": "writes a file",
    r"go (.* )?--?(exec|toolexec|vettool|overlay|modfile|ldflags|gccgoflags|compiler|C)( |=|$)": "lets go start another program",
    r"go env (.* )?--?[wu]( |$)": "changes go's settings, which can start programs",
    rf"cargo {_BEFORE_DASHES}(--(conf|manif)|-[CZ])": "changes cargo's settings, or which project it builds: both can start programs",
    r"gradlew? (.* )?(-[Ibcpg]( |$)|-Dorg\.gradle|--(init|build-f|settings|project-d|gradle-u|include))": "tells gradle which scripts to run",
    r"mvnw? (.* )?(-[fs]( |$)|-gs|--(file|settings|global-s)|-D(exec|maven\.ext|jvm|argLine)|([\w.:-]+:)?exec:|-t( |$)|--toolch)": "tells maven which project or program to run",
    r"ninja (.* )?-[a-zA-Z]*f": "tells ninja which lines to run",
    r"cmake (.* )?(-[PEC]|--(too|pres|work)|-DCMAKE_\w*(COMPILER|LAUNCHER|LINKER|TOOLCHAIN))": "lets cmake start another program",
    r"gh (.* )?(alias|extensions?|ext) (set|import|install|exec|create)": "lets gh start another program",
    r"gh (.* )?config set": "changes the settings of gh, which can start programs",
    r"(kubectl|oc) (.* )?--kubec": "follows settings that can start programs",
    r"helm (.* )?--post-r": "lets helm start another program",
    r"(ack|ag|bat|batcat|delta) (.* )?--pa": "lets it start another program",
    r"fzf (.* )?--(pre|bi|exec|listen|walker)": "lets fzf start another program",
    r"(nc|ncat|netcat) (.* )?(-[a-zA-Z]*[ec]|--(ex|sh|lua))": "lets it start another program",
    r"(tcpdump|t?shark|wireshark) (.* )?-[a-zA-Z]*[zwWX]": "lets tcpdump write files or start another program",
    r"hg (.* )?--conf": "changes the settings of hg, which can start programs",
    r"svn (.* )?--(config|diff-cmd|diff3-cmd|editor-cmd)": "changes the settings of svn, which can start programs",
    r"gpg2? (.* )?--(\w+-program|exec-p|photo-v|opt)": "lets gpg start another program",
    r"([\w.]+-)*(nm|ar|ranlib|ld|gold|lld|objdump|objcopy|size|strip)(-[\d.]+)? (.* )?--?plugin": "lets it load a program",
    r"(diff3|sdiff) (.* )?--diff-p": "lets it start another program",
    r"rpm (.* )?(-[a-zA-Z]*[ED]|--(pipe|ev|def|und|load|macros|rcfile))": "lets rpm start another program",
    r"dpkg (.* )?--(pre-i|post-i)": "lets dpkg start another program",
    r"cpio (.* )?--rsh": "lets cpio start another program",
    r"pandoc (.* )?(-[a-zA-Z]*[FLdo]|--(fil|lua|pdf-engine|out|ext|defa|data|syntax|tem))": "lets pandoc write files or start another program",
    r"exiftool (.* )?(-config|-o|-w|-execute|-@)": "lets exiftool write files, or follow a program that is not shown",
    r"nmap (.* )?(-o|-[a-zA-Z]*[CA]( |$)|-sC|--(scr|datad|stylesheet|append|resume))": "lets nmap write files, or run scripts",
    r"javac (.* )?(-J|@|-?-processor|-Xplugin|-d( |$))": "lets javac load a program, or write other files",
    r"bazel(isk)? (.* )?--(bazelrc|workspace_s|run_under|output_b|override|action_e)": "lets bazel start another program",
    r"(mysql|mariadb) ((.* )?--(pag|tee|init-c|defaults|plugin-d|load)|.*(\\|(?i:\bsystem\b)))": "lets it write files or start programs",
    r"(ss|lsof) (.* )?-[a-zA-Z]*D": "writes a file",
    r"eslint (.* )?(-[cof]( |=|$)|--(conf|rules|plug|pars|res|out|form))": "tells eslint which programs to load, or where to write",
    r"prettier (.* )?--(plug|conf)": "tells prettier which programs to load",
    r"pylint (.* )?--(load|init-h|rc|out)": "tells pylint which programs to load, or where to write",
    r"mypy (.* )?--(conf|python-e|install|[\w-]*-report|junit)": "tells mypy which programs to load, or where to write",
    r"(rubocop|rspec) (.* )?(-[a-zA-Z]*[roOI]( |=|$)|--(req|out|opt|init|plug))": "tells it which programs to load, or where to write",
    r"ip (.* )?(netns|vrf) e": "starts another program",
    r"(aws-vault|crictl|direnv|distrobox|docker-compose|doppler|flatpak|incus|lxc|op|podman-compose|toolbox) (.* )?(enter|exec|run)( |$)": "starts another program",
}
"""Key: a pattern for the program, a space, and a pattern for its arguments, joined by spaces."""

SECOND_FILE: Checks = {
    "uniq fsw": "writes its second file",
    "xxd cglnosR": "writes its second file",
}
"""Key: a program and the letters of its short options that take the next word as their value."""

EXPRESSIONS: Checks = {"printf": "gives some shells an expression, which can hold a command"}

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
    "float": "runs what it is given as an expression",
    "getopts": "sets variables from what it reads",
    "hash": "changes what the commands after it mean",
    "history": "runs or writes earlier lines",
    "integer": "runs what it is given as an expression",
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
    if EXPRESSIONS.get(name) and has_expressions(words[1:]):
        yield EXPRESSIONS[name]
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
