"""Installed packages are known by name and version; all other code is the user's, and is read."""

from __future__ import annotations

import functools
import json
import sys
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from skdp._version import REVISION, __version__

_SITES = frozenset({"site-packages", "dist-packages"})
_PACKAGES = {"sklearn": "scikit-learn"}
"""Of modules that are not called like their package; a table of all takes a third of a second."""


def release_of(module: str | None) -> str | None:
    """Name the package that a module is from, with its version; None for a module of the user's.

    The standard library has its name alone, so that versions of Python agree.
    """
    return None if module is None or module not in sys.modules else _release_of(module)


def is_named(thing: object, module: str | None, name: str | None) -> bool:
    """Return whether a thing is what has this name in its module."""
    found: Any = sys.modules.get(module or "")
    for part in (name or "<none>").split("."):
        found = getattr(found, part, None)
    return found is thing


@functools.lru_cache(maxsize=4096)
def _release_of(module: str) -> str | None:
    top = module.partition(".")[0]
    if top == "skdp":
        return f"skdp {__version__}, revision {REVISION}"
    if top.startswith("_cython_"):  # the home of the types of its functions
        return "cython"
    file = getattr(sys.modules[module], "__file__", None)
    if file is not None and not _SITES.isdisjoint(Path(file).parts):
        return _versions_of(top)
    home = Path(functools.__file__).parent
    is_standard = file is None or home in Path(file).parents
    return top if top in sys.stdlib_module_names and is_standard else None


def _is_from_folder(package: metadata.Distribution) -> bool:
    """Return whether a package was installed from a folder that is still here, to be edited."""
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    return "dir_info" in origin and Path(url2pathname(urlsplit(origin["url"]).path)).is_dir()


@functools.cache
def _versions_of(top: str) -> str | None:
    """Name the packages that installed a module; what was installed from a folder is the user's."""
    try:
        packages = [metadata.distribution(_PACKAGES.get(top, top))]
    except metadata.PackageNotFoundError:
        names = set(metadata.packages_distributions().get(top, []))
        packages = [metadata.distribution(name) for name in sorted(names)]
    if not packages or any(map(_is_from_folder, packages)):
        return None
    return ", ".join(f"{each.name} {each.version}" for each in packages)


def is_own(value: object) -> bool:
    """Return whether a thing is the user's, though it may be found elsewhere."""
    if isinstance(value, type):
        return release_of(value.__module__) is None
    if isinstance(value, FunctionType):
        home = value.__globals__.get("__name__")
        return home in sys.modules and release_of(home) is None
    return release_of(type(value).__module__) is None


def is_patch(name: str, value: object) -> bool:
    """Return whether a member of an installed class may be the user's own, or is a number."""
    plain = isinstance(value, int | float | complex | np.ndarray) and not name.startswith("__")
    return plain or is_own(value)
