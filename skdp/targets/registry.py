"""What a fitted estimator consists of: the attributes to release, estimator by estimator.

For each known estimator an entry says which fitted attributes determine its output. They are the
smallest such set, since every further number costs noise. All other attributes of the released
estimator are those of its public twin, or are recomputed from the released ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils import get_tags

# Attributes that describe the records of a fit and not the fitted function. On the twin they
# describe the oracle's records: no secret, but no fact about the released estimator either.
RECORD_ATTRIBUTES = frozenset(
    {
        "dual_gap_",
        "inertia_",
        "labels_",
        "loss_curve_",
        "n_iter_",
        "n_samples_seen_",
        "rank_",
        "singular_",
        "support_",
        "support_vectors_",
        "t_",
    }
)


@dataclass(frozen=True)
class Entry:
    """How one kind of estimator is released.

    Parameters
    ----------
    attributes : callable
        ``attributes(fitted)`` names the fitted attributes to release.
    finish : callable or None, default=None
        ``finish(released, twin)`` repairs the noised attributes and recomputes those derived from
        them. It sees released values and the public twin only.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from skdp.targets.registry import REGISTRY
    >>> REGISTRY[LinearSVC].attributes(LinearSVC())
    ('coef_', 'intercept_')
    """

    attributes: Callable[[Any], tuple[str, ...]]
    finish: Callable[[Any, Any], None] | None = None


def _linear_model(fitted: Any) -> tuple[str, ...]:
    return ("coef_", "intercept_") if fitted.fit_intercept else ("coef_",)


def _standard_scaler(fitted: Any) -> tuple[str, ...]:
    return ("mean_",) * bool(fitted.with_mean) + ("var_",) * bool(fitted.with_std)


def _rescale(released: StandardScaler, twin: StandardScaler) -> None:
    """Recompute the scale; a variance that noise made negative becomes the twin's."""
    if released.with_std:
        released.var_ = np.where(released.var_ < 0, twin.var_, released.var_)
        released.scale_ = np.where(released.var_ == 0, 1.0, np.sqrt(released.var_))


REGISTRY: dict[type, Entry] = {
    ElasticNet: Entry(_linear_model),
    Lasso: Entry(_linear_model),
    LinearRegression: Entry(_linear_model),
    LinearSVC: Entry(_linear_model),
    LinearSVR: Entry(_linear_model),
    LogisticRegression: Entry(_linear_model),
    Perceptron: Entry(_linear_model),
    Ridge: Entry(_linear_model),
    RidgeClassifier: Entry(_linear_model),
    SGDClassifier: Entry(_linear_model),
    SGDRegressor: Entry(_linear_model),
    StandardScaler: Entry(_standard_scaler, _rescale),
}


def is_stateless(estimator: Any) -> bool:
    """Tell whether fitting changes nothing, so that there is nothing to release.

    Parameters
    ----------
    estimator : estimator object, "passthrough" or None
        A step of a pipeline.

    Returns
    -------
    bool
        By scikit-learn's tag `requires_fit`.
    """
    return estimator is None or estimator == "passthrough" or not get_tags(estimator).requires_fit


def lookup(estimator: Any) -> Entry:
    """Return the registry's entry for the exact class of `estimator`.

    A subclass may hold more than its base class does, so it is not covered by its entry.

    Parameters
    ----------
    estimator : estimator object
        Fitted or not.

    Returns
    -------
    Entry
        How it is released.

    Raises
    ------
    ValueError
        If the class is not in the registry; names the classes that are, and the remedy.
    """
    entry = REGISTRY.get(type(estimator))
    if entry is None:
        known = ", ".join(sorted(kind.__name__ for kind in REGISTRY))
        raise ValueError(
            "The 'release' parameter of PrivateEstimator is 'auto', which knows "
            f"{known} and pipelines of them. Got {type(estimator).__name__}. Name the fitted "
            "attributes that determine its output, such as release=['coef_', 'intercept_']."
        )
    return entry
