"""Imports of modules of other packages without the `__init__.py` of these packages, which import everything that they have.

`import package.module` runs no `__init__.py` of a package that is named here. A name that `__init__.py` only imports from a
module of the package is taken from that module when it is first used. For any other name the whole `__init__.py` runs.
"""

from __future__ import annotations

import ast
import importlib
import logging
import sys
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping, Sequence


class LazyPackages:
    """Packages whose `__init__.py` runs only when it is needed."""

    def __init__(
        self, names: Collection[str], importers: str, versions: Mapping[str, str] | None = None
    ) -> None:
        """`importers` is our package that imports them. `versions` are packages whose `__init__.py` looks up their
        version, and the distributions that have it."""
        self.names = frozenset(names)
        self._importers = importers
        self._versions = versions or {}

    def import_modules(self, *names: str) -> None:
        """Import modules, with versions of the packages that cannot be imported lazily as usual.

        Only one thread at a time may import modules that import these packages.
        """
        before = set(sys.modules)
        try:
            with self._finding():
                for name in names:
                    importlib.import_module(name)
        except Exception:
            logging.getLogger(__name__).info("%s cannot be imported lazily", ", ".join(names), exc_info=True)
            for added in set(sys.modules) - before:
                if added.partition(".")[0] in self.names or added.startswith(f"{self._importers}."):
                    del sys.modules[added]
            for name in names:
                importlib.import_module(name)

    @contextmanager
    def _finding(self) -> Generator[None]:
        finder = _Finder(self.names, self._versions)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, names: Collection[str], versions: Mapping[str, str]) -> None:
        self._names, self._versions = names, versions

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None and spec.origin is not None:
            spec.loader = _PackageLoader(spec.loader, self._versions.get(fullname))
        return spec


class _PackageLoader(Loader):
    """Makes a package without running its `__init__.py`; runs it when the package is reloaded."""

    def __init__(self, loader: Loader, distribution: str | None) -> None:
        self._loader, self._distribution = loader, distribution
        self._is_new = False

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._is_new = True
        module = _LazyPackage(spec.name)
        module.__dict__["_handrail_distribution"] = self._distribution
        return module

    def exec_module(self, module: ModuleType) -> None:
        if self._is_new:
            self._is_new = False
        else:
            self._loader.exec_module(module)


class _LazyPackage(ModuleType):
    """A package whose `__init__.py` has not run."""

    _handrail_distribution: str | None = None
    """Has the version."""
    _handrail_ran = False

    def __getattr__(self, name: str) -> Any:
        if name == "__version__" and self._handrail_distribution is not None:
            self.__version__ = version(self._handrail_distribution)
            return self.__version__
        if name.startswith("__") and name not in {"__all__", "__version__"}:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if (source := self._sources().get(name)) is not None:
            module, attribute = source
            value = getattr(importlib.import_module(module), attribute)
            setattr(self, name, value)
            return value
        submodule = f"{self.__name__}.{name}"
        if find_spec(submodule) is not None:
            return importlib.import_module(submodule)
        if self._handrail_ran:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self._handrail_ran = True
        importlib.reload(self)
        return getattr(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        """The import of a module does not hide the name that `__init__.py` takes from it."""
        if isinstance(value, ModuleType) and self._sources().get(name) == (f"{self.__name__}.{name}", name):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def _sources(self) -> dict[str, tuple[str, str]]:
        """For each name that `__init__.py` only imports from a module of the package: that module, and the name there."""
        if "_handrail_sources" not in self.__dict__:
            assert self.__file__ is not None
            tree = ast.parse(Path(self.__file__).read_bytes())
            bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and _is_bound(node)}
            imports = dict(_relative_imports(tree, self.__name__))
            self._handrail_sources = {
                name: source
                for name, source in imports.items()
                if name not in bound and source[0] != self.__name__
            }
        return self._handrail_sources


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _relative_imports(tree: ast.Module, package: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            module = resolve_name("." * node.level + (node.module or ""), package)
            for each in node.names:
                yield each.asname or each.name, (module, each.name)
