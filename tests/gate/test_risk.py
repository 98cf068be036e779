"""How much harm claims could do: the worst one counts, and every reason is told."""

import shlex
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.gate.risk import READERS, Assessment, assess
from handrail.store.values import Action, Claim, Risk

ORDER: tuple[Risk, ...] = ("low", "medium", "high")

claims = st.builds(
    Claim,
    action=st.sampled_from(get_args(Action)),
    resource=st.text(max_size=5),
    inside=st.booleans(),
    protected=st.booleans(),
    words=st.lists(st.sampled_from(["ls", "rm", "git", "push", "-f", "x"]), max_size=3).map(tuple),
    opaque=st.sampled_from(["", "cannot be parsed"]),
)


def claim(action: Action, *, inside: bool = True, protected: bool = False, opaque: str = "") -> Claim:
    return Claim(action=action, resource="/w/a", inside=inside, protected=protected, opaque=opaque)


def runs(line: str, *, inside: bool = True) -> Claim:
    return Claim(action="run", resource=line, inside=inside, words=tuple(shlex.split(line)))


@pytest.mark.parametrize(
    ("claimed", "level", "reason"),
    [
        (claim("read"), "low", "reads in the workspace"),
        (claim("recall"), "low", "reads Handrail's own record"),
        (claim("write"), "medium", "changes a file in the workspace"),
        (claim("run"), "medium", "runs a program"),
        (claim("connect"), "medium", "connects to another machine"),
        (claim("delete"), "high", "deletes a file"),
        (claim("delete", inside=False), "high", "deletes outside the workspace"),
        (claim("delete", protected=True), "high", "deletes a protected place"),
        (claim("write", inside=False), "high", "writes outside the workspace"),
        (claim("run", inside=False), "high", "reaches outside the workspace"),
        (claim("read", inside=False), "high", "reads outside the workspace"),
        (claim("write", protected=True), "high", "writes a protected place"),
        (claim("read", protected=True), "high", "reads a protected place"),
        (claim("run", protected=True), "high", "touches a protected place"),
        (claim("run", opaque="holds a substitution"), "high", "holds a substitution"),
        (
            claim("type"),
            "medium",
            "types into a terminal, where aliases and state may change its meaning",
        ),
        (claim("type", inside=False), "high", "types into a terminal of another workspace"),
        (claim("type", protected=True), "high", "types into your own terminal"),
        (claim("stop"), "low", "ends a terminal that agents of this workspace opened"),
        (claim("stop", inside=False), "high", "ends a terminal of another workspace"),
        (claim("stop", protected=True), "high", "ends your own terminal"),
    ],
)
def test_each_claim_has_a_level_and_a_reason_in_words(claimed: Claim, level: Risk, reason: str) -> None:
    found = assess([claimed])
    assert (found.level, found.reasons) == (level, (reason,))


@pytest.mark.parametrize(
    ("line", "level", "reason"),
    [
        ("ls -ltr src", "low", "only reads in the workspace"),
        ("cat README.md", "low", "only reads in the workspace"),
        ("grep -n 'a.*b' src/main.py", "low", "only reads in the workspace"),
        ("cd src", "low", "only reads in the workspace"),
        ("grep -rn secret .", "medium", "runs grep"),
        ("diff -r a b", "medium", "runs diff"),
        ("wc --files0-from=names", "medium", "runs wc"),
        ("sort -o x y", "medium", "runs sort"),
        ("git status", "medium", "runs git"),
        ("npm test", "medium", "runs npm"),
        ("./ls", "medium", "runs ls"),
        ("rm -rf build", "high", "deletes files"),
        ("/bin/rm x", "high", "deletes files"),
        ("git clean -fd", "high", "deletes files or branches"),
        ("git branch -D old", "high", "deletes files or branches"),
        ("find . -name x -delete", "high", "deletes files"),
        ("truncate -s 0 log", "high", "deletes files"),
        ("dd if=a of=b", "high", "overwrites whole disks"),
        ("sudo ls", "high", "runs as root (sudo)"),
        ("chmod 777 x", "high", "changes who may use a file"),
        ("su -c ls", "high", "runs as another user (su)"),
        ("python3 -c 'print(1)'", "medium", "runs Python code from the command line"),
        ("python3.12 -Ic 'print(1)'", "medium", "runs Python code from the command line"),
        ("node --eval 1", "medium", "runs JavaScript code from the command line"),
        ("python3 main.py -c x", "medium", "runs python3"),
        ("sleep 5", "low", "only reads in the workspace"),
        ("git push", "high", "publishes"),
        ("git -C sub push origin", "high", "publishes"),
        ("npm publish", "high", "publishes"),
        ("twine upload dist/x", "high", "publishes"),
        ("docker push image", "high", "publishes"),
        ("gh release create v1", "high", "publishes"),
        ("git reset --hard HEAD~1", "high", "rewrites git history or discards changes"),
        ("git rebase main", "high", "rewrites git history or discards changes"),
        ("git checkout -- .", "high", "rewrites git history or discards changes"),
        ("pkill node", "high", "stops or schedules programs"),
    ],
)
def test_a_command_is_judged_by_what_it_is_known_to_do(line: str, level: Risk, reason: str) -> None:
    found = assess([runs(line)])
    assert (found.level, found.reasons) == (level, (reason,))


def test_a_command_tells_every_reason_that_makes_it_high() -> None:
    found = assess([runs("git push -f origin main", inside=False)])
    assert found.reasons == (
        "publishes",
        "rewrites git history or discards changes",
        "reaches outside the workspace",
    )


@pytest.mark.parametrize("program", sorted(READERS))
def test_a_reader_that_reaches_outside_is_high(program: str) -> None:
    assert assess([runs(f"{program} x")]).level == "low"
    assert assess([runs(f"{program} x", inside=False)]).level == "high"


@pytest.mark.parametrize(
    "program", ["find", "sed", "awk", "sort", "uniq", "tee", "git", "xargs", "less", "env", "tar"]
)
def test_what_can_write_or_start_programs_by_a_flag_is_no_reader(program: str) -> None:
    assert program not in READERS


def test_the_reasons_are_those_of_the_worst_each_of_them_once() -> None:
    secret = claim("write", protected=True)
    found = assess([claim("read"), claim("write"), secret, claim("read", inside=False), secret])
    assert found.level == "high"
    assert found.reasons == ("writes a protected place", "reads outside the workspace")
    assert assess([claim("read"), claim("write"), claim("write")]).reasons == (
        "changes a file in the workspace",
    )


def test_a_command_that_provably_reads_is_low_and_one_that_only_prints_is_medium_at_most() -> None:
    status = runs("git status")
    assert assess([replace(status, reads=True)]).level == "low"
    assert assess([replace(status, reads=True, inside=False)]).level == "high"
    loop = claim("run", opaque="is a loop")
    assert assess([loop]).level == "high"
    assert assess([replace(loop, calm=True)]) == Assessment(level="medium", reasons=("is a loop",))
    assert assess([replace(loop, calm=True, protected=True)]).level == "high"


def test_nothing_claimed_is_no_risk() -> None:
    assert assess([]).level == "low"


@given(st.lists(claims, max_size=4), claims)
def test_claiming_more_never_lowers_the_risk(few: list[Claim], more: Claim) -> None:
    assert ORDER.index(assess([*few, more]).level) >= ORDER.index(assess(few).level)


@given(claims, st.sampled_from(["ls", "-f", "x", "--hard"]))
def test_another_word_never_lowers_a_high_risk(one: Claim, word: str) -> None:
    more = Claim(
        action=one.action,
        resource=one.resource,
        inside=one.inside,
        protected=one.protected,
        words=(*one.words, word) if one.words else (),
        opaque=one.opaque,
    )
    assert ORDER.index(assess([more]).level) >= ORDER.index(assess([one]).level)


@given(st.permutations([claim("read"), claim("write"), claim("run", inside=False), claim("recall")]))
def test_the_order_of_claims_does_not_matter(shuffled: list[Claim]) -> None:
    assert assess(shuffled).level == "high"
    assert assess(shuffled).reasons[0] == "reaches outside the workspace"
