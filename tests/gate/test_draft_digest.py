"""The digest of a question: equal exactly when the same thing would be done."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.policy_values import claim

from handrail.gate.draft import canonical_json, digest
from handrail.gate.tool import Plan
from handrail.store.values import Json

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)
objects = st.dictionaries(st.text(max_size=2), values, max_size=3)
names = st.text(max_size=3)


def of(tool: str, input: Json, bound: Json, version: str) -> str:
    return digest(tool, input, Plan(claims=(claim("write"),), bound=bound), version)


@given(names, objects, objects, names, names, objects, objects, names)
def test_any_change_of_tool_input_binding_or_policy_changes_it(
    tool: str, input: Json, bound: Json, version: str, tool2: str, input2: Json, bound2: Json, version2: str
) -> None:
    before = of(tool, input, bound, version)
    for changed, same in (
        (of(tool2, input, bound, version), tool2 == tool),
        (of(tool, input2, bound, version), canonical_json(input2) == canonical_json(input)),
        (of(tool, input, bound2, version), canonical_json(bound2) == canonical_json(bound)),
        (of(tool, input, bound, version2), version2 == version),
    ):
        assert (changed == before) == same


@given(objects, objects)
def test_input_and_binding_cannot_be_exchanged(one: Json, other: Json) -> None:
    assume(canonical_json(one) != canonical_json(other))
    assert of("t", one, other, "1") != of("t", other, one, "1")


@given(objects)
def test_the_order_of_keys_does_not_matter(input: Json) -> None:
    backwards = dict(reversed(list(input.items())))
    assert of("t", input, {}, "1") == of("t", backwards, {}, "1")


def test_values_that_only_look_alike_differ() -> None:
    alike: list[Json] = [
        {"a": 1},
        {"a": 1.0},
        {"a": True},
        {"a": "1"},
        {"a": [1]},
        {"a": None},
        {},
        {"a": "\ud800"},
        {"a": "?"},
    ]
    assert len({of("t", one, {}, "1") for one in alike}) == len(alike)


def test_it_is_a_sha_256_in_hexadecimal() -> None:
    found = of("t", {}, {}, "1")
    assert len(found) == 64
    assert set(found) <= set("0123456789abcdef")


def test_what_it_would_touch_is_part_of_it() -> None:
    """A file that was inside and is a link outward by now: the same words, another deed."""
    claims = (
        claim("read"),
        claim("write"),
        replace(claim("read"), inside=False),
        replace(claim("read"), protected=True),
        replace(claim("read"), opaque="not understood"),
        replace(claim("read"), words=("cat", "x")),
    )
    found = {digest("t", {}, Plan(claims=(each,), bound={}), "1") for each in claims}
    assert len(found) == len(claims)
