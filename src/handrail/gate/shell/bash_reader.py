"""Tokenizer for plain bash: words, quoted literals, `&& || ; |` and newlines, split as bash splits them.

A client may run a line in another shell, so what zsh or fish would split or replace otherwise is a trouble too.
Anything else is reported as a named trouble with its position. Tokenizing continues after a trouble as if the
character or word were a space, so that later commands are still seen. shell_parser.py has the meaning of each trouble,
_tree_sitter_reader.py the full grammar.
"""

import re

from handrail.lazy_dataclass import dataclass

RESERVED = frozenset(
    (
        *(
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "case",
            "esac",
            "for",
            "select",
            "while",
            "until",
            "do",
            "done",
        ),
        *("in", "function", "coproc", "{", "}", "[", "[[", "]]"),
        *("-", "and", "begin", "nocorrect", "noglob", "not", "or"),  # of fish and zsh
    )
)
"""In command position these do not name a program. `time` is missing because it is a wrapper (wrappers.py)."""

_RUN = re.compile(r"[\w./:@%+,=^!#~*?\[\]{}-]+", re.ASCII)
_QUOTED_RUN = re.compile(r'[^"\\$`]+')
_BOUNDS = {"`": "substitution", "(": "group", ")": "group"}
"""Another command can begin after these."""
_REDIRECTION = re.compile(r"&>+|[<>]+[&|]?-?")
_HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"\\]?)([\w.-]+)")
_OPERATORS = ("&&", "||", ";", "|", "\n")
_PATTERN = frozenset("*?[")
_TILDE = re.compile(r"(^|[=:])\0*~")
"""zsh expands it behind empty quotes too."""
_PROGRAM_FILE = re.compile(r"\0*=[\w/.]", re.ASCII)
"""zsh replaces `=ls` by the path of that program, behind empty quotes too."""
_FISH_ESCAPES = frozenset("abcefnrtuvxUX01234567")
"""After a backslash, fish reads these as another character: `\\x2e` is a dot."""
_MARK = "\0"
"""Placeholder for quoted text where only unquoted characters count."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the program receives it, after quote removal."""

    text: str
    live: bool = False
    """The shell may replace it: it is a glob, or has an unknown part."""
    escaped: bool = False
    """It has a backslash outside of quotes."""
    unknown: bool = False
    """It has a part whose value is not known, such as a variable; then it is the source text."""


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: its position, its words, and the operator before it."""

    begin: int
    end: int
    words: tuple[Word, ...]
    joined: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """A construct that is not plain, by name (a key of `TROUBLES`) and position."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The commands and troubles of a line."""

    commands: tuple[Simple, ...]
    troubles: tuple[Trouble, ...]


def read(text: str) -> Reading:
    """Tokenize a line. Never raises."""
    reader = _Reader(text)
    while reader.at < len(text):
        reader.step()
    return reader.finish()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._commands: list[Simple] = []
        self._troubles: list[Trouble] = []
        self._words: list[Word] = []
        self._joined = ""
        self._begin = 0
        self._end = 0
        self._word: list[str] | None = None
        self._bare: list[str] = []
        """The same word with `_MARK` in place of quoted text."""
        self._word_at = 0
        self._escaped = False
        self._heredocs: list[tuple[str, bool, bool]] = []
        """Pending here-documents: delimiter, whether it strips leading tabs (`<<-`), whether it is quoted."""

    def step(self) -> None:
        char = self.text[self.at]
        if char in " \t":
            self._end_word()
            self.at += 1
        elif char == "'":
            self._single()
        elif char == '"':
            self._double()
        elif char == "\\":
            self._escape()
        elif char in "<>&" and (sign := _REDIRECTION.match(self.text, self.at)):
            self._redirection(len(sign.group()))
        elif char in ";&|\n":
            self._operator()
        elif char == "$":
            self._blank("expansion")
        elif char in _BOUNDS:
            self._blank(_BOUNDS[char])
            self._close(char)
        elif char == "#" and self._word is None:
            self._blank("comment")
        else:
            self._plain()

    def finish(self) -> Reading:
        self._end_word()
        if self._words:
            self._end_command("")
        elif self._joined in ("&&", "||", "|") or not self._commands:
            self._trouble("unparsed")
        return Reading(tuple(self._commands), tuple(self._troubles))

    def _trouble(self, name: str, at: int | None = None) -> None:
        self._troubles.append(Trouble(name, self.at if at is None else at))

    def _blank(self, name: str, length: int = 1) -> None:
        """Report a trouble and treat its characters as a space."""
        self._end_word()
        self._trouble(name)
        self.at += length

    def _add(self, text: str, bare: str) -> None:
        if self._word is None:
            self._word, self._bare, self._word_at, self._escaped = [], [], self.at, False
        self._word.append(text)
        self._bare.append(bare)

    def _plain(self) -> None:
        run = _RUN.match(self.text, self.at)
        text = run.group() if run else self.text[self.at]
        self._add(text, text)
        self.at += len(text)

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self._trouble("unparsed")
            end = len(self.text)
        text = self.text[self.at + 1 : end]
        if (len(text) - len(text.rstrip("\\"))) % 2:
            self._trouble("escape")  # for fish, the quote after this backslash does not end the text
        self._add(text, _MARK)
        self.at = end + 1

    def _double(self) -> None:
        self._add("", _MARK)
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                self._escape_in_quotes()
            elif char == "`":
                self._trouble("substitution")
                self.at += 1
            elif char == "$":
                self._dollar_in_quotes()
            else:
                run = _QUOTED_RUN.match(self.text, self.at)
                text = run.group() if run else char
                self._add(text, _MARK)
                self.at += len(text)
        self._trouble("unparsed")

    def _escape_in_quotes(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if after == "\n":
            self._trouble("escape")
        else:
            self._add(after if after in '$`"\\' else f"\\{after}", _MARK)
        self.at += 2

    def _dollar_in_quotes(self) -> None:
        """Before one of these characters a dollar sign is literal, as at the end of a regular expression."""
        if self.text[self.at + 1 : self.at + 2] not in ('"', " ", "|", ")"):
            self._trouble("expansion")
        self._add("$", _MARK)
        self.at += 1

    def _escape(self) -> None:
        after = self.text[self.at + 1 : self.at + 2]
        if after == "\n" and self._word is None:
            self.at += 2
        elif after in ("\n", ""):
            self._blank("escape", 2)
        else:
            if after in _FISH_ESCAPES:
                self._trouble("escape")
            self._add(after, _MARK)
            self._escaped = True
            self.at += 2

    def _operator(self) -> None:
        self._end_word()
        two = self.text[self.at : self.at + 2]
        if two in (";;", ";&"):
            self._blank("unparsed", 2)
        elif two == "|&":
            self._trouble("redirection")
            self._end_command("|")
            self.at += 2
        elif operator := next((sign for sign in _OPERATORS if self.text.startswith(sign, self.at)), None):
            self._end_command(operator)
            self.at += len(operator)
            if operator == "\n":
                self._skip_bodies()
        else:
            self._trouble("background")
            self._end_command(";")
            self.at += 1

    def _redirection(self, length: int) -> None:
        if heredoc := _HEREDOC.match(self.text, self.at):
            self._heredocs.append((heredoc.group(3), heredoc.group(1) == "-", heredoc.group(2) != ""))
        self._blank("redirection", length)

    def _skip_bodies(self) -> None:
        """Skip here-document bodies, but stop at an unquoted line with a substitution: it is tokenized."""
        while self._heredocs and self.at < len(self.text):
            delimiter, dashed, quoted = self._heredocs[0]
            end = self.text.find("\n", self.at)
            line = self.text[self.at : end if end >= 0 else len(self.text)]
            if (line.lstrip("\t") if dashed else line) == delimiter:
                self._heredocs.pop(0)
            elif not quoted and ("`" in line or "$(" in line):
                return
            self.at += len(line) + 1

    def _end_word(self) -> None:
        if self._word is None:
            return
        text, bare = "".join(self._word), "".join(self._bare)
        self._word = None
        if _has_braces(bare):
            self._trouble("braces", self._word_at)
        if _TILDE.search(bare):
            self._trouble("tilde", self._word_at)
        if _PROGRAM_FILE.match(bare):
            self._trouble("expansion", self._word_at)
        live = not _PATTERN.isdisjoint(bare)
        if live and _patterns(text) > _patterns(bare):
            self._trouble("pattern", self._word_at)
        if not self._words:
            if self._is_no_program(bare):
                return
            self._begin = self._word_at
            if live or text.startswith("%"):
                self._trouble("program", self._word_at)
            if self._escaped:
                self._trouble("escape", self._word_at)
        self._words.append(Word(text, live, self._escaped))
        self._end = self.at

    def _is_no_program(self, bare: str) -> bool:
        """Whether the first word is not a program; reports `!`, a reserved word or an assignment."""
        name = _before_program(bare)
        if name:
            self._trouble(name, self._word_at)
        return bool(name)

    def _end_command(self, sign: str) -> None:
        if self._words:
            self._close(sign)
        elif sign != "\n":
            self._trouble("unparsed")

    def _close(self, sign: str) -> None:
        if self._words:
            self._commands.append(Simple(self._begin, self._end, tuple(self._words), self._joined))
            self._words = []
            self._joined = sign


def _has_braces(bare: str) -> bool:
    """Whether a list or a range may follow a brace. Searched in two steps, because one pattern would be quadratic.

    In fish, a list may have blanks, so that a word can hold a part of one.
    """
    inside = bare.partition("{")[2]
    return "," in inside or ".." in inside or bare.count("{") != bare.count("}")


def _patterns(text: str) -> int:
    return sum(map(text.count, _PATTERN))


def _before_program(bare: str) -> str:
    if bare == "!":
        return "negation"
    if bare in RESERVED:
        return "compound"
    return "assignment" if "=" in bare else ""
