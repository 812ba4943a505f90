"""What a fitted estimator consists of: the attributes to release, estimator by estimator.

For each known estimator an entry says which fitted attributes determine its output. They are the
smallest such set, since every further number costs noise. All other attributes of the released
estimator are those of its public twin, or are recomputed from the released ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.utils import get_tags

from skdp.core.classes import ClassSet, ClassTable, public_name
from skdp.estimators.catalog import (
    decomposition,
    density,
    linear,
    preprocessing,
    probabilistic,
    substitutes,
)
from skdp.estimators.catalog.calibrators import calibrator_entry
from skdp.estimators.catalog.elsewhere import ELSEWHERE
from skdp.estimators.catalog.entry import Entry, always
from skdp.estimators.catalog.refused import REASONS
from skdp.estimators.catalog.substitutes import STAND_IN_ENTRIES, stand_in_of
from skdp.estimators.packing import is_float, shapes_of

__all__ = [
    "ELSEWHERE",
    "RECORD_ATTRIBUTES",
    "REFUSED",
    "REGISTRY",
    "Entry",
    "check_releasable",
    "is_stateless",
    "lookup",
    "register",
    "stand_in_of",
    "unserved",
]

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

_OWN: dict[str, Entry] = {
    **linear.ENTRIES,
    **probabilistic.ENTRIES,
    **decomposition.ENTRIES,
    **density.ENTRIES,
    **preprocessing.ENTRIES,
    **substitutes.ENTRIES,
}
REGISTRY = ClassTable(_OWN)
REFUSED = ClassTable(REASONS)
# Older versions of scikit-learn do not say so themselves.
_LEARN_NOTHING = ClassSet(
    [
        "sklearn.feature_extraction.FeatureHasher",
        "sklearn.feature_extraction.text.HashingVectorizer",
    ]
)


def is_stateless(estimator: Any) -> bool:
    """Return whether fitting changes nothing, so that there is nothing to release.

    By scikit-learn's tag `requires_fit`.
    """
    if estimator is None or isinstance(estimator, str):
        return True
    # A Gaussian process has a prior to predict from, so it claims to need no fit; but it learns.
    kind = type(estimator)
    return kind in _LEARN_NOTHING or (kind not in REFUSED and not get_tags(estimator).requires_fit)


def check_releasable(estimator: Any) -> None:
    """Refuse an estimator of which it is known, before any fit, that it cannot be released."""
    kind = type(estimator)
    entry = REGISTRY.get(kind)
    reason = REFUSED.get(kind) if entry is None else entry.refuse and entry.refuse(estimator)
    if reason:
        raise ValueError(
            f"PrivateEstimator cannot release {kind.__name__} with release='auto': {reason}."
        )


def entry_of(estimator: Any, path: Sequence[str] = ()) -> Entry | None:
    """Return the registry's entry for the exact class of `estimator`, None if there is none.

    A subclass may hold more than its base class does, so it is not covered by its entry. `path` has
    the names of the members that lead to it.
    """
    if path and ".calibrators[" in path[-1]:
        return calibrator_entry(estimator)
    kind = type(estimator)
    own = STAND_IN_ENTRIES.get(f"{kind.__module__}.{kind.__name__}")
    return REGISTRY.get(kind) if own is None else own


def unserved(estimator: Any) -> tuple[str, ...]:
    """Name the methods that need more of an estimator than is released of it."""
    entry = REGISTRY.get(type(estimator))
    return () if entry is None else entry.unserved


def lookup(estimator: Any, path: Sequence[str] = ()) -> Entry:
    """Return the registry's entry for an estimator, or say why there is none.

    The message then lists the fitted float attributes and the line to write.
    """
    check_releasable(estimator)
    entry = entry_of(estimator, path)
    if entry is None:
        raise ValueError(_unknown(estimator, path))
    return entry


def register(
    kind: type,
    attributes: Sequence[str] | Callable[[Any], tuple[str, ...]],
    finish: Callable[[Any, Any], None] | None = None,
    align: Callable[[dict[str, Any], Any], dict[str, Any]] | None = None,
) -> None:
    """Teach ``release="auto"`` a further class of estimators.

    Parameters
    ----------
    kind : type
        The class. Its subclasses are not covered.
    attributes : sequence of str, or callable
        The fitted attributes that determine the output, the fewer the better: arrays of floats,
        or lists of them, whose shapes do not depend on the data. Or ``attributes(estimator)``,
        which returns them for a configuration.
    finish : callable or None, default=None
        ``finish(released, twin)`` changes `released` in place: it repairs noised values that went
        out of range and recomputes what follows from them. Everything else is that of the twin,
        the estimator fitted on public records.
    align : callable or None, default=None
        ``align(values, twin)`` returns the released values, a dict by name, in a canonical form,
        such as with the signs and the order that they have in the twin.

    Raises
    ------
    TypeError
        If `kind` is no class.
    ValueError
        If the class is one that the library decides about itself, or `attributes` is empty.

    Examples
    --------
    >>> import numpy as np
    >>> import skdp
    >>> from sklearn.base import BaseEstimator, RegressorMixin
    >>> class Mean(RegressorMixin, BaseEstimator):
    ...     def fit(self, X, y):
    ...         self.mean_ = np.mean(y)
    ...         return self
    ...
    ...     def predict(self, X):
    ...         return np.full(len(X), self.mean_)
    >>> skdp.register(Mean, ["mean_"])
    >>> X, y = np.zeros((50, 1)), np.linspace(0, 1, 50)
    >>> model = skdp.PrivateEstimator(
    ...     Mean(), mechanism=skdp.LaplaceMechanism(epsilon=1.0), sensitivity=1 / 50
    ... )
    >>> bool(abs(model.fit(X, y).predict(X)[0] - 0.5) < 1)
    True
    """
    if not isinstance(kind, type):
        raise TypeError(
            "The 'kind' parameter of register must be a class of estimators. Got an object of "
            f"type {type(kind).__name__}."
        )
    if public_name(kind) in _OWN or kind in REFUSED or kind in ELSEWHERE:
        raise ValueError(
            f"The 'kind' parameter of register must be a class of your own. Got {kind.__name__}, "
            "about which the library has decided. Name attributes in 'release' instead."
        )
    if callable(attributes):
        REGISTRY.added[kind] = Entry(attributes, finish, align)
        return
    names = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    if not names:
        raise ValueError("The 'attributes' parameter of register must name at least one attribute.")
    REGISTRY.added[kind] = Entry(always(*names), finish, align)


def _unknown(estimator: Any, path: Sequence[str]) -> str:
    kind = type(estimator).__name__
    arrays = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and is_float(value)
    }
    start = (
        f"The 'release' parameter of PrivateEstimator is 'auto', which does not know {kind} "
        "(see skdp.supported_estimators)."
    )
    if not arrays:
        return f"{start} Its fit leaves no attributes of floats that could be released."
    shown = ", ".join(f"{name} of shape {_shape(value)}" for name, value in arrays.items())
    names = ["__".join((*path, name)) for name in arrays]
    return (
        f"{start} Its fitted floats are {shown}. Keep those that determine its output and write "
        f"release={names}, or once for all: skdp.register({kind}, {list(arrays)})."
    )


def _shape(value: Any) -> str:
    shapes = shapes_of(value)
    return str(shapes[0]) if len(shapes) == 1 else str(list(shapes))
