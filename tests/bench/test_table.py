"""What the bench prints."""

import json

from bench.figures import Line, Target
from bench.table import as_json, as_table

HELD = Line(what="quick", ours=1.0, peer=2.0, unit="ms", target=Target("times at most", 0.6))
MISSED = Line(what="slow", ours=20.0, peer=None, unit="ms", target=Target("at most", 12.0), note="too slow")


def test_each_line_shows_both_figures_the_target_and_whether_it_held() -> None:
    head, _, held, missed, _, note = as_table([HELD, MISSED]).splitlines()
    assert head.split() == ["what", "ours", "peer", "value", "target", "held"]
    assert held.split() == ["quick", "1.00", "ms", "2.00", "ms", "0.50", "x", "≤", "0.6", "x", "yes"]
    assert missed.split() == ["slow", "20", "ms", "-", "20", "ms", "≤", "12", "ms", "NO"]
    assert note == "slow: too slow"


def test_columns_stand_below_each_other() -> None:
    assert len({len(row) for row in as_table([HELD, MISSED]).splitlines()[:4]}) == 1


def test_programs_get_the_same_as_json() -> None:
    unmeasured = Line(what="lone", ours=1.0, peer=None, unit="ms", target=Target("times at most", 1.0))
    facts = json.loads(as_json([HELD, MISSED, unmeasured]))
    assert [(each["what"], each["value"], each["held"]) for each in facts] == [
        ("quick", 0.5, True),
        ("slow", 20.0, False),
        ("lone", None, False),
    ]
