"""The catalog: how each class is released, by the fewest fitted attributes that fix its output."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sklearn.utils import get_tags

from skdp.core.classes import ClassTable, public_name
from skdp.core.types import Estimator, Values
from skdp.estimators.catalog import (
    compositions,
    density,
    linear,
    preprocessing,
    probabilistic,
    refused,
)
from skdp.estimators.catalog.entry import Entry, Traits, by_class
from skdp.estimators.packing import is_float, shapes_of

# Attributes that describe the records of a fit and not the fitted function. In the public fit they
# describe records of the oracle, and say nothing about the released estimator.
_OF_RECORDS = (
    "dual_gap_ inertia_ labels_ loss_curve_ n_iter_ rank_ singular_ support_ support_vectors_ t_"
)
RECORD_ATTRIBUTES = frozenset(_OF_RECORDS.split())

_KINDS = (linear, probabilistic, density, preprocessing, compositions, refused)
_ENTRIES = {name: e for kind in _KINDS for name, e in by_class(kind.ENTRIES).items()}
CATALOG = ClassTable(_ENTRIES)
_UNKNOWN = Entry()


def entry_of(estimator: Estimator) -> Entry:
    """Return the entry of the exact class of an estimator, an empty one if there is none."""
    kind = type(estimator)
    stands_for_base = kind.__module__ == "skdp.estimators.linear_kernel"
    return (CATALOG.inherited if stands_for_base else CATALOG.get)(kind, _UNKNOWN)


def traits_of(estimator: Estimator) -> Traits:
    """Return the entry of the nearest known base class: how records and members are treated."""
    return CATALOG.inherited(type(estimator), _UNKNOWN)


def released_entry(estimator: Estimator) -> Entry | None:
    """Return the entry by which the exact class of an estimator is released, if any."""
    entry = entry_of(estimator)
    return None if entry.attributes is None else entry


def is_stateless(estimator: Estimator) -> bool:
    """Return whether fitting changes nothing, by the catalog or a tag of scikit-learn."""
    if compositions.is_placeholder(estimator):
        return True
    entry = entry_of(estimator)
    # A Gaussian process can predict from its prior, so it claims to need no fit, but it does learn.
    is_refused = isinstance(entry.refuse, str)
    return entry.learns_nothing or not (is_refused or get_tags(estimator).requires_fit)


def check_releasable(estimator: Estimator) -> None:
    """Refuse, before any fit, an estimator that cannot be released."""
    reason = entry_of(estimator).reason(estimator)
    if reason:
        raise ValueError(
            f"PrivateEstimator cannot release {type(estimator).__name__} with release='auto': "
            f"{reason}."
        )


def lookup(estimator: Estimator, path: Sequence[str] = ()) -> Entry:
    """Return the entry by which an estimator is released, or refuse an unknown class."""
    check_releasable(estimator)
    entry, kind = released_entry(estimator), type(estimator)
    if entry is not None:
        return entry
    attributes = vars(estimator).items()
    shapes = shapes_of(
        {
            name: value
            for name, value in attributes
            if name.endswith("_") and not name.startswith("_") and is_float(value)
        }
    )
    start = (
        "The 'release' parameter of PrivateEstimator is 'auto', which does not know "
        f"{kind.__module__.partition('.')[0]}.{kind.__name__} (see skdp.supported_estimators)."
    )
    if not shapes:
        raise ValueError(
            f"{start} Its fit leaves no floats that could be released: if it learns nothing, call "
            f"skdp.register({kind.__name__}, []) once, with up to 3 features release the function "
            "through BernsteinTransformer, or use an estimator that is supported."
        )
    found = [f"{name} of shape {[*each] if each[1:] else each[0]}" for name, each in shapes.items()]
    raise ValueError(
        f"{start} Its fitted floats are {', '.join(found)}. Keep those that determine its output "
        f"and write release={['__'.join((*path, name)) for name in shapes]}, or once for all: "
        f"skdp.register({kind.__name__}, {list(shapes)})."
    )


def register(
    kind: type,
    attributes: Sequence[str] | Callable[[Estimator], tuple[str, ...]],
    finish: Callable[[Estimator, Estimator], None] | None = None,
    align: Callable[[Values, Estimator], Values] | None = None,
) -> None:
    """Teach ``release="auto"`` a further class of estimators.

    Parameters
    ----------
    kind : type
        The class. Its subclasses are not covered.
    attributes : sequence of str, or callable
        The fitted attributes that determine the output, the fewer the better: arrays of floats,
        or lists of them, whose shapes do not depend on the data. Or ``attributes(estimator)``,
        which returns them for a configuration. An empty list says that fitting learns nothing.
    finish : callable or None, default=None
        ``finish(released, public_fit)`` changes `released` in place: it repairs noised values that
        went out of range and recomputes what follows from them. Everything else is that of the
        public fit, the estimator fitted on public records.
    align : callable or None, default=None
        ``align(values, public_fit)`` returns the released values, a dict by name, in a canonical
        form, such as with the signs and the order that they have in the public fit.

    Raises
    ------
    TypeError
        If `kind` is no class.
    ValueError
        If the class is one that the library decides about itself.

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
    if public_name(kind) in _ENTRIES:
        raise ValueError(
            f"The 'kind' parameter of register must be a class of your own. Got {kind.__name__}, "
            "about which the library has decided. Name attributes in 'release' instead."
        )
    if not callable(attributes):
        attributes = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    CATALOG.added[kind] = Entry(
        learns_nothing=attributes == (), attributes=attributes, finish=finish, align=align
    )


class SupportedEstimator(NamedTuple):
    """A class that ``release="auto"`` knows, with what is released at its default parameters.

    `numbers` says how many, with d features and k classes, outputs, components or clusters (k = 1
    for two classes of a linear classifier); it is empty for a class of your own.
    """

    name: str
    kind: str
    released: tuple[str, ...]
    numbers: str


def supported_estimators() -> list[SupportedEstimator]:
    """List the estimators that ``release="auto"`` knows.

    Registered classes of your own are among them. Beside these, it knows what is made of them,
    such as pipelines, and everything that learns nothing in fit. Listing the classes imports them.

    Returns
    -------
    list of SupportedEstimator
        In alphabetical order: name, kind, what is released, and how many numbers these are.

    Examples
    --------
    >>> from skdp import supported_estimators
    >>> [line for line in supported_estimators() if line.name == "KMeans"]
    [SupportedEstimator(name='KMeans', kind='clusterer', released=('cluster_centers_',),
        numbers='k d')]
    """
    lines = [_line(kind, entry) for kind, entry in released_classes().items()]
    return sorted(lines, key=lambda line: line.name.lower())


def released_classes() -> ClassTable[Entry]:
    """Return the entries of all classes that are released by their attributes."""
    return CATALOG.where(lambda entry: entry.attributes is not None)


def refused_classes() -> ClassTable[Entry]:
    """Return the entries of all classes that are refused whatever their configuration."""
    return CATALOG.where(lambda entry: isinstance(entry.refuse, str))


def _line(kind: type, entry: Entry) -> SupportedEstimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of classes that are deprecated
        try:
            example: Estimator = kind()
        except TypeError:  # a class of the user that has required parameters
            return SupportedEstimator(kind.__name__, "", (), entry.numbers)
    said = get_tags(example).estimator_type
    if said in {"density_estimator", None}:
        said = "transformer" if hasattr(example, "transform") else "density"
    return SupportedEstimator(kind.__name__, said, entry.names(example), entry.numbers)
