"""Importing what a user names: `module:name` or `path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ragauge.targets.shared.address import refused


def object_at(address: str, scheme: str, what: str = "object") -> Any:
    """The object that an address means; `what` is how messages call it."""
    place, colon, name = address.rpartition(":")
    if not colon or not place or not name:
        word = what.upper()
        form = f"write {scheme}:MODULE:{word} or {scheme}:path/to/file.py:{word}"
        raise refused(f"`{scheme}:{address}` names no {what}", form)
    module = _module(place)
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            raise refused(f"there is no `{name}` in `{place}`", _hint(module, what))
    return value


def _hint(module: ModuleType, what: str) -> str:
    """What to do where a module lacks a name: it may be another module than the user meant."""
    file = getattr(module, "__file__", None)
    if file is None or Path(file).is_relative_to(Path.cwd()):
        return f"check the name of the {what}"
    return f"check the name of the {what}; the module is {file}, write ./FILE.py for one of yours"


def object_or_made(
    address: str, scheme: str, accepts: Callable[[Any], bool], what: str, methods: str
) -> Any:
    """The object that an address means, or what it makes where it is a class or a factory.

    It must be `what` messages call it, with one of some `methods`.
    """
    value = object_at(address, scheme)
    try:
        if isinstance(value, type) or (callable(value) and not accepts(value)):
            value = value()
    except (Exception, SystemExit) as error:
        raise refused(
            f"`{address}` cannot be made: {type(error).__name__}: {error}",
            "name an object, or a function that makes one without arguments",
        ) from error
    if not accepts(value):
        raise refused(
            f"`{address}` is no {what} but {type(value).__name__}",
            f"name an object with {methods}, or a function that makes one",
        )
    return value


def _module(place: str) -> ModuleType:
    """Import a module by its name or its file; what stands beside it can be imported too.

    Its folder comes last on the path: what Python, ragauge and its libraries import by the same
    name is theirs.
    """
    is_file = place.endswith(".py") or os.sep in place
    path = Path(place)
    if is_file and not path.is_file():
        raise refused(f"there is no file `{place}`", "check the path")
    folder = str(path.resolve().parent if is_file else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        if not is_file:
            return importlib.import_module(place)
        spec = importlib.util.spec_from_file_location(_free_name(path), path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # so that what it defines can be pickled and found again
        spec.loader.exec_module(module)
        return module
    except (Exception, SystemExit) as error:
        raise refused(
            f"`{place}` cannot be imported: {type(error).__name__}: {error}",
            "import it with python first; the current folder is on the path",
        ) from error


def _free_name(path: Path) -> str:
    """The name of a file's module; another one where a module of that name is somebody else's."""
    name = path.stem
    loaded = sys.modules.get(name)
    own = loaded is not None and getattr(loaded, "__file__", None) == str(path)
    if name in sys.stdlib_module_names or (loaded is not None and not own):
        return f"ragauge_target_{name}"
    return name
