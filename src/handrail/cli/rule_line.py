"""Making rules from a question, one line for each: the suggested pattern, or the person's own.

Owns those lines, and showing what each rule would do before anything is made. Adds nothing.
"""

from handrail.cli.answer import offered, reaching, with_pattern
from handrail.cli.exact import exact_line
from handrail.cli.failure import Failure
from handrail.cli.hand import Hand
from handrail.cli.rule_words import judged
from handrail.cli.show import say
from handrail.cli.words import Row


def rule_lines(hand: Hand, asked: Row) -> tuple[Row, ...]:
    """The rules a person wants for this question, each of which can be made; none when they want none. Raises Failure."""
    wanted = [_wanted(hand, asked, each) for each in offered(asked)]
    rules = tuple(rule for rule in wanted if rule is not None)
    for rule in rules:
        _show_proposed(hand, asked, rule)
    return rules


def _wanted(hand: Hand, asked: Row, suggestion: Row) -> Row | None:
    rule: Row = suggestion["rule"]
    pattern = exact_line(rule["command"] or rule["path"] or rule["host"] or "")
    typed = hand.line(f"Pattern of the rule, for this project. Enter: {pattern}   - : no such rule")
    if typed == "-":
        return None
    return reaching(with_pattern(rule, typed) if typed else rule, asked, "project", None)


def _show_proposed(hand: Hand, asked: Row, rule: Row) -> None:
    proposed: Row = hand.link.post("rules", "propose", body={"rule": rule, "approval": asked["id"]})
    if proposed["problem"]:
        raise Failure(exact_line(proposed["problem"]))
    say(("Would allow ", "green"), exact_line(proposed["words"]), f". {judged(proposed)}".rstrip())
