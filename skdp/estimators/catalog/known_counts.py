"""Histograms, of classes alone and of categories; the proofs are in the user guide."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from skdp.core.checks import shown
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.catalog.repairs import on_simplex
from skdp.estimators.statistics import OfClasses

MOST_CATEGORIES = 10**6


class Shares(OfClasses):
    """The share of each class, for a DummyClassifier."""

    name = "class_prior_"
    needs_clip = False  # it reads no feature

    def _bound(self, estimator: Estimator) -> None:
        """A record takes its weight from one share to another."""
        super()._bound(estimator)
        if estimator.strategy in ("uniform", "constant"):
            raise ValueError(
                "A DummyClassifier learns nothing with the 'uniform' and the 'constant' strategy, "
                f"so that nothing is to be released. Got {shown(estimator.strategy)}."
            )
        self.shape = (len(self.classes), 1)
        self.l1, self.l2, self.largest = 2.0, math.sqrt(2), 1.0

    def features(self, X: Container) -> Matrix:
        """Return 1 for each record."""
        return np.ones((X.shape[0], 1))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Set the shares."""
        released.class_prior_ = on_simplex(mean[:, 0])


class Categories(OfClasses):
    """Counts of each category of each column in each class, for a CategoricalNB."""

    name = "category_shares"
    needs_clip = False  # it needs a box

    def _bound(self, estimator: Estimator) -> None:
        """A record is in one category of each column."""
        super()._bound(estimator)
        low, high = self.front.low, self.front.high
        if not ((low >= 0) & (high < MOST_CATEGORIES)).all():
            raise ValueError(
                "CategoricalNB takes its records for numbers of categories, and how many there are "
                "must be public. Put ClipBox(0, highest) right before it, with a highest number "
                f"below {MOST_CATEGORIES}."
            )
        declared = 0 if estimator.min_categories is None else np.asarray(estimator.min_categories)
        self.numbers = np.maximum(np.floor(high).astype(np.intp) + 1, declared)
        self.shape = (len(self.classes), int(self.numbers.sum()))
        d = self.n_features
        self.l1, self.l2, self.largest = 2.0 * d, math.sqrt(2 * d), math.sqrt(d)

    def features(self, X: Container) -> Container:
        """Return a 1 for the category of each column."""
        categories = np.clip(np.asarray(X).astype(np.intp), 0, self.numbers - 1)
        places = categories + np.cumsum(self.numbers) - self.numbers
        n, d = places.shape
        parts = (np.ones(n * d), places.ravel(), np.arange(0, n * d + 1, d))
        return sparse.csr_array(parts, shape=(n, self.shape[1]))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Set the counts of each column."""
        ends = np.cumsum(self.numbers)[:-1]
        released.category_count_ = np.split(n_samples * mean, ends, axis=1)
        released.n_categories_ = self.numbers.copy()
