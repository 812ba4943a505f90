"""Statistics of counts; the proofs are in the user guide, "Sensitivities on paper"."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from skdp.core.checks import shown
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.catalog.repairs import on_simplex
from skdp.estimators.moments import with_constant
from skdp.estimators.statistics import OfClasses

MOST_CATEGORIES = 10**6


class Counts(OfClasses):
    """Class counts and sums of each column and class, for a MultinomialNB."""

    name = "class_sums"

    def _bound(self, estimator: Estimator) -> None:
        """Two records of a class differ by less than two of other classes: nothing is negative."""
        super()._bound(estimator)
        if (self.front.low < 0).any():
            raise ValueError(
                f"{type(estimator).__name__} counts amounts, which are not negative. Put "
                "ClipBox(0, high) before it, or before the ClipNorm that stands there."
            )
        self.constant = self.front.radius / 2
        self.shape = (len(self.classes), self.n_features + 1)
        self.largest = math.hypot(self.front.radius, self.constant)
        self.l2 = math.sqrt(2) * self.largest
        self.l1 = 2 * (self.front.absolute + self.constant)

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        released.feature_count_ = n_samples * mean[:, :-1]
        released.class_count_ = n_samples * mean[:, -1] / self.constant


class Bits(OfClasses):
    """Class counts and how often each bit, taken as 1/2 or -1/2, is set, for a BernoulliNB."""

    name = "class_sums"
    needs_clip = False  # a record is made of bits, whatever it was

    def _bound(self, estimator: Estimator) -> None:
        """Within a class all bits may change; choose the largest constant that adds nothing."""
        super()._bound(estimator)
        self.threshold, d = estimator.binarize, self.n_features
        if self.threshold is None and ((self.front.low < 0) | (self.front.high > 1)).any():
            raise ValueError(
                "BernoulliNB(binarize=None) takes its records for bits. Put ClipBox(0, 1) right "
                "before it, or give it a public threshold in 'binarize'."
            )
        self.constant = math.sqrt(d) / 2
        self.shape = (len(self.classes), d + 1)
        self.l2, self.l1 = math.sqrt(d), d + 2 * self.constant
        self.largest = math.sqrt(d / 2)

    def features(self, X: Container) -> Matrix:
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        bits = dense if self.threshold is None else dense > self.threshold
        return np.asarray(with_constant(bits - 0.5, self.constant))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        released.class_count_ = n_samples * mean[:, -1] / self.constant
        released.feature_count_ = n_samples * mean[:, :-1] + released.class_count_[:, None] / 2


class Shares(OfClasses):
    """The share of each class, for a DummyClassifier."""

    name = "class_prior_"
    needs_clip = False  # it reads no feature

    def _bound(self, estimator: Estimator) -> None:
        """A changed record moves its weight from one share to another."""
        super()._bound(estimator)
        if estimator.strategy in ("uniform", "constant"):
            raise ValueError(
                "A DummyClassifier learns nothing with the 'uniform' and the 'constant' strategy, "
                f"so that nothing is to be released. Got {shown(estimator.strategy)}."
            )
        self.shape = (len(self.classes), 1)
        self.l1, self.l2, self.largest = 2.0, math.sqrt(2), 1.0

    def features(self, X: Container) -> Matrix:
        return np.ones((X.shape[0], 1))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
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
        categories = np.clip(np.asarray(X).astype(np.intp), 0, self.numbers - 1)
        places = categories + np.cumsum(self.numbers) - self.numbers
        n, d = places.shape
        parts = (np.ones(n * d), places.ravel(), np.arange(0, n * d + 1, d))
        return sparse.csr_array(parts, shape=(n, self.shape[1]))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        ends = np.cumsum(self.numbers)[:-1]
        released.category_count_ = np.split(n_samples * mean, ends, axis=1)
        released.n_categories_ = self.numbers.copy()
