"""`dataclass`, as in the standard library, but `__init__` is compiled when the first instance is made.

The standard decorator compiles up to seven methods of each class while its module is imported: 0.6 ms per class, which was
a third of the daemon's start. Here the other methods are shared functions. `fields`, `replace`, `asdict`, `match` and pydantic
see an ordinary dataclass, because the standard decorator still collects the fields and makes the slots.
"""

import dataclasses
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

_Class = TypeVar("_Class", bound=type)


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False, eq: bool = True
) -> Callable[[_Class], _Class]:
    """Make a dataclass. It knows no `InitVar`, and no `hash` of single fields."""

    standard: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)

    def decorate(cls: _Class) -> _Class:
        cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard decorator builds one from a signature
        made: Any = standard(cls)
        own = cast("Mapping[str, Any]", vars(made))
        methods: dict[str, Any] = {"__init__": _build_first_init(made, frozen), "__repr__": _repr}
        if eq:
            methods |= _build_comparison(made, hashable=frozen)
        if frozen:
            methods |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
        if frozen and slots:
            methods |= {"__getstate__": _get_state, "__setstate__": _set_state}
        for name, method in methods.items():
            if own.get(name) is None:  # a class with its own `__eq__` has None as its `__hash__`
                setattr(made, name, method)
        return made

    return decorate


def _build_first_init(cls: Any, frozen: bool) -> Callable[..., None]:
    def compile_first(self: Any, *args: Any, **named: Any) -> None:
        cls.__init__ = _compile_init(cls, frozen)
        cls.__init__(self, *args, **named)

    return compile_first


def _compile_init(cls: Any, frozen: bool) -> Callable[..., None]:
    """The method that the standard decorator would have made."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    parameters, named, body = ["self"], ["*"], list[str]()
    for each in fields(cls):
        default = each.default if each.default_factory is MISSING else each.default_factory
        known[f"_default_{each.name}"] = default
        if each.init:
            (named if each.kw_only else parameters).append(_parameter(each))
        if each.init or default is not MISSING:
            assign = f"_set(self, {each.name!r}, {{}})" if frozen else f"self.{each.name} = {{}}"
            body.append(assign.format(_value(each)))
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    signature = ", ".join(parameters + (named if len(named) > 1 else []))
    exec("\n ".join((f"def __init__({signature}):", *body, "pass")), known)  # of names only
    init = known["__init__"]
    init.__qualname__, init.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return init


def _parameter(each: "Field[Any]") -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=_missing"
    return each.name if each.default is MISSING else f"{each.name}=_default_{each.name}"


def _value(each: "Field[Any]") -> str:
    """The expression for a field's first value."""
    default = f"_default_{each.name}"
    if each.default_factory is not MISSING:
        return f"{default}() if {each.name} is _missing else {each.name}" if each.init else f"{default}()"
    return each.name if each.init else default


def _build_comparison(cls: Any, *, hashable: bool) -> dict[str, Any]:
    names = [each.name for each in fields(cls) if each.compare]
    values: Any = attrgetter(*names) if names else type

    def is_equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def compute_hash(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": is_equal, "__hash__": compute_hash if hashable else None}


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_assignment(_self: object, name: str, _value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
