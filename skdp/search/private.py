"""Private model selection: a random number of private fits, of which the best is released."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Self, TypeVar

import numpy as np
from sklearn.base import clone

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import find_payer
from skdp.accounting.tally import compose
from skdp.core.checks import check_count, check_rules, warn
from skdp.core.dataset import Dataset
from skdp.core.exact import above, exact, finite
from skdp.core.guarantee import PrivacyGuarantee, weaknesses
from skdp.core.room import evaluate_privately, quiet, spare, undisturbed
from skdp.core.types import ByteSource, Container, Estimator
from skdp.estimator import PrivateEstimator, PrivateModel
from skdp.estimators.precautions import warn_if_fitted
from skdp.execution import Payment, draw_seed, run_paid, stand_ins_of
from skdp.mechanisms.discrete import below
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.mechanisms.noise import byte_source
from skdp.plan import ReleasePlan, of_each
from skdp.planning.checks import check_holds_no_record, check_parameters, data_check
from skdp.planning.making import Draft, least_promise, make_plan
from skdp.planning.persons import check_unit
from skdp.planning.preparation import prepare, rehearse_methods
from skdp.planning.ways import way_of
from skdp.result import Release
from skdp.search.candidates import SumOfScores, as_scoring, list_candidates
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.tables.release import ClassTables

T = TypeVar("T")

RUNS_FOR_EACH = 5  # mean number of runs for each candidate, by default
MOST_SCORED = 2000  # with more records the score would hardly be more exact, and take longer


class PrivateSearchCV(PrivateModel):
    """Choose hyper-parameters privately, by fits with noise and scores with noise.

    The records are split once, by their number alone. Each run draws a candidate at random, fits it
    privately to one part, and scores the released model on the other part, with noise. After each
    run a coin decides whether the search ends [1]_. The best model is released as it is. The search
    costs three times the epsilon of `estimator`, however many candidates and runs there are [2]_.

    Parameters
    ----------
    estimator : PrivateEstimator
        The model to fit in each run. Its mechanism decides the epsilon of a run, its accountant
        pays for the search, and its `random_state` seeds all noise. Of n records, n / 2 are scored
        and at most 2,000, and a fit sees the others.
    param_grid : dict of str to sequence, or list of such dicts
        The candidates, as in scikit-learn's GridSearchCV: any parameters of `estimator`, such as
        ``"estimator__C"``, ``"mechanism__code"``, or ``"estimator"`` for another one in its place,
        but the sensitivity, accountant and `random_state`, which all candidates share.
    n_runs : int or None, default=None
        Mean number of runs. More of them cost time and no epsilon; a delta counts once for each.
        None takes five for each candidate.
    scoring : callable or None, default=None
        ``scoring(estimator, X, y)`` gets a copy of the released model and one record, in containers
        of length 1, and returns a score from 0 to 1; without responses it gets no y. Other numbers
        are clipped, and an error counts as 0. None takes the accuracy of a classifier, and of a
        regressor 1 less the absolute error over the length of `y_range`.
    y_range : (float, float) or None, default=None
        The public range of y, by which a regressor is scored. It need not hold for all records.

    Attributes
    ----------
    best_params_ : dict of str to object
        The candidate of the best run; `best_index_` is its place in `cv_results_`.
    best_score_ : float
        The mean score of the best run, with noise. As the largest of several it is too high.
    best_estimator_ : estimator object
        The released estimator, of released and public values only; `estimator_` is another name.
    cv_results_ : dict
        The candidates, under "params". Their scores are private, and not there.
    guarantee_, budget_, plan_, sensitivity_, standard_errors_, mechanism_
        As of PrivateEstimator: the first two of the search, the others of the fit of the best run,
        as if no other had been made.

    See Also
    --------
    public_search : Chooses on records of the oracle, at no cost in privacy.

    Notes
    -----
    Each record is scored by a copy of the model that has seen no other one, or by classes whose
    prediction reads no other one. A run that fails counts as the best, and ends the search. A delta
    becomes `n_runs` times as large, and of a gamma each candidate has an equal share: the page on
    private search has the proofs.

    The time that a search takes tells the number of runs: do not let others measure it.

    References
    ----------
    .. [1] Liu and Talwar, "Private Selection from Private Candidates", STOC 2019.
    .. [2] Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from skdp import LaplaceMechanism, PrivateEstimator
    >>> from skdp import PrivateSearchCV, PublicDataOracle, SensitivitySampler
    >>> X, y = make_classification(n_samples=300, n_features=4, random_state=0)
    >>> model = PrivateEstimator(
    ...     RidgeClassifier(),
    ...     mechanism=LaplaceMechanism(epsilon=0.5),
    ...     sensitivity=SensitivitySampler(PublicDataOracle(X[:100], y[:100]), gamma=0.2),
    ... )
    >>> search = PrivateSearchCV(model, {"estimator__alpha": [1.0, 100.0]}, n_runs=3)
    >>> search.fit(X[100:], y[100:]).predict(X[:2]).shape
    (2,)
    >>> search.guarantee_.epsilon, search.guarantee_.gamma
    (1.5, 0.2)
    """

    random_state: int | None = None  # the estimator has the seed

    def __init__(
        self,
        estimator: PrivateEstimator,
        param_grid: Mapping[str, Sequence] | Sequence[Mapping[str, Sequence]],
        *,
        n_runs: int | None = None,
        scoring: Callable | None = None,
        y_range: tuple[float, float] | None = None,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.n_runs = n_runs
        self.scoring = scoring
        self.y_range = y_range

    @undisturbed
    def fit(self, X: Container, y: Container = None, sample_weight: None = None) -> Self:
        """Fit and score random candidates privately, and keep the best.

        Before that, all is settled and tried on public or made-up records, and the budget pays.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_samples, n_features)
            The private records.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or None, default=None
            The private responses.
        sample_weight : None, default=None
            Scores take no weights.

        Returns
        -------
        self : PrivateSearchCV
            Fitted. If anything fails it is as before.

        Raises
        ------
        ValueError, TypeError
            If a parameter, an oracle or the data break a rule.
        BudgetExceededError, LedgerError
            If the budget does not allow the search, or cannot be read. Nothing is then looked at.
        PrivateEvaluationError
            If a candidate cannot be fitted to the private data. The budget has paid.
        """
        if sample_weight is not None:
            raise TypeError("PrivateSearchCV takes no sample_weight in fit. Got sample_weight.")
        candidates = list_candidates(self.estimator, self.param_grid, "PrivateSearchCV")
        models = [_set(self.estimator, params, len(candidates)) for params in candidates]
        for model in models:
            rule = "be None in a search, which scores by itself and checks nothing"
            check_rules("PrivateEstimator", shares=(model.shares, model.shares is None, rule))
            check_unit(model, None, "PrivateSearchCV.fit")  # it takes none
        ways = [*map(check_parameters, models)]
        n_runs = RUNS_FOR_EACH * len(models) if self.n_runs is None else self.n_runs
        check_count("n_runs", n_runs, "PrivateSearchCV", at_most=2**31)
        scorings = [as_scoring(self.scoring, self.y_range, each.estimator) for each in models]
        fitted, scored = self._split(candidates, Dataset(X, y))
        least = [least_promise(each.mechanism, each.sensitivity) for each in models]
        pays = find_payer(self.estimator.accountant)
        pays.rehearse({"guarantee": price(least, n_runs)})  # before pairs are sampled
        drafts = [prepare(way, fitted) for way in ways]
        for draft, scoring in zip(drafts, scorings, strict=True):
            rehearse_methods(draft, X)
            _rehearse(draft, scoring)
        plans = [*map(make_plan, drafts)]
        payments = self._pay(pays, plans, n_runs, fitted.n_records + scored.n_records)
        paid = payments[0]  # alike but for the records that stand in for far ones
        counts = LaplaceMechanism(max(plan.guarantee.epsilon for plan in plans), code=None)

        def run(index: int) -> tuple[float, tuple[int, Release, list]]:
            # nobody hears of the other runs, or counts them
            with quiet(), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                released = run_paid(plans[index], drafts[index].example, payments[index])
            total = evaluate_privately(
                SumOfScores(released.value, scorings[index]),
                scored,
                seed=paid.seed,
                shape=(),
                add_noise=lambda exact: float(
                    np.nan_to_num(counts.release(exact, 1.0, paid.noise))
                ),
            )
            return total, (index, released, said)

        total, (index, released, said) = best_of_random_runs(run, len(plans), n_runs, paid.noise)
        for each in said:
            warn(str(each.message), each.category)
        candidates = [clone(params, safe=False) for params in candidates]
        how = f"The best of about {n_runs} runs, by a score on {scored.n_records} other records"
        how = f"{how}\nChosen: {candidates[index]}\n{released.plan}"
        promise = replace(paid.guarantee, code=plans[index].guarantee.code)
        return self._keep(
            replace(plans[index], accountant=self.estimator.accountant, n_alternatives=len(plans)),
            replace(released, guarantee=promise, plan=how),
            best_index_=index,
            best_params_=candidates[index],
            best_score_=total / scored.n_records,
            best_estimator_=released.value,
            cv_results_={"params": candidates},
        )

    def _split(
        self, candidates: list[dict[str, object]], dataset: Dataset
    ) -> tuple[Dataset, Dataset]:
        """Check the records, and split them into some to fit and others to score."""
        way = way_of(self.estimator)
        if isinstance(self.estimator.sensitivity, ClassTables):
            raise TypeError(
                "The 'sensitivity' of the estimator in PrivateSearchCV must not be ClassTables. "
                "Release the tables once, by release_oracle: a search of scikit-learn on its draws "
                "costs nothing more, and the best model has the promise of the oracle."
            )
        warn_if_fitted(self.estimator.estimator, self.param_grid)
        listed = (value for params in candidates for value in params.values())
        check_holds_no_record(way, dataset, *listed)
        fitted, scored = halves(data_check(way)(dataset))
        if isinstance(self.estimator.sensitivity, Real):
            n = fitted.n_records
            raise ValueError(
                "The 'sensitivity' of the estimator in PrivateSearchCV must say of how many"
                f" records it is. A fit sees {n}: KnownSensitivity(bound, norm, n_samples={n})."
            )
        return fitted, scored

    def _pay(
        self, pays: PrivacyAccountant, plans: list[ReleasePlan], n_runs: int, n_samples: int
    ) -> list[Payment]:
        """Let the budget pay for the search; return what each plan runs with."""
        random_state = self.estimator.random_state
        promise = replace(
            price([plan.guarantee for plan in plans], n_runs),
            n_samples=n_samples,
            seeded=random_state is not None,
            alone=not pays.is_kept,
        )
        for weakness in weaknesses(promise, n_samples):
            warn(f"The promise is weak, together: {weakness}.")
        for plan in plans:
            str(plan)  # whatever may fail comes before the payment
        noise = byte_source(random_state)
        seed = draw_seed(noise)  # one for all runs: the gamma is that of a pair and a seed
        stand_ins = [stand_ins_of(plan, seed) for plan in plans]
        pays.spend(promise, label=f"search, {plans[0].target.description}")
        return [Payment(promise, pays.total(), noise, seed, each) for each in stand_ins]

    def _check_served(self, estimator: Estimator, name: str) -> None:
        self.estimator._check_served(estimator, name)


def _set(model: PrivateEstimator, params: Mapping, n_candidates: int) -> PrivateEstimator:
    """Set a candidate, with its share of gamma and of the confidence."""
    copied = clone(model).set_params(**clone(dict(params), safe=False))
    sampler = copied.sensitivity
    if isinstance(sampler, SensitivitySampler):
        sampler.order_statistic()  # refuses a wrong gamma or confidence, as it was given
        gamma, confidence = of_each(sampler.gamma, sampler.confidence, n_candidates)
        sampler.set_params(gamma=gamma, confidence=confidence)
    return copied


def halves(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """Split the records, by their number alone, into some to fit and others to score."""
    n = dataset.n_records
    if n < 2:
        raise ValueError(f"PrivateSearchCV needs records to fit and others to score. Got {n}.")
    order = np.random.default_rng(0).permutation(n)  # records may be sorted by their labels
    n_scored = min(n // 2, MOST_SCORED)
    return dataset.take(order[n_scored:]), dataset.take(order[:n_scored])


def price(fits: Sequence[PrivacyGuarantee], n_runs: int) -> PrivacyGuarantee:
    """Return what the best of a random number of runs promises, given the fits of candidates."""
    all_hold, n = compose(*fits), fits[0].n_samples
    return replace(
        all_hold,
        epsilon=above(3 * exact(max(each.epsilon for each in fits))),
        delta=above(n_runs * finite(max(each.delta for each in fits))),
        clipped=fits[0].clipped,
        oracle=all_hold.oracle and f"{all_hold.oracle}, of the {n} records of a fit",
        code=None,
    )


def best_of_random_runs(
    run: Callable[[int], tuple[float, T]], n_candidates: int, n_runs: int, source: ByteSource
) -> tuple[float, T]:
    """Run random candidates until a coin of weight 1 / n_runs ends it; return the first best."""
    best = None
    while True:
        found = run(int(below(n_candidates, 1, source)[0]))
        if best is None or found[0] > best[0]:
            best = found
        if below(n_runs, 1, source)[0] == 0:
            return best


def _rehearse(draft: Draft, scoring: Callable) -> None:
    """Fit to public or made-up records, and score one of them, to see errors in time."""
    target, public = spare(draft.target), copy.deepcopy(draft.public.dataset)
    model = target.restore(target(*public.parts, seed=0))
    SumOfScores(model, spare(scoring)).score(public.take(np.array([0])))
