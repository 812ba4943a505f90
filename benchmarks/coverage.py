"""Whether the promise holds on records in the form of the private data.

Each case has an estimator or a function, private records in some container and dtypes, and an
oracle whose records come in another one. The sensitivity is sampled by the library. Then fresh
pairs are drawn apart from it, put into the form of the private data by hand, with the replaced
record at a random position, and evaluated without the library: of them, a share of gamma on average
may differ by more than the estimate.

Prints a row for each case: its share, and how likely a share as large is when the promise holds.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import (
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, release
from skdp.functions import AdditiveTarget

NAMES = ["first", "second", "third"]
Records = tuple[np.ndarray, np.ndarray]


def close_columns(n_samples: int, rng: np.random.Generator) -> Records:
    """Draw two columns that single precision hardly tells apart, and a third; and labels."""
    z, w, u = rng.normal(size=(3, n_samples))
    X = np.column_stack([z, z + 1e-3 * w, u])
    return X, (z + u + rng.normal(size=n_samples) > 0).astype(int)


def counts(n_samples: int, rng: np.random.Generator) -> Records:
    """Draw small counts, many of them zero, that fit into eight bits; and labels."""
    X = rng.poisson([0.5, 2.0, 100.0], size=(n_samples, 3)).clip(max=255)
    return X.astype(float), (X[:, 0] + rng.poisson(0.5, size=n_samples) > 0).astype(int)


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "int64": lambda X: X.astype(np.int64),
    "uint8": lambda X: X.astype(np.uint8),
    "fortran": np.asfortranarray,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas float32": lambda X: pd.DataFrame(X.astype(np.float32), columns=NAMES),
    "pandas mixed": lambda X: pd.DataFrame(X, columns=NAMES).astype({"first": np.float32}),
    "pandas uint8": lambda X: pd.DataFrame(X.astype(np.uint8), columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars float32": lambda X: pl.DataFrame(X.astype(np.float32), schema=NAMES),
}


@dataclass(frozen=True)
class Case:
    """One promise to be checked: `private` and `drawn` name the forms of the records."""

    target: Any
    law: Callable[[int, np.random.Generator], Records]
    private: str
    drawn: str
    release: Any = "auto"
    n_samples: int = 200

    @property
    def name(self) -> str:
        target = getattr(self.target, "__name__", None) or type(self.target).__name__
        if hasattr(self.target, "fit"):
            target = " ".join(repr(self.target).split())
        kind = "predictions of " * (self.release == "predictions")
        return f"{kind}{target}, {self.private} of {self.drawn}"


def weighted_mean(X):
    array = np.asarray(X, dtype=float)
    weights = 0.9 ** np.arange(len(array))
    return weights @ array / weights.sum()


def first_half_mean(X):
    return np.mean(train_test_split(np.asarray(X, dtype=float), random_state=2)[0], axis=0)


def difference_of_columns(X):
    return np.mean(X[:, 0] - X[:, 1])


def sum_in_own_precision(X):
    return np.asarray(X).sum(axis=0, dtype=np.asarray(X).dtype).astype(float) / len(X)


def sum_by_name(X):
    return np.mean(np.asarray(X["first"]) * np.asarray(X["third"]))


def shape_dependent(X):
    return float(np.size(X[0] + X[1])) + np.mean([row[0] for row in X])


class Hierarchical:
    """Draws a center for the whole dataset, behind the interface of a density."""

    def sample(self, n_samples, rng):
        return rng.normal() + 0.1 * rng.normal(size=(n_samples, 3))


def hierarchical(n_samples, rng):
    return Hierarchical().sample(n_samples, rng), np.zeros(n_samples)


SEEDED = {"random_state": 0}
DENSE = [
    Ridge(alpha=1e-3),
    LinearRegression(),
    SGDRegressor(**SEEDED),
    Lasso(alpha=0.01),
    LogisticRegression(),
    LinearSVC(),
    SGDClassifier(alpha=1.0, **SEEDED),
    make_pipeline(StandardScaler(), LogisticRegression()),
    GaussianNB(),
]
SPARSE = [
    Ridge(alpha=1e-3),
    SGDRegressor(**SEEDED),
    SGDClassifier(alpha=1.0, **SEEDED),
    LogisticRegression(),
    LinearSVC(),
    make_pipeline(MaxAbsScaler(), SGDClassifier(alpha=1.0, **SEEDED)),
]
READ = [KNeighborsClassifier(15), SVC(), DecisionTreeClassifier(max_depth=3)]
FLOATS = [("pandas float32", "float64"), ("polars float32", "pandas"), ("fortran", "pandas")]
SPARSE_FORMS = [("float64", "csr"), ("csr", "float64"), ("csc", "csr")]
INTEGERS = [("uint8", "int64"), ("pandas uint8", "float64"), ("int64", "float64")]

CASES = [
    *(Case(target, close_columns, *forms) for target in DENSE for forms in FLOATS),
    *(Case(target, close_columns, *forms) for target in SPARSE for forms in SPARSE_FORMS),
    *(
        Case(Ridge(alpha=1e-3), close_columns, *forms, n_samples=5000)
        for forms in (("float32", "float64"), ("pandas float32", "float64"), ("polars", "float32"))
    ),
    Case(SGDRegressor(**SEEDED), close_columns, "float64", "csr", ["intercept_"]),
    Case(TruncatedSVD(1, **SEEDED), close_columns, "csr", "float64"),
    Case(PCA(1), close_columns, "pandas mixed", "float64"),
    *(
        Case(target, counts, *forms)
        for target in (MultinomialNB(), BernoulliNB(), Ridge())
        for forms in INTEGERS
    ),
    *(Case(weighted_mean, close_columns, *forms) for forms in FLOATS),
    Case(first_half_mean, close_columns, "float64", "float64"),
    Case(difference_of_columns, counts, "uint8", "int64"),
    Case(difference_of_columns, counts, "uint8", "float64"),
    Case(sum_in_own_precision, counts, "uint8", "int64"),
    Case(sum_by_name, close_columns, "pandas", "float64"),
    Case(sum_by_name, close_columns, "polars", "pandas"),
    Case(shape_dependent, close_columns, "fortran", "float64"),
    Case(AdditiveTarget(lambda X: X), hierarchical, "float64", "float64"),
    *(
        Case(target, close_columns, *forms, "predictions")
        for target, forms in zip(READ, FLOATS, strict=True)
    ),
]


def make_oracle(case: Case, with_y: bool) -> Any:
    """Return an oracle of the law, with records in the form that the case says."""
    if case.law is hierarchical:
        return Hierarchical()

    def oracle(n_samples, rng):
        X, y = case.law(n_samples, rng)
        return (FORMS[case.drawn](X), y) if with_y else FORMS[case.drawn](X)

    return oracle


def private_form(case: Case, X: np.ndarray) -> Any:
    integers = case.private in ("int64", "uint8", "pandas uint8")
    if integers and case.drawn == "float64":  # integers become doubles where the oracle has floats
        return FORMS["pandas" if case.private.startswith("pandas") else "float64"](X)
    return FORMS[case.private](X)


def is_supervised(case: Case) -> bool:
    return hasattr(case.target, "fit") and not isinstance(case.target, PCA | TruncatedSVD)


def sample(case: Case, n_pairs: int, gamma: float, seed: int) -> tuple[float, Any]:
    """Release once; return the estimate of the library, and what is public of an estimator.

    That are the anchors where predictions are released, else the released estimator.
    """
    oracle = make_oracle(case, is_supervised(case))
    sampler = SensitivitySampler(oracle, gamma=gamma, n_pairs=n_pairs, random_state=seed)
    options = {
        "mechanism": LaplaceMechanism(epsilon=1.0, code=None),
        "sensitivity": sampler,
        "random_state": 0,
    }
    X, y = case.law(case.n_samples, np.random.default_rng([seed, 1]))
    private = FORMS[case.private](X)
    if not hasattr(case.target, "fit"):
        return release(case.target, private, **options).sensitivity.value, None
    model = PrivateEstimator(case.target, release=case.release, **options)
    model.fit(private, y if is_supervised(case) else None)
    return model.sensitivity_.value, getattr(model.plan_.target, "anchors", model.estimator_)


def fresh_norms(case: Case, public_fit: Any, n_fresh: int, seed: int) -> np.ndarray:
    """Measure pairs in the form of the private data, apart from the library.

    `public_fit` is a released estimator: the signs of components are those that it has. Where
    predictions are released it holds the anchors.
    """
    rng = np.random.default_rng([seed, 2])
    norms = []
    for _ in range(n_fresh):
        X, y = case.law(case.n_samples + 1, rng)
        place = rng.integers(case.n_samples)
        other_X, other_y = X[:-1].copy(), y[:-1].copy()
        other_X[place], other_y[place] = X[-1], y[-1]
        values = [
            _evaluate(case, private_form(case, part), labels, public_fit)
            for part, labels in ((X[:-1], y[:-1]), (other_X, other_y))
        ]
        norms.append(np.abs(values[0] - values[1]).sum())
    return np.array(norms)


def share_above(case: Case, n_pairs: int, n_fresh: int, gamma: float, seed: int) -> float:
    """Sample a sensitivity, and return the share of fresh pairs that differ by more."""
    value, public_fit = sample(case, n_pairs, gamma, seed)
    return float(np.mean(fresh_norms(case, public_fit, n_fresh, seed) > value * (1 + 1e-9)))


def _evaluate(case: Case, X: Any, y: np.ndarray, public_fit: Any) -> np.ndarray:
    if not hasattr(case.target, "fit"):
        function = case.target
        value = function(X, seed=0) if isinstance(function, AdditiveTarget) else function(X)
        return np.atleast_1d(np.asarray(value, dtype=float)).ravel()
    fitted = clone(case.target).fit(X, y if is_supervised(case) else None)
    if case.release == "predictions":  # of two classes
        if hasattr(fitted, "predict_proba"):
            return 2 * fitted.predict_proba(public_fit)[:, 1] - 1
        return np.tanh(fitted.decision_function(public_fit))
    return np.concatenate([part.ravel() for part in _parameters(fitted, case.release, public_fit)])


RELEASED = {
    "GaussianNB": ["theta_", "var_", "class_prior_"],
    "MultinomialNB": ["feature_log_prob_", "class_log_prior_"],
    "BernoulliNB": ["feature_log_prob_", "class_log_prior_"],
}


def _parameters(fitted: Any, names: Any, public_fit: Any) -> list[np.ndarray]:
    if hasattr(fitted, "steps"):
        steps = zip(fitted, public_fit, strict=True)
        return [part for step, public in steps for part in _parameters(step, names, public)]
    if isinstance(fitted, PCA | TruncatedSVD):
        signs = np.sign((fitted.components_ * public_fit.components_).sum(axis=1, keepdims=True))
        parts = [signs * fitted.components_]
        return [*parts, fitted.mean_] if hasattr(fitted, "mean_") else parts
    if isinstance(fitted, StandardScaler):
        return [fitted.mean_, fitted.var_]
    if isinstance(fitted, MaxAbsScaler):
        return [fitted.max_abs_]
    if names == "auto":
        names = RELEASED.get(type(fitted).__name__, ["coef_", "intercept_"])
    return [np.atleast_1d(getattr(fitted, name)).astype(float) for name in names]


def p_value(share: float, n_pairs: int, n_fresh: int, gamma: float) -> float:
    """Return how likely a share as large is, if the promise holds with equality.

    The probability that a fresh pair exceeds the k-th of m exchangeable norms is Beta(m+1-k, k).
    """
    k = int(np.ceil((1 - gamma) * (n_pairs + 1)))
    law = stats.betabinom(n_fresh, n_pairs + 1 - k, k)
    return float(law.sf(round(share * n_fresh) - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=399)
    parser.add_argument("--fresh", type=int, default=1000)
    parser.add_argument("--gamma", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="a tenth of the cases, few pairs")
    arguments = parser.parse_args()
    if arguments.small:
        arguments.pairs, arguments.fresh = 59, 50
    numbers = (arguments.pairs, arguments.fresh, arguments.gamma)
    cases, shares, levels = CASES[:: 10 if arguments.small else 1], [], []
    print(f"share above, level of a test | case ({len(cases)} of them, gamma {arguments.gamma:g})")
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that need not converge here
        for case in cases:
            share = share_above(case, *numbers, arguments.seed)
            shares.append(share)
            levels.append(p_value(share, *numbers))
            print(f"{share:.3f}  {levels[-1]:.1e} | {case.name}", flush=True)
    print(f"mean share {np.mean(shares):.3f}, largest {max(shares):.3f}")
    sys.exit(int(min(levels) < 1e-6))


if __name__ == "__main__":
    main()
