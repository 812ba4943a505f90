"""The oracle for public features without labels."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array

from skdp.core.checks import floats, is_real, shown
from skdp.core.dataset import Dataset, column_names, n_columns, n_records, take_records
from skdp.core.persons import Persons
from skdp.core.types import Container, Sample
from skdp.oracles.shipped import ShippedOracle, as_persons

_JITTER = 1e-6
_MIXED = 0.1  # default share of labels that are shuffled
_GAPS = ("nan", "None", "NaT", "<NA>")  # texts of missing entries of frames
_ALIKE = 0.3  # default share of persons whose records all have one label
_LEAST_PER_CLASS = 2  # a pair may leave one out
_LEAST_SHARE = 0.05  # default share of the rarest class of any dataset, at least


class RandomTaskOracle(ShippedOracle):
    """Resample public features and label each dataset by a random linear rule of its own.

    For the commonest case: features like the private ones are public, their responses are not. Each
    dataset draws a rule first and its noise second, so the promise covers pairs from a task drawn
    at random (a dataset-level oracle).

    A rule gives each feature, in units of its public standard deviation, a weight from N(0, 1); its
    scores are brought to mean 0 and variance 1 over the dataset.

    - *Real response*: ``y_mean + y_scale * (score + noise * N(0, 1))``.
    - *Classes*: each class but the last has a rule and takes, in random order, the highest scores
      among the records that are left. For two classes this is the sign of one score against a
      random threshold. Then a share `noise` of the records shuffle their labels.

    Parameters
    ----------
    X : array-like, sparse matrix, or frame of pandas or polars, shape (n_records, n_features)
        The public records, finite. Referenced, not copied (lists are). A constant feature has no
        weight. A frame may hold categories and strings, each value of which counts as a feature, or
        each word that 1 % of the records have where most values are different. Missing entries
        count as the mean of numbers and as no category.
    classes : array-like of shape (n_classes,), default=None
        The labels; with None the response is real.
    noise : float or None, default=None
        With classes, the share of records that shuffle their labels, in [0, 1]; None is .1. With a
        real response, the standard deviation of the deviations from the rule, in units of
        `y_scale`; None is 1. Take less only where the features are known to explain most of the
        response, since a record changes a regression by as much as it deviates.
    class_shares : array-like of shape (n_classes,), default=None
        Public shares of the classes, in the order of `classes`, positive and scaled to sum 1. With
        None each dataset draws its own. Every class has at least two records, so that both datasets
        of a pair hold it.
    least_share : float in [0, 1 / n_classes], default=None
        Without `class_shares`, the smallest share of a class: the shares of a dataset are
        ``least_share + (1 - n_classes * least_share) * Dirichlet(1/2, ..., 1/2)``. None is
        ``min(0.05, 1 / (2 * n_classes))``. Of two classes 0.3 says that they are near balance.
    y_mean : float, default=0.0
        Center of a real response, in its unit.
    y_scale : float, default=None
        Standard deviation of the rule for a real response, in its unit. It must be given where
        there are no `classes`, since the sensitivity of a regression grows with it.
    groups : array-like of shape (n_records,), str or None, default=None
        The ids of the persons whom the records belong to, or the name of the column of X that has
        them. The oracle then resamples persons, each with all records, for a release with groups.
    person_noise : float in [0, 1] or None, default=None
        With `groups`, the share of persons whose records all have one response, that of a record
        drawn at random; None is .3. Without such persons a sampled sensitivity hardly covers those
        whose responses go together for a reason that no feature shows.

    Attributes
    ----------
    classes_ : ndarray or None
        The sorted labels.
    y_scale : float or None
        As given.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import RandomTaskOracle
    >>> oracle = RandomTaskOracle(np.arange(20.0).reshape(10, 2), classes=["no", "yes"])
    >>> X, y = oracle(6, np.random.default_rng(0))
    >>> X.shape, sorted(set(y.tolist()))
    ((6, 2), ['no', 'yes'])
    """

    independent_records = False

    def __init__(
        self,
        X: Container,
        *,
        classes: ArrayLike | None = None,
        noise: float | None = None,
        class_shares: ArrayLike | None = None,
        least_share: float | None = None,
        y_mean: float = 0.0,
        y_scale: float | None = None,
        groups: Container = None,
        person_noise: float | None = None,
    ) -> None:
        said = self._set_classes(classes) or f"y_mean={y_mean}, y_scale={y_scale}"
        self._X = self._table = self._checked_table(X)  # by which private records are recognized
        self._persons = as_persons(self._X, None, groups)
        self._X = self._X if self._persons is None else self._persons.rows.X
        self._n_records = n_records(self._X)
        self._values = self._X if column_names(self._X) is None else _as_numbers(self._X)
        self._weight_scale = _inverse_scale(self._values)
        labeled = classes is not None
        most = 1 if labeled else np.finfo(float).max
        self._noise = (_MIXED if labeled else 1.0) if noise is None else noise
        if not 0 <= self._noise <= most:
            rule = "be in [0, 1] with 'classes', else in [0, inf)"
            self._refuse("noise", rule, shown(noise))
        self._person_noise = _ALIKE if person_noise is None else person_noise
        fits = is_real(self._person_noise) and 0 <= self._person_noise <= 1
        if not fits or (groups is None and person_noise is not None):
            self._refuse(
                "person_noise", "be in [0, 1] with 'groups', else None", shown(person_noise)
            )
        if labeled and (y_mean != 0 or y_scale is not None):
            rule = "be left alone when 'classes' is given, like 'y_mean'"
            self._refuse("y_scale", rule, f"y_mean={y_mean}, y_scale={y_scale}")
        if not labeled and not (np.isfinite(y_mean) and y_scale and 0 < y_scale < np.inf):
            rule = "be the plausible spread of a real response, positive and finite, and 'y_mean' "
            self._refuse("y_scale", f"{rule}its center, unless 'classes' names labels", said)
        self._y_mean, self.y_scale = y_mean, y_scale
        self.responses = "labels" if labeled else "numbers"
        self._class_shares = None
        if class_shares is not None:
            self._class_shares = self._checked_shares(class_shares)
        self.least_share = self._least_share_of(least_share)
        super().__init__(
            f"n_records={self._n_records}",
            f"n_features={n_columns(self._X)}",
            said if labeled else f"y_mean={y_mean:g}, y_scale={y_scale:g}",
            f"noise={self._noise:g}",
            "" if self._persons is None else f"n_persons={self._persons.n_records}",
            "" if self._persons is None else f"person_noise={self._person_noise:g}",
            f"least_share={self.least_share:.3g}" if labeled else "",
        )

    def _least_share_of(self, least_share: float | None) -> float | None:
        """Return the smallest share of a class in any dataset; None of a real response."""
        n_classes, shares = np.size(self._classes), self._class_shares
        if self._classes is None or shares is not None:
            least, fits = None if shares is None else float(shares.min()), least_share is None
        else:
            least = min(_LEAST_SHARE, 1 / (2 * n_classes)) if least_share is None else least_share
            fits = is_real(least) and 0 <= least <= 1 / n_classes
        if not fits:
            rule = "be from 0 to 1 / n_classes, or None, as with 'class_shares'"
            self._refuse("least_share", rule, shown(least_share))
        return None if least is None else float(least)

    def smallest_share(self, n_samples: int) -> float | None:
        """Return the smallest share of a class, but for rounding; None where none is known."""
        if self._classes is None or self.least_share is None or self._persons is not None:
            return None
        spare = max(0, n_samples - _LEAST_PER_CLASS * len(self._classes))
        return (_LEAST_PER_CLASS + spare * self.least_share) / n_samples

    def _checked_shares(self, class_shares: ArrayLike) -> NDArray[np.float64]:
        shares = floats(class_shares)
        n_classes = 0 if self._classes is None else len(self._classes)
        fits = shares is not None and shares.shape == (n_classes,) and np.isfinite(shares).all()
        if shares is None or not (fits and np.all(shares > 0)):
            rule = "hold one positive share for each of the 'classes'"
            self._refuse("class_shares", rule, shown(class_shares))
        return shares / shares.sum()

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Return `n_samples` public rows, or persons, and the answers of a new random rule."""
        if self._persons is None:
            rows = rng.integers(self._n_records, size=n_samples)
            X = take_records(self._X, rows)
            return X, self._answers(X, rows, rng)
        places = Persons(Dataset(np.arange(self._n_records)), self._persons.counts)
        drawn = places.take(rng.integers(places.n_records, size=n_samples))
        X = take_records(self._X, drawn.rows.X)
        y, counts = self._answers(X, drawn.rows.X, rng), drawn.counts
        are_alike = np.repeat(rng.random(n_samples) < self._person_noise, counts)
        y = np.where(are_alike, np.repeat(y[rng.integers(len(y), size=n_samples)], counts), y)
        return drawn.dataset._replace(X=X, y=y)

    def _answers(self, X: Container, rows: NDArray[np.intp], rng: Generator) -> NDArray:
        """Return the responses of a new random rule at public rows."""
        values = X if self._values is self._X else self._values[rows]
        if self._classes is None:
            scores = self._scores(values, 1, rng)[0]
            scores += self._noise * rng.standard_normal(len(rows))
            return self._y_mean + self.y_scale * scores
        return self._classes[self._codes(values, len(rows), rng)]

    def rule_scores(self, n_rules: int, rng: Generator) -> NDArray[np.float64]:
        """Return scores of random rules at all records, a row of mean 0 and variance 1 for each."""
        return self._scores(self._values, n_rules, rng)

    def _scores(self, values: Container, n_rules: int, rng: Generator) -> NDArray[np.float64]:
        """Return the scores of new rules, shape (n_rules, n_samples), mean 0 and variance 1."""
        weights = rng.standard_normal((len(self._weight_scale), n_rules))
        weights *= self._weight_scale[:, None]
        scores = np.asarray(values @ weights, dtype=np.float64).T
        scores = scores - scores.mean(axis=1, keepdims=True)
        spread = np.sqrt(np.mean(scores**2, axis=1, keepdims=True))
        return scores / np.where(spread > 0, spread, 1.0)

    def _codes(self, values: Container, n_samples: int, rng: Generator) -> NDArray[np.intp]:
        """Return for each record the position of its class."""
        counts = self._draw_counts(n_samples, rng)
        scores = self._scores(values, len(counts) - 1, rng)
        # repeated rows tie, and must not be split by position, since records are exchangeable
        scores += _JITTER * rng.random(scores.shape)
        order = rng.permutation(len(counts))
        codes = np.full(n_samples, order[-1])
        left = np.arange(n_samples)
        for score, code in zip(scores, order[:-1], strict=True):
            ranked = left[score[left].argsort()]
            codes[ranked[-counts[code] :]] = code
            left = ranked[: -counts[code]]
        mixed = np.flatnonzero(rng.random(n_samples) < self._noise)
        codes[mixed] = codes[rng.permutation(mixed)]
        return codes

    def _draw_counts(self, n_samples: int, rng: Generator) -> NDArray[np.intp]:
        """Return the number of records of each class; they sum to n_samples."""
        n_classes = len(self._classes)
        spare = n_samples - _LEAST_PER_CLASS * n_classes
        if spare < 0:
            raise ValueError(
                f"RandomTaskOracle with {n_classes} classes must be asked for at least "
                f"n_samples={_LEAST_PER_CLASS * n_classes} records, {_LEAST_PER_CLASS} for each "
                f"class. Got n_samples={n_samples}."
            )
        shares = self._class_shares
        if shares is None:
            least = self.least_share or 0.0
            shares = least + (1 - n_classes * least) * rng.dirichlet(np.full(n_classes, 0.5))
        bounds = np.rint(spare * np.cumsum(shares)).astype(np.intp)
        return _LEAST_PER_CLASS + np.diff(bounds, prepend=0)


def _inverse_scale(X: Container) -> NDArray[np.float64]:
    """Return 1 / standard deviation of each column, and 0 for a constant one."""
    from sklearn.preprocessing import StandardScaler

    values = check_array(X, accept_sparse="csr", dtype="numeric", estimator="RandomTaskOracle")
    scaler = StandardScaler(with_mean=False).fit(values)
    return np.where(scaler.var_ > 0, 1 / scaler.scale_, 0.0)


def _as_numbers(X: Container) -> Container:
    """Return a frame as numbers without gaps, sparse where categories have columns."""
    blocks = [_block(np.asarray(X[name])) for name in X.columns]
    if not any(map(sparse.issparse, blocks)):
        return np.hstack(blocks)
    return sparse.hstack(blocks, format="csr")


def _words_in(texts: NDArray) -> Container:
    """Return a column for each word that is not rare: whole texts teach nothing of others."""
    from sklearn.feature_extraction.text import CountVectorizer

    try:
        return CountVectorizer(binary=True, min_df=0.01).fit_transform(texts)
    except ValueError:  # all are rare, as in a column of names
        return sparse.csr_array((len(texts), 0))


def _block(column: NDArray) -> Container:
    """Return a column of numbers, or one for each other value of a column."""
    texts = np.array([str(value) for value in column])
    held = ~np.isin(texts, _GAPS)
    if any(isinstance(value, str) for value in column) or column.dtype.kind not in "fiubO":
        values, codes = np.unique(texts[held], return_inverse=True)
        if len(values) > held.sum() / 2:
            return _words_in(np.where(held, texts, ""))
        entries = np.ones(len(codes)), (np.flatnonzero(held), codes)
        return sparse.csr_array(entries, shape=(len(column), len(values)))
    numbers = np.array(np.where(held, column, np.nan), dtype=np.float64)
    mean = numbers[held].mean() if held.any() else 0.0
    return np.where(held, numbers, mean)[:, None]
