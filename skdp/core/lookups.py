"""Lookups that may find anything: what they read stands in no text, and so is in no key."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import types
from typing import Any

_ANYTHING = (
    *(eval, exec, globals, __import__, importlib.import_module, importlib.reload),
    *(inspect.currentframe, inspect.stack, sys._getframe, sys.modules),
)
_FINDERS = frozenset(
    {
        *(("gc", "get_objects"), ("gc", "get_referrers"), ("inspect", "get_annotations")),
        *(("inspect", "getdoc"), ("inspect", "getmodule"), ("pkgutil", "resolve_name")),
        *(("pydoc", "locate"), ("runpy", "run_module"), ("runpy", "run_path")),
        *(("typing", "get_type_hints"), ("_frozen_importlib", "module_from_spec")),
    }
)
_ATTRIBUTES = frozenset(
    {"__annotations__", "__code__", "__doc__", "__globals__", "__subclasses__", "f_globals"}
)


def finds_anything(thing: Any) -> bool:
    """Return whether whoever calls a thing reads others that the text does not name."""
    is_function = isinstance(thing, types.FunctionType | types.BuiltinFunctionType)
    if is_function and (thing.__module__, thing.__name__) in _FINDERS:
        return True
    return any(thing is each for each in _ANYTHING)


def has_open_attribute(node: ast.AST) -> bool:
    """Return whether a text reads an attribute through which all of a function or class is seen."""
    nodes = ast.walk(node)
    return any(isinstance(each, ast.Attribute) and each.attr in _ATTRIBUTES for each in nodes)
