"""Fitted parameters as a target: attributes of an estimator to a flat vector, and back."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skdp.targets.registry import RECORD_ATTRIBUTES, REGISTRY, is_stateless, lookup


class ParameterTarget:
    """The fitted parameters of an estimator, flattened.

    Evaluating the target clones the estimator, fits it cold, and joins the released attributes
    into one vector. :meth:`restore` goes the other way: it overwrites those attributes, and no
    others, on a copy of the public twin.

    Parameters
    ----------
    estimator : estimator object
        The estimator as configured. Parameters named `memory` and `verbose` are switched off,
        since a cached or printed private fit would leave the guarantee.
    release : "auto" or sequence of str
        The attributes to release. "auto" takes them from the registry; a name such as
        ``"standardscaler__mean_"`` reaches into a step of a pipeline.
    twin : estimator object
        The same estimator fitted on public records. It fixes the shapes and the class labels.

    Raises
    ------
    ValueError
        If "auto" does not know the estimator, or an attribute named is not a numeric attribute of
        the twin.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.svm import LinearSVC
    >>> from skdp.targets.parameters import ParameterTarget
    >>> X, y = make_classification(random_state=0)
    >>> twin = LinearSVC().fit(X[:50], y[:50])
    >>> target = ParameterTarget(LinearSVC(), "auto", twin)
    >>> target.names, target(X[50:], y[50:], seed=0).shape
    (('coef_', 'intercept_'), (21,))
    """

    def __init__(self, estimator: Any, release: str | Sequence[str], twin: Any):
        self.estimator = without_side_effects(estimator)
        self.twin = twin
        self.names = _released_names(twin, release)
        self._shapes = [np.shape(getattr(*_owner(twin, name))) for name in self.names]
        self._classes = getattr(twin, "classes_", None)
        self._seeds = _seed_names(self.estimator)
        configured = " ".join(repr(estimator).split())
        self.description = f"{', '.join(self.names)} of {configured}"

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Fit on the dataset and return the released attributes as a vector."""
        fitted = clone(self.estimator)
        if self._seeds:
            fitted.set_params(**dict.fromkeys(self._seeds, seed))
        fitted.fit(*dataset)
        return self.flatten(fitted)

    def flatten(self, fitted: Any) -> NDArray[np.float64]:
        """Join the released attributes of a fitted estimator into a vector.

        Parameters
        ----------
        fitted : estimator object
            Fitted on any dataset.

        Returns
        -------
        ndarray of shape (n_parameters,)
            The attributes in the order of `names`, each raveled.

        Raises
        ------
        ValueError
            If a shape or the class labels differ from those of the twin. The message is safe to
            show: it holds no value.
        """
        if not _same_classes(getattr(fitted, "classes_", None), self._classes):
            raise ValueError("a class is missing")
        parts = [
            np.asarray(getattr(*_owner(fitted, name)), dtype=np.float64) for name in self.names
        ]
        if [part.shape for part in parts] != self._shapes:
            raise ValueError("the shape of a fitted attribute changed")
        return np.concatenate([part.ravel() for part in parts])

    def restore(self, vector: NDArray[np.float64]) -> Any:
        """Make a fitted estimator from a released vector.

        Parameters
        ----------
        vector : ndarray of shape (n_parameters,)
            Released values, in the order of :meth:`flatten`.

        Returns
        -------
        estimator object
            A copy of the public twin with the released attributes overwritten, those derived
            from them recomputed, and those that describe the twin's own records removed.
        """
        released = copy.deepcopy(self.twin)
        ends = np.cumsum([prod(shape) for shape in self._shapes])
        parts = np.split(np.asarray(vector, dtype=np.float64), ends[:-1])
        for name, shape, part in zip(self.names, self._shapes, parts, strict=True):
            owner, attribute = _owner(released, name)
            setattr(owner, attribute, part.reshape(shape)[()])
        for path, part in fitted_parts(released):
            for attribute in RECORD_ATTRIBUTES & vars(part).keys():
                delattr(part, attribute)
            entry = REGISTRY.get(type(part))
            if entry is not None and entry.finish is not None:
                entry.finish(part, _reach(self.twin, path))
        return released


def without_side_effects(estimator: Any) -> Any:
    """Return a clone whose fit writes no cache and prints nothing.

    Parameters
    ----------
    estimator : estimator object
        The estimator as configured; it is not changed.

    Returns
    -------
    estimator object
        A clone with every nested `memory` None and every nested `verbose` off.
    """
    estimator = clone(estimator)
    silent: dict[str, Any] = {}
    for name, value in estimator.get_params(deep=True).items():
        parameter = name.rsplit("__", 1)[-1]
        if parameter == "memory" and value is not None:
            silent[name] = None
        elif parameter == "verbose" and isinstance(value, bool | int) and value > 0:
            silent[name] = type(value)(0)
    return estimator.set_params(**silent)


def fitted_parts(estimator: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple, Any]]:
    """Walk the estimators that hold fitted state of their own.

    Parameters
    ----------
    estimator : estimator object
        A pipeline is walked; a frozen or stateless estimator is passed over.
    path : tuple of str, default=()
        The way that led here.

    Yields
    ------
    path : tuple of str
        Names of the steps that lead to the estimator.
    estimator : estimator object
        One that learns something in fit.
    """
    if isinstance(estimator, Pipeline):
        for name, step in estimator.steps:
            yield from fitted_parts(step, (*path, name))
    elif not isinstance(estimator, FrozenEstimator) and not is_stateless(estimator):
        yield path, estimator


def _released_names(twin: Any, release: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(release, str) and release == "auto":
        names = tuple(
            "__".join((*path, attribute))
            for path, part in fitted_parts(twin)
            for attribute in lookup(part).attributes(part)
        )
    else:
        names = tuple(release)
        for name in names:
            _check_released(twin, name)
    if not names:
        raise ValueError(
            f"There is nothing to release: fitting {type(twin).__name__} as configured learns "
            "nothing from the data, so it needs no privacy. Use it as it is."
        )
    return names


def _check_released(twin: Any, name: str) -> None:
    try:
        value = getattr(*_owner(twin, name))
        numeric = np.issubdtype(np.asarray(value).dtype, np.floating)
    except (AttributeError, KeyError):
        numeric = False
    if not numeric:
        choices = [
            "__".join((*path, attribute))
            for path, part in fitted_parts(twin)
            for attribute, value in vars(part).items()
            if attribute.endswith("_") and np.asarray(value).dtype.kind == "f"
        ]
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must name fitted attributes that hold "
            f"floats. Got {name!r}. {type(twin).__name__} has: {', '.join(choices) or 'none'}."
        )


def _owner(estimator: Any, name: str) -> tuple[Any, str]:
    """Split ``step__attribute`` into the fitted step and the attribute."""
    *path, attribute = re.split(r"__(?!_)", name)
    return _reach(estimator, path), attribute


def _reach(estimator: Any, path: Sequence[str]) -> Any:
    for step in path:
        named_steps = getattr(estimator, "named_steps", None)
        estimator = named_steps[step] if named_steps else getattr(estimator, step)
    return estimator


def _seed_names(estimator: Any) -> list[str]:
    """Name the nested `random_state` parameters that the user left open."""
    return [
        name
        for name, value in estimator.get_params(deep=True).items()
        if name.rsplit("__", 1)[-1] == "random_state" and not isinstance(value, int)
    ]


def _same_classes(classes: Any, expected: Any) -> bool:
    if classes is None or expected is None:
        return classes is expected
    if isinstance(expected, list):  # one array of labels for each output
        return len(classes) == len(expected) and all(map(np.array_equal, classes, expected))
    return np.array_equal(classes, expected)
