"""Parse a shell line with tree-sitter-bash: constructs that are not plain, and commands at any depth.

Classifies the node types of the grammar. Words are tokenized by bash_reader.py; shell_parser.py has the meaning of each
trouble.
"""

import re
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from handrail.gate.shell.bash_reader import Word, read
from handrail.lazy_dataclass import dataclass

_LANGUAGE = Language(tree_sitter_bash.language())

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
"""The grammar's scanner crashes the process on some of these (tree-sitter-bash 0.25.1). For the shell they are ordinary
letters, so each is replaced by a letter for parsing; the results are cut from the original text."""

_PLAIN = frozenset(
    (
        *("program", "list", "pipeline", "command", "command_name", "redirected_statement"),
        *("word", "number", "string", "string_content", "raw_string", "concatenation", "variable_name"),
        *("declaration_command", "declare", "typeset", "export", "readonly", "local"),
        *("unset_command", "unset", "unsetenv"),
        *("&&", "||", ";", "|", "\n", '"', "$"),
    )
)
_TROUBLED = {
    **dict.fromkeys(("simple_expansion", "expansion", "ansi_c_string", "translated_string"), "expansion"),
    "arithmetic_expansion": "expansion",
    **dict.fromkeys(("command_substitution", "process_substitution"), "substitution"),
    **dict.fromkeys(("file_redirect", "heredoc_redirect", "herestring_redirect", "|&"), "redirection"),
    **dict.fromkeys(("variable_assignment", "variable_assignments"), "assignment"),
    **dict.fromkeys(("subshell", "array"), "group"),
    **dict.fromkeys(
        ("compound_statement", "function_definition", "for_statement", "if_statement"), "compound"
    ),
    **dict.fromkeys(
        ("c_style_for_statement", "while_statement", "case_statement", "test_command"), "compound"
    ),
    "negated_command": "negation",
    "brace_expression": "braces",
    "comment": "comment",
    "&": "background",
}
"""Node type → trouble. Other types that are not plain are `unparsed`, except inside one of these."""
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_NO_WORDS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"})


@dataclass(frozen=True, slots=True)
class Found:
    """A construct that is not plain, with its source text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command at any depth; a word that is not plain is `live`."""

    text: str
    words: tuple[Word, ...]
    piped_into: bool


@dataclass(frozen=True, slots=True)
class Structure:
    """The commands and troubles of a line, in source order."""

    commands: tuple[Command, ...]
    troubles: tuple[Found, ...]


def structure(text: str) -> Structure:
    commands: list[Command] = []
    troubles: dict[str, Found] = {}
    covered = 0
    tree = Parser(_LANGUAGE).parse(_BEYOND_ASCII.sub("x", text).encode())
    for node in _nodes(tree.root_node):
        kind = node.type
        if kind in _COMMANDS:
            commands.append(_command(node, text))
        if kind in _PLAIN and not node.is_missing:
            continue
        name = "unparsed" if node.is_missing else _TROUBLED.get(kind, "")
        if name:
            covered = max(covered, node.end_byte)
        elif node.is_error or node.start_byte >= covered:
            name = "unparsed"
        if name:
            troubles.setdefault(name, Found(name, _text(node, text)))
    return Structure(tuple(commands), tuple(troubles.values()))


def _nodes(root: Node) -> Iterator[Node]:
    """Walk all nodes without recursion, because the nesting depth is unbounded."""
    cursor = root.walk()
    while True:
        if cursor.node is not None:
            yield cursor.node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def _command(node: Node, text: str) -> Command:
    words = [_word(_text(child, text)) for child in node.children if child.type not in _NO_WORDS]
    before = node.prev_sibling
    return Command(_text(node, text), tuple(words), before is not None and before.type in ("|", "|&"))


def _word(text: str) -> Word:
    """Tokenize a word as an argument; command position is checked later."""
    reading = read(f"x {text}")
    if not reading.troubles and len(reading.commands) == 1 and len(reading.commands[0].words) == 2:
        return reading.commands[0].words[1]
    return Word(text, live=True, unknown=True)


def _text(node: Node, text: str) -> str:
    return text[node.start_byte : node.end_byte]
