"""Take away what makes a fit show or keep what it has seen: callbacks, caches and printing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from skdp.core.classes import isinstance_by_name

# What makes a fit print, with the value that makes it silent.
VERBOSITY = {"verbose": 0, "verbosity": 0, "disp": 0, "iprint": -1}


def make_quiet(estimator: Any) -> Any:
    """Switch off what shows or keeps something, in a clone and all its members, in place."""
    with warnings.catch_warnings():  # to some, scikit-learn says that they would not be called
        warnings.simplefilter("ignore")
        for member in _members(estimator):
            if hasattr(member, "set_callbacks"):  # since scikit-learn 1.9; clones share them
                member.set_callbacks()
    settings = {}
    for name, value in estimator.get_params(deep=True).items():
        quiet = _quiet(name.rsplit("__", 1)[-1], value)
        if quiet is not value:
            settings[name] = quiet
    return estimator.set_params(**settings)


def _quiet(name: str, value: Any) -> Any:
    """Return the value that a parameter of this name is to have; the same object if it may stay."""
    absent = isinstance(value, str) and value in ("drop", "passthrough")
    if hasattr(value, "fit") or absent:  # a member, which may have any name
        return value
    if name == "memory" or "callback" in name or ("monitor" in name and callable(value)):
        return None
    silent = VERBOSITY.get(name)
    if silent is not None and isinstance(value, Real | np.bool_):
        # the type of a number, which can be made of another one
        return type(value)(silent) if float(value) > silent else value  # type: ignore[call-arg]
    if isinstance(value, dict) and "weight" not in name:  # weights are by class, of any name
        options = {key: _quiet(str(key), option) for key, option in value.items()}
        return value if all(options[key] is value[key] for key in value) else options
    return value


def _members(value: Any) -> Iterator[Any]:
    """Walk the estimators in a parameter, in lists and dicts too; what is frozen is not fitted."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _members(item)
    elif (
        hasattr(value, "get_params")
        and not isinstance(value, type)
        and not isinstance_by_name(value, "sklearn.frozen.FrozenEstimator")
    ):
        yield value
        yield from _members(value.get_params(deep=False))
