"""PrivateEstimator: a scikit-learn estimator whose fit releases private values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import find_accountant
from skdp.checks import check_fit, check_holds_no_record, check_parameters
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset
from skdp.core.room import usual_errors
from skdp.core.types import Container, Estimator
from skdp.delegation import DelegatedMethods, fitted_attributes
from skdp.estimators.inputs import takes
from skdp.exceptions import BudgetExceededError
from skdp.mechanisms.base import Mechanism
from skdp.plan import ReleasePlan
from skdp.planning import example_dataset, least_spend
from skdp.preparation import given_sensitivity, prepare
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler

SEARCHES = (
    "A search of scikit-learn pays for a fit of each candidate for each fold and once more. After "
    "this error it goes on, with missing scores, unless it is given error_score='raise'."
)


class PrivateEstimator(DelegatedMethods, MetaEstimatorMixin, BaseEstimator):
    """Make any scikit-learn estimator private.

    Fitting samples how much the fitted parameters change when one record changes, on datasets
    drawn from an oracle of plausible records; fits the estimator once to the private data; adds
    noise to its parameters, calibrated to an order statistic of the sampled changes; and puts the
    noisy parameters into a *public fit*, the same estimator fitted on the oracle's records. The
    result is (epsilon, delta, gamma)-random differential privacy [1]_. No other trace of the
    private fit is kept.

    Wrap a whole pipeline, not its last step: a scaler fitted outside leaks what it has learned.

    Parameters
    ----------
    estimator : estimator object
        The estimator to fit, unfitted. Steps wrapped in scikit-learn's FrozenEstimator are taken
        for public, and release nothing.
    mechanism : Mechanism
        Which noise, such as ``LaplaceMechanism(epsilon=1.0)``. Epsilon is the user's decision.
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity, "known" or float
        How much the parameters can change: sampled at each fit, sampled earlier, or known on
        paper. "known" derives it from the estimator and from the ClipNorm or ClipBox right before
        it in a pipeline, all other steps of which must be public; the promise is plain differential
        privacy, and what has no such bound is refused. With a KnownSensitivity, the estimator is
        checked and the records are clipped to the ranges of the bound. A number is a bound in the
        norm of the mechanism; the promise is then plain too, and says that the caller asserts it.
    release : "auto", sequence of str, LeafTarget, BernsteinTransformer or target, default="auto"
        What to release. "auto" takes the fitted attributes of :func:`supported_estimators`, of
        compositions of them such as pipelines, and the leaves of trees and forests. Names such as
        ``["coef_", "intercept_"]``, ``"standardscaler__mean_"`` or ``"estimators_[0]__coef_"``
        serve any other estimator; they must determine its output, since everything not named
        stays as in the public fit. A BernsteinTransformer releases the fitted function on its box
        and lattice (a density, a decision function, a prediction) instead of attributes; a
        FittedFunctionTarget says which function, and a target of your own with a method `restore`
        anything else.
    classes : array-like of shape (n_classes,), or list of them for outputs, or None, default=None
        The class labels, which are public. None takes those of the oracle; where there is no
        oracle they are read from y, under a PrivacyLeakWarning.
    prior : oracle or None, default=None
        With a sensitivity known on paper: source of plausible records, as for SensitivitySampler,
        from which a public code is learned. The promise does not depend on it, so it need only be
        useful; it must not be derived from the private data. With a SensitivityEstimate: the oracle
        that it was sampled from. Its records fix again what they fixed then, such as categories.
    accountant : PrivacyAccountant or None, default=None
        Whose budget pays for each fit, before the estimator sees the private records. Clones share
        it. None takes `skdp.accounting.default_accountant`.
    random_state : int or None, default=None
        Source of the noise. None takes the operating system's generator. A seed is for tests and
        examples: whoever knows it can undo the noise, and the difference of two releases that
        share it shows that of the exact values to everybody. The guarantee says so. `set_params`
        sets none where None was given here: ensembles seed their members. The sampling has a seed
        of its own, in the sampler.

    Attributes
    ----------
    estimator_ : estimator object
        The released estimator, of the class of `estimator`; for a function a ReleasedDensity,
        ReleasedClassifier, ReleasedRegressor or ReleasedOutlierDetector. It holds released and
        public values only: this is what may be handed on.
    guarantee_ : PrivacyGuarantee
        What was promised.
    budget_ : BudgetTotal
        What this fit and all earlier releases of its budget promise together.
    sensitivity_ : SensitivityEstimate or KnownSensitivity
        What the noise was calibrated to.
    standard_errors_ : dict of str to ndarray, ndarray or None
        Standard deviations of the errors of what was released, by attribute and before any repair;
        for a function in the shape of its coefficients. None where the mechanism cannot tell. They
        follow from public numbers and from what was released. With a public code they are those of
        the decoded numbers, if the private data are like the oracle's, up to the `shift`.
    mechanism_ : Mechanism
        The mechanism that released, with the code that it learned.
    plan_ : ReleasePlan
        All that was settled before private data was looked at.
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
    Components, clusters and topics are put in the order and given the signs that they have in the
    public fit, before differences are taken. Noised values that mean something only in a range are
    repaired, and what follows from them is recomputed: variances that come out negative are
    replaced by those of the public fit, probabilities are projected to the simplex, covariances
    made positive definite, knots sorted. This is post-processing and costs no privacy.

    Warnings, output and logs of the private fit are silenced, since they describe the data; those
    of the public fits are shown. All fits are without callbacks, and with `verbose` switched off.

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
        classes: Sequence[Any] | NDArray | None = None,
        prior: Any = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.estimator = estimator
        self.mechanism = mechanism
        self.sensitivity = sensitivity
        self.release = release
        self.classes = classes
        self.prior = prior
        self.accountant = accountant
        self.random_state = random_state

    @usual_errors
    def fit(self, X: Container, y: Container = None, sample_weight: Container = None) -> Self:
        """Fit privately.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_samples, n_features)
            The private records. Their number and the names and types of the columns are public.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or None, default=None
            The private responses. They are left out, and those of the oracle too, where the
            estimator ignores them, so that it may stand anywhere in a pipeline.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The private weights of the records, which the oracle must yield too, as
            ``(X, y, sample_weight)``. Those of a pipeline go to its last step, whatever its steps
            request.

        Returns
        -------
        self : PrivateEstimator
            Fitted. If anything fails it is as it was before, and nothing has been released.

        Raises
        ------
        ValueError
            If a parameter, the oracle or the data are not as they must be; see the message.
        TypeError
            If a parameter is no estimator or mechanism, or fitting takes no weights.
        BudgetExceededError
            If the budget does not allow the fit. No private record is then looked at.
        LedgerError
            If the budget cannot be read or written. No private record is then looked at.
        PrivateEvaluationError
            If the estimator cannot be fitted to the private data. The budget has paid.

        Warns
        -----
        UserWarning
            If epsilon is above 20, delta above one over the number of records, gamma above 1/2, or
            the confidence below 1/2; if less than a tenth of what could differ between models of
            the oracle is read off the private data; if an encoder takes its categories from public
            records, and raises where a private one has another; or if the model could not be saved,
            because a parameter holds a lambda.
        """
        dataset = check_fit(self, X, y, sample_weight)
        # before a draw, and of the records as given; `execute` asks again, of other data perhaps
        check_holds_no_record(self, Dataset(X, y, sample_weight))
        pays = find_accountant(self.accountant)
        spend = least_spend(self.mechanism, self.sensitivity, dataset.n_records)
        try:
            pays.rehearse(spend)  # before pairs are sampled
        except BudgetExceededError as error:
            error.add_note(SEARCHES)
            raise
        prepared = prepare(self, dataset)  # of the data are used the form, labels and gaps
        plan = replace(prepared.plan(), accountant=self.accountant)
        released = plan.execute_checked(prepared.example, random_state=self.random_state)
        self.__dict__.update(  # at once: an interrupt could leave the guarantee of another fit
            fitted_attributes(plan, released)
        )
        return self

    @usual_errors
    def plan(self, n_samples: int, like: Container = None) -> ReleasePlan:
        """Settle all that is public about a fit, without private data.

        Parameters
        ----------
        n_samples : int
            Number of private records.
        like : X, (X, y), (X, y, sample_weight) or None, default=None
            Any records in the form of the private ones, such as public ones or a few that are made
            up; only their containers, columns and dtypes are used, and the labels where there is
            no other source of them. None takes the form in which the oracle yields its records, and
            X alone that of its responses.

        Returns
        -------
        ReleasePlan
            What a fit would be: to be printed, kept and executed. The value of its release is what
            `estimator_` would be.

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
        check_parameters(self)
        sensitivity = given_sensitivity(self, n_samples)
        allow_nan = takes(self.estimator, "allow_nan")
        example = example_dataset(n_samples, like, sensitivity, "PrivateEstimator.plan", allow_nan)
        if example.y is None and sensitivity.draws_from is not None:
            drawn = sensitivity.public_dataset(n_samples, allow_nan=allow_nan)
            example = Dataset(example.X, *drawn.parts[1:])
        prepared = prepare(self, check_fit(self, *example))
        return replace(prepared.plan(), accountant=self.accountant)
