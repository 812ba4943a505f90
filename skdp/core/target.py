"""The target: a function from a dataset to numbers, which is what gets released."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.fingerprint import key_of


@runtime_checkable
class Target(Protocol):
    """What the sampler and :func:`skdp.release` evaluate.

    Calling it with the parts of a dataset, ``target(X, seed=seed)`` or ``target(X, y, seed=seed)``,
    gives an array of floats whose shape does not depend on the data. All randomness comes from
    `seed`, so that the two evaluations of a pair can share it. `description` says in one line what
    is evaluated, for people.

    A target may have a `key`, a string that names the function: two targets with the same key are
    taken to be the same. Without one, a target is known by its class and its attributes: by their
    content, code included.

    A target may also have a method ``restore(value)``, which makes what is handed out, such as an
    estimator, of the released value. It sees nothing else of the private data.
    """

    description: str

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Evaluate the target."""
        ...


class KeyedTarget:
    """A target that is known by its parts.

    `key_parts` is all that its values depend on besides the dataset.
    """

    key_parts: tuple = ()

    @property
    def key(self) -> str:
        """What estimates of its sensitivity belong to; see `skdp.core.fingerprint.key_of`."""
        return key_of(self)


class FunctionTarget(KeyedTarget):
    """Any Python function as a target.

    The function is known by its content: its text, and all that it reads. Give a `key` where that
    cannot be had, or where an estimate is to outlive changes that you know to be harmless.

    Parameters
    ----------
    function : callable
        ``function(X)`` or ``function(X, y)``, returning a number or an array of fixed shape. When
        it has a parameter `random_state`, it is given an integer there, the same for both
        evaluations of a pair.
    key : str or None, default=None
        A name for the function, which then stands for its content. An estimate serves every
        function of the same key, so whoever changes the function must change its key.

    Raises
    ------
    TypeError
        If `function` cannot be called, or `key` is no string.
    ValueError
        If `key` is empty.

    See Also
    --------
    skdp.release : Releases the value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import FunctionTarget
    >>> FunctionTarget(np.mean)(np.array([1.0, 2.0]), seed=0)
    array(1.5)
    >>> FunctionTarget(lambda X: np.mean(X), key="my-mean-v1").key
    'my-mean-v1'
    """

    allow_nan = True  # np.nanmean wants records with gaps; a value that is not finite fails anyway

    def __init__(self, function: Callable, *, key: str | None = None):
        if not callable(function):
            raise TypeError(
                "The 'target' must be a function of a dataset, function(X) or function(X, y). "
                f"Got an object of type {type(function).__name__}."
            )
        self.function = function
        module = getattr(function, "__module__", None) or type(function).__module__
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        self.description = f"{module}.{name}"
        self._key = None if key is None else _check_key(key, "FunctionTarget")
        self.key_parts = (function,) if key is None else ("key", key)
        self._takes_seed = "random_state" in _parameter_names(function)

    @property
    def key(self) -> str:
        """The key given, else one that follows from the content of the function."""
        return super().key if self._key is None else self._key

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Evaluate the function and return its value as floats."""
        options = {"random_state": seed} if self._takes_seed else {}
        value = self.function(*dataset, **options)
        if value is None:  # which numpy would take for a number that is missing
            raise TypeError("the target returned None, not a number or an array of numbers")
        return np.asarray(value, dtype=np.float64)


def as_target(target: Target | Callable) -> Target:
    """Return `target` itself when it is one, else the function wrapped."""
    return target if isinstance(target, Target) else FunctionTarget(target)


def as_function_target(function: Callable) -> FunctionTarget:
    """Return a function in a target, and a FunctionTarget, which may bring its key, as it is."""
    return function if isinstance(function, FunctionTarget) else FunctionTarget(function)


def identity_of(target: Target) -> Any:
    """Return what tells a target from others: the key of the user's own, else the target itself."""
    key = None if isinstance(target, KeyedTarget) else getattr(target, "key", None)
    return target if key is None else _check_key(key, f"the target {type(target).__name__}")


def target_key(target: Target) -> str:
    """Name a target for an estimate of its sensitivity."""
    identity = identity_of(target)
    if isinstance(identity, KeyedTarget):
        return identity.key
    return identity if isinstance(identity, str) else key_of(identity)


def pair_values(
    target: Target, records: Dataset, seed: int, position: int = -1
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Evaluate a target on the two neighboring datasets made from n + 1 records.

    A target that knows a faster way has a method ``pair_values(records, seed, position)``, which
    must give what two calls give. The replaced record stands at `position`; see
    :func:`skdp.core.dataset.neighboring_pair`.
    """
    if hasattr(target, "pair_values"):
        return target.pair_values(records, seed, position)
    dataset, neighbor = neighboring_pair(records, position)
    return target(*dataset.parts, seed=seed), target(*neighbor.parts, seed=seed)


def _check_key(key: Any, owner: str) -> str:
    rule = f"The 'key' of {owner} must be a string that names the function, such as 'my-mean-v1'."
    if not isinstance(key, str):
        raise TypeError(f"{rule} Got {key!r}.")
    if not key:
        raise ValueError(f"{rule} Got an empty one. Leave it out to have one made of the content.")
    return key


def _parameter_names(function: Callable) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some builtins have no signature
        return set()
