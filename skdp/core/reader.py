"""A reader of things, the user's own functions and classes among them, by their content."""

from __future__ import annotations

import abc
import builtins
import copyreg
import dis
import functools
import hashlib
import importlib
import inspect
import sys
import threading
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.installed import is_named, is_own, is_patch, release_of
from skdp.core.lookups import finds_anything, has_open_attribute
from skdp.core.source import (
    chains,
    code_within,
    contents,
    definition,
    global_names,
    imports,
    tell,
)

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
_CONTAINERS = (list, tuple, set, frozenset, dict, types.MappingProxyType)
_SETTINGS = (*_ATOMS, *_CONTAINERS, np.ndarray)
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_DESCRIPTORS = (
    *(types.MemberDescriptorType, types.GetSetDescriptorType),
    *(types.WrapperDescriptorType, types.MethodDescriptorType),
)
# By kind what a thing is called, and the attributes that it is made of.
_PARTS: dict[type, tuple[str, ...]] = {
    types.MethodType: ("method", "__func__", "__self__"),
    type(functools.cache(len)): ("cached", "__wrapped__"),
    property: ("property", "fget", "fset", "fdel"),
    functools.cached_property: ("cached property", "func", "attrname"),
    staticmethod: ("staticmethod", "__func__"),
    classmethod: ("classmethod", "__func__"),
    **dict.fromkeys(_DESCRIPTORS, ("descriptor", "__name__", "__objclass__")),
}
_CHANCE = getattr(np.random.normal, "__self__", None)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What Python keeps in classes and modules beside what stands in their text.
_BOOKKEEPING = _words(
    "__abstractmethods__ __annotate__ __annotate_func__ __annotations__ __annotations_cache__ "
    "__builtins__ __cached__ __classdict__ __conditional_annotations__ __dict__ __doc__ __file__ "
    "__firstlineno__ __loader__ __module__ __name__ __package__ __path__ __slotnames__ __spec__ "
    "__static_attributes__ __weakref__ _abc_impl"
)
# Written by `dataclass`, from fields and options that count themselves.
_BY_DATACLASS = _words(
    "__delattr__ __eq__ __ge__ __gt__ __hash__ __init__ __le__ __lt__ __replace__ __repr__ "
    "__setattr__"
)


class Reader:
    """Reads things, one after the other, into one digest.

    `local` says why the digest is good in this process only, `unknown` why it is worth nothing.
    """

    def __init__(self) -> None:
        self.local = ""
        self.unknown = ""
        self._hash = hashlib.sha256()
        self._numbers: dict[int, int] = {}  # of what is on the way or, kept alive, was read
        self._n_read = 0
        self._kept: list[object] = []

    @classmethod
    def of(cls, parts: Iterable[object]) -> Reader:
        """Read the parts, one after the other."""
        reader = cls()
        try:
            for part in parts:
                reader.read(part)
        except Exception as error:  # of an object's own code, such as its __getattr__
            reader.unknown = f"reading it ended with {type(error).__name__}"
        return reader

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def read(self, thing: Any) -> None:
        """Take in a thing by its content."""
        kind = type(thing)
        if kind in _ATOMS:
            told = hex(thing) if kind is int else repr(thing)
            self._put(kind.__name__, told)
        elif id(thing) in self._numbers:
            self._put("again", str(self._numbers[id(thing)]))
        else:
            self._numbers[id(thing)] = self._n_read
            self._n_read += 1
            if self._read_content(thing, kind):
                self._kept.append(thing)
            else:  # the same again, or a copy, is all one
                del self._numbers[id(thing)]

    def _put(self, *tokens: str | bytes) -> None:
        for token in tokens:
            data = token.encode(errors="surrogatepass") if isinstance(token, str) else token
            self._hash.update(len(data).to_bytes(8, "little") + data)

    def _read_content(self, thing: Any, kind: type) -> bool:
        """Take in a thing; return whether it is one that may refer to itself by its name."""
        if finds_anything(thing):
            self.unknown = "something is looked up by a name that only a run tells, as by eval"
        elif kind in _CONTAINERS:
            self._read_container(thing, kind)
        elif isinstance(thing, np.dtype):
            self._put("dtype", repr(thing))
        elif kind in (np.ndarray, np.memmap):
            self._read_array(thing)
        elif kind is types.FunctionType:
            self._read_function(thing)
            return True
        elif isinstance(thing, type):
            self._read_class(thing)
            return True
        elif isinstance(thing, types.ModuleType):
            self._read_module(thing)
            return True
        elif kind in _LOCKS:
            self._put("lock")
        elif kind is types.CodeType:
            self._read_code(thing)
        elif kind in _PARTS:
            name, *parts = _PARTS[kind]
            self._put(name)
            self._read_each(*(getattr(thing, part) for part in parts))
        elif kind is np.ufunc:
            self._read_ufunc(thing)
        elif not self._read_named(thing, kind):
            return self._read_instance(thing, kind)
        return False

    def _read_each(self, *things: object) -> None:
        self._put(str(len(things)))
        for thing in things:
            self.read(thing)

    def _read_container(self, thing: Any, kind: type) -> None:
        self._put(kind.__name__, str(len(thing)))
        if isinstance(thing, set | frozenset):  # their order is another one in every process
            parts = [Reader.of([each]) for each in thing]
            self._put(*sorted(part.digest for part in parts))
            for part in parts:
                self.local, self.unknown = self.local or part.local, self.unknown or part.unknown
        else:
            for item in thing if isinstance(thing, list | tuple) else thing.items():
                self.read(item)

    def _read_array(self, array: NDArray) -> None:
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        self._put("array", str(array.shape), "F" if by_columns else "C")
        self.read(array.dtype)
        if array.dtype.hasobject:
            self._read_each(*array.flat)
        else:
            rows = np.ascontiguousarray(array.T if by_columns else array)
            self._put(str(rows.nbytes))
            self._hash.update(rows.reshape(-1).view(np.uint8).data)

    def _read_function(self, function: types.FunctionType) -> None:
        home = function.__globals__.get("__name__")
        loaded = sys.modules.get(home) if isinstance(home, str) else None
        own = loaded is None or vars(loaded) is not function.__globals__
        release = None if own else release_of(home)
        code = function.__code__
        if release is not None:
            self._put("installed", release, str(home), function.__qualname__)
            if is_named(function, home, function.__qualname__):
                return
            self._put(str(list(code.co_positions())))
        else:
            self._read_own_code(function)
        enclosed = [
            (name, *contents(cell))
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        ]
        self._read_each(enclosed, function.__defaults__, function.__kwdefaults__)
        self._read_members(vars(function))

    def _read_own_code(self, function: types.FunctionType) -> None:
        """Take in the text of a function, and the global variables that it reads."""
        self._put("function")
        node = definition(function)
        paths: dict[str, set[tuple[str, ...]]] = {}
        if node is None:
            self._read_code(function.__code__)
        else:
            self._put(tell(node))
            paths = chains(node)
            if has_open_attribute(node):
                self.unknown = f"{function.__name__} looks up what is in other functions or classes"
            self._read_imports(imports(node, function.__globals__.get("__package__")), paths)
        for name in sorted(global_names(function.__code__)):
            if name in function.__globals__:
                self._put("global", name)
                self._read_used(function.__globals__[name], paths.get(name, {()}))
            elif hasattr(builtins, name):
                value = getattr(builtins, name)  # some tools put names of their own there
                if finds_anything(value) or is_own(value) or isinstance(value, _SETTINGS):
                    self.read(value)
            else:
                self._put("missing", name)

    def _read_code(self, code: types.CodeType) -> None:
        """Take in code that has no text: its bytecode tells it apart in this process."""
        self.local = f"the text of {code.co_name} cannot be found, or was changed since it ran"
        for each in code_within(code):
            if any(step.opname == "IMPORT_NAME" for step in dis.get_instructions(each)):
                self.unknown = f"the text of {code.co_name}, which imports a module, is not found"
            constants = [part for part in each.co_consts if not isinstance(part, types.CodeType)]
            counts = each.co_argcount, each.co_posonlyargcount, each.co_kwonlyargcount
            names = each.co_names, each.co_varnames, each.co_freevars, each.co_cellvars
            self._put("code", each.co_name, each.co_code, each.co_exceptiontable)
            self._read_each(constants, counts, each.co_flags, *names)

    def _read_imports(
        self, imported: Iterable[tuple[str, str, str]], paths: dict[str, set[tuple[str, ...]]]
    ) -> None:
        """Take in what a function imports as it runs."""
        for name, module, attribute in imported:
            self._put("import", name, module, attribute)
            try:
                found: Any = importlib.import_module(module)
                if attribute and not hasattr(found, attribute):
                    found = importlib.import_module(f"{module}.{attribute}")
                elif attribute:
                    found = getattr(found, attribute)
            except ImportError:
                self._put("missing")
                continue
            except Exception as error:
                self.unknown = f"the import of {module} fails with {type(error).__name__}"
                continue
            self._read_used(found, paths.get(name, {()}))

    def _read_used(self, value: object, paths: set[tuple[str, ...]]) -> None:
        """Take in a thing by what is read of it: of a module and a class, attributes may do."""
        partly = isinstance(value, type | types.ModuleType) and () not in paths
        for path in sorted(paths) if partly else []:
            self._put(*path)
            self._read_attribute(value, path)
        if not partly:
            self.read(value)

    def _read_attribute(self, owner: Any, path: tuple[str, ...]) -> None:
        first, rest = path[0], path[1:]
        is_module = isinstance(owner, types.ModuleType)
        release = release_of(owner.__name__ if is_module else owner.__module__)
        if is_module:
            try:
                value = getattr(owner, first)
            except AttributeError:
                self._put("missing")
                return
            if release is None and "__getattr__" in vars(owner):
                self.read(owner)
            by_content = isinstance(value, (type, *_SETTINGS)) or is_own(value)
            if release is not None and not (by_content or finds_anything(value)):
                self._put("installed", release, owner.__name__, first)
                if not (rest and isinstance(value, types.ModuleType)):
                    return
        else:
            members = [vars(base) for base in owner.__mro__ if first in vars(base)]
            if release is not None or not members or type(owner) not in (type, abc.ABCMeta):
                self.read(owner)
                return
            value = members[0][first]
            if isinstance(value, staticmethod):
                value = value.__func__
            elif hasattr(type(value), "__get__"):  # it may read any other attribute
                self.read(owner)
                return
        self._read_used(value, {rest})

    def _read_class(self, cls: type) -> None:
        release = release_of(cls.__module__)
        if release is not None and is_named(cls, cls.__module__, cls.__qualname__):
            self._put("installed", release, cls.__module__, cls.__qualname__)
            members = [item for base in cls.__mro__[-2::-1] for item in vars(base).items()]
            self._read_members({name: each for name, each in members if is_patch(name, each)})
            return
        self._put("class", cls.__name__)
        self._read_each(type(cls), *cls.__mro__[1:])
        self._read_members(
            {name: member for name, member in vars(cls).items() if not _is_made_up(cls, name)}
        )

    def _read_module(self, module: types.ModuleType) -> None:
        release = release_of(module.__name__)
        self._put("module" if release is None else f"installed {release}", module.__name__)
        if release is None:
            self._read_members(vars(module))

    def _read_members(self, members: Mapping[str, Any]) -> None:
        names = sorted(name for name in members if name not in _BOOKKEEPING)
        self._put(str(len(names)))
        for name in names:
            self._put(name)
            self.read(members[name])

    def _read_ufunc(self, function: np.ufunc) -> None:
        for home in ("numpy", "scipy.special"):
            if is_named(function, home, function.__name__):
                self._put("installed", str(release_of(home)), home, function.__name__)
                return
        self.unknown = "a ufunc does not show its function"

    def _read_named(self, thing: Any, kind: type) -> bool:
        """Take in a callable of compiled code, if it is one that has its name in a module."""
        bound = thing.__self__ if kind is types.BuiltinMethodType else None
        if bound is not None and not isinstance(bound, types.ModuleType):
            self._put("method", thing.__name__)
            self.read(bound)
            return True
        home, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
        if name is None or not callable(thing) or not is_named(thing, home, name):
            return False
        release = release_of(home)
        if release is None or release_of(kind.__module__) is None:
            if kind is not types.BuiltinFunctionType:
                return False
            self.local = f"{name} is compiled, and not of an installed package"
        self._put("compiled", str(release), str(home), name)
        return True

    def _read_instance(self, thing: Any, kind: type) -> bool:
        own, is_ours = release_of(kind.__module__) is None, kind.__module__.startswith("skdp.")
        self._put("instance")
        self.read(kind)
        if thing is _CHANCE:  # numpy's own, whose state is chance
            self._put("global")
        elif not own and is_ours and getattr(thing, "key_parts", None) is not None:
            self.read(thing.key_parts)
            items = vars(thing).items()
            replaced = {name: each for name, each in items if callable(getattr(kind, name, None))}
            if replaced:  # methods, in this object only
                self._read_members(replaced)
        elif kind is np.vectorize:  # the rest is a cache
            self._read_members(
                {name: each for name, each in vars(thing).items() if name != "_ufunc"}
            )
        else:
            self._read_state(thing, kind, own)
        return own

    def _read_state(self, thing: object, kind: type, own: bool) -> None:
        """Take in what pickling would store, and of the user's objects all attributes."""
        if own and not _is_plain(kind):
            self.read(object.__getstate__(thing))
        try:
            reduce = copyreg.dispatch_table.get(kind)
            state = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
        except Exception:
            self.unknown = f"what is in an object of type {kind.__name__} cannot be read"
            return
        if isinstance(state, tuple):
            make, given, *rest = state
            self._read_each(make, given, *(list(p) if hasattr(p, "__next__") else p for p in rest))
        else:
            self.read(state)


def _is_made_up(cls: type, name: str) -> bool:
    """Return whether `dataclass` or `namedtuple` wrote a method, from what counts itself."""
    function: Any = inspect.unwrap(vars(cls)[name]) if callable(vars(cls)[name]) else None
    if not isinstance(function, types.FunctionType) or function.__code__.co_filename != "<string>":
        return False
    if "__dataclass_params__" in vars(cls):
        return name in _BY_DATACLASS
    return name == "__new__" and "_fields" in vars(cls) and tuple in cls.__bases__


def _is_plain(kind: type) -> bool:
    """Return whether pickling would store all attributes."""
    return all(
        getattr(kind, name) is getattr(object, name)
        for name in ("__reduce__", "__reduce_ex__", "__getstate__")
    )
