"""A shell line read by tree-sitter-bash: which constructs are in it, and every command anywhere in it.

Owns the grammar's kinds of nodes, and which of them are plain. It does not know what bash makes of a word (plain.py) or
what a trouble means for a decision (shell.py).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from handrail.gate.shell.bash_reader import Word, read

_LANGUAGE = Language(tree_sitter_bash.language())

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
"""The grammar's scanner crashes the whole process on some of these (tree-sitter-bash 0.25.1). To the shell each of them is
a letter like any other, so it is shown one; what stands there is then taken from the text itself."""

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
"""What is not here and not plain is not understood; within one of these nothing more is asked of the grammar."""
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})
_NO_WORDS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect"})


@dataclass(frozen=True, slots=True)
class Found:
    """A construct that is not plain, as it is written."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command anywhere in the line; its words are known as far as they are plain."""

    text: str
    words: tuple[Word, ...]
    piped_into: bool


@dataclass(frozen=True, slots=True)
class Structure:
    """All that was found, in the order it is written."""

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
    """Every node, without recursion: text can nest as deep as it is long."""
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
    """Read as an argument: what a word means where a program is expected, is asked later."""
    reading = read(f"x {text}")
    if not reading.troubles and len(reading.commands) == 1 and len(reading.commands[0].words) == 2:
        return reading.commands[0].words[1]
    return Word(text, live=True)


def _text(node: Node, text: str) -> str:
    return text[node.start_byte : node.end_byte]
