"""The rows of utility.py, and their values: pairs are evaluated once for each row and split.

Half of the records are public, or their features alone. Of the rest .7 are private and .3 are for
tests; scalers are fitted on the public half.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    BernsteinTransformer,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    RandomDensityOracle,
    RandomTaskOracle,
    SensitivityEstimate,
    SensitivitySampler,
)
from skdp.core.dataset import Dataset
from skdp.core.streams import pair_key
from skdp.planning import make_plan
from skdp.sensitivity.execution import run_chunk
from skdp.sensitivity.pairs import NoValueError, PairSource
from skdp.sensitivity.pilots import pilot_pair

GAMMA = 0.05
N_PILOTS, N_PAIRS = 199, 1305  # the latter is what the published rule needs for gamma
BANDWIDTH = 0.05
GRID = np.linspace(0, 1, 401)[:, None]


class FlatMLP(MLPClassifier):
    """A neural network whose weights are one array, so that they can be released by name."""

    @property
    def weights_(self):
        return np.concatenate([layer.ravel() for layer in (*self.coefs_, *self.intercepts_)])

    @weights_.setter
    def weights_(self, vector):
        layers = [*self.coefs_, *self.intercepts_]
        parts = np.split(vector, np.cumsum([layer.size for layer in layers])[:-1])
        shaped = [part.reshape(layer.shape) for part, layer in zip(parts, layers, strict=True)]
        self.coefs_, self.intercepts_ = shaped[: len(self.coefs_)], shaped[len(self.coefs_) :]


@dataclass(frozen=True)
class Split:
    """What a row has in one split; `public` is what a library without an oracle may be told."""

    oracle: object
    private: tuple
    test: tuple
    public: tuple


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    title: str
    figure: str
    model: object
    split: Callable
    release: object = "auto"
    peer: str | None = "logistic"
    epsilons: tuple = (0.1, 0.3, 1.0, 3.0, 10.0)
    measure: str = "accuracy"
    limits: tuple = (None, 1.0)
    n_splits: int = 6


def digits(kept=range(10)):
    """Return a loader of some of the digits; the range of a pixel is public."""

    def load():
        X, y = load_digits(return_X_y=True)
        return X[np.isin(y, kept)] / 16, y[np.isin(y, kept)]

    return load


def table(load, scaler=None, public=None):
    """Return what splits a table; `public(y, rng)` makes the public labels."""

    def split(seed):
        X, y = load()
        order = np.random.default_rng(seed).permutation(len(X))
        known, private, test = np.split(order, [len(X) // 2, int(0.85 * len(X))])
        if scaler is not None:
            X = clone(scaler).fit(X[known]).transform(X)
        if public is None:
            oracle = RandomTaskOracle(X[known], classes=np.unique(y))
        else:
            oracle = PublicDataOracle(X[known], public(y[known], np.random.default_rng(seed)))
        return Split(oracle, (X[private], y[private]), (X[test], y[test]), (X[known], y[known]))

    return split


def true(y, rng):
    return y


def partly_wrong(y, rng):
    return np.where((y == 0) & (rng.random(len(y)) < 0.4), 1, y)  # 0 is malignant


def inverted(y, rng):
    return 1 - y


def mixture(seed, n_samples=500):
    """Draw from .4 N(.5, variance .02) + .6 N(.75, variance .005), within [0, 1]."""
    rng = np.random.default_rng(seed)
    first = rng.random(4 * n_samples) < 0.4
    drawn = rng.normal(np.where(first, 0.5, 0.75), np.sqrt(np.where(first, 0.02, 0.005)))
    X = drawn[(drawn >= 0) & (drawn <= 1)][:n_samples, None]
    exact = np.exp(KernelDensity(bandwidth=BANDWIDTH).fit(X).score_samples(GRID))
    return Split(RandomDensityOracle([(0, 1)]), (X,), (GRID, exact), (X[:0],))


def load(loader):
    return lambda: loader(return_X_y=True)


def logistic(C):
    return LogisticRegression(C=C, max_iter=1000)


cancer, diabetes = load(load_breast_cancer), load(load_diabetes)
minmax, standard, svc = MinMaxScaler(), StandardScaler(), LinearSVC(C=0.01)
network = FlatMLP((4,), alpha=1.0, solver="lbfgs", max_iter=300, random_state=0)
lattice = BernsteinTransformer(degree=20, order=3, feature_range=(0, 1))
FIGURES = {
    "cancer_features": "breast cancer, public features",
    "digits": "digits, public features",
    "diabetes": "diabetes, public responses",
    "cancer_labels": "breast cancer, public labels",
    "density": "density, public bounds",
}
ROWS = {
    "C1": Row("logistic, min-max, C=1", "cancer_features", logistic(1), table(cancer, minmax)),
    "C10": Row("logistic, min-max, C=10", "cancer_features", logistic(10), table(cancer, minmax)),
    "C.01": Row(
        "logistic, standardized, C=.01", "cancer_features", logistic(0.01), table(cancer, standard)
    ),
    "svc": Row("LinearSVC, standardized, C=.01", "cancer_features", svc, table(cancer, standard)),
    "raw": Row(
        "scaler and LinearSVC, raw units",
        "cancer_features",
        make_pipeline(standard, svc),
        table(cancer),
        peer="pipeline",
    ),
    "digits38": Row("3 against 8, C=.1", "digits", logistic(0.1), table(digits([3, 8]))),
    "digits10": Row("ten digits, C=.1", "digits", logistic(0.1), table(digits()), n_splits=2),
    "ridge": Row(
        "ridge, standardized (R²)",
        "diabetes",
        Ridge(0.1),
        table(diabetes, standard, true),
        peer="linear",
        measure="R²",
        limits=(-0.5, 0.6),
    ),
    "labeled": Row(
        "logistic, min-max, C=1", "cancer_labels", logistic(1), table(cancer, minmax, true)
    ),
    "wrong": Row(
        "40 % of malignant called benign",
        "cancer_labels",
        logistic(1),
        table(cancer, minmax, partly_wrong),
    ),
    "inverted": Row("all inverted", "cancer_labels", logistic(1), table(cancer, minmax, inverted)),
    "network": Row(
        "network of 4 hidden units",
        "cancer_labels",
        network,
        table(cancer, standard, true),
        ["weights_"],
        peer=None,
        n_splits=3,
    ),
    "density": Row(
        "kernel density (L1 error)",
        "density",
        KernelDensity(bandwidth=BANDWIDTH),
        mixture,
        lattice,
        "histogram",
        (0.03, 0.1, 0.3, 1.0, 3.0),
        "L1 error of the density",
        (0.005, 1.0),
    ),
}


class KeptSampler(SensitivitySampler):
    """A sampler that reads pairs which were evaluated before, and does all else as ever."""

    def __init__(self, oracle, kept, **options):
        super().__init__(oracle, gamma=GAMMA, random_state=kept.seed, **options)
        self.kept = kept

    def with_fixed_seed(self):
        return self

    def pilots(self, target, n_samples, schema=None, mechanism=None):
        pilots = self.kept.pilots[: self.n_pairs]
        return tuple(pilots[np.isfinite(pilots).all(axis=(1, 2))].swapaxes(0, 1))

    def sample(self, target, n_samples, geometry, schema=None):
        norms = np.full(self.n_pairs, np.inf)
        pairs = self.kept.pairs[: self.n_pairs]
        good = np.isfinite(pairs).all(axis=(1, 2))
        norms[good] = geometry.distances(*pairs[good].swapaxes(0, 1))
        return SensitivityEstimate(
            norms=norms,
            order_statistic=self.plan(n_samples).order_statistic,
            n_samples=n_samples,
            geometry=geometry,
            target=target.description,
            shape=self.kept.exact.shape,
            oracle=self.draws_from.description,
            seed=self.kept.seed,
            form=schema.key,
        )


class Kept:
    """A row in one split: the target, and its values on pilot pairs, pairs and private records."""

    def __init__(self, name, seed, folder):
        self.row, self.seed = ROWS[name], seed
        self.data = self.row.split(seed)
        self.example = Dataset(*self.data.private)  # of which only the form is used
        self.n_samples = self.example.n_records
        first = self._private(LaplaceMechanism(1.0, basis="identity"), gamma=0.5, n_pairs=1)
        self.target, self.schema = first.target, first.schema
        path = folder / f"{name}-{seed}.npz"
        if not path.exists():
            np.savez(path, **self._evaluate())
        with np.load(path) as arrays:
            self.pilots, self.pairs, self.exact = (
                arrays[part] for part in ("pilots", "pairs", "exact")
            )

    def _private(self, mechanism, **options):
        """Make a plan in the way of a user."""
        sampler = SensitivitySampler(self.data.oracle, random_state=self.seed, **options)
        model = PrivateEstimator(
            self.row.model, mechanism=mechanism, sensitivity=sampler, release=self.row.release
        )
        return model.plan(self.n_samples, like=self.data.private)

    def _evaluate(self):
        parts = self.n_samples, self.seed, self.schema
        source = PairSource(self.target, self.data.oracle, *parts)
        exact = self.target(*self.data.private, seed=self.seed)
        none = np.full((2, exact.size), np.nan)

        def pilot(number):
            rows = pilot_pair(source, number)
            return none if rows is None else rows

        def pair(number):
            try:
                return np.array(source.values(*pair_key(number))).reshape(2, -1)
            except NoValueError:
                return none

        return {
            "pilots": run_chunk(lambda pairs: np.array([*map(pilot, pairs)]), range(N_PILOTS)),
            "pairs": run_chunk(lambda pairs: np.array([*map(pair, pairs)]), range(N_PAIRS)),
            "exact": exact,
        }

    def plan(self, mechanism, n_pairs=N_PILOTS, **options):
        """Make a plan from the kept values."""
        sampler = KeptSampler(self.data.oracle, self, n_pairs=n_pairs, **options)
        return make_plan(
            self.target, self.schema, self.example, mechanism=mechanism, sensitivity=sampler
        )

    def check(self):
        """Refuse kept values that would not give what a user gets."""
        mechanism = LaplaceMechanism(1.0)
        kept = self.plan(mechanism).sensitivity.value
        sampled = self._private(mechanism, gamma=GAMMA, n_pairs=N_PILOTS).sensitivity.value
        if not np.isclose(kept, sampled, rtol=1e-8):
            raise RuntimeError(f"The kept values give {kept!r}, the library gives {sampled!r}.")

    @property
    def public_mean(self):
        """What the prior says before anything is released."""
        return np.nanmean(self.pilots[:, 0], axis=0).reshape(self.exact.shape)

    @cached_property
    def noiseless(self):
        return self.target.restore(self.exact)

    def score(self, value):
        """Return the score on the test records, of a density its L1 error for the noiseless one."""
        model = self.target.restore(value)
        if not hasattr(model, "score_samples"):
            return model.score(*self.data.test)
        densities = [np.exp(each.score_samples(GRID)) for each in (model, self.noiseless)]
        return np.abs(densities[0] - densities[1]).mean()
