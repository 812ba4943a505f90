"""Keys of targets, oracles and estimators: what an estimate or a cached chunk belongs to.

Numbers, text, arrays and containers count by their content. A class or function of an installed
package counts by its name and the version of the package, and an object of such a class by all
that pickle stores of it, which for an estimator is its parameters. No source code is read: other
functions and classes count by a key of their user's, in an attribute `__skdp_key__`, or not at all.
"""

from __future__ import annotations

import copyreg
import functools
import hashlib
import json
import os
import secrets
import sys
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from skdp._version import REVISION, __version__
from skdp.core.checks import shown

REMEDY = (
    "Give it a key that you change with its code: FunctionTarget(function, key='mean-v1') to "
    "release a function, or else an attribute __skdp_key__ = 'mean-v1'."
)

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
# Of some modules; the table of all that are installed takes a third of a second.
_DISTRIBUTIONS = {"sklearn": ["scikit-learn"], **{n: [n] for n in ("numpy", "scipy", "pandas")}}
_CHANCE = getattr(np.random.normal, "__self__", None)  # distributions of scipy refer to it
_UNNAMED = "unnamed "


class Keyed:
    """A target, which its user may name by a key."""

    key: str | None = None


def key_of(thing: object, takes_keys: bool = True) -> str:
    """Return the key of a target, or one that equal things have in every process, and no others."""
    content, obstacle = _read(thing, takes_keys)
    return f"{_UNNAMED}{secrets.token_hex(16)}: {obstacle}" if obstacle else content


def obstacle_of(key: str) -> str:
    """Say why a key of `key_of` equals no other; empty where it can."""
    return key.partition(": ")[2] if key.startswith(_UNNAMED) else ""


def content_of(thing: object) -> str:
    """Return the key, or without one a digest that only shows whether the thing was edited."""
    return _read(thing)[0]


def _read(thing: object, takes_keys: bool = True) -> tuple[str, str]:
    if takes_keys and isinstance(thing, Keyed) and thing.key is not None:
        return check_key(thing.key, type(thing).__name__), ""
    reader = _Reader(takes_keys)
    versions = np.__version__, scipy.__version__, sklearn.__version__, __version__, REVISION
    return reader.digest((versions, thing)), reader.obstacle


def check_key(key: object, owner: str) -> str:
    """Return a key that a user gave, or refuse it if it is empty or no string."""
    rule = f"The 'key' of {owner} must be a string that names it, such as 'my-mean-v1'."
    if not isinstance(key, str):
        raise TypeError(f"{rule} Got {shown(key)}.")
    if not key:
        raise ValueError(f"{rule} Got an empty one.")
    return key


@functools.lru_cache(maxsize=4096)
def origin_of(module: str | None) -> str | None:
    """Name what installed a module, with its version but for Python's own; None for a user's."""
    if module not in sys.modules:
        return None
    file, top = getattr(sys.modules[module], "__file__", None), module.partition(".")[0]
    if top == "skdp":
        return top  # its version is in every key
    if top in sys.stdlib_module_names:
        return top if file is None or Path(os.__file__).parent in Path(file).parents else None
    names = _DISTRIBUTIONS.get(top) or metadata.packages_distributions().get(top, [])
    found = [_describe(metadata.distribution(name), str(file)) for name in sorted(set(names))]
    return ", ".join(found) if found and all(found) else None


def _describe(distribution: metadata.Distribution, file: str) -> str:
    """Name a distribution with its version; empty if the file is another's, or one to be edited."""
    origin = distribution.read_text("direct_url.json") or ""  # a version may be reused
    url = urlsplit(json.loads(origin or "{}").get("url", ""))
    is_edited = url.scheme == "file" and Path(url2pathname(url.path)).is_dir()
    site = Path(str(distribution.locate_file(""))).resolve()
    if is_edited or site not in Path(file).resolve().parents:
        return ""
    return f"{distribution.name} {distribution.version} {origin}"


class _Reader:
    """Digests of things by their content; `obstacle` tells of the first that has no name."""

    def __init__(self, takes_keys: bool) -> None:
        self.obstacle, self._takes_keys = "", takes_keys
        self._read: dict[int, tuple[object, str]] = {}  # with the things, or an id is used again

    def digest(self, thing: object) -> str:
        kind = type(thing)
        if kind in _ATOMS:
            return _hash(kind.__name__, repr(thing))
        if id(thing) not in self._read:
            self._read[id(thing)] = thing, ""
            try:
                content = self._content(thing, kind)
            except Exception:  # of its own code
                content = self._refuse(f"an object of type {kind.__name__} cannot be read")
            self._read[id(thing)] = thing, content
        return self._read[id(thing)][1] or self._refuse(f"a {kind.__name__} refers to itself")

    def _refuse(self, obstacle: str) -> str:
        self.obstacle = self.obstacle or obstacle
        return _hash("no name", obstacle)

    def _content(self, thing: Any, kind: type) -> str:
        if kind in (list, tuple):
            return _hash(kind.__name__, *map(self.digest, thing))
        if kind is dict:
            return _hash("dict", *map(self.digest, thing.items()))
        if kind in (set, frozenset):  # their order is another one in every process
            return _hash(kind.__name__, *sorted(map(self.digest, thing)))
        if kind in (np.ndarray, np.memmap):
            return self._of_array(thing)
        if isinstance(getattr(thing, "__qualname__", None), str):
            return self._of_name(thing, getattr(thing, "__module__", None), thing.__qualname__)
        if isinstance(thing, Keyed) and thing.key is not None:
            return self._of_key(thing.key, kind.__name__)
        return _hash("object", self.digest(kind), self._of_object(thing, kind))

    def _of_key(self, key: object, owner: str) -> str:
        if not self._takes_keys:
            return self._refuse(f"{owner} has a key of its user's")
        return _hash("key", check_key(key, owner))

    def _of_array(self, array: NDArray) -> str:
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        rows = np.ascontiguousarray(array.T if by_columns else array).reshape(-1)
        objects = array.dtype.hasobject
        data = self.digest(array.tolist()) if objects else rows.view(np.uint8).data
        return _hash("array", str(array.shape), str(by_columns), self.digest(array.dtype), data)

    def _of_name(self, thing: object, module: str | None, name: str) -> str:
        """Return the digest of a class or function by its name, which must lead to it."""
        own = getattr(thing, "__dict__", {}).get("__skdp_key__")  # none that a class inherits
        if own is not None:
            return self._of_key(own, name)
        found: object = sys.modules.get(module or "")
        for part in name.split("."):
            found = getattr(found, part, None)
        origin = origin_of(module) if found is thing else None
        if origin is None:
            return self._refuse(f"{name} is not found in an installed package")
        return _hash("name", str(module), name, origin)

    def _of_object(self, thing: Any, kind: type) -> str:
        if thing is _CHANCE:
            return _hash("chance")
        if kind.__module__.startswith("skdp.") and getattr(thing, "key_parts", None) is not None:
            replaced = [name for name in vars(thing) if callable(getattr(kind, name, None))]
            if replaced:
                self._refuse(f"{kind.__name__}.{replaced[0]} was replaced in one object")
            return self.digest(thing.key_parts)
        reduce = copyreg.dispatch_table.get(kind)  # what pickle would store
        state: str | tuple = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        if isinstance(state, str):
            return self._of_name(thing, getattr(thing, "__module__", kind.__module__), state)
        return self.digest([list(part) if hasattr(part, "__next__") else part for part in state])


def _hash(*tokens: str | bytes | memoryview) -> str:
    """Return the digest of some strings and buffers, one after the other."""
    found = hashlib.sha256()
    for token in tokens:
        data = token.encode() if isinstance(token, str) else token
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()
