"""From anything that can be sampled to checked datasets: the oracle protocol and its adapters.

An oracle is a function ``oracle(n_samples, rng) -> X`` or ``(X, y)`` that invents plausible
records. `as_oracle` brings distributions of scipy and density estimators of scikit-learn into
that form, `draw` asks for records, and `check_sample` refuses records that do not fit.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator, RandomState
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skdp._data import (
    Dataset,
    Schema,
    as_dataset,
    column_names,
    find_non_finite,
    n_columns,
    n_records,
    take_records,
)


class Oracle(Protocol):
    """A source of plausible, non-sensitive records.

    It is called as ``oracle(n_samples, rng)`` with a `numpy.random.Generator` and returns `X`,
    ``(X, y)`` or ``(X, y, sample_weight)`` with `n_samples` records. It must take all its
    randomness from `rng`, so that the same generator state gives the same records in any process,
    and its records must be exchangeable: their order may mean nothing. It must not be derived
    from the private data.

    Three attributes are optional.

    - ``description`` (str): what the guarantee calls it; the name of the function otherwise.
    - ``classes_`` (ndarray or None): the sorted class labels it draws from.
    - ``independent_records`` (bool): whether its records are independent. False for a
      dataset-level oracle, which draws something of the whole dataset first.
    """

    def __call__(self, n_samples: int, rng: Generator) -> Any:
        """Return `n_samples` records."""
        ...


def describe_oracle(oracle: Any) -> str:
    """Name an oracle for a guarantee or an error, without any of its records.

    Parameters
    ----------
    oracle : callable
        Shipped, adapted or the user's own.

    Returns
    -------
    str
        Its ``description``; else the qualified name of the function, or of the class.

    Examples
    --------
    >>> from skdp.sensitivity.drawing import describe_oracle
    >>> def loans(n_samples, rng):
    ...     return rng.exponential(size=(n_samples, 1))
    >>> describe_oracle(loans)
    'loans'
    """
    while isinstance(oracle, functools.partial):
        oracle = oracle.func
    description = getattr(oracle, "description", None)
    if isinstance(description, str):
        return description
    return getattr(oracle, "__qualname__", type(oracle).__name__)


class _Adapter:
    """An object that can be sampled, as an oracle of independent records."""

    independent_records = True
    classes_ = None

    def __init__(self, source: Any, name: str) -> None:
        self.source = source
        self.description = name

    def __repr__(self) -> str:
        return f"as_oracle({self.description})"


class _ScipyOracle(_Adapter):
    """A frozen distribution of scipy.stats."""

    def __call__(self, n_samples: int, rng: Generator) -> Any:
        if hasattr(self.source, "rvs"):
            X = self.source.rvs(size=n_samples, random_state=rng)
        elif hasattr(self.source, "resample"):
            X = self.source.resample(size=n_samples, seed=rng).T
        else:
            X = self.source.sample((n_samples,), rng=rng)
        X = np.asarray(X)
        # scipy drops the axis of a single column, and that of a single record
        return X if X.ndim > 2 else X.reshape(n_samples, -1)


class _EstimatorOracle(_Adapter):
    """A fitted estimator with a `sample` method."""

    def __init__(self, source: Any, name: str, seed_parameter: str | None) -> None:
        super().__init__(source, name)
        self.seed_parameter = seed_parameter

    def __call__(self, n_samples: int, rng: Generator) -> Any:
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


class _LikePrivate:
    """An oracle whose arrays come in the form that the private records have."""

    def __init__(self, oracle: Callable[[int, Generator], Any], convert: Callable[[Any], Any]):
        self.oracle = oracle
        self.convert = convert
        self.description = describe_oracle(oracle)
        self.classes_ = getattr(oracle, "classes_", None)
        self.independent_records = getattr(oracle, "independent_records", False)

    def __call__(self, n_samples: int, rng: Generator) -> Any:
        X, *rest = as_dataset(self.oracle(n_samples, rng))
        return (self.convert(X) if isinstance(X, np.ndarray) else X, *rest)


def _name_columns(X: np.ndarray, frame: type, names: list[str]) -> Any:
    matches = n_columns(X) == len(names)
    return frame(dict(zip(names, X.T, strict=True))) if matches else X


def _to_single(X: np.ndarray) -> np.ndarray:
    return X.astype(np.float32) if X.dtype == np.float64 else X


def like_private(oracle: Callable[[int, Generator], Any], X: Any) -> Callable:
    """Let an oracle of arrays stand in for a frame, or for arrays of single precision.

    Parameters
    ----------
    oracle : callable
        As returned by `as_oracle`.
    X : container
        The private records. Only the kind of container, its type and the column names are read.

    Returns
    -------
    callable
        `oracle` itself for an array of double precision, or a sparse one. Else one that puts
        arrays of as many columns into frames like X, or into single precision. Records that come
        with names keep theirs.
    """
    names = column_names(X)
    if names is not None:
        convert = functools.partial(_name_columns, frame=type(X), names=names)
        return _LikePrivate(oracle, convert)
    single = isinstance(X, np.ndarray) and X.dtype == np.float32
    return _LikePrivate(oracle, _to_single) if single else oracle


def as_oracle(oracle: Any) -> Callable[[int, Generator], Any]:
    """Return `oracle` as a callable ``oracle(n_samples, rng)``.

    Parameters
    ----------
    oracle : callable, frozen scipy.stats distribution, or fitted estimator with `sample`
        A callable is returned as it is. A distribution may be frozen (``norm(0, 1)``,
        ``multivariate_normal(mean, cov)``), of the newer kind (``Normal(mu=0)``) or a
        ``gaussian_kde``; a univariate one gives one column. Of an estimator such as
        GaussianMixture or KernelDensity only the features are used, in random order, and it is
        never changed.

    Returns
    -------
    callable
        An oracle; a distribution or estimator is referenced, not copied.

    Raises
    ------
    TypeError
        If `oracle` cannot be sampled reproducibly, with what to pass instead.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import expon
    >>> from skdp.sensitivity.drawing import as_oracle
    >>> oracle = as_oracle(expon())
    >>> oracle
    as_oracle(expon)
    >>> oracle(3, np.random.default_rng(0)).shape
    (3, 1)
    """
    if isinstance(oracle, type):
        raise TypeError(f"An oracle must be an object, not a class. Got {oracle.__name__} itself.")
    if type(oracle).__module__.startswith("scipy.stats"):
        return _adapt_scipy(oracle)
    if callable(oracle):
        _check_signature(oracle)
        return oracle
    if callable(getattr(oracle, "sample", None)) and not hasattr(oracle, "columns"):
        return _adapt_estimator(oracle)
    if callable(getattr(oracle, "rvs", None)):
        return _ScipyOracle(oracle, type(oracle).__name__)
    raise TypeError(
        "An oracle must be a callable oracle(n_samples, rng) -> X or (X, y), a frozen scipy.stats "
        f"distribution, or a fitted estimator with a sample method. Got {type(oracle).__name__}. "
        "To resample a public table, wrap it: PublicDataOracle(X, y)."
    )


def _adapt_scipy(distribution: Any) -> _ScipyOracle:
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


def _adapt_estimator(estimator: Any) -> _EstimatorOracle:
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
    except ValueError:  # some callables written in C do not tell theirs
        return
    try:
        signature.bind(1, None)
    except TypeError:
        raise TypeError(
            f"The oracle {describe_oracle(oracle)} must be callable as oracle(n_samples, rng). "
            f"Its signature is {signature}."
        ) from None


def draw(
    oracle: Callable[[int, Generator], Any],
    n_samples: int,
    rng: Generator,
    *,
    reference: Schema | Dataset | None = None,
    classes: ArrayLike | None = None,
    full: bool = False,
) -> Dataset:
    """Ask an oracle for records and check them.

    Parameters
    ----------
    oracle : callable
        As returned by `as_oracle`.
    n_samples : int
        Number of records, n + 1 for a pair.
    rng : numpy.random.Generator
        Where the oracle takes its randomness.
    reference : Schema, tuple of containers or None, default=None
        See `check_sample`.
    classes : array-like or None, default=None
        See `check_sample`.
    full : bool, default=False
        Whether to look at every value too, as is wanted for the first pair.

    Returns
    -------
    tuple of containers
        ``(X,)`` or ``(X, y)``.

    Raises
    ------
    TypeError, ValueError
        If the sample does not fit. What the oracle raises itself passes through with a note.
    """
    name = describe_oracle(oracle)
    try:
        sample = oracle(n_samples, rng)
    except Exception as error:
        error.add_note(f"Raised by the oracle {name} when asked for n_samples={n_samples}.")
        raise
    dataset = as_dataset(sample, f"What the oracle {name} returns")
    check_sample(dataset, n_samples, oracle=name, reference=reference, classes=classes, full=full)
    return dataset


def check_sample(
    dataset: Dataset,
    n_samples: int,
    *,
    oracle: str,
    reference: Schema | Dataset | None = None,
    classes: ArrayLike | None = None,
    full: bool = True,
) -> None:
    """Refuse records that cannot stand in for the private ones.

    Oracles are public, so the messages may show what is wrong with their records. Of `reference`
    they show only what is public: the columns, and whether there is a y.

    Parameters
    ----------
    dataset : tuple of containers
        ``(X,)``, ``(X, y)`` or ``(X, y, sample_weight)`` as drawn. `X` has one or two dimensions;
        with one, each record is a single value, for functions that want it so (estimators want a
        column).
    n_samples : int
        Number of records asked for.
    oracle : str
        Description of the oracle, for the messages.
    reference : Schema, tuple of containers or None, default=None
        What the columns and the response must agree with. Names are compared when both sides
        have them.
    classes : array-like or None, default=None
        The admitted labels; only with `full`.
    full : bool, default=True
        Whether to look at every value too. The counts and columns are always checked.

    Raises
    ------
    TypeError
        If the sample is no container of records.
    ValueError
        If it has the wrong number of records or dimensions, other columns, a missing or an
        unexpected y, a label outside `classes`, or a number that is not finite.
    """
    for position, container in enumerate(dataset):
        if n_records(container) != n_samples:
            part = ("records", "responses", "weights")[position]
            raise ValueError(
                f"The oracle {oracle} returned {n_records(container)} {part}. "
                f"It must return n_samples={n_samples}."
            )
    if len(getattr(dataset[0], "shape", ())) > 2:
        raise ValueError(
            f"The oracle {oracle} returned X with {len(dataset[0].shape)} dimensions. "
            "It must have two: records and columns."
        )
    if reference is not None:
        expected = reference if isinstance(reference, Schema) else Schema.of(reference)
        _check_schema(Schema.of(dataset), expected, oracle)
    if full:
        allow_nan = isinstance(reference, Schema) and reference.allow_nan
        _check_values(dataset, oracle, classes, allow_nan)


def _check_schema(schema: Schema, expected: Schema, oracle: str) -> None:
    got, wanted = _parts(schema), _parts(expected)
    if got != wanted:
        raise ValueError(f"The oracle {oracle} returned {got}. It must return {wanted}, as fitted.")
    if schema.n_columns != expected.n_columns:
        raise ValueError(
            f"The oracle {oracle} returned X with {_columns(schema)}. "
            f"It must have {_columns(expected)}, as the data have."
        )
    if schema.names and not expected.names:
        raise ValueError(
            f"The oracle {oracle} returned records with column names, and the data have none. "
            "Give both the same names, or neither any."
        )
    if schema.names and expected.names and schema.names != expected.names:
        raise ValueError(
            f"The oracle {oracle} returned the columns {_shorten(schema.names)}. "
            f"They must be {_shorten(expected.names)}, in this order."
        )


def _parts(schema: Schema) -> str:
    if schema.has_weights:
        return "X, y and sample_weight"
    return "X and y" if schema.has_response else "X"


def _columns(schema: Schema) -> str:
    if schema.n_columns is None:
        return "one dimension"
    return f"{schema.n_columns} column{'s' if schema.n_columns != 1 else ''} (two dimensions)"


def _shorten(values: list) -> str:
    shown = ", ".join(repr(value) for value in values[:5])
    return f"[{shown}, ...]" if len(values) > 5 else f"[{shown}]"


def _check_values(
    dataset: Dataset, oracle: str, classes: ArrayLike | None, allow_nan: bool
) -> None:
    for name, container in zip(("X", "y", "sample_weight"), dataset, strict=False):
        place = find_non_finite(container, allow_nan and name == "X")
        if place is not None:
            raise ValueError(
                f"The oracle {oracle} returned {name} with a number that is missing or infinite, "
                f"in {place}. Impute such records, or leave them out of the oracle."
            )
    if classes is not None and len(dataset) > 1:
        labels = np.asarray(dataset[1])
        unknown = np.unique(labels[~np.isin(labels, np.asarray(classes))]).tolist()
        if unknown:
            raise ValueError(
                f"The oracle {oracle} returned the labels {_shorten(unknown)}. "
                f"They must be among the classes {_shorten(np.asarray(classes).tolist())}."
            )
