"""Audits of a fitted PrivateEstimator over pairs of datasets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils.validation import check_is_fitted

from skdp.audit.lower_bound import AuditResult
from skdp.audit.release import audit_release
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, as_dataset, join_records, neighboring_pair
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.persons import Persons
from skdp.core.room import undisturbed
from skdp.core.streams import AUDIT, public_seed
from skdp.core.target import Target, value_of
from skdp.core.types import Container, Estimator
from skdp.estimators.validation import check_labels
from skdp.mechanisms.base import Mechanism
from skdp.oracles.adapters import as_oracle, without_response
from skdp.plan import ReleasePlan
from skdp.sensitivity.pairs import PairSource
from skdp.sensitivity.strata import LAYOUTS

Neighbors = tuple[Dataset | Persons, Dataset | Persons]


@dataclass(frozen=True, eq=False)
class EstimatorAudit:
    """Lower bounds on the epsilon of a private estimator over pairs of datasets.

    Parameters
    ----------
    lower_bounds : ndarray of shape (n_pairs,)
        Lower bound on the epsilon of each pair, each with confidence ``1 - alpha``; inf where the
        target could not be evaluated, since the promise does not cover such a pair.
    norms : ndarray of shape (n_pairs,)
        Norm of the change of the exact values on each pair.
    promise : PrivacyGuarantee
        The claim that was put to the test.
    alpha : float
        Level of each bound and of the verdict.
    p_value : float
        Probability of so many bounds above a promise that is kept; 1 for pairs that it does not
        cover.
    covered : bool
        True for pairs drawn from the oracle, and for any pair when gamma is 0.
    seed : int
        Pass it as `rng` to repeat the audit.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivacyGuarantee
    >>> from skdp.audit import EstimatorAudit
    >>> audit = EstimatorAudit(
    ...     lower_bounds=np.array([0.2, 0.9, 1.3]), norms=np.array([0.1, 0.4, 0.6]),
    ...     promise=PrivacyGuarantee(1.0, gamma=0.05), alpha=1e-3, p_value=0.15, covered=True,
    ...     seed=0,
    ... )
    >>> audit.n_exceeding, audit.violated
    (1, False)
    """

    lower_bounds: NDArray[np.float64]
    norms: NDArray[np.float64] = field(repr=False)
    promise: PrivacyGuarantee
    alpha: float
    p_value: float
    covered: bool
    seed: int

    @property
    def n_exceeding(self) -> int:
        """Number of pairs whose lower bound exceeds the claim."""
        return int((self.lower_bounds > self.promise.epsilon).sum())

    @property
    def violated(self) -> bool:
        """True if more pairs exceed the claim than the promise leaves room for."""
        return self.covered and self.p_value < self.alpha

    def __str__(self) -> str:
        n = len(self.lower_bounds)
        counts = (
            f"{self.n_exceeding} of {n} pairs above the claimed epsilon={self.promise.epsilon:g}, "
            f"largest lower bound {self.lower_bounds.max():.4g}"
        )
        if not self.covered:
            return f"outside the promise, which speaks of the oracle's pairs only: {counts}"
        verdict = "violation found" if self.violated else "none found"
        room = (
            f"the promise leaves room for gamma={self.promise.gamma:g}; p-value {self.p_value:.3g}"
        )
        return f"{verdict}: {counts}; {room}"


@undisturbed
def audit_estimator(
    private_estimator: Estimator,
    X: Container,
    y: Container = None,
    *,
    record: Container = None,
    pairs: int = 20,
    oracle: object = None,
    alpha: float = 1e-3,
    rng: int | np.random.Generator | None = None,
    **options: Any,
) -> EstimatorAudit:
    """Audit a fitted private estimator on pairs of neighboring datasets.

    The target is evaluated once on each dataset, and the noise is drawn again and again around
    the two exact values. With ``record=None`` the pairs come from the oracle: the bound may exceed
    the claim on at most a share gamma of them. A promise with a gamma does not cover pairs with a
    chosen record; they show its effect on an outlier.

    Parameters
    ----------
    private_estimator : PrivateEstimator
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Records. Without `record` only their number and their columns are used. With it the result
        depends on them: do not publish it.
    y : array-like of shape (n_samples,) or None, default=None
        Responses.
    record : tuple (x, y), array-like of shape (1, n_features), or None, default=None
        One record, such as ``X[:1]`` or ``(X[:1], y[:1])``, that replaces each of the first `pairs`
        records in turn.
    pairs : int, default=20
        Number of pairs.
    oracle : callable or None, default=None
        Source of the pairs; None takes the one of the estimator's SensitivitySampler.
    alpha : float in (0, 1), default=1e-3
        Level of each pair's bound and of the verdict over all pairs.
    rng : int, Generator or None, default=None
        Source of randomness, of the pairs and of the noise.
    **options : dict
        The options `stacked`, `n_search` and `n_final` of :func:`audit_release`.

    Returns
    -------
    EstimatorAudit
        The audited epsilons and the verdict.

    Raises
    ------
    ValueError
        If `pairs` is outside its range, there is no oracle, or `record` has another form than the
        data or a label that is not public.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import Ridge
    >>> from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
    >>> from skdp.audit import audit_estimator
    >>> X, y = make_regression(300, 3, random_state=0)
    >>> oracle = PublicDataOracle(X[:200], y[:200])
    >>> model = PrivateEstimator(
    ...     Ridge(), mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, random_state=0), random_state=0,
    ... ).fit(X[200:], y[200:])
    >>> audit = audit_estimator(model, X[200:], y[200:], pairs=10, stacked=True, rng=0)
    >>> audit.violated
    False
    """
    check_is_fitted(private_estimator, "guarantee_")
    plan = private_estimator.plan_
    if plan.target.adds_noise:
        raise TypeError(
            "audit_estimator compares values before and after noise, and this release has none "
            f"without noise: {plan.target.description}. Use audit_epsilon, with a function that "
            "releases, such as release_oracle for class tables."
        )
    dataset = plan.prepare(Dataset(X, y).only(plan.schema.parts))  # as fit leaves out y
    n = plan.n_samples if plan.unit == "person" else dataset.n_records
    if plan.unit == "person" and record is not None:
        raise ValueError(
            "The 'record' parameter of audit_estimator must be None for persons. Got one. Leave it."
        )
    check_count("pairs", pairs, "audit_estimator", at_most=None if record is None else n)
    seed = public_seed(rng, "rng", "audit_estimator")
    promise, known = private_estimator.guarantee_, private_estimator.sensitivity_
    if record is None:
        source = _oracle_pairs(plan, oracle, n, pairs, seed)
    else:
        source = _record_pairs(plan, dataset, record, pairs)
    audit = partial(audit_release, sensitivity=known.value, alpha=alpha, **options)
    target = known.bounded(plan.target, plan.oracle, plan.schema)
    seeds = np.random.SeedSequence(seed).generate_state(2 * pairs).reshape(pairs, 2).tolist()
    outcomes = [
        _audit_pair(target, pair, plan.mechanism, audit, *each)
        for pair, each in zip(source, seeds, strict=True)
    ]
    lower_bounds, norms = np.array(outcomes, dtype=np.float64).T
    covered = record is None or promise.gamma == 0
    exceeding = int((lower_bounds > promise.epsilon).sum())
    n_calibrating = known.n_measured
    p_value = exceedance_p_value(exceeding, pairs, promise.gamma, n_calibrating, alpha)
    return EstimatorAudit(
        lower_bounds=lower_bounds,
        norms=norms,
        promise=promise,
        alpha=alpha,
        p_value=p_value if covered else 1.0,
        covered=covered,
        seed=seed,
    )


def exceedance_p_value(
    exceeding: int, n_pairs: int, gamma: float, n_calibrating: int, alpha: float
) -> float:
    """Return the probability of so many bounds above the claim when the promise is kept.

    A new pair exceeds the k-th of m calibrating norms with a probability that is itself random,
    Beta(m + 1 - k, k) for continuous norms, so the number of new pairs not covered is
    beta-binomial, with k = ceil((1 - gamma)(m + 1)). The bound of a covered pair exceeds the claim
    with probability at most `alpha`. `n_calibrating` is 0 when the sensitivity was known.
    """
    uncovered = np.arange(n_pairs + 1)
    if n_calibrating == 0 or gamma == 0:
        weights = stats.binom(n_pairs, gamma).pmf(uncovered)
    else:
        k = min(math.ceil((1 - gamma) * (n_calibrating + 1)), n_calibrating)
        weights = stats.betabinom(n_pairs, n_calibrating + 1 - k, k).pmf(uncovered)
    by_chance = stats.binom.sf(exceeding - uncovered - 1, n_pairs - uncovered, alpha)
    return float(min(weights @ by_chance, 1.0))


def _oracle_pairs(
    plan: ReleasePlan, given: object, n_samples: int, pairs: int, seed: int
) -> Iterator[Neighbors]:
    """Draw pairs that were not used for calibration, from a given oracle or that of the plan."""
    oracle = plan.oracle if given is None else as_oracle(given)
    if oracle is None:
        raise ValueError(
            "The 'oracle' parameter of audit_estimator must be given: the estimator holds no "
            "SensitivitySampler to take it from. Or give a 'record'."
        )
    if plan.schema.parts.y is None:
        oracle = without_response(oracle)
    strata = plan.sensitivity.strata
    source = PairSource(plan.target, oracle, n_samples, seed, plan.schema, strata=strata)
    places = LAYOUTS[strata].pairs
    for child in np.random.SeedSequence(seed, spawn_key=AUDIT).spawn(pairs):
        rng = np.random.default_rng(child)
        datasets = [*source.datasets(rng)]
        first, second = places[rng.integers(len(places))]
        yield datasets[first], datasets[second]


def _record_pairs(
    plan: ReleasePlan, dataset: Dataset, record: Container, pairs: int
) -> Iterator[Neighbors]:
    """Put a record in the place of each of the first records of the dataset."""
    owner = "The 'record' parameter of audit_estimator"
    one = as_dataset(record, owner).only(plan.schema.parts)
    if one.n_records != 1:
        raise ValueError(f"{owner} must be one record, such as X[:1]. Got {one.n_records}.")
    if plan.classes is not None and one.y is not None:
        check_labels(np.asarray(one.y), plan.classes)
    one = plan.schema.convert(one, owner)
    dataset = plan.schema.convert(dataset, "The private dataset")
    for place in range(pairs):
        order = np.arange(dataset.n_records)
        order[[place, -1]] = order[[-1, place]]  # the pair changes them back
        yield neighboring_pair(dataset.take(order).map(join_records, one), place)


def _audit_pair(
    target: Target,
    pair: Neighbors,
    mechanism: Mechanism,
    audit: Callable[..., AuditResult],
    seed: int,
    noise_seed: int,
) -> tuple[float, float]:
    """Evaluate the target twice and audit the noise; return the bound and the norm."""
    code = mechanism.geometry.code
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the estimator; the norm is all that is asked for
        try:
            values = [value_of(target, dataset, seed) for dataset in pair]
            if code is not None:  # then the released coordinates get the noise
                values = [code.forward(each) for each in values]
                mechanism = mechanism.with_code(None)
            norm = mechanism.geometry.distance(*values)
        except Exception:  # of any kind: the target has no value here
            norm = math.inf
    if not math.isfinite(norm):  # the promise counts such a pair as not covered
        return math.inf, math.inf
    return audit(*values, mechanism, rng=noise_seed).lower_bound, norm
