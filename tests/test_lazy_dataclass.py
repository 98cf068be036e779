"""Our `dataclass` makes the same classes as the standard library's, without compiling a method before it is used."""

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from handrail.lazy_dataclass import dataclass

DECORATORS: list[Any] = [dataclasses.dataclass, dataclass]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A frozen class of this module, as pickle needs it."""

    x: int
    y: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    items: tuple[Point, ...] = ()
    names: dict[str, int] = field(default_factory=dict[str, int], repr=False)


def build_plain(decorate: Callable[..., Any]) -> Any:
    @decorate(slots=True)
    class Plain:
        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list[int])
        d: int = field(default=4, init=False)
        e: list[int] = field(default_factory=lambda: [5], init=False)
        f: int = field(default=6, compare=False, kw_only=True)

        def __post_init__(self) -> None:
            self.c.append(self.a)

    return Plain


def build_frozen(decorate: Callable[..., Any]) -> Any:
    @decorate(frozen=True, slots=True)
    class Base:
        a: int

    @decorate(frozen=True, slots=True, kw_only=True)
    class Frozen(Base):
        b: str = "b"
        c: tuple[int, ...] = ()

    return Frozen


def build_own_methods(decorate: Callable[..., Any]) -> Any:
    @decorate(frozen=True)
    class OwnMethods:  # noqa: PLW1641 - the decorator adds the hash
        a: int
        b: int = 0

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and other.a == self.a

        def __repr__(self) -> str:
            return "own"

    return OwnMethods


@pytest.mark.parametrize("build", [build_plain, build_frozen, build_own_methods])
def test_instances_are_made_compared_and_shown_as_with_the_standard_decorator(build: Any) -> None:
    def observe(made: Any) -> object:
        one, same, other = made(1), made(1), made(2, b="x")
        hashes = made.__hash__ is not None
        return (
            [repr(each) for each in (one, other, made(a=3))],
            [one == same, one == other, one != other, one == "text"],
            [getattr(one, each.name) for each in fields(made)],
            asdict(other),
            repr(replace(one, b="y")),
            hashes and hash(one) == hash(same),
            made.__match_args__,
            [each.name for each in fields(made)],
        )

    standard, ours = (observe(build(decorate)) for decorate in DECORATORS)
    assert ours == standard


@pytest.mark.parametrize("build", [build_plain, build_frozen])
@pytest.mark.parametrize("arguments", [{}, {"a": 1, "z": 2}, {"a": 1, "d": 2}])
def test_wrong_arguments_are_refused(build: Any, arguments: dict[str, int]) -> None:
    for decorate in DECORATORS:
        made = build(decorate)
        for _ in range(2):  # the first time, `__init__` is compiled
            with pytest.raises(TypeError):
                made(**arguments)


def test_a_frozen_instance_cannot_be_changed() -> None:
    point: Any = Point(x=1)
    with pytest.raises(FrozenInstanceError):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    with pytest.raises((AttributeError, TypeError)):
        point.z = 3
    assert point == Point(x=1)


def test_instances_can_be_hashed_copied_and_pickled() -> None:
    box = Box((Point(x=1, y=2),), {"a": 1})
    assert {Point(x=1): 1}[Point(x=1)] == 1
    assert Point(x=1) != Point(x=2)
    for twin in (copy.copy(box), copy.deepcopy(box), pickle.loads(pickle.dumps(box))):
        assert twin == box
    with pytest.raises(TypeError):
        hash(box)  # its dict cannot be hashed
    with pytest.raises(TypeError):
        hash(build_plain(dataclass)(1))


def test_patterns_and_pydantic_see_a_dataclass() -> None:
    match Box((Point(x=1),)):
        case Box((Point(x=number),)):
            assert number == 1
        case _:
            pytest.fail("The pattern does not match.")
    adapter = TypeAdapter(Box)
    box = adapter.validate_json('{"items": [{"x": "3"}], "names": {"a": 1}}')
    assert box == Box((Point(x=3),), {"a": 1})
    assert adapter.dump_python(box) == {"items": ({"x": 3, "y": 0},), "names": {"a": 1}}


def test_a_method_is_compiled_when_it_is_used() -> None:
    """What makes a start fast: hundreds of classes are made, and few of them have an instance."""
    made = build_frozen(dataclass)
    before = made.__init__
    made(1)
    assert made.__init__ is not before
    assert made.__init__ is not build_frozen(dataclass).__init__
    before = made.__init__
    made(2)
    assert made.__init__ is before
