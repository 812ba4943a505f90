"""Set up an estimator so that its fits can be compared: silent, without caches, repeatable."""

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone

from skdp.core.checks import shown
from skdp.core.classes import isinstance_by_name, named, public_name
from skdp.core.types import Estimator
from skdp.estimators.catalog import entry_of
from skdp.estimators.catalog.compositions import is_frozen

# Splitters that select records by position.
_BY_POSITION = named("sklearn.model_selection", "PredefinedSplit TimeSeriesSplit")

# Machines whose coefficients, with a linear kernel, are computed from their support vectors.
_MACHINES = named("sklearn.svm", "NuSVC NuSVR SVC SVR")

# Parameters that make a fit print, each with its silent value.
VERBOSITY = {"verbose": 0, "verbosity": 0, "disp": 0, "iprint": -1}


def describe(estimator: Estimator) -> str:
    """Describe an estimator as configured, for people: scikit-learn shortens long parameters."""
    return re.sub(" at 0x[0-9a-fA-F]+", "", " ".join(repr(estimator).split()))


def without_side_effects(estimator: Estimator) -> Estimator:
    """Return a clone whose fit has no side effects, and whose linear machines keep no records."""
    configured = make_quiet(clone(estimator))
    for member in members_in(configured):
        if public_name(type(member)) in _MACHINES and entry_of(member).reason(member) is None:
            from skdp.estimators import linear_kernel  # its import takes time

            member.__class__ = getattr(linear_kernel, f"LinearKernel{type(member).__name__}")
    return configured


def check_configuration(estimator: Estimator) -> None:
    """Refuse a configuration whose fits cannot be compared, such as an unseeded splitter."""
    if is_frozen(estimator):
        raise ValueError(
            "There is nothing to release: the 'estimator' parameter of PrivateEstimator is a "
            f"{type(estimator).__name__}, which stays as it was fitted. Use it as it is."
        )
    for name, value in estimator.get_params(deep=True).items():
        rule, shuffles = "", hasattr(value, "split") and getattr(value, "shuffle", True)
        if _last_name(name) == "cv" and np.iterable(value):
            rule = "be a number of folds: no position of a record is kept, and no member is prefit"
        if isinstance_by_name(value, *_BY_POSITION):
            rule = "not go by the position of the records, which are brought into a random order"
        elif shuffles and not isinstance(getattr(value, "random_state", 0), Integral):
            rule = "split alike in both fits of a pair: give its random_state an integer"
        if rule:
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must {rule}. "
                f"Got {shown(value)}."
            )


def _last_name(name: str) -> str:
    return name.rsplit("__", 1)[-1]


def seed_names(estimator: Estimator) -> list[str]:
    """Name the nested `random_state` parameters that the user left open."""
    return [
        name
        for name, value in estimator.get_params(deep=True).items()
        if _last_name(name) == "random_state" and not isinstance(value, Integral)
    ]


def make_quiet(estimator: Estimator) -> Estimator:
    """Switch off output, caches and callbacks in a clone and all its members, in place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of callbacks that it would not call
        for member in members_in(estimator):
            if hasattr(member, "set_callbacks"):  # since scikit-learn 1.9; clones share them
                member.set_callbacks()
            if "allow_writing_files" in inspect.signature(type(member)).parameters:
                # catboost's has it
                member.set_params(allow_writing_files=False)  # type: ignore[attr-defined]
    given = estimator.get_params(deep=True)
    settings = {name: _quiet(_last_name(name), value) for name, value in given.items()}
    changed = {name: quiet for name, quiet in settings.items() if quiet is not given[name]}
    return estimator.set_params(**changed)


def alone(estimator: Estimator) -> Estimator:
    """Return a clone whose fit prints nothing, writes nothing and starts no workers."""
    estimator = make_quiet(clone(estimator))
    given = estimator.get_params().items()
    jobs = {name: 1 for name, value in given if _last_name(name) == "n_jobs" and value}
    return estimator.set_params(**jobs)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators, from which an estimator may draw, and put them back."""
    before, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # the global one
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # the global one
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(of_numpy)  # noqa: NPY002  # the global one


def _quiet(name: str, value: object) -> Any:
    """Return the silent value of a parameter; the same object if it may stay."""
    absent = isinstance(value, str) and value in ("drop", "passthrough")
    if hasattr(value, "fit") or absent:  # a member, which may have any name
        return value
    if name == "memory" or "callback" in name or ("monitor" in name and callable(value)):
        return None
    if name in VERBOSITY and isinstance(value, Real | np.bool_):
        quiet: Any = type(value)  # which converts another number
        return quiet(VERBOSITY[name]) if float(value) > VERBOSITY[name] else value
    if isinstance(value, dict) and "weight" not in name:  # weights are by class, of any name
        options = {key: _quiet(str(key), option) for key, option in value.items()}
        return value if all(options[key] is value[key] for key in value) else options
    return value


def members_in(value: object) -> Iterator[object]:
    """Walk the estimators in a parameter, in lists and dicts too; what is frozen is not fitted."""
    match value:
        case dict():
            yield from members_in([*value.values()])
        case list() | tuple():
            yield from chain.from_iterable(map(members_in, value))
        case type():  # which is no estimator
            return
        case _ if hasattr(value, "get_params") and not is_frozen(value):
            yield value
            yield from members_in(value.get_params(deep=False))
