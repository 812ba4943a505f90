"""Checks of private data whose messages say nothing of a private value."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from skdp.core.checks import shorten
from skdp.core.dataset import Dataset, column_names, n_records, numeric_parts
from skdp.core.types import Container
from skdp.estimators.dates import NO_DATES, are_dates


def check_private_dataset(
    X: Container, y: Container, weights: Container, tags: Tags, any_number: bool = False
) -> Dataset:
    """Check the form of private data, and the numbers unless any is taken; lists become arrays."""
    X = _check_features(X, tags, any_number)
    if y is None:
        return Dataset(X)
    y = np.asarray(y)
    if y.ndim not in (1, 2) or len(y) != n_records(X):
        raise ValueError(
            f"y must hold one response for each of the {n_records(X)} records of X. "
            f"Got shape {y.shape}."
        )
    if tags.estimator_type == "regressor" and y.dtype.kind == "O" and not any_number:
        y = _as_floats(y, "y")
    if tags.estimator_type != "classifier":
        _refuse_dates(y, "y")
    check_response(y, tags.estimator_type == "classifier", any_number)
    if tags.estimator_type == "classifier":
        y = _as_words(y)
    return Dataset(X, y, None if weights is None else _check_weights(weights, n_records(X)))


def check_response(y: NDArray, labels: bool, any_number: bool = False) -> None:
    """Refuse responses that are missing or infinite, unless any is taken, and what is no label."""
    flaw = None
    try:
        if not any_number:
            assert_all_finite(y, input_name="y")
        if labels:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it comments on the number of labels
                check_classification_targets(y)
    except ValueError as error:
        flaw = str(error).replace("Input contains", "Input y contains").rstrip(".") + "."
    except TypeError:  # labels that have no order, such as those of pandas that are missing
        flaw = "Input y contains labels that are missing, or of several types."
    if flaw is not None:
        remedy = (
            " An oracle is told the labels by 'classes', as in RandomTaskOracle(X, classes=...)."
        )
        raise ValueError(flaw + remedy * ("Unknown label type" in flaw))


def _as_words(y: NDArray) -> NDArray:
    """Return labels that are strings in the one form that frames, lists and arrays of them have."""
    if y.dtype.kind != "O" or not all(isinstance(label, str) for label in y.flat):
        return y
    words = y.astype(np.str_)
    return words if np.array_equal(words, y) else y  # an array drops the zeros at the end of a text


def _check_weights(weights: Container, n_samples: int) -> NDArray[np.float64]:
    weights = np.asarray(weights)
    if weights.dtype.kind not in "fiub" or weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must hold one number for each of the {n_samples} records of X. "
            f"Got shape {weights.shape}, dtype {weights.dtype}."
        )
    assert_all_finite(weights, input_name="sample_weight")
    if (weights < 0).any():
        raise ValueError("sample_weight must not be negative, but some weights are.")
    return weights.astype(np.float64)


def _check_features(X: Container, tags: Tags, any_number: bool) -> Container:
    given, names = X, column_names(X)
    if names is None and not sparse.issparse(X):
        X = np.asarray(X)
    if tags.input_tags.string and len(X.shape) == 1 and X.dtype.kind in "OU" and len(X):
        if not all(hasattr(text, "__len__") or hasattr(text, "read") for text in X):
            raise ValueError(
                "X must hold a text for each record, and some are missing or numbers. Make the "
                "missing ones empty."
            )
        return X  # texts, for a vectorizer
    if len(X.shape) != 2 or 0 in X.shape:
        _refuse_shape(X.shape, is_series=hasattr(given, "to_frame"))
    if names is not None and len(set(names)) < len(names):
        raise ValueError("X must have columns with names of their own. Got some that repeat.")
    if any_number:
        return X
    if names is None:
        return _check_numbers(X, tags)
    for name in names:
        if X[name].dtype == object:  # which an encoder may take beside a scaler
            _refuse_dates(X[name], f"X, in the column {name!r},")
    for _, numbers in numeric_parts(X):
        _check_finite(numbers, tags)
    if not (tags.input_tags.categorical or tags.input_tags.string):
        for name in names:
            if X[name].dtype == object:
                _check_finite(_as_floats(np.asarray(X[name])), tags)
    return X


def _check_finite(numbers: object, tags: Tags) -> None:
    """Refuse infinite and, unless the estimator takes them, missing numbers; do not say where."""
    flaw = None
    try:
        assert_all_finite(numbers, input_name="X", allow_nan=tags.input_tags.allow_nan)
    except ValueError as error:
        flaw = str(error)
    if flaw is not None:
        remedy = (
            " The estimator takes no missing values. Wrap a pipeline that begins with an imputer, "
            "and let the oracle yield missing values too. Leave columns out of X that it drops."
        )
        raise ValueError(flaw + remedy if "NaN" in flaw else flaw)


def _refuse_shape(shape: tuple[int, ...], is_series: bool) -> None:
    if len(shape) != 2:
        remedy = "Take a single column as df[['age']]" if is_series else "Reshape a single feature"
        remedy += "." if is_series else " with X.reshape(-1, 1)."
        raise ValueError(
            f"X must be two-dimensional, with a row for each record. Got an array with "
            f"{len(shape)} dimension(s). {remedy}"
        )
    what = "sample(s)" if shape[0] == 0 else "feature(s)"
    raise ValueError(f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required.")


def _check_numbers(X: Container, tags: Tags) -> NDArray:
    _refuse_dates(X, "X")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: X must be real.")
    if X.dtype.kind == "O" and not (tags.input_tags.categorical or tags.input_tags.string):
        X = _as_floats(X)
    if X.dtype.kind == "f":
        numbers = X.tocsr() if sparse.issparse(X) else X  # not every sparse format has them ready
        _check_finite(numbers, tags)
    return X


def _refuse_dates(values: Container, name: str) -> None:
    """Refuse what would be read as numbers, a missing one as the least of all."""
    if are_dates(values):
        raise ValueError(f"{name} holds dates or durations, which are no numbers. {NO_DATES}.")


def _as_floats(X: NDArray, name: str = "X") -> NDArray[np.float64]:
    _refuse_dates(X, name)
    failure: type[Exception] | None = None
    try:
        numbers = X.astype(np.float64)
    except (TypeError, ValueError) as error:
        failure = type(error)
    if failure is not None:  # raised here, so that no traceback leads to the entry
        raise failure(
            f"{name} has dtype object and an entry that does not convert: each argument must be a "
            "string of digits or a number."
        )
    return numbers


def check_labels(y: NDArray, classes: list[NDArray]) -> None:
    """Refuse private labels that are not among the public ones of their output; name none."""
    columns = y.reshape(len(y), -1).T
    if not all(np.isin(*each).all() for each in zip(columns, classes, strict=True)):
        named = [shorten(labels.tolist()) for labels in classes]
        raise ValueError(
            "y holds a label that is not public: the public ones are "
            f"{', '.join(named)}. Declare all labels with the 'classes' "
            "parameter of PrivateEstimator, and let the oracle yield each of them."
        )
