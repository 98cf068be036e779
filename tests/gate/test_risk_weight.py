"""A call weighs as much as its worst part, and tells the reasons of that weight alone."""

from handrail.gate.risk import assess_call
from handrail.store.values import Claim


def run(*words: str) -> Claim:
    return Claim(action="run", resource=" ".join(words), inside=True, protected=False, words=words)


def test_every_part_is_judged_by_itself_in_the_order_of_the_claims() -> None:
    weight = assess_call([run("ls"), run("make"), run("rm", "-rf", "build"), run("npm", "publish")])
    assert [part.level for part in weight.parts] == ["low", "medium", "high", "high"]
    assert [part.reasons for part in weight.parts[2:]] == [("deletes files",), ("publishes",)]


def test_at_the_top_stand_the_reasons_of_the_highest_level_alone_and_each_once() -> None:
    weight = assess_call([run("ls"), run("make"), run("rm", "a"), run("npm", "publish"), run("rm", "b")])
    assert (weight.level, weight.reasons) == ("high", ("deletes files", "publishes"))
    assert assess_call([run("ls"), run("make")]).reasons == ("runs make",)


def test_what_claims_nothing_weighs_little() -> None:
    assert (assess_call([]).level, assess_call([]).reasons, assess_call([]).parts) == ("low", (), ())
