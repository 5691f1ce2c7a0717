"""Load a class from a file or module without touching what is imported already.

A file's package may have the name of a package that this program runs on. Its modules therefore
live in a private table: while they are imported, and whenever code of theirs imports something
later, the table is put in the place of the like-named modules and taken out again.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from verify.contract.errors import RAISED, ContractInputError
from verify.contract.implementation import Implementation, describe

_NAMED: Final = 8
"""Classes that an error names."""


def load(name: str, extra: Mapping[str, Any] | None = None) -> Implementation:
    """Load an implementation named ``FILE.py:Class`` or ``package.module:Class``.

    Parameters
    ----------
    name
        Where the class is; a file is imported in isolation, a module by its usual name unless
        the current folder has a file for it.
    extra
        Constructor arguments beyond those of PROTOCOL.md section 2.

    Raises
    ------
    ContractInputError
        If there is no such file, module or class, or it cannot be imported or constructed.
    """
    if not isinstance(name, str):
        raise ContractInputError(f"an implementation is named FILE.py:Class, not by {name!r}")
    where, colon, class_name = name.rpartition(":")
    if not colon or not where or not class_name:
        raise ContractInputError(
            f"{name!r} names no class; write FILE.py:Class or package.module:Class"
        )
    path = _file_of(where)
    if path is not None:
        module, notes = IsolatedPackage(path).load()
    else:
        module, notes = _import_by_name(where), ()
    cls = getattr(module, class_name, None)
    if not isinstance(cls, type):
        instead = "" if cls is None else f" (but a {type(cls).__name__} of this name)"
        raise ContractInputError(
            f"{where} has no class {class_name!r}{instead}; its classes: {_classes_of(module)}"
        )
    return describe(name, cls, module, extra, notes)


def _classes_of(module: ModuleType) -> str:
    """Name the first classes that a module defines itself."""
    own = [
        key
        for key, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    named = ", ".join(own[:_NAMED]) or "none"
    return named if len(own) <= _NAMED else f"{named} and {len(own) - _NAMED} more"


def _file_of(where: str) -> Path | None:
    """File that is meant, None for a module to import by name."""
    if where.endswith(".py") or "/" in where or "\\" in where:
        path = Path(where)
        if not path.is_file():
            raise ContractInputError(f"there is no file {where}; write FILE.py:Class")
        return path.resolve()
    local = Path(*where.split("."))
    for path in (local.with_suffix(".py"), local / "__init__.py"):
        if path.is_file():
            return path.resolve()
    return None


def _import_by_name(where: str) -> ModuleType:
    try:
        return importlib.import_module(where)
    except RAISED as error:
        raise ContractInputError(
            f"cannot import {where}: {type(error).__name__}: {error}; write FILE.py:Class or a "
            f"module that Python finds"
        ) from error


class IsolatedPackage:
    """The package around one file, imported under its own names in a private module table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root, self.module_name = _root_of(path)
        self._private: dict[str, ModuleType] = {}
        self._tops = _names_in(self.root)
        self._builtins = {**vars(builtins), "__import__": self._import, "print": print_aside}
        self._bare_parents = False

    def load(self) -> tuple[ModuleType, tuple[str, ...]]:
        """Import the file's module; return it with notes on what had to be done.

        Raises
        ------
        ContractInputError
            If it cannot be imported.
        """
        try:
            return self._load(), ()
        except ModuleNotFoundError as error:
            if "." not in self.module_name:
                raise self._cannot(error) from error
            reason = str(error)
        except RAISED as error:
            raise self._cannot(error) from error
        self._private.clear()
        self._bare_parents = True
        try:
            module = self._load()
        except RAISED as error:
            raise self._cannot(error) from error
        return module, (f"loaded without running its packages' __init__.py ({reason})",)

    def _cannot(self, error: BaseException) -> ContractInputError:
        return ContractInputError(
            f"cannot import {self.path} as {self.module_name}: {type(error).__name__}: {error}; "
            f"put the file beside the modules that it imports"
        )

    def _load(self) -> ModuleType:
        with self.swapped():
            return importlib.import_module(self.module_name)

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Import on behalf of the package's code, now or later."""
        with self.swapped():
            return importlib.__import__(name, globals, locals, fromlist or (), level)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """Put the private modules in the place of like-named ones for a while."""
        if self._inside():
            yield
            return
        hidden = self._take_out()
        sys.modules.update(self._private)
        finder = _Finder(self.root, self._tops, self._builtins, self._bare(self.module_name))
        sys.path.insert(0, str(self.root))
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            sys.path.remove(str(self.root))
            self._private = self._take_out()
            sys.modules.update(hidden)

    def _bare(self, module_name: str) -> frozenset[str]:
        parts = module_name.split(".")
        names = [".".join(parts[:count]) for count in range(1, len(parts))]
        return frozenset(names if self._bare_parents else ())

    def _inside(self) -> bool:
        return any(isinstance(f, _Finder) and f.root == self.root for f in sys.meta_path)

    def _take_out(self) -> dict[str, ModuleType]:
        names = [name for name in sys.modules if name.split(".")[0] in self._tops]
        return {name: sys.modules.pop(name) for name in names}


def print_aside(*values: object, **given: Any) -> None:
    """Print to standard error, so that standard output holds results only."""
    print(*values, **{"file": sys.stderr, **given})


class _Finder(MetaPathFinder):
    """Finds the package's modules and gives them the package's own import."""

    def __init__(
        self,
        root: Path,
        tops: frozenset[str],
        its_builtins: dict[str, Any],
        bare: frozenset[str],
    ) -> None:
        self.root = root
        self._tops = tops
        self._builtins = its_builtins
        self._bare = bare

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Find a module below the root, and wrap its loader."""
        if fullname.split(".")[0] not in self._tops:
            return None
        if fullname in self._bare:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(self.root.joinpath(*fullname.split(".")))]
            return spec
        found = PathFinder.find_spec(fullname, path or [str(self.root)], target)
        if found is not None and found.loader is not None:
            found.loader = _OwnImport(found.loader, self._builtins)
        return found


class _OwnImport(Loader):
    """A loader whose modules import through their package's table for as long as they live."""

    def __init__(self, inner: Loader, its_builtins: dict[str, Any]) -> None:
        self._inner = inner
        self._builtins = its_builtins

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins
        self._inner.exec_module(module)


def _root_of(path: Path) -> tuple[Path, str]:
    """Folder that the file's imports start from, and the file's module name there.

    The root is above the outermost folder with an ``__init__.py``, and above any folder that the
    file imports from by name.
    """
    folder = path.parent
    root = folder
    while (root / "__init__.py").is_file() and root.parent != root:
        root = root.parent
    named = _imported_tops(path)
    for above in [folder, *folder.parents]:
        if above.name in named and (above == root or above in root.parents):
            root = above.parent
            break
    parts = path.relative_to(root).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return root, ".".join(parts)


def _imported_tops(path: Path) -> set[str]:
    """First names of what a file imports absolutely."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise ContractInputError(f"cannot read {path}: {error}; expected a Python file") from None
    tops = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            tops |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            tops.add(node.module.split(".")[0])
    return tops


def _names_in(root: Path) -> frozenset[str]:
    """Top-level module names below a root that must be kept apart.

    The standard library's names are never shadowed, and what this program has imported from this
    very root is the same code already.
    """
    names = {path.stem for path in root.glob("*.py")}
    names |= {path.parent.name for path in root.glob("*/__init__.py")}
    names |= {path.parent.name for path in root.glob("*/*.py")}
    names -= set(sys.stdlib_module_names)
    return frozenset(name for name in names if not _imported_from(name, root))


def _imported_from(name: str, root: Path) -> bool:
    module = sys.modules.get(name)
    places = [*getattr(module, "__path__", []), getattr(module, "__file__", None) or ""]
    return any(place and Path(place).resolve().is_relative_to(root) for place in places)
