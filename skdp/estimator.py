"""PrivateEstimator: a scikit-learn estimator whose fit releases private values only."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.utils import estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import as_pickled, find_payer
from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.persons import first_of_each, with_persons
from skdp.core.room import undisturbed
from skdp.core.types import Container, Decorated, Estimator, Scoring, Values
from skdp.estimators.delegation import DelegatedMethods
from skdp.estimators.inputs import takes
from skdp.exceptions import BudgetExceededError
from skdp.execution import pay_and_run, records_of
from skdp.mechanisms.base import Mechanism
from skdp.plan import ReleasePlan
from skdp.planning.checks import check_fit, check_holds_no_record, check_parameters, example_dataset
from skdp.planning.making import least_spend, make_plan
from skdp.planning.persons import check_unit, without_ids
from skdp.planning.preparation import prepare, rehearse_methods
from skdp.result import Release, below_promise
from skdp.results.expected import ScoreAt
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.tables.release import ReleasedOracle

P = ParamSpec("P")
T = TypeVar("T")


def _of_release(
    method: Callable[Concatenate[Release, P], T],
) -> Callable[Concatenate[PrivateModel, P], T]:
    """Hand a method to the release of a fitted estimator."""

    @wraps(method)
    def call(self: PrivateModel, *args: P.args, **kwargs: P.kwargs) -> T:
        check_is_fitted(self)
        return method(self._release, *args, **kwargs)

    return call


def _released_is(is_kind: Callable[[Estimator], bool]) -> Callable[[Decorated], Decorated]:
    """Hide a method unless the released estimator, or before fit the one given, is of a kind."""
    return available_if(lambda self: is_kind(self._model))


class PrivateModel(DelegatedMethods, MetaEstimatorMixin, BaseEstimator):
    """What PrivateEstimator and PrivateSearchCV share: they keep a plan and a release."""

    guarantee_: PrivacyGuarantee
    budget_: BudgetTotal
    sensitivity_: SensitivityEstimate | KnownSensitivity
    standard_errors_: NDArray[np.float64] | Values | None
    mechanism_: Mechanism
    oracle_: ReleasedOracle | None
    private_score_: ScoreAt | None
    plan_: ReleasePlan
    public_estimator_: Estimator | None
    _release: Release

    summary = _of_release(Release.summary)
    save = _of_release(Release.save)
    report = _of_release(Release.report)
    value_interval = _of_release(Release.value_interval)
    predict_interval = _released_is(is_regressor)(_of_release(Release.predict_interval))
    predict_stability = _released_is(is_classifier)(_of_release(Release.predict_stability))

    def _keep(self, plan: ReleasePlan, released: Release, **others: object) -> Self:
        """Keep a plan and its release, all at once: an interrupt leaves the old fit or the new."""
        self.__dict__.update(
            _release=released,
            plan_=plan,
            estimator_=released.value,
            guarantee_=released.guarantee,
            budget_=released.budget,
            sensitivity_=released.sensitivity,
            standard_errors_=released.standard_errors,
            mechanism_=plan.mechanism,
            oracle_=released.oracle,
            private_score_=released.private_score,
            public_estimator_=plan.public_estimator,
            **others,
        )
        return self

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        """Show what was promised, alone and with the releases before it, above the diagram."""
        try:
            diagram = estimator_html_repr(self)
        except TypeError:  # scikit-learn 1.9 asks an unfitted step in it to name its columns
            drawn = copy.copy(self)
            drawn.estimator = self.estimator_
            diagram = estimator_html_repr(drawn)
        return below_promise(self._release, diagram) if hasattr(self, "estimator_") else diagram


class PrivateEstimator(PrivateModel):
    """Make any scikit-learn estimator private.

    Fitting samples how much the parameters change when one record changes, on datasets drawn from
    an oracle of plausible records. It fits the estimator once to the private data, adds noise that
    is calibrated to an order statistic of the sampled changes, and puts the noisy parameters into a
    *public fit*, the same estimator fitted on the oracle's records. No other trace of the private
    fit is kept. The result is (epsilon, delta, gamma)-random differential privacy [1]_.

    Wrap a whole pipeline, not its last step: a scaler outside leaks what it has learned.

    Parameters
    ----------
    estimator : estimator object
        The estimator to fit, unfitted. Steps in scikit-learn's FrozenEstimator count as public.
    mechanism : Mechanism
        The noise, such as ``LaplaceMechanism(epsilon=1.0)``. Epsilon is the user's decision.
    sensitivity : SensitivitySampler, SensitivityEstimate, ClassTables, SampleAndAggregate, \
            "aggregate", KnownSensitivity, "known" or float
        How much one record can change what is released:

        - SensitivitySampler: sampled at each fit, on records of an oracle. It promises random
          differential privacy.
        - SensitivityEstimate: sampled earlier, with the promise of its sampler. All values below
          promise plain differential privacy.
        - ClassTables: for any estimator, from declared ranges and values of the columns alone.
        - SampleAndAggregate, or "aggregate" for its defaults: bounded for any estimator, by
          averaging over blocks of the records.
        - "known": a bound on paper, for the estimator and the ClipNorm or ClipBox right before it
          in a pipeline. All other steps must be public.
        - KnownSensitivity: a bound that checks the estimator, and clips the records to its ranges.
        - float: a bound in the norm of the mechanism, asserted by the caller.
    release : "auto", "predictions", sequence of str, PredictionTarget, \
            BernsteinTransformer or Target, default="auto"
        The part of a fit to release:

        - "auto": the fitted attributes of :func:`supported_estimators` and of compositions such as
          pipelines, and the leaves of trees and forests that classify. Of any other estimator its
          predictions, if the sensitivity is sampled.
        - "predictions" or PredictionTarget: predictions at public points, from which a student of
          the same class learns.
        - names, such as ``["coef_", "intercept_"]``, ``"standardscaler__mean_"`` or
          ``"estimators_[0]__coef_"``: these attributes. They must determine the output, since all
          others stay as in the public fit.
        - BernsteinTransformer: the fitted function (a density, a decision function, a prediction)
          on its box and lattice.
        - Target: a target of your own, with a method `restore`.
    classes : array-like of shape (n_classes,), or list of them for outputs, or None, default=None
        The class labels, which are public. None takes those of the oracle; where there is no
        oracle they are read from y, under a PrivacyLeakWarning.
    prior : oracle or None, default=None
        A source of plausible records, which must not be derived from private data:

        - for plain differential privacy, records from which a public code is learned. The promise
          does not depend on it.
        - for a SensitivityEstimate, the oracle that was sampled.
    accountant : PrivacyAccountant or None, default=None
        The budget that pays for each fit, before the estimator sees the private records. Clones
        share it. None takes `skdp.accounting.default_accountant`; a pickle takes that of an open
        block along.
    expect : dict of str to float, or None, default=None
        A public guess of your task, at which the expected score is read, and by which a release is
        warned of: ``{"majority": 0.72, "exact": 0.8}``, the share of the largest class and the
        score of the best model, or the first alone; for a regressor ``{"exact": 0.4}``, its R2.
        Do not compute them from private records.
    shares : dict of str to float, or None, default=None
        Shares of epsilon, at most .5 in all, that pay for counts beside the release:

        - "score": the accuracy of the released classifier on the private records, with noise.
        - "check": whether at most about a tenth of the private records are outside the ranges of
          the oracle's. Else a fit releases nothing more, and raises.
    unit : "person" or None, default=None
        "person" makes a fit without `groups` an error. None takes persons where there are groups,
        else records.
    records_per_person : float of at least 1, default=1
        With groups, of a mean over bounded records: a record weighs one over the number of the
        person's records, or over this public number where it is larger. A guess of the median is a
        good choice. Only a MultinomialNB, and a MomentClassifier that is given a second moment,
        take another number than 1.
    random_state : int or None, default=None
        Source of the noise. None takes the operating system's generator. A seed is for tests and
        examples, and the guarantee says so: whoever knows it can undo the noise, and two releases
        that share it show the difference of their exact values. `set_params` sets no seed where
        None was given here. The sampler has a seed of its own.

    Attributes
    ----------
    estimator_ : estimator object
        The released estimator, of the class of `estimator`; for a function a ReleasedDensity,
        ReleasedClassifier or ReleasedRegressor. It holds released and public values only, and may
        be handed on.
    guarantee_ : PrivacyGuarantee
        The promise.
    budget_ : BudgetTotal
        The promise of this fit and all earlier releases of its budget together.
    sensitivity_ : SensitivityEstimate or KnownSensitivity
        The sensitivity that the noise was calibrated to.
    standard_errors_ : dict of str to ndarray, ndarray or None
        Standard deviations of the errors of the released numbers, by attribute and before any
        repair; for a function in the shape of its coefficients. None if the mechanism cannot tell.
        With a public code they are those of the decoded numbers, for private data that are like the
        oracle's, up to the `shift`.
    mechanism_ : Mechanism
        The mechanism that released, with the code that it learned.
    private_score_ : ScoreAt or None
        Accuracy on the private records and its standard error, which is that of the noise. None
        where no share paid for it. As the model has learned from them, it may be a little too high.
    oracle_ : ReleasedOracle or None
        The class tables that were released. None without ClassTables.
    plan_ : ReleasePlan
        Everything that was settled before private data was looked at.
    public_estimator_ : estimator object or None
        The model of the public records alone, to compare with on records whose score may be told.
        None where there are no public records.
    classes_ : ndarray of shape (n_classes,)
        The class labels, for a classifier.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, when X and the oracle have them.

    See Also
    --------
    SensitivitySampler : Samples the sensitivity from an oracle.
    LaplaceMechanism : Adds Laplace noise.
    release : The same for any Python function.
    supported_estimators : Lists what "auto" knows.

    Notes
    -----
    Components, clusters and topics get the order and the signs of the public fit, before
    differences are taken. Noisy values outside of their range are repaired: negative variances are
    replaced by those of the public fit, probabilities are projected to the simplex, covariances are
    made positive definite, knots are sorted. This is post-processing and costs no privacy.

    Warnings, output and logs of the private fit are silenced, since they describe the data. All
    fits run without callbacks, and with `verbose` switched off.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_public, y_public, X, y = X[::2], y[::2], X[1::2], y[1::2]
    >>> scaler = FrozenEstimator(StandardScaler().fit(X_public))
    >>> model = PrivateEstimator(
    ...     make_pipeline(scaler, LogisticRegression(C=0.01)),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(
    ...         PublicDataOracle(X_public, y_public), gamma=0.1, random_state=0
    ...     ),
    ... )
    >>> model.fit(X, y).predict(X[:5]).shape
    (5,)
    >>> model.guarantee_.epsilon, model.guarantee_.gamma
    (1.0, 0.1)
    """

    def __init__(
        self,
        estimator: Estimator,
        *,
        mechanism: Mechanism,
        sensitivity: SensitivitySampler | SensitivityEstimate | KnownSensitivity | str | float,
        release: str | Sequence[str] = "auto",
        classes: Sequence[object] | NDArray | None = None,
        prior: object = None,
        accountant: PrivacyAccountant | None = None,
        expect: Mapping[str, float] | None = None,
        shares: Mapping[str, float] | None = None,
        unit: str | None = None,
        records_per_person: float = 1,
        random_state: int | None = None,
    ):
        self.estimator = estimator
        self.mechanism = mechanism
        self.sensitivity = sensitivity
        self.release = release
        self.classes = classes
        self.prior = prior
        self.accountant = accountant
        self.expect = expect
        self.shares = shares
        self.unit = unit
        self.records_per_person = records_per_person
        self.random_state = random_state

    def __getstate__(self) -> dict[str, Any]:
        """Take the budget of a block along."""
        return super().__getstate__() | {"accountant": as_pickled(self.accountant)}

    @undisturbed
    def fit(
        self,
        X: Container,
        y: Container = None,
        sample_weight: Container = None,
        groups: Container = None,
    ) -> Self:
        """Fit privately.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_samples, n_features)
            The private records. Their number and the names and types of the columns are public.
            With ClassTables also a table of an engine, such as a relation of DuckDB.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), str or None, default=None
            The private responses. They are left out where the estimator ignores them. For a table
            of an engine the name of their column.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The private weights of the records, which the oracle must yield too, as
            ``(X, y, sample_weight)``. Those of a pipeline go to its last step.
        groups : array-like of shape (n_samples,), str or None, default=None
            The ids of the persons whom the records belong to, or the name of a column of X that has
            them and is taken out. The promise is then about persons, whose number is public. Rows
            without an id are left out. A sampler needs an oracle of persons.

        Returns
        -------
        self : PrivateEstimator
            Fitted. If anything fails it is as before, and nothing has been released.

        Raises
        ------
        ValueError
            If a parameter, the oracle or the data break a rule that the message names.
        TypeError
            If a parameter is no estimator or mechanism, fitting takes no weights, or the estimator
            cannot predict on the types of X.
        RuntimeError
            If another package replaced a method of an installed estimator.
        BudgetExceededError
            If the budget does not allow the fit. No private record is then looked at.
        LedgerError
            If the budget cannot be read or written. No private record is then looked at.
        PrivateEvaluationError
            If the estimator cannot be fitted to the private data. The budget has paid.
        UnlikeRecordsError
            If a check that `shares` pays for fails. The budget has paid for the check alone.

        Warns
        -----
        UserWarning
            If epsilon is above 20, delta above one over the number of records, gamma above 1/2, or
            the confidence below 1/2; or if an encoder raises at a category that the public records
            lack.
        UtilityWarning
            If the release may be worth no more than a guess, or than public records alone.
        """
        way, given = check_parameters(self), Dataset(X, y, sample_weight)
        way.unit = check_unit(self, groups, "fit")
        rows = given if groups is None else with_persons(given._replace(groups=groups))
        dataset = check_fit(way, first_of_each(rows))
        check_holds_no_record(way, given)  # as they came, and before a draw from the oracle
        pays = find_payer(self.accountant)
        try:
            pays.rehearse(least_spend(self.mechanism, self.sensitivity, way.unit))
        except BudgetExceededError as error:
            error.add_note(
                "A search of scikit-learn pays for a fit of each candidate for each fold and once "
                "more; PrivacyAccountant.check(model, n_fits) says beforehand whether the budget "
                "allows them. After this error the search goes on, with missing scores, unless it "
                "is given error_score='raise'. See the page on budgets."
            )
            raise
        draft = prepare(way, dataset)
        rehearse_methods(draft, rows.X)
        plan = make_plan(draft)
        private = draft.example if groups is None else records_of(plan, rows)
        released = pay_and_run(plan, private, pays, self.random_state)
        return self._keep(plan, released)

    def least_spend(self) -> dict[str, Any]:
        """Return what a fit spends at least, which does not depend on the number of records."""
        check_parameters(self)
        return least_spend(self.mechanism, self.sensitivity, self.unit or "record")

    @undisturbed
    def plan(
        self,
        n_samples: int,
        like: Container = None,
        scoring: Scoring = None,
        groups: bool | str | None = None,
    ) -> ReleasePlan:
        """Settle all that is public about a fit, without private data.

        Parameters
        ----------
        n_samples : int
            Number of private records, or of persons.
        like : X, (X, y), (X, y, sample_weight) or None, default=None
            Any records in the form of the private ones, such as a few made-up ones. Their
            containers, columns and dtypes are used, and the labels where there is no other source.
            None takes the form of the oracle's records, and X alone that of its responses.
        scoring : str, callable or None, default=None
            The score of ``plan.expected_score``, as in scikit-learn. None takes that of the
            estimator. With ClassTables it is the accuracy, or R2, in any case.
        groups : bool, str or None, default=None
            True, or the name of the column of ids, for a plan of persons.

        Returns
        -------
        ReleasePlan
            The plan of a fit. The value of its release is what `estimator_` would be.

        Raises
        ------
        ValueError
            As :meth:`fit`, or if `like` is None and there is no oracle to take the form from.

        Examples
        --------
        >>> from sklearn.linear_model import Ridge
        >>> from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, UniformOracle
        >>> oracle = UniformOracle([(0, 1)], y_bounds=(0, 1))
        >>> model = PrivateEstimator(
        ...     Ridge(),
        ...     mechanism=LaplaceMechanism(epsilon=1.0),
        ...     sensitivity=SensitivitySampler(oracle, random_state=0),
        ... )
        >>> plan = model.plan(n_samples=100)
        >>> sorted(plan.standard_errors)
        ['coef_', 'intercept_']
        """
        check_count("n_samples", n_samples, "PrivateEstimator.plan")
        way = check_parameters(self)
        way.unit = check_unit(self, groups, "plan")
        sensitivity = way.start(n_samples)
        if like is None:
            like = way.like
        else:
            like = way.located(without_ids(like, groups, "PrivateEstimator.plan"), n_samples)
        allow_nan = takes(self.estimator, "allow_nan")
        example = example_dataset(n_samples, like, sensitivity, "PrivateEstimator.plan", allow_nan)
        if example.y is None and sensitivity.draws_from is not None:
            drawn = sensitivity.public_dataset(n_samples, allow_nan=allow_nan)
            example = first_of_each(drawn)._replace(X=example.X)
        draft = prepare(way, check_fit(way, example), scoring, is_private=False)
        rehearse_methods(draft, example.X)
        return make_plan(draft)
