"""Make an oracle of anything that can be sampled.

`as_oracle` makes an :class:`skdp.Oracle` of functions, of distributions of scipy and of density
estimators of scikit-learn.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import shown
from skdp.core.classes import named, public_name
from skdp.core.dataset import as_dataset, n_records, take_records
from skdp.core.oracle import Oracle, has_independent_records
from skdp.core.plain import as_labels
from skdp.core.types import Estimator, Sample


def describe_oracle(oracle: object) -> str:
    """Name a function or an oracle by its `description`, else by its qualified name or class."""
    while isinstance(oracle, functools.partial):
        oracle = oracle.func
    description = getattr(oracle, "description", None)
    if isinstance(description, str):
        return description
    return getattr(oracle, "__qualname__", type(oracle).__name__)


class OracleAdapter(Oracle):
    """An object that can be sampled, as an oracle."""

    def __init__(self, source: Any, description: str) -> None:
        self.source = source
        self.description = description
        self.independent_records = _is_known(source) or has_independent_records(source)

    def __repr__(self) -> str:
        return f"as_oracle({self.description})"


class _FunctionOracle(OracleAdapter):
    """A callable with the signature of an oracle."""

    def __init__(self, source: Any) -> None:
        super().__init__(source, describe_oracle(source))
        self.classes_ = getattr(source, "classes_", None)

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        return self.source(n_samples, rng)


# Densities of scikit-learn that draw record by record.
_DENSITIES = (
    *named("sklearn.mixture", "GaussianMixture BayesianGaussianMixture"),
    *named("sklearn.neighbors", "KernelDensity"),
)


def _is_known(source: Any) -> bool:
    """Return whether an object is a class of scipy or scikit-learn that draws record by record."""
    if public_name(type(source)) in _DENSITIES:
        return True
    law = getattr(source, "dist", source)  # of a frozen distribution, which may be the user's own
    return _is_of_scipy(type(source)) and _is_of_scipy(type(law))


def _is_of_scipy(kind: type) -> bool:
    home = kind.__module__  # such as scipy.stats._kde
    known = vars(sys.modules[home]).get(kind.__name__) if home.startswith("scipy.stats.") else None
    return known is kind


class _ScipyOracle(OracleAdapter):
    """A frozen distribution of scipy.stats."""

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        if hasattr(self.source, "rvs"):
            X = self.source.rvs(size=n_samples, random_state=rng)
        elif hasattr(self.source, "resample"):
            X = self.source.resample(size=n_samples, seed=rng).T
        else:
            X = self.source.sample((n_samples,), rng=rng)
        X = np.asarray(X)
        # scipy drops the axis of a single column, and that of a single record
        return X if X.ndim > 2 else X.reshape(n_samples, -1)


class _EstimatorOracle(OracleAdapter):
    """A fitted estimator with a `sample` method."""

    def __init__(self, source: Any, name: str, seed_parameter: str | None) -> None:
        super().__init__(source, name)
        self.seed_parameter = seed_parameter

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        # scikit-learn wants the legacy interface; this one draws from the same bits
        seed = rng if self.seed_parameter == "rng" else RandomState(rng.bit_generator)
        if self.seed_parameter is None:
            source = copy.copy(self.source)
            source.random_state = seed
            sample = source.sample(n_samples)
        else:
            sample = self.source.sample(n_samples, **{self.seed_parameter: seed})
        X = sample[0] if isinstance(sample, tuple) else sample
        # mixtures return their records component by component; the order must mean nothing
        return take_records(X, rng.permutation(n_records(X)))


def as_oracle(oracle: object) -> Oracle:
    """Return an oracle as it is, and make one of what can be sampled.

    That is a callable ``oracle(n_samples, rng)``, a distribution of scipy.stats, frozen or of the
    newer kind, or a fitted estimator with `sample`; only its features are used, in random order.
    Nothing is copied or changed. What cannot be sampled reproducibly is refused, with what to pass
    instead.
    """
    if isinstance(oracle, type):
        raise TypeError(f"An oracle must be an object, not a class. Got {oracle.__name__} itself.")
    if isinstance(oracle, Oracle):
        _check_signature(oracle)
        if not isinstance(oracle.description, str):
            raise TypeError(
                f"The 'description' of the oracle {type(oracle).__name__} must be a string. "
                f"Got {shown(oracle.description)}."
            )
        return oracle
    if hasattr(oracle, "draws_from"):
        name = type(oracle).__name__
        raise TypeError(
            f"An oracle is asked for. Got a {name}: pass the oracle that it draws from."
        )
    if type(oracle).__module__.startswith("scipy.stats"):
        return _adapt_scipy(oracle)
    if callable(oracle):
        _check_signature(oracle)
        return _FunctionOracle(oracle)
    if callable(getattr(oracle, "sample", None)) and not hasattr(oracle, "columns"):
        return _adapt_estimator(oracle)
    if callable(getattr(oracle, "rvs", None)):
        return _ScipyOracle(oracle, type(oracle).__name__)
    raise TypeError(
        "An oracle must be a callable oracle(n_samples, rng) -> X or (X, y), a frozen scipy.stats "
        f"distribution, or a fitted estimator with a sample method. Got {type(oracle).__name__}. "
        "To resample a public table, wrap it: PublicDataOracle(X, y)."
    )


def _adapt_scipy(distribution: object) -> _ScipyOracle:
    name = type(distribution).__name__.removesuffix("_frozen")
    if hasattr(distribution, "rvs"):
        if callable(distribution):
            raise TypeError(
                "A scipy.stats distribution must be frozen to serve as an oracle. Got "
                f"{name}. Call it with its parameters first, as in norm(loc=0, scale=1)."
            )
        name = getattr(getattr(distribution, "dist", None), "name", None) or name
    elif not hasattr(distribution, "resample") and not hasattr(distribution, "sample"):
        raise TypeError(f"scipy.stats cannot draw from {name}. Write a callable instead.")
    return _ScipyOracle(distribution, name)


def _adapt_estimator(estimator: Estimator) -> _EstimatorOracle:
    name = type(estimator).__name__
    if hasattr(estimator, "fit"):
        check_is_fitted(
            estimator,
            msg="The oracle %(name)s is not fitted. Fit it on public records first.",
        )
    parameters = inspect.signature(estimator.sample).parameters
    for seed_parameter in ("random_state", "rng"):
        if seed_parameter in parameters:
            return _EstimatorOracle(estimator, name, seed_parameter)
    if not hasattr(estimator, "random_state"):
        raise TypeError(
            f"The draws of {name} cannot be reproduced: neither its sample method nor the object "
            "has a 'random_state'. Wrap it in a callable oracle(n_samples, rng) that seeds it."
        )
    return _EstimatorOracle(estimator, name, None)


def _check_signature(oracle: Callable) -> None:
    try:
        signature = inspect.signature(oracle)
    except ValueError:  # some callables written in C have no signature
        return
    try:
        signature.bind(1, None)
    except TypeError:
        raise TypeError(
            f"The oracle {describe_oracle(oracle)} must be callable as oracle(n_samples, rng). "
            f"Its signature is {signature}."
        ) from None


class _WithoutResponse(OracleAdapter):
    """An oracle whose responses are left out."""

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        sample = self.source(n_samples, rng)
        return as_dataset(sample, f"What the oracle {self.description} returns").X


def with_numbered_labels(oracle: Oracle) -> Oracle:
    """Return an oracle whose labels are 0, 1, ..., as ensembles number those of their members."""
    numbered = _NumberedLabels(oracle, oracle.description)
    numbered.classes_ = None if oracle.classes_ is None else np.arange(len(oracle.classes_))
    return numbered


class _NumberedLabels(OracleAdapter):
    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        X, y, *weights = self.source(n_samples, rng)
        return X, np.searchsorted(self.source.classes_, as_labels(y)), *weights


def without_response(oracle: Oracle) -> Oracle:
    """Let an oracle yield X alone, for estimators that have no use for a response."""
    return _WithoutResponse(oracle, oracle.description)
