"""Checks of private data whose messages say nothing of a private value.

Under a plain promise no record is refused, as an error would tell that it is there: missing and
infinite numbers are for the clips or the estimator, and a label that is not public counts as the
first one. A type that may hold words is refused where numbers are needed. Under a sampled promise
gaps, infinite numbers, unknown labels and entries that are no numbers are refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Tags, assert_all_finite
from sklearn.utils.multiclass import check_classification_targets

from skdp.core.checks import shorten
from skdp.core.dataset import Dataset, belongs_to, n_records
from skdp.core.dtypes import holds_numbers, is_gap, is_object
from skdp.core.plain import (
    MISSING_LABELS,
    as_array,
    as_doubles,
    as_labels,
    as_objects,
    columns_of,
    dtypes_of,
    is_table,
    labels_among,
    numeric_parts,
    plain,
    refuse_types,
    with_doubles,
)
from skdp.core.types import Container, Matrix


def check_private_dataset(
    given: Dataset, tags: Tags, is_plain: bool, classes: list[NDArray] | None
) -> Dataset:
    """Return private data in plain containers, of types that follow from the declared ones."""
    X = _check_features(given.X, tags, is_plain)
    y, weights, n_samples = given.y, given.sample_weight, n_records(X)
    if y is not None:
        y = plain(y, "y", takes_lists=tags.estimator_type == "classifier" or not is_plain)
        y = _check_responses(y, n_samples, tags, is_plain, classes)
    return Dataset(X, y, None if weights is None else _check_weights(weights, n_samples))


def _check_responses(
    y: Container, n_samples: int, tags: Tags, is_plain: bool, classes: list[NDArray] | None
) -> NDArray:
    """Return labels in the type of the public ones, or as declared; other responses in doubles."""
    kind = tags.estimator_type
    if kind == "classifier" and classes is not None:
        y = labels_among(_responses(y), classes)
    elif kind != "classifier" and is_plain:
        refuse_types("y", y, lambda dtype: not holds_numbers(dtype), NO_NUMBERS)
        y = as_doubles(y)
    elif isinstance(y, list) and kind != "regressor" and len({*map(type, as_objects(y).flat)}) > 1:
        raise ValueError(MISSING_LABELS)  # else one of them would decide about the type of all
    else:  # a transformer may take words
        y = _as_floats(y, "y") if kind == "regressor" else as_labels(y)
    if y.ndim not in (1, 2) or len(y) != n_samples:
        raise ValueError(
            f"y must hold one response for each of the {n_samples} records of X. "
            f"Got shape {y.shape}."
        )
    if not is_plain or (kind == "classifier" and classes is None):
        check_response(y, kind == "classifier")
    return y


def _responses(y: Container) -> Container:
    """Return a list as an array of a response each, whatever they are: none makes it a table."""
    return np.fromiter(y, dtype=object, count=len(y)) if isinstance(y, list) else y


def check_response(y: NDArray, labels: bool) -> None:
    """Refuse responses that are missing or infinite, and what is no label."""
    flaw = _flaw_of(assert_all_finite, y, input_name="y")
    if labels and not flaw:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it comments on the number of labels
            flaw = _flaw_of(check_classification_targets, y)
    if flaw:
        raise ValueError(flaw.replace("Input contains", "Input y contains").rstrip(".") + ".")


def _flaw_of(check: Callable, *args: object, **options: object) -> str:
    """Return the message with which a check fails, empty if it does not."""
    try:
        check(*args, **options)
    except ValueError as error:
        return str(error)
    except TypeError:  # labels that have no order, such as those of pandas that are missing
        return MISSING_LABELS
    return ""


def _check_weights(weights: Container, n_samples: int) -> Matrix:
    weights = _as_floats(plain(weights, "sample_weight", takes_lists=True), "sample_weight")
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must hold one number for each of the {n_samples} records of X. "
            f"Got shape {weights.shape}."
        )
    assert_all_finite(weights, input_name="sample_weight")
    if (weights < 0).any():
        raise ValueError("sample_weight must not be negative, but some weights are.")
    return weights


def _check_features(X: Container, tags: Tags, is_plain: bool) -> Container:
    takes = tags.input_tags
    X = _as_table(plain(X, "X", takes_lists=not is_plain))
    if (takes.string or takes.dict) and len(X.shape) == 1 and not holds_numbers(X.dtype):
        if not is_plain and not all(hasattr(text, "__len__") for text in X):
            raise ValueError("X must hold a text for each record: make the missing ones empty.")
        return X
    if len(X.shape) != 2:
        raise ValueError(
            f"X must be two-dimensional, with a row for each record. Got {len(X.shape)} "
            "dimension(s). Take a single column as df[['age']], or X.reshape(-1, 1)."
        )
    if 0 in X.shape:
        raise ValueError(
            f"X has no records or columns: 0 {'sample' if X.shape[0] == 0 else 'feature'}(s) "
            f"(shape={X.shape}) while a minimum of 1 is required."
        )
    if is_table(X) and len(set(X.columns)) < len(X.columns):
        raise ValueError("X must have columns with names of their own. Got some that repeat.")
    dtypes = dtypes_of(X)
    if any(getattr(dtype, "kind", "") == "c" for dtype in dtypes):
        raise ValueError("Complex data not supported: X must be real.")
    takes_words = takes.categorical or takes.string
    if is_plain:
        if not takes_words:
            refuse_types("X", X, is_object, NO_NUMBERS)
        return with_doubles(X)
    X = X if takes_words else _with_floats(X)
    for _, numbers in numeric_parts(X):
        _check_finite(numbers, tags)
    return X


def _with_floats(X: Container) -> Container:
    """Return objects, and an array of words, as doubles; refuse an entry that is no number."""
    if not is_table(X):
        return X if holds_numbers(X.dtype) else _as_floats(X, "X")
    for column in columns_of(X):
        if is_object(column.dtype):
            _as_floats(column, f"X, in its column {column.name!r},")
    return with_doubles(X, is_object)


def _as_table(X: Container) -> Container:
    """Return what has no named columns as an array: by the names alone, and the declared types."""
    if isinstance(X, list):  # which declares no type
        return np.asarray(X, dtype=object)
    if not is_table(X):
        if belongs_to(X, "pandas", "polars"):
            return as_array(X)
        return X if sparse.issparse(X) else np.asarray(X)
    are_words = {isinstance(name, str) for name in X.columns}
    if len(are_words) > 1:
        raise TypeError("X must have column names of one type: X.columns = X.columns.astype(str).")
    return X if are_words == {True} else as_array(X)


def _check_finite(numbers: object, tags: Tags) -> None:
    """Refuse infinite and, unless the estimator takes them, missing numbers; do not say where."""
    allow_nan = tags.input_tags.allow_nan
    flaw = _flaw_of(assert_all_finite, numbers, input_name="X", allow_nan=allow_nan)
    if "NaN" in flaw:
        flaw += (
            " The estimator takes no missing values. Wrap a pipeline that begins with an imputer, "
            "and let the oracle yield missing values too. Leave columns out of X that it drops."
        )
    if flaw:
        raise ValueError(flaw)


NO_NUMBERS = (
    "objects or words{}, and numbers are needed: what is none would count as 0. Convert them, in "
    "the oracle's records and the private ones, as by astype(float)"
)


def _as_floats(values: Container, name: str) -> Matrix:
    """Return numbers as doubles; refuse an entry that is none, and do not say which."""
    numbers = as_doubles(values)
    gaps = np.isnan(numbers)
    if gaps.any() and not all(map(is_gap, as_objects(values)[gaps])):
        raise ValueError(
            f"{name} has an entry that does not convert: each argument must be a string of "
            "digits or a number."
        )
    return numbers


def check_labels(y: NDArray, classes: list[NDArray], needed: bool = False) -> None:
    """Refuse private labels that are not public, and a lack of public ones that are `needed`."""
    outputs = [*zip(y.reshape(len(y), -1).T, classes, strict=True)]
    public = ", ".join(shorten(labels.tolist()) for labels in classes)
    if not all(np.isin(column, labels).all() for column, labels in outputs):
        raise ValueError(
            f"y holds a label that is not public: the public ones are {public}. Declare all labels "
            "with the 'classes' parameter of PrivateEstimator, and let the oracle yield each. "
            "VotingClassifier and StackingClassifier turn labels into 0, 1 and so on: do so "
            "beforehand, by LabelEncoder().fit_transform(y), for the oracle too."
        )
    if needed and not all(np.isin(labels, column).all() for column, labels in outputs):
        raise ValueError(
            f"y must hold each of the public labels, which are {public}. Let the oracle yield, and "
            "'classes' declare, only labels that y has; members of OneVsRestClassifier see 0 and 1."
        )
