"""Make an oracle of functions, distributions of scipy and density estimators of scikit-learn."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import sys
from collections.abc import Callable

import numpy as np
from numpy.random import Generator, RandomState
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import shown
from skdp.core.classes import named, public_name
from skdp.core.dataset import as_dataset, n_records, take_records
from skdp.core.oracle import Oracle, has_independent_records
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
    """An object that can be sampled, as an oracle: ``sample(source, n_samples, rng)`` draws."""

    def __init__(self, source: object, description: str, sample: Callable[..., Sample]) -> None:
        self.source = source
        self.description = description
        self.sample = sample
        self.independent_records = _is_known(source) or has_independent_records(source)

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        return self.sample(self.source, n_samples, rng)

    def __repr__(self) -> str:
        return f"as_oracle({self.description})"


# Densities of scikit-learn that draw record by record.
_DENSITIES = (
    *named("sklearn.mixture", "GaussianMixture BayesianGaussianMixture"),
    *named("sklearn.neighbors", "KernelDensity"),
)


def _is_known(source: object) -> bool:
    """Return whether an object is a class of scipy or scikit-learn that draws record by record."""
    if public_name(type(source)) in _DENSITIES:
        return True
    law = getattr(source, "dist", source)  # of a frozen distribution, which may be the user's own
    return _is_of_scipy(type(source)) and _is_of_scipy(type(law))


def _is_of_scipy(kind: type) -> bool:
    home = kind.__module__  # such as scipy.stats._kde
    known = vars(sys.modules[home]).get(kind.__name__) if home.startswith("scipy.stats.") else None
    return known is kind


def as_oracle(oracle: object) -> Oracle:
    """Return an oracle as it is, and make one of a callable, a distribution or an estimator."""
    name = type(oracle).__name__
    if isinstance(oracle, type):
        raise TypeError(f"An oracle must be an object, not a class. Got {oracle.__name__} itself.")
    if isinstance(oracle, Oracle):
        _check_signature(oracle)
        if not isinstance(oracle.description, str):
            raise TypeError(
                f"The 'description' of the oracle {name} must be a string. "
                f"Got {shown(oracle.description)}."
            )
        return oracle
    if hasattr(oracle, "draws_from"):
        raise TypeError(
            f"An oracle is asked for. Got a {name}: pass the oracle that it draws from."
        )
    if type(oracle).__module__.startswith("scipy.stats"):
        return _adapt_scipy(oracle)
    if callable(oracle):
        _check_signature(oracle)
        adapted = OracleAdapter(oracle, describe_oracle(oracle), operator.call)
        adapted.classes_ = getattr(oracle, "classes_", None)
        return adapted
    if callable(getattr(oracle, "sample", None)) and not hasattr(oracle, "columns"):
        return _adapt_estimator(oracle)
    raise TypeError(
        "An oracle must be a callable oracle(n_samples, rng) -> X or (X, y), a frozen scipy.stats "
        f"distribution, or a fitted estimator with a sample method. Got {name}. "
        "To resample a public table, wrap it: PublicDataOracle(X, y)."
    )


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


def _adapt_scipy(distribution: object) -> OracleAdapter:
    name = type(distribution).__name__.removesuffix("_frozen")
    is_frozen = hasattr(distribution, "rvs") and not callable(distribution)
    if not is_frozen and not hasattr(distribution, "resample"):
        raise TypeError(
            "An oracle of scipy.stats must be a frozen distribution, such as norm(loc=0, scale=1), "
            f"or a gaussian_kde. Got {name}. Freeze it, or write a callable instead."
        )
    name = getattr(getattr(distribution, "dist", None), "name", None) or name
    return OracleAdapter(distribution, name, _sample_scipy)


def _sample_scipy(source: Estimator, n_samples: int, rng: Generator) -> Sample:
    if hasattr(source, "rvs"):
        X = np.asarray(source.rvs(size=n_samples, random_state=rng))
    else:
        X = source.resample(size=n_samples, seed=rng).T
    # scipy drops the axis of a single column, and that of a single record
    return X if X.ndim > 2 else X.reshape(n_samples, -1)


def _adapt_estimator(estimator: Estimator) -> OracleAdapter:
    name = type(estimator).__name__
    if hasattr(estimator, "fit"):
        message = "The oracle %(name)s is not fitted. Fit it on public records first."
        check_is_fitted(estimator, msg=message)
    if _seed_parameter(estimator) is None and not hasattr(estimator, "random_state"):
        raise TypeError(
            f"The draws of {name} cannot be reproduced: neither its sample method nor the object "
            "has a 'random_state'. Wrap it in a callable oracle(n_samples, rng) that seeds it."
        )
    return OracleAdapter(estimator, name, _sample_estimator)


def _seed_parameter(estimator: Estimator) -> str | None:
    parameters = inspect.signature(estimator.sample).parameters
    return next((name for name in ("random_state", "rng") if name in parameters), None)


def _sample_estimator(source: Estimator, n_samples: int, rng: Generator) -> Sample:
    parameter = _seed_parameter(source)
    # scikit-learn wants the legacy interface; this one draws from the same bits
    seed = rng if parameter == "rng" else RandomState(rng.bit_generator)
    if parameter is None:
        source = copy.copy(source)
        source.random_state = seed
    sample = source.sample(n_samples, **({parameter: seed} if parameter else {}))
    X = as_dataset(sample, "What the sample method of an oracle returns").X
    # mixtures return their records component by component; the order must mean nothing
    return take_records(X, rng.permutation(n_records(X)))


def without_response(oracle: Oracle) -> Oracle:
    """Let an oracle yield X alone, for estimators that have no use for a response."""
    return OracleAdapter(oracle, oracle.description, _drop_response)


def _drop_response(source: Oracle, n_samples: int, rng: Generator) -> Sample:
    what = f"What the oracle {source.description} returns"
    return as_dataset(source(n_samples, rng), what, most=4)._replace(y=None, sample_weight=None)
