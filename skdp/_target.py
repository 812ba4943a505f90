"""The target: a function from a dataset to numbers, which is what gets released."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skdp._data import Dataset, neighboring_pair
from skdp._fingerprint import digest


@runtime_checkable
class Target(Protocol):
    """What the sampler and :func:`skdp.release` evaluate.

    Calling it with the parts of a dataset, ``target(X, seed=seed)`` or ``target(X, y, seed=seed)``,
    gives an array of floats whose shape does not depend on the data. All randomness comes from
    `seed`, so that the two evaluations of a pair can share it. `description` says in one line what
    is evaluated: two targets with the same description are taken to be the same function.

    A target may also have a method ``restore(value)``, which makes what is handed out, such as an
    estimator, of the released value. It sees nothing else of the private data.
    """

    description: str

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Evaluate the target."""
        ...


class FunctionTarget:
    """Any Python function as a target.

    Parameters
    ----------
    function : callable
        ``function(X)`` or ``function(X, y)``, returning a number or an array of fixed shape. When
        it has a parameter `random_state`, it is given an integer there, the same for both
        evaluations of a pair.

    Raises
    ------
    TypeError
        If `function` cannot be called.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp._target import FunctionTarget
    >>> FunctionTarget(np.mean)(np.array([1.0, 2.0]), seed=0)
    array(1.5)
    """

    allow_nan = True  # np.nanmean wants records with gaps; a value that is not finite fails anyway

    def __init__(self, function: Callable):
        if not callable(function):
            raise TypeError(
                "The 'target' must be a function of a dataset, function(X) or function(X, y). "
                f"Got an object of type {type(function).__name__}."
            )
        self.function = function
        module = getattr(function, "__module__", None) or type(function).__module__
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self.description = f"{module}.{name} ({digest(function)})"
        self._takes_seed = "random_state" in _parameter_names(function)

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Evaluate the function and return its value as floats."""
        options = {"random_state": seed} if self._takes_seed else {}
        value = self.function(*dataset, **options)
        if value is None:  # which numpy would take for a number that is missing
            raise TypeError("the target returned None, not a number or an array of numbers")
        return np.asarray(value, dtype=np.float64)


def as_target(target: Target | Callable) -> Target:
    """Return `target` itself when it is one, else the function wrapped.

    Parameters
    ----------
    target : Target or callable
        What to evaluate.

    Returns
    -------
    Target
        Callable as ``target(*dataset, seed=seed)``.
    """
    return target if isinstance(target, Target) else FunctionTarget(target)


def pair_values(
    target: Target, records: Dataset, seed: int, position: int = -1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Evaluate a target on the two neighboring datasets made from n + 1 records.

    Parameters
    ----------
    target : Target
        What to evaluate. One that knows a faster way has a method
        ``pair_values(records, seed, position)``, which must give what two calls give.
    records : tuple of containers of n_samples + 1 records each
        As drawn from an oracle.
    seed : int
        Seed of both evaluations.
    position : int, default=-1
        Where the replaced record stands; see :func:`skdp._data.neighboring_pair`.

    Returns
    -------
    value, other : ndarray of float
        The two values.
    """
    if hasattr(target, "pair_values"):
        return target.pair_values(records, seed, position)
    dataset, neighbor = neighboring_pair(records, position)
    return target(*dataset, seed=seed), target(*neighbor, seed=seed)


def _parameter_names(function: Callable) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some builtins have no signature
        return set()
