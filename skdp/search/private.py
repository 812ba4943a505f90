"""Private model selection: choose by the exponential mechanism, then fit once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import check_accountant, find_accountant, warn_if_uncharged
from skdp.accounting.tally import compose
from skdp.core.checks import shown, warn
from skdp.core.dataset import Dataset
from skdp.core.guarantee import weaknesses
from skdp.core.room import spare, usual_errors
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.estimator import PrivateEstimator, PrivateModel
from skdp.estimators.configuration import check_configuration
from skdp.estimators.precautions import warn_if_fitted
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.plan import ReleasePlan, of_each, spend_of
from skdp.planning.checks import (
    check_holds_no_record,
    check_parameters,
    data_check,
)
from skdp.planning.making import least_spend, rehearse
from skdp.planning.preparation import prepare
from skdp.planning.ways import is_derived
from skdp.release import plan_for
from skdp.result import Release
from skdp.search.candidates import CandidateScores, check_scores, list_candidates
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.sensitivity.trial import check_is_public


class PrivateSearchCV(PrivateModel):
    """Choose hyper-parameters privately, and fit with them privately.

    Every candidate is scored on the private records by cross-validation, of the wrapped estimator
    without noise. One candidate is chosen by the exponential mechanism [1]_, calibrated to
    how much one record can change the largest difference of a score, which is sampled like any
    other sensitivity. With it the :class:`PrivateEstimator` is fitted once. These are two
    releases: `guarantee_` is what they promise together. No score is kept.

    Parameters
    ----------
    estimator : PrivateEstimator
        The model to fit with the chosen candidate. Its sampler needs more pairs here; see the
        notes.
    param_grid : dict of str to sequence, or list of such dicts
        The candidates, as in scikit-learn's GridSearchCV: names are parameters of `estimator`
        such as ``"estimator__C"``, or ``"estimator"`` for another estimator in its place. With
        `n_iter` a sequence may be a distribution that has a method `rvs`.
    mechanism : Mechanism
        The mechanism of the choice, such as ``ExponentialMechanism(epsilon=0.5)``. Its epsilon
        adds to that of the fit.
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        How much a score can change: sampled at each fit, sampled earlier for the same candidates,
        or a bound in the sup norm.
    scoring : str, callable or None, default=None
        One score, as in scikit-learn. None takes the method `score` of the wrapped estimator.
    cv : int, splitter or None, default=5
        As in scikit-learn. The records are shuffled first.
    n_iter : int or None, default=None
        Number of candidates to draw at random from `param_grid`; None takes all.
    accountant : PrivacyAccountant or None, default=None
        The budget that pays for the choice and the fit, each before it looks at private records.
        None takes that of `estimator`.
    random_state : int or None, default=None
        Source of the randomness of the choice, and of `n_iter`. None takes the operating system's
        generator. A seed is for tests and examples, as in PrivateEstimator.

    Attributes
    ----------
    best_params_ : dict of str to object
        The candidate that was chosen.
    best_index_ : int
        Its place among the candidates.
    best_estimator_ : estimator object
        The released estimator, of released and public values only; `estimator_` is another name.
    guarantee_ : PrivacyGuarantee
        The promise of choice and fit together, by basic composition.
    choice_ : Release
        The choice: its guarantee and the sensitivity of the scores.
    plan_ : ReleasePlan
        The plan of the fit.
    sensitivity_ : SensitivityEstimate or KnownSensitivity
        The sensitivity to which the noise of the fit was calibrated.
    standard_errors_ : dict of str to ndarray, ndarray or None
        Those of the numbers that the fit released, as of PrivateEstimator.
    mechanism_ : Mechanism
        The mechanism of the fit, with the code that it learned.
    budget_ : BudgetTotal
        The promise of these two and all earlier releases of their budget together.
    cv_results_ : dict
        The candidates, under "params". Their scores are private, and not there.
    classes_ : ndarray of shape (n_classes,)
        The class labels, for a classifier.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when X and the oracle have them.

    See Also
    --------
    public_search : Chooses on records of the oracle, at no cost in privacy.
    ExponentialMechanism : Chooses.

    Notes
    -----
    The choice decides which estimate of the sensitivity calibrates the fit, so the estimates of all
    candidates must cover the pair. Each is sampled at the gamma of the sampler of `estimator` over
    the number of candidates, by the union bound. A confidence is divided likewise.

    References
    ----------
    .. [1] McSherry and Talwar, "Mechanism Design via Differential Privacy", FOCS 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from skdp import ExponentialMechanism, LaplaceMechanism, PrivateEstimator
    >>> from skdp import PrivateSearchCV, PublicDataOracle, SensitivitySampler
    >>> X, y = make_classification(n_samples=300, n_features=4, random_state=0)
    >>> oracle = PublicDataOracle(X[:100], y[:100])
    >>> search = PrivateSearchCV(
    ...     PrivateEstimator(
    ...         RidgeClassifier(),
    ...         mechanism=LaplaceMechanism(epsilon=1.0),
    ...         sensitivity=SensitivitySampler(oracle, gamma=0.2, random_state=0),
    ...     ),
    ...     {"estimator__alpha": [1.0, 100.0]},
    ...     mechanism=ExponentialMechanism(epsilon=0.5),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.2, n_pairs=9, random_state=1),
    ... )
    >>> search.fit(X[100:], y[100:]).predict(X[:2]).shape
    (2,)
    >>> search.guarantee_.epsilon, search.guarantee_.gamma
    (1.5, 0.4)
    """

    best_params_: dict[str, Any]
    best_index_: int
    choice_: Release
    cv_results_: dict[str, Any]

    def __init__(
        self,
        estimator: PrivateEstimator,
        param_grid: Mapping[str, Sequence] | Sequence[Mapping[str, Sequence]],
        *,
        mechanism: Mechanism,
        sensitivity: SensitivitySampler | SensitivityEstimate | KnownSensitivity | float,
        scoring: Any = None,
        cv: Any = 5,
        n_iter: int | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.estimator = estimator
        self.param_grid = param_grid
        self.mechanism = mechanism
        self.sensitivity = sensitivity
        self.scoring = scoring
        self.cv = cv
        self.n_iter = n_iter
        self.accountant = accountant
        self.random_state = random_state

    @usual_errors
    def fit(self, X: Container, y: Container = None, sample_weight: None = None) -> Self:
        """Choose privately, then fit privately.

        Before private data are read, every candidate is fitted and scored on records of the oracle
        or on made-up ones, the sensitivities of the scores and of the first candidate are settled,
        and the budget is asked for both releases.

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
        ValueError
            If a parameter, an oracle or the data break a rule. If the sensitivity of the chosen
            candidate alone cannot be sampled, the choice has been paid for.
        TypeError
            If a parameter is of a wrong type, or there are weights.
        BudgetExceededError
            If the budget does not allow both releases. No private record is then looked at, unless
            another process has spent in between.
        LedgerError
            If the budget cannot be read or written.
        PrivateEvaluationError
            If a candidate cannot be scored or fitted on the private data. The budget has paid.
        """
        if sample_weight is not None:
            raise TypeError("PrivateSearchCV takes no sample_weight in fit. Got sample_weight.")
        candidates = self._candidates()
        models = [_set(self.estimator, params, len(candidates)) for params in candidates]
        self._check_parameters(models)
        warn_if_fitted(self.estimator.estimator, self.param_grid)
        given = self.accountant or self.estimator.accountant
        pays = find_accountant(given)
        check_is_public(getattr(self.sensitivity, "draws_from", None), Dataset(X, y))
        grids = [self.param_grid] if isinstance(self.param_grid, Mapping) else self.param_grid
        listed = (some for grid in grids for some in grid.values() if isinstance(some, Iterable))
        # of the parameters as given, since models and candidates hold copies
        check_holds_no_record(self.estimator, Dataset(X, y), *chain.from_iterable(listed))
        dataset = data_check(self.estimator)(X, y)
        pays._rehearse(  # before pairs are sampled
            least_spend(self.mechanism, self.sensitivity, dataset.n_records),
            least_spend(
                self.estimator.mechanism, models[0].sensitivity, dataset.n_records, len(models)
            ),
        )
        prepared = [prepare(model, dataset) for model in models]
        for each in prepared[1:]:
            if not isinstance(each.sensitivity, SensitivitySampler):
                each.plan()  # samples nothing, and refuses an estimate for another candidate
        known = [each.target for each in prepared] if is_derived(self.estimator) else []
        choice, scored = self._plan_choice([model.estimator for model in models], dataset, known)
        rehearse(choice.mechanism, np.zeros(len(models)), choice.sensitivity.value)
        planned = replace(prepared[0].plan(), n_alternatives=len(models))
        promise = compose(choice.guarantee, planned.guarantee)
        for weakness in weaknesses(promise, dataset.n_records):
            warn(f"The promise is weak, together: {weakness}.")
        pays._rehearse(*(spend_of(each, each.guarantee) for each in (choice, planned)))
        if choice.sensitivity.shape is None:  # else the candidates were scored on pairs
            check_scores(_scored(choice.target, prepared[0].public), candidates, "PrivateSearchCV")

        warn_if_uncharged(given)  # once for both
        chosen = choice.execute_checked(
            scored, accountant=pays, random_state=_apart(self.random_state)
        )
        index = chosen.value
        if index > 0:
            planned = replace(prepared[index].plan(), n_alternatives=len(models))
        plan = replace(planned, accountant=given)
        released = plan.execute_checked(
            prepared[index].example, accountant=pays, random_state=self.estimator.random_state
        )
        whole = replace(
            released,
            guarantee=compose(chosen.guarantee, released.guarantee),
            plan=f"{chosen.plan}\nChosen: {candidates[index]}\n{released.plan}",
        )
        return self._keep(
            *(plan, whole),
            best_index_=index,
            best_params_=candidates[index],
            cv_results_={"params": candidates},
            choice_=chosen,
        )

    @property
    def best_estimator_(self) -> Estimator:
        """The released estimator."""
        if "estimator_" not in vars(self):
            raise AttributeError("PrivateSearchCV has no attribute 'best_estimator_' before fit.")
        return self.estimator_

    def _candidates(self) -> list[dict[str, Any]]:
        """Return the candidates; refuse parameters on which no score depends."""
        if not isinstance(self.estimator, PrivateEstimator):
            raise TypeError(
                "The 'estimator' parameter of PrivateSearchCV must be a PrivateEstimator, since it "
                f"is fitted privately, too. Got {shown(self.estimator)}."
            )
        candidates = list_candidates(self.param_grid, self.n_iter, self.random_state)
        names = {name for params in candidates for name in params}
        strange = sorted(name for name in names if name.split("__")[0] != "estimator")
        if strange:
            raise ValueError(
                "The 'param_grid' parameter of PrivateSearchCV must name parameters of the wrapped "
                f"estimator, such as 'estimator__C'. Got {strange}, on which no score depends."
            )
        return candidates

    def _check_parameters(self, models: list[PrivateEstimator]) -> None:
        """Refuse parameters of a choice, and candidates of a fit, that break a rule."""
        from sklearn.metrics import check_scoring

        if not isinstance(self.mechanism, Mechanism) or not self.mechanism.chooses:
            raise TypeError(
                "The 'mechanism' parameter of PrivateSearchCV must choose, such as "
                f"ExponentialMechanism(epsilon=0.5). Got {shown(self.mechanism)}."
            )
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise TypeError(
                "The 'scoring' parameter of PrivateSearchCV must be one score: a name, a function "
                f"or None. Got {shown(self.scoring)}."
            )
        byte_source(self.random_state)
        check_accountant(self.accountant, "PrivateSearchCV")
        check_configuration(self)
        for model in models:
            check_parameters(model)
            check_scoring(model.estimator, self.scoring)

    def _plan_choice(
        self, estimators: list[Estimator], dataset: Dataset, known: list[Target]
    ) -> tuple[ReleasePlan, Dataset]:
        """Make the plan of the choice, and bring the records into its form."""
        sensitivity = self.sensitivity
        if getattr(sensitivity, "estimator", None) is not None:
            raise ValueError(
                "The 'sensitivity' parameter of PrivateSearchCV must bound scores, and this bounds "
                f"what a fit releases. Got {shown(sensitivity)}. Sample it, or bound the scores."
            )
        if isinstance(sensitivity, SensitivitySampler):
            used = dataset.y is not None
            sensitivity = sensitivity.for_estimator(estimators[0], "auto", dataset, used)
        target = CandidateScores(estimators, self.scoring, self.cv, known)
        return plan_for(dataset, dataset.n_records, target, self.mechanism, sensitivity)

    def _check_served(self, estimator: Estimator, name: str) -> None:
        self.estimator._check_served(estimator, name)


def _set(model: PrivateEstimator, params: Mapping[str, Any], n_candidates: int) -> PrivateEstimator:
    """Set a candidate, with its share of gamma and of the confidence."""
    copied = clone(model).set_params(**clone(dict(params), safe=False))
    sampler = copied.sensitivity
    if n_candidates > 1 and isinstance(sampler, SensitivitySampler):
        sampler.plan(1)  # refuses a wrong gamma or confidence, as it was given
        gamma, confidence = of_each(sampler.gamma, sampler.confidence, n_candidates)
        sampler.set_params(gamma=gamma, confidence=confidence)
    return copied


def _apart(random_state: int | None) -> int | None:
    """Return a seed for the choice whose noise differs from that of a fit with the same seed."""
    if random_state is None:
        return None
    return int(np.random.SeedSequence(random_state, spawn_key=(1,)).generate_state(1, np.uint64)[0])


def _scored(target: Target, public: Dataset) -> NDArray[np.float64]:
    """Score the candidates on public records with a copy of the target."""
    try:
        return spare(target)(*copy.deepcopy(public).parts, seed=0)
    except Exception as error:
        error.add_note("Raised when the candidates were scored on public or made-up records.")
        raise
