"""PrivateEstimator: a scikit-learn estimator whose fit releases private values only."""

from __future__ import annotations

import html
import inspect
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.utils import Tags, estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.accountant import PrivacyAccountant, check_accountant
from skdp.accounting.in_force import accountant_in_force
from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, n_records
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.oracle import Oracle
from skdp.core.schema import Schema, canonical
from skdp.core.target import Target, target_key
from skdp.core.types import Container, Estimator, Method
from skdp.estimators.catalog import entry_of
from skdp.estimators.configuration import members_in, without_side_effects
from skdp.estimators.delegation import DelegatedMethods
from skdp.estimators.inputs import takes, takes_weights, uses_response
from skdp.estimators.known import KnownTarget, check_known, public_parameters
from skdp.estimators.labels import labels_of
from skdp.estimators.members import classes_of_outputs, last_step
from skdp.estimators.public_fit import fit_seeded, fit_to_synthetic, synthetic_dataset
from skdp.estimators.validation import check_labels, check_private_dataset
from skdp.exceptions import PrivacyLeakWarning
from skdp.functions.bernstein import BernsteinTransformer
from skdp.known_density import KnownDensityTarget, check_known_density
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.outcome import Release
from skdp.plan import (
    ReleasePlan,
    example_dataset,
    make_plan,
    settle_form,
)
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.bounds import KnownSensitivity, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.sensitivity.trial import check_is_public, shares_memory
from skdp.summary import ReleaseSummary
from skdp.targets import check_release, make_target, warn_if_fitted

# How often public records are drawn anew until they hold every class.
MAX_ATTEMPTS = 100


def _where_released_is(kind: Callable[[Estimator], bool]) -> Callable[[Method], Method]:
    """Hide a method unless the released estimator, or before fit the one given, is of a kind."""
    return available_if(lambda self: kind(getattr(self, "estimator_", self.estimator)))


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
        useful; it must not be derived from the private data.
    accountant : PrivacyAccountant or None, default=None
        Whose budget pays for each fit, before the estimator sees the private records. Clones share
        it. None takes `skdp.accounting.default_accountant`.
    random_state : int or None, default=None
        Source of the noise. None takes the operating system's generator. A seed is for tests and
        examples: whoever knows it can undo the noise, and the difference of two releases that
        share it shows that of the exact values to everybody. The guarantee says so. The sampling
        has a seed of its own, in the sampler.

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
        The mechanism that released, with the basis or code that it learned.
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

    estimator_: Estimator
    guarantee_: PrivacyGuarantee
    budget_: BudgetTotal
    sensitivity_: SensitivityEstimate | KnownSensitivity
    standard_errors_: Any
    mechanism_: Mechanism
    plan_: ReleasePlan
    _release: Release

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
            the confidence below 1/2; or if less than a tenth of what could differ between models of
            the oracle is read off the private data.
        """
        dataset = self._check_dataset(X, y, sample_weight)
        # before a draw, and of the records as given; `execute` asks again, of other data perhaps
        given = Dataset(X, y, sample_weight)
        check_is_public(getattr(self.sensitivity, "draws_from", None), given)
        if self.prior is not None:
            check_is_public(as_oracle(self.prior), given)
        self._warn_of_shared_bounds(given)
        plan = self._make_plan(dataset)  # of which only the form is used, and labels
        released = plan.execute(
            *dataset, accountant=self.accountant, random_state=self.random_state
        )
        if isinstance(released.numbers, dict):
            labels = labels_of(released.value, released.numbers)
            released = replace(released, labels=labels)
        self.__dict__.update(  # at once: an interrupt could leave the guarantee of another fit
            _release=released,
            plan_=plan,
            estimator_=released.value,
            guarantee_=released.guarantee,
            budget_=released.budget,
            sensitivity_=released.sensitivity,
            standard_errors_=released.standard_errors,
            mechanism_=plan.mechanism,
        )
        return self

    def plan(self, n_samples: int, like: Container = None) -> ReleasePlan:
        """Settle all that is public about a fit, without private data.

        Parameters
        ----------
        n_samples : int
            Number of private records.
        like : X, (X, y), (X, y, sample_weight) or None, default=None
            Any records in the form of the private ones, such as public ones or a few that are made
            up; only their containers, columns and dtypes are used, and the labels where there is
            no other source of them. None takes the form in which the oracle yields its records.

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
        self._check_parameters()
        sensitivity = self._given_sensitivity(n_samples)
        allow_nan = takes(self.estimator, "allow_nan")
        example = example_dataset(n_samples, like, sensitivity, "PrivateEstimator.plan", allow_nan)
        return self._make_plan(self._check_dataset(*example))

    @_where_released_is(is_regressor)
    def predict_interval(
        self,
        X: Container,
        level: float = 0.9,
        *,
        n_draws: int = 199,
        random_state: int | None = None,
    ) -> NDArray:
        """Return between what the exact model would predict, as far as the noise lets one know.

        It is no interval for y: it says what privacy makes uncertain, and nothing of how far
        records are from any model. The exact model is that which a release without noise
        would give. To ask costs no privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        level : float in (0, 1), default=0.9
            How often the prediction of the exact model is inside, record by record.
        n_draws : int, default=199
            How often the release is simulated. With a public code each takes two fits to records of
            the oracle, unless there is a closed form.
        random_state : int or None, default=None
            Seed of the simulation, which is public.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            If `level` is not in (0, 1), there are too few draws for it, or there is a public code
            and no oracle to simulate with, because the sensitivity was given as an estimate.

        See Also
        --------
        predict_stability : The same for classifiers.

        Notes
        -----
        The level is that over releases of one dataset, whatever it is, where noise is added in a
        basis. With a public code it is that over datasets of the oracle; the `shift` of the
        mechanism makes room for others. Both hold for predictions that are linear in the released
        numbers, before repairs, and about so for others.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import Ridge
        >>> from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, UniformOracle
        >>> oracle = UniformOracle([(0, 1)], y_bounds=(0, 1))
        >>> model = PrivateEstimator(
        ...     Ridge(),
        ...     mechanism=LaplaceMechanism(epsilon=1.0),
        ...     sensitivity=SensitivitySampler(oracle, random_state=0),
        ... )
        >>> x = np.linspace(0, 1, 100)[:, None]
        >>> low, high = model.fit(x, x[:, 0]).predict_interval(x, level=0.9).T
        >>> bool((low < high).all())
        True
        """
        check_is_fitted(self)
        options: dict[str, Any] = {"n_draws": n_draws, "random_state": random_state}
        return self._release.predict_interval(X, level, **options)

    @_where_released_is(is_classifier)
    def predict_stability(
        self, X: Container, *, n_draws: int = 199, random_state: int | None = None
    ) -> NDArray[np.float64]:
        """Return how likely the exact model predicts the same label, as far as the noise shows.

        It is no probability of the class: it says what privacy makes uncertain. It costs no
        privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        n_draws : int, default=199
            As for `predict_interval`.
        random_state : int or None, default=None
            Seed of the simulation, which is public.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Of the models that the exact one might have been, the share that predicts the label of
            the released one: near 1 where noise does not decide.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            As `predict_interval`.
        """
        check_is_fitted(self)
        options: dict[str, Any] = {"n_draws": n_draws, "random_state": random_state}
        return self._release.predict_stability(X, **options)

    def summary(self) -> ReleaseSummary:
        """Tell the released numbers from their noise.

        Returns
        -------
        ReleaseSummary
            Every released number by attribute, class and column, beside its standard error: a text,
            a table in a notebook, a data frame.

        Raises
        ------
        NotFittedError
            Before fit.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.linear_model import Ridge
        >>> from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, UniformOracle
        >>> oracle = UniformOracle([(0, 1)], y_bounds=(0, 1))
        >>> model = PrivateEstimator(
        ...     Ridge(),
        ...     mechanism=LaplaceMechanism(epsilon=1.0),
        ...     sensitivity=SensitivitySampler(oracle, random_state=0),
        ...     random_state=0,
        ... )
        >>> x = np.linspace(0, 1, 100)
        >>> print(model.fit(x[:, None], x).summary())
        (epsilon=1, gamma=0.05)-random differential privacy, ...
                      released   std. error    ratio
        coef_[0]   ...
        intercept_ ...
        """
        check_is_fitted(self)
        return self._release.summary()

    def save(self, folder: str | Path, *, n_draws: int = 99) -> None:
        """Write the released model to a folder, with the promise and a card for people.

        Parameters
        ----------
        folder : str or path-like
            Made if it is not there. It must be empty.
        n_draws : int, default=99
            How often the release of a public code is simulated now, so that what is loaded has
            intervals; 0 leaves these out. Each takes two fits to records of the oracle, unless
            there is a closed form.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            If the folder holds something.

        See Also
        --------
        skdp.load : Reads the folder, and returns a Release, whose `value` is the model.
        """
        check_is_fitted(self)
        self._release.save(folder, n_draws=n_draws)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the parts as ``mechanism__epsilon``.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : PrivateEstimator
            This object.

        Raises
        ------
        ValueError
            If there is no such parameter; the message says in which part there is.
        """
        valid = self.get_params(deep=True)
        for name in params:
            parts = [each for each in valid if each.endswith(f"__{name}")]
            if "__" not in name and name not in valid and parts:
                raise ValueError(
                    f"PrivateEstimator has no parameter {name!r} of its own. Set "
                    f"{' or '.join(parts)}."
                )
        return super().set_params(**params)

    def __getstate__(self) -> dict[str, Any]:
        """Take the accountant in force along, so that a worker counts where its caller does."""
        state = super().__getstate__()
        if self.accountant is None and accountant_in_force() is not None:
            state = {**state, "accountant": accountant_in_force()}
        return state

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        """Show what was promised, alone and with the releases before it, above the diagram."""
        diagram = estimator_html_repr(self)
        if not hasattr(self, "guarantee_"):
            return diagram
        together = f"Release {self.budget_.n_releases} of its budget, together {self.budget_}."
        promise = f"<strong>{html.escape(str(self.guarantee_))}</strong>"
        return f"<div><p>{promise}<br>{html.escape(together)}</p>{diagram}</div>"

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of the wrapped estimator: what it takes and gives is unchanged."""
        if hasattr(self.estimator, "get_params"):
            return get_tags(self.estimator)
        return super().__sklearn_tags__()

    def _check_served(self, estimator: Estimator, name: str) -> None:
        last = last_step(estimator)
        if isinstance(self.release, str) and name in entry_of(last).unserved:
            raise AttributeError(
                f"{type(last).__name__}.{name} needs more than release='auto' releases. Name the "
                "attributes that it needs in 'release', where they are public."
            )

    def _check_takes(self, released: Estimator, method: str, parameter: str) -> None:
        last = last_step(released)
        if parameter not in inspect.signature(getattr(last, method)).parameters:
            raise TypeError(
                f"PrivateEstimator.{method} takes no {parameter} here, since {type(last).__name__} "
                "takes none."
            )

    def _check_parameters(self) -> None:
        """Refuse what no fit could use, whatever the data."""
        is_estimator = hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")
        if not is_estimator or isinstance(self.estimator, type):
            raise TypeError(
                "The 'estimator' parameter of PrivateEstimator must be a scikit-learn estimator, "
                f"such as Ridge(). Got {self.estimator!r}."
            )
        if not isinstance(self.mechanism, Mechanism):
            raise TypeError(
                "The 'mechanism' parameter of PrivateEstimator must be a Mechanism, such as "
                f"LaplaceMechanism(epsilon=1.0). Got {self.mechanism!r}."
            )
        if any(isinstance(each, DelegatedMethods) for each in members_in(self.estimator)):
            raise TypeError(
                "The 'estimator' parameter of PrivateEstimator must not hold another one that is "
                "private, which would release and spend in each fit of a pair. Got "
                f"{self.estimator!r}. Wrap the whole pipeline once."
            )
        check_accountant(self.accountant, "PrivateEstimator")
        byte_source(self.random_state)  # refuses what is no seed before any work is done
        if self.classes is not None and not is_classifier(self.estimator):
            raise ValueError(
                "The 'classes' parameter of PrivateEstimator is for classifiers. "
                f"Got {type(self.estimator).__name__}: leave it None."
            )
        if isinstance(self.classes, str) or not isinstance(self.classes, Iterable | None):
            raise TypeError(
                "The 'classes' parameter of PrivateEstimator must list the labels, such as "
                f"[0, 1]. Got {self.classes!r}."
            )
        check_release(self.estimator, self.release)
        if self.prior is not None:
            known = self._is_derived() or isinstance(self.sensitivity, KnownSensitivity | Real)
            if not known:
                raise ValueError(
                    "The 'prior' parameter of PrivateEstimator is for a sensitivity known on "
                    "paper: 'known', a KnownSensitivity or a number. Got "
                    f"{type(self.sensitivity).__name__}, which has an oracle of its own."
                )
            as_oracle(self.prior)

    def _check_dataset(
        self, X: Container, y: Container = None, sample_weight: Container = None
    ) -> Dataset:
        """Check the parameters and the form of the data."""
        self._check_parameters()
        warn_if_fitted(self.estimator)
        if sample_weight is not None and (y is None or not takes_weights(self.estimator)):
            needs = "no sample_weight in fit" if y is not None else "sample_weight only beside y"
            name = type(self.estimator).__name__
            raise TypeError(f"PrivateEstimator takes {needs} with {name}. Got sample_weight.")
        return self._check_data(X, y, sample_weight)

    @property
    def _check_data(self) -> Callable[..., Dataset]:
        """The check of a dataset; where records are clipped, of no number in it."""
        clips = self._is_derived() or getattr(self.sensitivity, "ranges", None) is not None
        return partial(check_data, clone(self.estimator), self._uses_response(), any_number=clips)

    def _warn_of_shared_bounds(self, given: Dataset) -> None:
        """Point out public parameters that are a part of the private records."""
        declared = public_parameters(self.estimator, self.release)
        if any(shares_memory(each, given) for each in declared):
            warnings.warn(
                "A parameter of the 'estimator' or of the 'release' of PrivateEstimator is a part "
                "of the private records, which makes it public: nothing is promised of it. "
                "Declare it, or take it from public records.",
                PrivacyLeakWarning,
                stacklevel=3,
            )

    def _uses_response(self) -> bool:
        """Return whether y has a use: to the estimator, or to a target of the user."""
        return isinstance(self.release, Target) or uses_response(self.estimator)

    def _make_plan(self, example: Dataset) -> ReleasePlan:
        make, _ = self._prepare(example)
        return make()

    def _prepare(self, example: Dataset) -> tuple[partial[ReleasePlan], Dataset]:
        """Settle what is public, from the form of the data; of its entries only labels are seen.

        All is settled but the sensitivity, which may take long: the function that is returned
        samples it and makes the plan. The dataset is that of the public fit.
        """
        if self._is_derived():
            return self._prepare_known(example)
        sensitivity = self._given_sensitivity(example.n_records).for_estimator(
            self.estimator, self.release, example, self._uses_response()
        )
        allow_nan = takes(self.estimator, "allow_nan")
        sensitivity, schema, example = settle_form(sensitivity, example, allow_nan)
        public_fit, public = self._make_public_fit(sensitivity, schema, example)
        weighted = example.sample_weight is not None
        target = make_target(self.estimator, self.release, public_fit, weighted)
        checked = getattr(self.sensitivity, "estimator", None) is not None
        if checked and isinstance(sensitivity, KnownSensitivity):
            sensitivity = replace(sensitivity, key=target_key(target))
        make = partial(
            make_plan,
            target,
            schema,
            example,
            mechanism=self.mechanism,
            sensitivity=sensitivity,
            classes=classes_of_outputs(public_fit) if is_classifier(public_fit) else None,
            prepare=self._check_data,
        )
        return make, public

    def _given_sensitivity(self, n_samples: int) -> Any:
        """The sensitivity as given, with its prior; of one to be derived what draws the prior."""
        if self._is_derived():
            given: Any = KnownSensitivity(1.0, "l2", n_samples)
        else:
            given = as_sensitivity(self.sensitivity, self.mechanism, n_samples)
        return given if self.prior is None else self._with_prior(given)

    def _with_prior(self, known: KnownSensitivity) -> KnownSensitivity:
        """Return a bound with the prior; its pilots are seeded where the noise is."""
        if self.random_state is None:
            return replace(known, prior=self.prior)
        seed = np.random.SeedSequence(self.random_state, spawn_key=(1,)).generate_state(4)
        return replace(known, prior=self.prior, random_state=int.from_bytes(seed.tobytes()))

    def _is_derived(self) -> bool:
        """Return whether the sensitivity is to be derived from the estimator."""
        return isinstance(self.sensitivity, str) and self.sensitivity == "known"

    def _prepare_known(self, example: Dataset) -> tuple[partial[ReleasePlan], Dataset]:
        """Do the same where the sensitivity follows from the estimator and from public clips."""
        release: Any = self.release
        on_lattice = isinstance(release, BernsteinTransformer)
        if on_lattice:
            check_known_density(self.estimator, example)
        else:
            check_known(self.estimator, self.release, example)
        classes = self._public_classes(None, example, may_read=False)
        example = canonical(example)
        schema = Schema.of(example, takes(self.estimator, "allow_nan"))
        example = schema.convert(example, "The private dataset")
        public = synthetic_dataset(example, classes)
        public_fit = fit_to_synthetic(without_side_effects(self.estimator), public)
        if classes is not None:
            check_labels(example.y, classes)
        n_samples = example.n_records
        target: KnownTarget | KnownDensityTarget
        if on_lattice:
            target = KnownDensityTarget(self.estimator, release, public_fit, n_samples)
        else:
            target = KnownTarget(self.estimator, public_fit, n_samples)
        known = known_sensitivity(target, self.mechanism)
        make = partial(
            make_plan,
            target,
            schema,
            example,
            mechanism=self.mechanism,
            sensitivity=known if self.prior is None else self._with_prior(known),
            classes=classes,
            prepare=self._check_data,
        )
        return make, public

    def _make_public_fit(
        self, sensitivity: Any, schema: Schema, dataset: Dataset
    ) -> tuple[Estimator, Dataset]:
        """Make the public fit and its records, and refuse private labels that it does not know."""
        estimator = without_side_effects(self.estimator)
        classes = self._public_classes(sensitivity.draws_from, dataset)
        rule = getattr(self.sensitivity, "estimator", None)  # of a bound on paper
        if sensitivity.draws_from is not None:
            n_samples = dataset.n_records
            public = _draw_every_class(estimator, sensitivity, schema, n_samples, classes)
            public_fit = fit_seeded(estimator, public)
            if rule is not None:
                rule.check_classes([classes_of_outputs(public_fit)])
        else:
            if rule is not None:
                rule.check_classes(classes or [])
            public = synthetic_dataset(dataset, classes)
            public_fit = fit_to_synthetic(estimator, public)
        if is_classifier(public_fit):
            check_labels(dataset.y, classes_of_outputs(public_fit))
        return public_fit, public

    def _public_classes(
        self, oracle: Oracle | None, dataset: Dataset, may_read: bool = True
    ) -> list[NDArray] | None:
        """Find the labels, of all outputs or output by output; None where only draws tell."""
        if not is_classifier(self.estimator):
            return None
        if self.classes is not None:
            nested = all(isinstance(labels, list | tuple | np.ndarray) for labels in self.classes)
            n_outputs = np.prod(np.shape(dataset.y)[1:], dtype=int)
            if nested and len(self.classes) != n_outputs:
                raise ValueError(
                    "The 'classes' parameter of PrivateEstimator must hold labels, or a list of "
                    f"labels for each of the {n_outputs} outputs. Got {len(self.classes)} lists."
                )
            return [np.unique(labels) for labels in (self.classes if nested else [self.classes])]
        if oracle is not None:
            known = oracle.classes_
            return None if known is None else [known]
        if not may_read:
            raise ValueError(
                "The 'classes' parameter of PrivateEstimator must declare the labels with "
                "sensitivity='known': what is promised of all records may not depend on theirs. "
                "Got None."
            )
        warnings.warn(
            "The class labels are read from the private y, which makes them public. Declare them "
            "with the 'classes' parameter of PrivateEstimator.",
            PrivacyLeakWarning,
            stacklevel=6,
        )
        return [np.unique(column) for column in dataset.y.reshape(len(dataset.y), -1).T]


def known_sensitivity(
    target: KnownTarget | KnownDensityTarget, mechanism: Mechanism
) -> KnownSensitivity:
    """Return the bound of a target in the norm of a mechanism, and for a choice in both."""
    first, l2 = map(target.bound, (1, 2))
    in_l1 = mechanism.geometry.order == 1
    return KnownSensitivity(
        first if in_l1 else l2,
        "l1" if in_l1 else "l2",
        target.n_samples,
        l2_value=min(first, l2) if len(mechanism.alternatives) > 1 else None,
        preconditions="that labels, bounds and frozen steps are public",
        source="user guide, 'Sensitivities on paper'",
        shape=target.shape,
        key=target_key(target),
    )


def check_data(
    estimator: Estimator,
    uses_response: bool,
    X: Container,
    y: Container = None,
    sample_weight: Container = None,
    any_number: bool = False,
) -> Dataset:
    """Check the form of the data, and leave out a y that has no use."""
    tags = get_tags(estimator)
    for kind in ("allow_nan", "categorical", "string"):
        setattr(tags.input_tags, kind, takes(estimator, kind))
    if y is None and tags.target_tags.required:
        raise ValueError(
            "This PrivateEstimator requires y to be passed, but the target y is None: "
            f"{type(estimator).__name__} needs responses."
        )
    if sample_weight is None and not uses_response:
        y = None
    return check_private_dataset(X, y, sample_weight, tags, any_number)


def _draw_every_class(
    estimator: Estimator,
    sampler: SensitivitySampler,
    schema: Schema,
    n_samples: int,
    classes: list[NDArray] | None,
) -> Dataset:
    """Draw the oracle's records anew until they hold every class."""
    oracle = sampler.draws_from.description
    for attempt in range(MAX_ATTEMPTS):
        public = sampler.public_dataset(n_samples, schema, attempt)
        if is_classifier(estimator):
            _check_labels_of(oracle, public.y, classes)
        if classes is None or _holds_classes(public.y, classes):
            return public
    shown = [labels.tolist() for labels in classes or []]
    raise ValueError(
        f"The oracle must yield every class of {shown[0] if len(shown) == 1 else shown}. "
        f"{MAX_ATTEMPTS} datasets of {n_samples} records each lacked one. "
        "Use an oracle in which each class is common, or declare only its labels in 'classes'."
    )


def _check_labels_of(oracle: str, y: Container, classes: list[NDArray] | None) -> None:
    """Refuse public labels that are all alike, or that were not declared."""
    columns = np.asarray(y).reshape(n_records(y), -1).T
    drawn = [np.unique(column) for column in columns]
    if classes is None:
        alike = [labels for labels in drawn if len(labels) == 1]
        if alike:
            raise ValueError(
                f"The oracle {oracle} must yield several classes. In a dataset of {n_records(y)} "
                f"records all labels are {alike[0].tolist()[0]!r}."
            )
        return
    for labels, known in zip(drawn, classes * len(drawn), strict=False):
        unknown = labels[~np.isin(labels, known)]
        if len(unknown):
            raise ValueError(
                f"The oracle {oracle} yields the label {unknown.tolist()[0]!r}, which is not among "
                f"the declared {known.tolist()}. Declare all labels in 'classes', of the type that "
                "the oracle yields and the data have."
            )


def _holds_classes(y: Container, classes: list[NDArray]) -> bool:
    columns = np.asarray(y).reshape(n_records(y), -1).T
    expected = classes * len(columns) if len(classes) == 1 else classes
    return all(
        np.isin(labels, column).all() for labels, column in zip(expected, columns, strict=True)
    )
