"""Telling things apart by their content: equal in every process, and different where it matters.

A cache must not take the pairs of one oracle for those of another, nor a release the sensitivity of
one function for that of another. Names do not tell: all lambdas are called alike, and a cell of a
notebook may give an old name to a new function.
"""

from __future__ import annotations

import dis
import functools
import inspect
import secrets
from pickle import PicklingError
from types import CodeType, FunctionType, ModuleType
from typing import Any

import joblib

_Cached = type(functools.cache(len))
_UNNAMEABLE = (PicklingError, TypeError, AttributeError, ValueError)


def fingerprint(*parts: Any) -> str:
    """Name what results depend on.

    Parameters
    ----------
    *parts : object
        Functions count by their code, defaults, enclosed variables and the global variables that
        they use; of those, functions of other modules count by their names. Estimators, and our
        own objects, count by their attributes, other objects by what pickling would store.

    Returns
    -------
    str
        Equal in every process for equal parts.

    Raises
    ------
    TypeError
        If a part cannot be pickled.

    Examples
    --------
    >>> from skdp._fingerprint import fingerprint
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    try:
        return joblib.hash([_content(part, set()) for part in parts])
    except _UNNAMEABLE as error:
        raise TypeError(
            "With the 'memory' parameter of SensitivitySampler, oracle and target must be "
            f"functions or objects that can be pickled. {error}"
        ) from None


def digest(thing: Any) -> str:
    """Abbreviate the fingerprint of a thing, for a description.

    Parameters
    ----------
    thing : object
        As for `fingerprint`.

    Returns
    -------
    str
        Twelve hexadecimal digits. They are drawn anew for what has no fingerprint, which is then
        like nothing else.
    """
    try:
        return fingerprint(thing)[:12]
    except TypeError:
        return secrets.token_hex(6)


def _content(thing: Any, seen: set[int]) -> Any:
    """Replace what pickling would not tell apart by what does; `seen` are functions on the way."""
    if isinstance(thing, functools.partial):
        return "partial", *(
            _content(each, seen) for each in (thing.func, thing.args, thing.keywords)
        )
    if inspect.ismethod(thing):
        return _content(thing.__func__, seen), _content(thing.__self__, seen)
    if inspect.isfunction(thing):
        return thing.__qualname__ if id(thing) in seen else _function(thing, seen)
    if isinstance(thing, _Cached):
        return _content(thing.__wrapped__, seen)
    if isinstance(thing, list | tuple):
        return [_content(part, seen) for part in thing]
    if isinstance(thing, dict):
        return {name: _content(part, seen) for name, part in thing.items()}
    ours = type(thing).__module__.startswith("skdp.") or hasattr(thing, "get_params")
    if ours and hasattr(thing, "__dict__") and not isinstance(thing, type):
        return type(thing).__qualname__, _content(vars(thing), seen)
    # the method itself is wanted, not whether there is one
    call = getattr(type(thing), "__call__", None)  # noqa: B004
    return (thing, _function(call, seen)) if inspect.isfunction(call) else thing


def _function(function: FunctionType, seen: set[int]) -> tuple:
    seen.add(id(function))
    enclosed = [cell.cell_contents for cell in function.__closure__ or ()]
    defaults = (function.__defaults__, function.__kwdefaults__)
    used = {name: _global(function, name, seen) for name in _global_names(function.__code__)}
    code = _code(function.__code__)
    return function.__qualname__, code, _content(enclosed, seen), _content(defaults, seen), used


def _global(function: FunctionType, name: str, seen: set[int]) -> Any:
    """Tell a global variable by its content, or by its name where that is in another module."""
    value = function.__globals__.get(name)
    foreign = callable(value) and getattr(value, "__module__", None) != function.__module__
    if isinstance(value, ModuleType | type) or foreign or id(value) in seen:
        return getattr(value, "__name__", type(value).__qualname__)
    try:
        return joblib.hash(_content(value, seen))
    except _UNNAMEABLE:  # an open file, a client of a cluster
        return type(value).__qualname__


def _global_names(code: CodeType) -> set[str]:
    instructions = dis.get_instructions(code)
    names = {each.argval for each in instructions if each.opname == "LOAD_GLOBAL"}
    return names.union(*(_global_names(each) for each in code.co_consts if inspect.iscode(each)))


def _code(code: CodeType) -> tuple:
    return code.co_code, [_constant(each) for each in code.co_consts], code.co_names


def _constant(constant: Any) -> Any:
    if inspect.iscode(constant):
        return _code(constant)
    # the order in which a set is shown is another one in every process
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)
