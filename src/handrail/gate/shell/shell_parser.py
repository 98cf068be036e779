"""Shell parser: the commands a line would run (parts), and constructs that cannot be judged (opaque).

A line is plain if two independent readers agree (bash_reader.py tokenizes, _tree_sitter_reader.py uses a grammar) that
it has only words, quoted literals, `&& || ; |` and newlines; its wrappers can be unwrapped; and no flag makes a command
do more than its name (wrappers.py). Every command at any depth is a part, so that deny rules see it. Everything that is
not plain is opaque, with a sentence. It knows no rules and no folders.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from handrail.gate.shell._tree_sitter_reader import Found, Structure, structure
from handrail.gate.shell.bash_reader import RESERVED, Reading, Simple, Word, read
from handrail.gate.shell.wrappers import (
    BUILTINS,
    LINES,
    Checks,
    Words,
    find_extra_effects,
    find_started,
    unwrap,
)
from handrail.hidden_text import (
    CONTROL,
    DIRECTION_MARK,
    DIRECTION_OVERRIDE,
    LINE_BREAK,
    NO_BREAK_SPACE,
    SPACE,
    hidden_name,
)

LONGEST = 100_000
"""Characters of a plain line; the tools start no longer line."""
LONGEST_TANGLED = 20_000
MOST_SIGNS = 500
MOST_WORDS = 5000
"""Bounds on the input of the grammar, whose time grows with the square of its input."""
PARTS_MAX = 200
"""Commands in one line; a person could not review more in an approval."""
DEEPEST = 10
"""Nesting depth of wrappers; bounds the recursion."""
INTERPRETERS = frozenset(
    ("python", "python3", "perl", "ruby", "node", "deno", "bun", "php", "lua", "Rscript")
)
"""Programs that run their standard input if no file is given."""
_SIGNS = re.compile(r"[|&;<>()`$\n]")
_COSTLY = re.compile(r"[@?]")
"""In the first word, the time of the grammar grows with more than the square of these."""
_SHOWN = 200
"""Characters of an opaque construct that are shown in an approval."""

CHARACTERS: Checks = {
    "control": "holds a control character",
    "direction": "holds a character that turns the direction of writing",
    "invisible": "holds a character that cannot be seen",
    "blank": "holds a blank that is none for the shell",
}

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_KINDS = {
    CONTROL: "control",
    DIRECTION_MARK: "direction",
    DIRECTION_OVERRIDE: "direction",
    LINE_BREAK: "blank",
    NO_BREAK_SPACE: "blank",
    SPACE: "blank",
}
"""The check for a name of the shared table; every other name is `invisible`."""
_CATEGORIES = {
    "Cc": "control",
    "Cf": "invisible",
    "Cn": "invisible",
    "Co": "invisible",
    "Cs": "invisible",
    "Zs": "blank",
    "Zl": "blank",
    "Zp": "blank",
}
"""Stricter than the table: unassigned and private characters, and format characters that some fonts draw."""

TROUBLES: Checks = {
    "unparsed": "cannot be parsed",
    "expansion": "uses a value that is only known when it runs",
    "substitution": "runs another command to get a value",
    "redirection": "redirects input or output",
    "group": "runs commands in brackets, or defines a function",
    "compound": "is a loop, a condition, a block or a function",
    "negation": "negates a command (!)",
    "assignment": "sets a variable",
    "background": "runs a command in the background (&)",
    "comment": "has a comment",
    "braces": "expands braces: {a,b}",
    "tilde": "names a home folder by a tilde",
    "program": "names a program by a pattern, or a job",
    "pattern": "mixes pattern characters with quoted ones",
    "piped": "runs what is piped into it",
    "escape": "has a backslash where it hides something",
    "moved": "names a program by a relative path after changing the folder",
    "long": "is too long, or too tangled, to be analysed",
    "many": f"holds more than {PARTS_MAX} commands",
    "nested": f"holds wrappers within wrappers, more than {DEEPEST} deep",
}
"""Trouble → sentence. Each makes the line opaque, so that a person is asked."""

CALM = frozenset(("expansion", "compound", "group", "negation", "assignment", "comment"))
"""Forms that by themselves change nothing outside of the shell."""
PRINTERS = frozenset(("[", "echo", "exit", "false", "printf", "pwd", "seq", "sleep", "test", "true"))
"""Commands that only print, test or wait."""
_SEARCH = re.compile(r"\b(PATH|ENV|BASH\w*|LD_\w*)=")
"""Assignments that may turn a common name into another program."""
DOWNLOADERS = frozenset(("aria2c", "curl", "fetch", "http", "https", "wget", "xh"))
RUNNERS = INTERPRETERS | {*LINES, ".", "ash", "csh", "eval", "fish", "ksh", "source", "tcsh", "zsh"}
"""Programs that run text as a script."""
ROOT = frozenset(("doas", "pkexec", "su", "sudo"))
DOWNLOADED = "downloads a script and runs it"
DOWNLOADED_AS_ROOT = "downloads a script and runs it as root"

_VAGUE = ("unparsed", "group", "expansion")
"""Imprecise troubles of the tokenizer, left out if the grammar reports a precise one."""
TOO_MUCH = Structure((), (Found("long", ""),))


@dataclass(frozen=True, slots=True)
class Part:
    """One command: its source text and its words; for a wrapper, the words of the command it starts."""

    text: str
    words: tuple[str, ...]
    piped_into: bool = False
    joined: str = ""
    """The operator before it; empty for the first command, or if unknown."""
    live: frozenset[int] = frozenset()
    """Positions of the words that the shell may replace: globs, or words with unknown parts."""
    nested: bool = False
    """Started by another command, possibly in another shell: its effect on shell state may not reach this line."""
    unknown: frozenset[int] = frozenset()
    """Of the live words, those with a part whose value is not known. The line is then opaque."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """A construct that is not fully understood, and why."""

    text: str
    why: str
    words: tuple[str, ...] = ()
    """For a wrapper: its words, so that a deny rule can match it by name."""
    trouble: str = ""
    """The key of `TROUBLES`; empty for what a wrapper or a flag does."""


@dataclass(frozen=True, slots=True)
class Line:
    """The parsed line; plain if nothing is opaque."""

    parts: tuple[Part, ...]
    opaque: tuple[Opaque, ...]
    cut: bool = False
    """Some commands are missing from `parts`, and a deny rule could match them: the line must not run."""
    wrappers: tuple[str, ...] = ()
    """Names of the programs that start the commands inside them: `timeout`, `sudo`, `sh`. Those that bash itself
    carries out are left out: `exec`, `command`, and `time` at the start of a pipeline."""
    argv: tuple[str, ...] = ()
    """The words of the command, if the line is one simple command without globs; else empty."""
    calm: bool = False
    """It is not plain, but only in its form: a loop of `echo`. It still asks, at a lower risk."""

    @property
    def plain(self) -> bool:
        return not self.opaque


@lru_cache(64)
def parse(line: str) -> Line:
    """Parse a line. Never raises: an internal error makes the line opaque. Cached, as each call is planned twice."""
    findings = _Findings()
    try:
        _line(line, findings, 0)
    except Exception:  # an internal error must ask a person, and never let a line pass
        findings.report("unparsed", line)
    if len(findings.parts) > PARTS_MAX:
        findings.cut = True
        findings.report("many", line)
    _name_download(line, findings)
    return Line(
        tuple(findings.parts[:PARTS_MAX]),
        tuple(dict.fromkeys(findings.opaque)),
        findings.cut,
        tuple(dict.fromkeys(findings.wrappers)),
        findings.argv,
        _is_calm(line, findings),
    )


def _name_download(line: str, findings: "_Findings") -> None:
    """Describe the effect of a download that is piped or substituted into a shell, in place of how it is written."""
    runners = [item for item in findings.opaque if _names_of(item.words) & RUNNERS]
    runs = findings.fed or (findings.substitutes and bool(runners))
    if not runs or not any(_names_of(part.words[:1]) & DOWNLOADERS for part in findings.parts):
        return
    is_root = any(_names_of(item.words[:1]) & ROOT for item in runners)
    why = DOWNLOADED_AS_ROOT if is_root else DOWNLOADED
    named = [replace(item, why=why) if item in runners else item for item in findings.opaque]
    others = [item for item in named if item.trouble != "piped"]
    findings.opaque = [Opaque(line[:_SHOWN], why), *others]


def _names_of(words: Iterable[str]) -> set[str]:
    return {posixpath.basename(word) for word in words}


def _is_calm(line: str, findings: "_Findings") -> bool:
    return (
        bool(findings.opaque and findings.parts)
        and all(item.trouble in CALM for item in findings.opaque)
        and all(part.words[0] in PRINTERS for part in findings.parts)
        and not _SEARCH.search(line)
        and not findings.cut
    )


@dataclass(slots=True)
class _Findings:
    parts: list[Part] = field(default_factory=list[Part])
    opaque: list[Opaque] = field(default_factory=list[Opaque])
    moved: bool = False
    """An earlier command may have changed the working directory."""
    cut: bool = False
    wrappers: list[str] = field(default_factory=list[str])
    argv: tuple[str, ...] = ()
    fed: bool = False
    """A command runs what is piped into it."""
    substitutes: bool = False
    """The output of a command becomes a word or a file of another."""

    def put(self, part: Part) -> None:
        program = part.words[0]
        if self.moved and "/" in program and not program.startswith("/"):
            self.report("moved", part.text)
        if part.piped_into and _reads_program(part.words):
            self.fed = True
            self.report("piped", part.text)
        self.moved = self.moved or program == "cd"
        self.parts.append(part)

    def report(self, trouble: str, text: str) -> None:
        self.add(TROUBLES[trouble], text, trouble=trouble)

    def add(self, why: str, text: str, words: tuple[str, ...] = (), trouble: str = "") -> None:
        if why:
            self.opaque.append(Opaque(text[:_SHOWN], why, words, trouble))


def _reads_program(words: tuple[str, ...]) -> bool:
    return posixpath.basename(words[0]) in INTERPRETERS and all(word.startswith("-") for word in words[1:])


def _line(line: str, findings: _Findings, depth: int) -> None:
    for char, why in find_hidden(line):
        findings.add(why, _around(line, line.index(char)))
    reading = read(line)
    tree = structure(line) if _is_short(reading, line) else TOO_MUCH
    troubles = _report_troubles(line, reading, tree, findings)
    if depth == 0 and not findings.opaque:
        findings.argv = _single_command(reading)
    for part, words in _commands(line, reading, tree, troubles):
        if len(findings.parts) > PARTS_MAX:
            return
        _open(part, words, findings, depth)


def _single_command(reading: Reading) -> tuple[str, ...]:
    words = reading.commands[0].words if len(reading.commands) == 1 else ()
    return () if any(word.live for word in words) else tuple(word.text for word in words)


def _is_short(reading: Reading, line: str) -> bool:
    """Whether the line is small enough for the grammar. Signs in quotes of a plain line are cheap: not counted."""
    words = sum(len(command.words) for command in reading.commands)
    if len(_COSTLY.findall(line)) > MOST_SIGNS:
        return False
    plain = not reading.troubles
    signs = len(reading.commands) if plain else len(reading.troubles) + len(_SIGNS.findall(line))
    return (
        signs <= MOST_SIGNS and words <= MOST_WORDS and len(line) <= (LONGEST if plain else LONGEST_TANGLED)
    )


def _report_troubles(line: str, reading: Reading, tree: Structure, findings: _Findings) -> set[str]:
    """Report each trouble once, with the text from the grammar if it has one; returns the names of the reported."""
    shown = {item.name: item.text or line for item in tree.troubles}
    known = _VAGUE if shown and "unparsed" not in shown else ()
    for trouble in reading.troubles:
        if trouble.name not in shown and trouble.name not in known:
            shown[trouble.name] = _around(line, trouble.at)
    for name, text in shown.items():
        findings.report(name, text)
    findings.substitutes = findings.substitutes or "substitution" in shown
    return {name for name in shown if TROUBLES[name]}


def _around(line: str, at: int) -> str:
    """The text from the start of that line to the end of the word at this position."""
    begin = line.rfind("\n", 0, at) + 1
    end = re.compile(r"\s|$").search(line, at + 1)
    return line[begin : end.start() if end else len(line)]


def _commands(
    line: str, reading: Reading, tree: Structure, troubles: set[str]
) -> Iterable[tuple[Part, Words]]:
    knows = tree.troubles and all(item.name not in ("unparsed", "long") for item in tree.troubles)
    # If the grammar did not report the trouble, it may have missed commands too: add those of the tokenizer.
    if not troubles or not knows:
        yield from (_read_part(line, item) for item in reading.commands)
    if troubles:
        for item in tree.commands:
            words = _from_program(item.words)
            if words:
                yield _part(item.text, words, item.piped_into), words


def _from_program(words: Words) -> Words:
    """Drop reserved words, `!` and assignments before the program: grammar and wrappers take some of them for one."""
    at = 0
    while at < len(words) and _is_before_program(words[at].text):
        at += 1
    return words[at:] or words


def _is_before_program(text: str) -> bool:
    return (text in RESERVED and text not in ("[", "[[")) or text == "!" or "=" in text


def _read_part(line: str, item: Simple) -> tuple[Part, Words]:
    part = _part(line[item.begin : item.end], item.words, item.joined == "|", item.joined)
    return part, item.words


def _part(text: str, words: Words, piped_into: bool, joined: str = "") -> Part:
    live = frozenset(at for at, word in enumerate(words) if word.live)
    unknown = frozenset(at for at, word in enumerate(words) if word.unknown)
    return Part(text, tuple(word.text for word in words), piped_into, joined, live, unknown=unknown)


def _open(part: Part, words: Words, findings: _Findings, depth: int) -> None:
    """Add a command as a part; unwrap a wrapper and add the commands inside."""
    inside = unwrap(words)
    if inside is None:
        findings.put(replace(part, nested=depth > 0))
        for why in find_extra_effects(part.words):
            findings.add(why, part.text)
        for inner in find_started(words):
            _inside(part, inner, findings, depth)
        return
    if not _is_shell_word(part, depth):
        findings.wrappers.append(part.words[0])
    piped = part.piped_into and inside.line is None and posixpath.basename(part.words[0]) in LINES
    findings.fed = findings.fed or (piped and inside.why != "")
    findings.add(TROUBLES["piped"] if piped and inside.why else inside.why, part.text, part.words)
    if inside.line is None:
        _inside(part, inside.words, findings, depth)
    elif _goes_on(part, findings, depth):
        _line(inside.line, findings, depth + 1)


def _is_shell_word(part: Part, depth: int) -> bool:
    """Whether bash carries out the wrapper itself. After a pipe, and inside another wrapper, `time` is a program."""
    if part.words[0] == "time":
        return depth == 0 and not part.piped_into
    return part.words[0] in BUILTINS


def _inside(part: Part, words: Words, findings: _Findings, depth: int) -> None:
    if words and _goes_on(part, findings, depth):
        _check_program(words[0], part.text, findings)
        words = _from_program(words)
        _open(_part(part.text, words, part.piped_into, part.joined), words, findings, depth + 1)


def _goes_on(part: Part, findings: _Findings, depth: int) -> bool:
    if depth >= DEEPEST:
        findings.cut = True
        findings.report("nested", part.text)
    return depth < DEEPEST


def _check_program(word: Word, text: str, findings: _Findings) -> None:
    """Report a command inside a wrapper whose program is not a plain name, as for a command without a wrapper."""
    if word.live:
        findings.report("program", text)
    if word.text in RESERVED or word.text == "!":
        findings.report("compound", text)
    if "=" in word.text:
        findings.report("assignment", text)
    if word.escaped:
        findings.report("escape", text)


def find_hidden(text: str) -> Iterator[tuple[str, str]]:
    """For each kind of hidden character in the text: the first such character and a sentence."""
    seen: set[str] = set()
    if text.isascii() and not _CONTROL.search(text):
        return
    for char in dict.fromkeys(text):
        kind = _kind(char)
        if kind and kind not in seen and CHARACTERS[kind]:
            seen.add(kind)
            yield char, f"{CHARACTERS[kind]} (U+{ord(char):04X})"


def _kind(char: str) -> str:
    if " " <= char <= "~" or char in "\n\t":
        return ""
    if name := hidden_name(char):
        return _KINDS.get(name, "invisible")
    return _CATEGORIES.get(unicodedata.category(char), "")
