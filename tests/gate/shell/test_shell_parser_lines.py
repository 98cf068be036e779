"""The corpus: every line gets the decision it must get, and no added text lowers one.

Adding text means: a command that is complete by itself before or after a line, joined by any operator; a line put
into any construct; a redirection, an assignment, a substitution, a background sign or a comment put to it. Then the
old line would still be run, or still be part of what is not understood. (Text that takes the old line out of what is
run, such as `#` before it, or that ends a line left unfinished by `\\` or an operator, is not added in this sense.)
"""

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.policy_values import ONE, RUN
from tests.support.shell_corpus import LINES, POLICY, STRICTNESS, WRITTEN, decided, shown

from handrail.gate.shell.shell_parser import PARTS_MAX, parse
from handrail.store.values import Effect
from handrail.tools.commands.command_claims import command_claims
from handrail.tools.workspace import Workspace

BIN = "/usr/local/bin:/usr/bin:/bin"
JOINTS = (" && ", " || ", "; ", " | ", "\n")
ADDED = ("ls", "git push", "unknown-tool x")
# fmt: off
PUT = (
    *("({})", "{{ {}; }}", "! {}", "{} &", "if true; then {}; fi", "while {}; do ls; done", "f() {{ {}; }}; f"),
    *("for x in a; do {}; done", "case x in x) {};; esac", "echo $( {} )", "echo `{}`", "cat <({})", "A=1 {}"),
    *("{} > out", "{} 2>&1", "{} < in", "{} <<< x", "{} | tee out", "{} $X", "{} $(ls)", "{} # x", "{} \r"),
    *("{} \u202e", "time {}", "timeout 5 {}", "nice {}", "env {}", "sudo {}", "xargs {}", "command {}"),
)
# fmt: on
QUOTED = ("bash -c {}", "sh -c {}", "eval {}", "timeout 5 bash -c {}", "sudo sh -c {}", "ls && bash -c {}")


FINISHED = [(line, effect) for line, effect in WRITTEN if not line.endswith(("\\", "&&", "|"))]
"""More text would only complete the others."""


def strictness(line: str) -> int:
    return STRICTNESS.index(decided(line, parse))


@pytest.mark.parametrize(("line", "effect"), LINES, ids=[shown(line) for line, _ in LINES])
def test_each_line_gets_its_decision(line: str, effect: Effect) -> None:
    assert decided(line, parse) == effect


def test_the_corpus_is_large_and_two_fifths_of_it_are_everyday_lines() -> None:
    lines = [line for line, _ in WRITTEN]
    assert len(lines) == len(set(lines)) >= 300
    assert sum(effect == "allow" for _, effect in WRITTEN) >= 0.4 * len(lines)


def test_the_claims_of_a_command_get_no_milder_decision_than_its_words(tmp_path: Path) -> None:
    workspace = Workspace(str(tmp_path))
    milder: list[str] = []
    for line, effect in WRITTEN:
        claims = command_claims(parse(line), workspace.place("."), workspace, BIN)
        found = POLICY.decide(RUN, claims, ONE).effect
        if STRICTNESS.index(found) < STRICTNESS.index(effect):
            milder.append(line)
    assert milder == []


@pytest.mark.parametrize("joint", JOINTS)
def test_a_command_before_or_after_a_line_never_lowers_the_decision(joint: str) -> None:
    lowered = [
        text
        for line, effect in FINISHED
        for other in ADDED
        for text in (line + joint + other, other + joint + line)
        if strictness(text)
        < max(STRICTNESS.index(effect), strictness(other) if text.startswith(other) else 0)
    ]
    assert lowered == []


@pytest.mark.parametrize("put", PUT)
def test_putting_a_line_into_a_construct_never_lowers_the_decision(put: str) -> None:
    lines = [pair for pair in FINISHED if "`" not in put or "`" not in pair[0]]  # one would end the other
    lowered = [line for line, effect in lines if strictness(put.format(line)) < STRICTNESS.index(effect)]
    assert lowered == []


@pytest.mark.parametrize("put", QUOTED)
def test_putting_a_line_into_a_shell_within_a_shell_never_lowers_the_decision(put: str) -> None:
    lowered = [
        line
        for line, effect in WRITTEN
        if strictness(put.format(shlex.quote(line))) < STRICTNESS.index(effect)
    ]
    assert lowered == []


PLAIN = ("{} | tee out", "time {}", "timeout 5 {}", "nice {}", "env {}", "command {}")


@pytest.mark.parametrize("put", [put for put in PUT if put not in PLAIN])
def test_no_construct_is_allowed_but_a_pipe_and_wrappers_that_are_looked_through(put: str) -> None:
    assert decided(put.format("ls"), parse) == "ask"


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_any_text_is_read_without_a_fault_and_allowed_only_when_it_is_plain(text: str) -> None:
    line = parse(text)
    if not line.plain:
        assert decided(text, parse) != "allow"
    assert len(line.parts) <= PARTS_MAX + 1


# fmt: off
SIGNS = (
    *("ls", "git", "push", "status", "x", " ", " ", "\n", "\t", ";", "&&", "||", "|", "&", "'", '"', "\\"),
    *("$", "`", "(", ")", "{", "}", "<", ">", "#", "!", "*", "?", "[", "]", "~", "=", ",", "..", "if ", "fi"),
    *("$(", "<<E", "\nE\n", "bash -c ", "sudo ", "\0", "\r", "\u202e", "\u00a0", "é", "1", "-x", "time "),
)
# fmt: on
SHELLISH = st.lists(st.sampled_from(SIGNS), max_size=25).map("".join)


@given(SHELLISH)
@settings(max_examples=800)
def test_any_jumble_of_shell_signs_is_allowed_only_when_it_is_plain(text: str) -> None:
    line = parse(text)
    assert line.plain or decided(text, parse) != "allow"
    assert line.parts or line.opaque


@given(SHELLISH, st.sampled_from(JOINTS))
@settings(max_examples=300)
def test_nothing_that_follows_a_forbidden_command_lowers_its_decision(text: str, joint: str) -> None:
    assert decided(f"git push{joint}{text}", parse) == "deny"


def test_a_line_that_cannot_be_parsed_always_asks() -> None:
    broken = [
        line for line, _ in WRITTEN if any("cannot be parsed" in item.why for item in parse(line).opaque)
    ]
    assert len(broken) > 20
    assert [line for line in broken if decided(line, parse) == "allow"] == []
