"""Dataclasses whose methods are compiled late behave like all others."""

import dataclasses
import sys
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from handrail.lazy_methods import LAZY_NAMES, lazy_dataclass_methods

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="Python compiles the methods of a class in one step"
)


def define_classes() -> tuple[type[Any], type[Any]]:
    @dataclass(frozen=True, slots=True)
    class Point:
        """A frozen class."""

        x: int
        y: int = 0
        note: str = field(default="", compare=False, repr=False)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Place(Point):
        """A class that inherits all of them, and has its own."""

        name: str = ""

    return Point, Place


def behavior(point: Any, other: Any, same: Any) -> list[object]:
    """What the methods of equal and unequal objects return."""
    name = type(point).__name__
    return [
        (point == same, point == other, point != other, point == "a point"),
        (hash(point) == hash(same), {point: 1}.get(same), {point: 1}.get(other)),
        repr(point).rpartition(name)[2],
        replace(point, x=7) == replace(same, x=7),
        [each.name for each in fields(point)],
    ]


def describe(point: type[Any], place: type[Any]) -> list[object]:
    return [
        behavior(point(1, note="a"), point(2), point(1, note="b")),
        behavior(place(1, name="a"), place(1, name="b"), place(1, name="a")),
        point(1) == place(1),
    ]


def test_equality_hash_and_repr_are_those_of_other_dataclasses() -> None:
    with lazy_dataclass_methods():
        lazy = define_classes()

    assert describe(*lazy) == describe(*define_classes())
    assert describe(*lazy) == describe(*define_classes())  # once more, with the methods compiled


def test_a_frozen_object_stays_frozen() -> None:
    with lazy_dataclass_methods():
        point, place = define_classes()
    for frozen in (point(1), place(1)):
        for _ in range(2):
            with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
                frozen.x = 2
            with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
                del frozen.x
        assert frozen.x == 1


def test_methods_are_compiled_with_their_first_call_and_then_called_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    compile_method = vars(dataclasses)["_create_fn"]

    def note_compiled(name: str, *arguments: Any, **options: Any) -> Any:
        compiled.append(name)
        return compile_method(name, *arguments, **options)

    monkeypatch.setattr(dataclasses, "_create_fn", note_compiled)
    with lazy_dataclass_methods():
        point, _ = define_classes()
    assert set(compiled) == {"__init__"}
    lazy = point.__eq__

    assert point(1) == point(1)
    assert compiled.count("__eq__") == 1
    assert point.__eq__ is not lazy
    assert point(1) != point(2)
    assert compiled.count("__eq__") == 1
    assert LAZY_NAMES.isdisjoint(set(compiled) - {"__eq__"})


def test_classes_that_are_defined_afterwards_are_not_touched() -> None:
    compile_method = vars(dataclasses)["_create_fn"]
    with lazy_dataclass_methods():
        assert vars(dataclasses)["_create_fn"] is not compile_method
    assert vars(dataclasses)["_create_fn"] is compile_method
