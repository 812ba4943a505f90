"""Public components: a plan sets their number, and learns them from public records."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from skdp.codes.encoder import n_components
from skdp.core.dataset import Dataset
from skdp.core.types import Estimator
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.estimators.components import PublicComponents
from skdp.estimators.public_fit import fit_seeded
from skdp.planning.labels import labels_in, outputs_of
from skdp.planning.ways import Way


def with_components(way: Way, records: Dataset) -> Way:
    """Return the way with all PublicComponents of its estimator learned and frozen."""
    estimator = way.given.estimator
    names = sorted(_names_in(estimator), key=lambda name: -name.count("__"))  # members first
    if not names:
        return way
    from sklearn.frozen import FrozenEstimator  # its import takes time

    y, n, epsilon = records.y, records.n_records, way.given.mechanism.guarantee().epsilon
    n_classes = 2 if y is None else 2 * len(outputs_of(y))
    if is_classifier(estimator):
        n_classes = sum(map(len, labels_in(y)))
    chosen = n_components(n, epsilon, n_classes)
    rule = f"sqrt(n epsilon / {5 * n_classes}), for n = {n} and epsilon = {epsilon:g}"
    estimator = clone(estimator)
    for name in names:
        frozen = FrozenEstimator(_learned(estimator, name, chosen, rule))
        estimator.set_params(**{name: frozen})
    given: Any = SimpleNamespace(**vars(way.given) | {"estimator": estimator})
    way = copy.copy(way)  # which keeps all else that was settled of it
    way.given = given
    return way


def _names_in(estimator: Estimator) -> Iterator[str]:
    """Name the nested PublicComponents that are not frozen."""
    members = estimator.get_params(deep=True)
    for name, value in members.items():
        owner = members.get(name.rpartition("__")[0])
        if isinstance(value, PublicComponents) and not is_frozen(owner):
            yield name


def _learned(estimator: Estimator, name: str, chosen: int, rule: str) -> PublicComponents:
    """Learn the components from public records that passed the steps in front."""
    members = estimator.get_params(deep=True)
    path, _, step_name = name.rpartition("__")
    owner, step = members.get(path, estimator), members[name]
    X, place = step.X_public, 0
    if is_pipeline(owner):
        place = [each for each, _ in owner.steps].index(step_name)
    if place:
        X = fit_seeded(clone(owner[:place]), Dataset(X)).transform(X)
    number, how = step.n_components, "as given"
    if number is None:
        number, how = min(chosen, *np.shape(X)), rule
    learned = PublicComponents(X, number).fit(X).set_params(X_public=None)
    learned.description_ = f"{number} of {learned.n_features_in_}: {how}"
    return learned
