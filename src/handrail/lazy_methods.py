"""Compile the methods of dataclasses on their first call, to shorten the start of the daemon.

`dataclasses` compiles six functions for each class that is defined. For the 400 classes of the daemon that is a third of
the time of its imports, and most of those functions are never called. Python 3.13 compiles them in one step; there,
nothing is changed.
"""

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

Method = Callable[..., Any]
LAZY_NAMES = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})
"""Not `__init__`: other packages read its signature."""
_COMPILER = "_create_fn"
"""The function of `dataclasses` that compiles one method."""


@contextmanager
def lazy_dataclass_methods() -> Generator[None]:
    """Compile the methods of classes that are defined in this context when they are called."""
    compile_method: Method | None = vars(dataclasses).get(_COMPILER)
    if compile_method is None:
        yield
        return

    def create(name: str, *arguments: Any, **options: Any) -> Method:
        if name not in LAZY_NAMES:
            return compile_method(name, *arguments, **options)
        return _lazy_method(name, lambda: compile_method(name, *arguments, **options))

    setattr(dataclasses, _COMPILER, create)
    try:
        yield
    finally:
        setattr(dataclasses, _COMPILER, compile_method)


def _lazy_method(name: str, compile_method: Callable[[], Method]) -> Method:
    compiled: Method | None = None

    def method(self: object, *arguments: object) -> Any:
        nonlocal compiled
        if compiled is None:
            compiled = compile_method()
            _replace(type(self), name, method, compiled)
        return compiled(self, *arguments)

    method.__name__ = name
    return method


def _replace(owner: type, name: str, method: Method, compiled: Method) -> None:
    """Replace the method in the class that has it, so that later calls take no detour."""
    for cls in owner.__mro__:
        if vars(cls).get(name) is method:
            compiled.__qualname__ = method.__qualname__
            setattr(cls, name, compiled)
