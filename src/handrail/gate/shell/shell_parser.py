"""A shell line as its parts: what would be run, and what cannot be told by reading.

Owns when a line is understood: plain words, quoted literals and `&& || ; |` and newlines, read alike by two readers
(plain.py as bash does, syntax.py by a grammar); wrappers opened (wrappers.py); nothing beyond a command's name
(beyond.py). Every command found anywhere is a part, so that rules that forbid can see it; everything that is not plain
is opaque, with a sentence. It does not know rules, folders or who asks.
"""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from handrail.gate.shell._tree_sitter_reader import Found, Structure, structure
from handrail.gate.shell.bash_reader import RESERVED, Reading, Simple, Word, read
from handrail.gate.shell.characters import Checks, hidden
from handrail.gate.shell.wrappers import LINES, Words, beyond, look, started

LONGEST = 100_000
"""Characters; no longer line is started."""
LONGEST_TANGLED = 20_000
MOST_SIGNS = 500
MOST_WORDS = 5000
"""In one line, for the grammar takes a time that grows with the square of what it is asked."""
MOST_PARTS = 200
"""Commands in one line; nobody could read more in an approval."""
DEEPEST = 10
"""Wrappers within wrappers."""
INTERPRETERS = frozenset(
    ("python", "python3", "perl", "ruby", "node", "deno", "bun", "php", "lua", "Rscript")
)
"""Run their input when they are given no file."""
_SIGNS = re.compile(r"[|&;<>()`$\n]")
_SHOWN = 200
"""Characters of a construct that are shown with the sentence."""

TROUBLES: Checks = {
    "unparsed": "cannot be parsed",
    "expansion": "holds an expansion, whose value is not known yet",
    "substitution": "holds a substitution, which runs another command",
    "redirection": "redirects input or output",
    "group": "holds brackets: a subshell, a list or a function",
    "compound": "holds more than plain commands: a loop, a condition, a block, a test or a function",
    "negation": "negates a command",
    "assignment": "sets a variable",
    "background": "runs a command in the background",
    "comment": "holds a comment",
    "braces": "holds a brace expansion",
    "tilde": "holds a tilde that stands for a home folder",
    "program": "names a program by a pattern, or a job",
    "pattern": "mixes pattern characters with quoted ones",
    "piped": "runs what is piped into it",
    "escape": "holds a backslash where it hides something",
    "moved": "names a program by a relative path after changing the folder",
    "long": "is too long, or too tangled, to be read with certainty",
    "many": f"holds more than {MOST_PARTS} commands",
    "nested": f"holds wrappers within wrappers, more than {DEEPEST} deep",
}
"""Each ends plain reading; what it found asks a person."""

_VAGUE = ("unparsed", "group", "expansion")
"""How the reading names what it does not look into; where the grammar knows better, that is told instead."""
TOO_MUCH = Structure((), (Found("long", ""),))


@dataclass(frozen=True, slots=True)
class Part:
    """One command: as written, and the words its program gets; a wrapper's are those of what it starts."""

    text: str
    words: tuple[str, ...]
    piped_into: bool = False
    joined: str = ""
    """The operator before it; empty for the first, and where it is not known."""
    live: frozenset[int] = frozenset()
    """Which of the words are patterns, or not known: the program may get something else."""
    nested: bool = False
    """It stands inside of another command, so that what it does to its shell may be nothing to this one."""


@dataclass(frozen=True, slots=True)
class Opaque:
    """Something that is not fully understood, and why."""

    text: str
    why: str
    words: tuple[str, ...] = ()
    """Of a wrapper that is never looked through, for rules that forbid it by name."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a line would do; plain when nothing is opaque."""

    parts: tuple[Part, ...]
    opaque: tuple[Opaque, ...]
    cut: bool = False
    """It holds more commands than are told here, which a rule may forbid: it must not be run at all."""

    @property
    def plain(self) -> bool:
        return not self.opaque


@lru_cache(64)
def parse(line: str) -> Line:
    """Never raises: what surprises is opaque. A call's line is read when it is planned, and again before it runs."""
    found = _Findings()
    try:
        _line(line, found, 0)
    except Exception:  # whatever it is, it must ask a person and never let a line pass
        found.tell("unparsed", line)
    if len(found.parts) > MOST_PARTS:
        found.cut = True
        found.tell("many", line)
    return Line(tuple(found.parts[:MOST_PARTS]), tuple(dict.fromkeys(found.opaque)), found.cut)


@dataclass(slots=True)
class _Findings:
    parts: list[Part] = field(default_factory=list[Part])
    opaque: list[Opaque] = field(default_factory=list[Opaque])
    moved: bool = False
    """A command before may have changed the folder."""
    cut: bool = False

    def put(self, part: Part) -> None:
        program = part.words[0]
        if self.moved and "/" in program and not program.startswith("/"):
            self.tell("moved", part.text)
        if part.piped_into and _reads_program(part.words):
            self.tell("piped", part.text)
        self.moved = self.moved or program == "cd"
        self.parts.append(part)

    def tell(self, trouble: str, text: str) -> None:
        self.add(TROUBLES[trouble], text)

    def add(self, why: str, text: str, words: tuple[str, ...] = ()) -> None:
        if why:
            self.opaque.append(Opaque(text[:_SHOWN], why, words))


def _reads_program(words: tuple[str, ...]) -> bool:
    return posixpath.basename(words[0]) in INTERPRETERS and all(word.startswith("-") for word in words[1:])


def _line(line: str, found: _Findings, depth: int) -> None:
    for char, why in hidden(line):
        found.add(why, _around(line, line.index(char)))
    reading = read(line)
    tree = structure(line) if _is_short(reading, line) else TOO_MUCH
    told = _tell(line, reading, tree, found)
    for part, words in _commands(line, reading, tree, told):
        if len(found.parts) > MOST_PARTS:
            return
        _open(part, words, found, depth)


def _is_short(reading: Reading, line: str) -> bool:
    """Whether the grammar can be asked; of a plain line, what stands in quotes costs it nothing."""
    words = sum(len(command.words) for command in reading.commands)
    plain = not reading.troubles
    signs = len(reading.commands) if plain else len(reading.troubles) + len(_SIGNS.findall(line))
    return (
        signs <= MOST_SIGNS and words <= MOST_WORDS and len(line) <= (LONGEST if plain else LONGEST_TANGLED)
    )


def _tell(line: str, reading: Reading, tree: Structure, found: _Findings) -> set[str]:
    """Tell each trouble once, as the grammar shows it or else where reading met it; which were told."""
    shown = {item.name: item.text or line for item in tree.troubles}
    known = _VAGUE if shown and "unparsed" not in shown else ()
    for trouble in reading.troubles:
        if trouble.name not in shown and trouble.name not in known:
            shown[trouble.name] = _around(line, trouble.at)
    for name, text in shown.items():
        found.tell(name, text)
    return {name for name in shown if TROUBLES[name]}


def _around(line: str, at: int) -> str:
    """The word there, and what stands before it on its line."""
    begin = line.rfind("\n", 0, at) + 1
    end = re.compile(r"\s|$").search(line, at + 1)
    return line[begin : end.start() if end else len(line)]


def _commands(line: str, reading: Reading, tree: Structure, told: set[str]) -> Iterable[tuple[Part, Words]]:
    knows = tree.troubles and all(item.name not in ("unparsed", "long") for item in tree.troubles)
    if (
        not told or not knows
    ):  # the grammar has not seen what reading met, so that it may have missed commands too
        yield from (_read_part(line, item) for item in reading.commands)
    if told:
        for item in tree.commands:
            words = _from_program(item.words)
            if words:
                yield _part(item.text, words, item.piped_into), words


def _from_program(words: Words) -> Words:
    """Without what may stand before a program: the grammar takes some reserved words for one, and so do wrappers."""
    at = 0
    while at < len(words) and (words[at].text in RESERVED or words[at].text == "!" or "=" in words[at].text):
        at += 1
    return words[at:] or words


def _read_part(line: str, item: Simple) -> tuple[Part, Words]:
    part = _part(line[item.begin : item.end], item.words, item.joined == "|", item.joined)
    return part, item.words


def _part(text: str, words: Words, piped_into: bool, joined: str = "") -> Part:
    live = frozenset(at for at, word in enumerate(words) if word.live)
    return Part(text, tuple(word.text for word in words), piped_into, joined, live)


def _open(part: Part, words: Words, found: _Findings, depth: int) -> None:
    """Add a part; of a wrapper, what is inside of it."""
    inside = look(words)
    if inside is None:
        found.put(replace(part, nested=depth > 0))
        for why in beyond(part.words):
            found.add(why, part.text)
        for inner in started(words):
            _inside(part, inner, found, depth)
        return
    piped = part.piped_into and inside.line is None and posixpath.basename(part.words[0]) in LINES
    found.add(TROUBLES["piped"] if piped and inside.why else inside.why, part.text, part.words)
    if inside.line is None:
        _inside(part, inside.words, found, depth)
    elif _goes_on(part, found, depth):
        _line(inside.line, found, depth + 1)


def _inside(part: Part, words: Words, found: _Findings, depth: int) -> None:
    if words and _goes_on(part, found, depth):
        _check_program(words[0], part.text, found)
        words = _from_program(words)
        _open(_part(part.text, words, part.piped_into, part.joined), words, found, depth + 1)


def _goes_on(part: Part, found: _Findings, depth: int) -> bool:
    if depth >= DEEPEST:
        found.cut = True
        found.tell("nested", part.text)
    return depth < DEEPEST


def _check_program(word: Word, text: str, found: _Findings) -> None:
    """What a wrapper starts, must be named as plainly as what is started without one."""
    if word.live:
        found.tell("program", text)
    if word.text in RESERVED or word.text == "!":
        found.tell("compound", text)
    if "=" in word.text:
        found.tell("assignment", text)
    if word.escaped:
        found.tell("escape", text)
