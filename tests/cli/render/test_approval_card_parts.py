"""What a call would touch, part by part."""

from typing import Any

import pytest

from handrail.cli.render.approval_card import part_lines
from handrail.cli.render.output import say

WHY = "No rule allows it, so you are asked."


def claim(resource: str, **more: Any) -> dict[str, Any]:
    plain = {"action": "run", "inside": True, "protected": False, "opaque": ""}
    return {"resource": resource, **plain, **more}


def verdict(place: int, effect: str, rule: str, why: str = WHY) -> dict[str, Any]:
    return {"claim": place, "effect": effect, "rule": rule, "why": why}


def shown(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    approval: Any = {"why": WHY, **asked}
    for line in part_lines(approval):
        say(*line)
    return capsys.readouterr().out


def test_each_part_says_what_was_decided_about_it_and_by_what(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(
        {
            "claims": [claim("git status"), claim("npm publish"), claim("rm -rf /x", inside=False)],
            "verdicts": [
                verdict(0, "allow", "r1f"),
                verdict(1, "ask", "default policy"),
                verdict(2, "ask", "r2", "Rule r2 asks about `rm …` everywhere."),
            ],
        },
        capsys,
    )
    assert out.splitlines() == [
        "  1  git status  ✓ allow by r1f",
        "  2  npm publish  ● ask",
        "  3  rm -rf /x  ● ask: Rule r2 asks about `rm …` everywhere.  · outside the workspace",
    ]


def test_other_actions_say_what_they_do_and_what_stands_out_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    claims = [
        claim("curl $X", opaque="holds an expansion"),
        claim("example.org", action="connect", inside=False),
        claim("/home/me/.ssh/id", action="read", inside=False, protected=True),
    ]
    out = shown({"claims": claims, "verdicts": []}, capsys)
    assert out.splitlines() == [
        "  1  runs curl $X  · not fully understood: holds an expansion",
        "  2  connects to example.org",
        "  3  reads /home/me/.ssh/id  · protected  · outside the workspace",
    ]


def test_a_part_begins_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    sly = claim("a\n  2  ls  ✓ allow by r1", opaque="holds\n\x1b[2J")
    out = shown({"claims": [sly], "verdicts": [verdict(0, "ask", "x", "why\nnot")]}, capsys)
    assert len(out.splitlines()) == 1
    assert "\x1b" not in out


def test_one_plain_part_is_the_question_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown({"claims": [claim("ls")], "verdicts": [verdict(0, "ask", "x")]}, capsys) == ""
