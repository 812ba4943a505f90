"""Every public name carries a complete numpydoc docstring."""

import enum
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import skdp

SUMMARY = {"GL08", "SS01", "SS02", "SS03", "SS04"}
SECTIONS = {"GL03", "GL05", "GL06", "GL07", "GL10"}
PARAMETERS = {"PR01", "PR02", "PR03", "PR04", "PR05", "PR07", "PR10"}
RETURNS = {"RT01", "RT03", "YD01"}
EXAMPLES = {"EX01"}
COMPLETE = SUMMARY | SECTIONS | PARAMETERS | RETURNS


def required(obj):
    """Codes that may not occur for `obj`; some kinds have no parameters or example of their own."""
    if inspect.isclass(obj):
        if issubclass(obj, enum.Enum | Exception) or getattr(obj, "_is_protocol", False):
            return SUMMARY | SECTIONS
        return COMPLETE if inspect.isabstract(obj) else COMPLETE | EXAMPLES
    if isinstance(obj, property):
        return SUMMARY | SECTIONS
    # An abstract method is documented in full where it is written.
    return SUMMARY if getattr(obj, "__isabstractmethod__", False) else COMPLETE


def public_objects(module):
    """Dotted names and objects of the public functions, classes and methods of a module."""
    for name, obj in vars(module).items():
        own = getattr(obj, "__module__", None) == module.__name__
        if name.startswith("_") or not own or not (inspect.isclass(obj) or inspect.isroutine(obj)):
            continue
        yield f"{module.__name__}.{name}", obj
        if not inspect.isclass(obj) or getattr(obj, "_is_protocol", False):
            continue
        for attribute in vars(obj):
            method = getattr(obj, attribute)
            # A function that is the value of a field keeps its own name and is not a method.
            written = getattr(method, "__qualname__", "") == f"{obj.__qualname__}.{attribute}"
            if not attribute.startswith("_") and (written or isinstance(method, property)):
                yield f"{module.__name__}.{name}.{attribute}", method


def documented_objects():
    """What the library offers, once each: the names of the package, then of its modules."""
    names = {f"skdp.{name}": getattr(skdp, name) for name in NAMES}
    exported = {id(obj) for obj in names.values()}
    for info in pkgutil.walk_packages(skdp.__path__, "skdp."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        objects = public_objects(importlib.import_module(info.name))
        names |= {name: obj for name, obj in objects if id(obj) not in exported}
    return names


# Modules are looked at name by name.
NAMES = [name for name in skdp.__all__ if not inspect.ismodule(getattr(skdp, name))]
OBJECTS = documented_objects()


def errors(name, codes):
    """Violations of the required `codes` in the docstring of the object called `name`."""
    return [error for error in validate(name)["errors"] if error[0] in codes]


def test_docstrings_are_complete():
    found = {name: errors(name, required(OBJECTS[name])) for name in sorted(OBJECTS)}
    assert {name: each for name, each in found.items() if each} == {}


def test_every_public_name_is_looked_at():
    assert {f"skdp.{name}" for name in NAMES} <= OBJECTS.keys()
    assert "skdp.accounting.guarantee.PrivacyGuarantee.to_dict" in OBJECTS


def undocumented(number):
    return number


def misnamed(number):
    """Return the number.

    Parameters
    ----------
    numbr : int
        A number.

    Returns
    -------
    int
        The same.
    """
    return number


def silent(number):
    """Return the number

    Parameters
    ----------
    number
        A number.
    """
    return number


class WithoutExample:
    """A class that shows no use of itself."""


@pytest.mark.parametrize(
    ("obj", "codes"),
    [
        (undocumented, {"GL08"}),
        (misnamed, {"PR01", "PR02"}),
        (silent, {"SS03", "PR04", "RT01"}),
        (WithoutExample, {"EX01"}),
    ],
)
def test_a_planted_gap_is_found(obj, codes):
    found = errors(f"{__name__}.{obj.__name__}", required(obj))
    assert {code for code, _ in found} == codes
