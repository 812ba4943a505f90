"""PrivateEstimator: a scikit-learn estimator whose fit releases private values only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import Tags, get_tags

from skdp._data import Dataset, Schema, as_dataset, n_records
from skdp._delegation import DelegatedMethods
from skdp._validation import check_labels, check_private_dataset
from skdp.accounting.guarantee import PrivacyGuarantee
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms.base import Mechanism
from skdp.release import release
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.drawing import as_oracle, name_columns
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.targets.parameters import ParameterTarget, fitted_parts, without_side_effects
from skdp.targets.twin import fit_twin, synthetic_dataset

# How often public records are drawn anew until they hold every class.
MAX_ATTEMPTS = 100


class PrivateEstimator(DelegatedMethods, MetaEstimatorMixin, BaseEstimator):
    """Make any scikit-learn estimator private.

    Fitting samples how much the fitted parameters change when one record changes, on datasets
    drawn from an oracle of plausible records; fits the estimator once to the private data; adds
    noise to its parameters, calibrated to an order statistic of the sampled changes; and puts the
    noisy parameters into a *public twin*, the same estimator fitted on the oracle's records. The
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
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity or float
        How much the parameters can change: sampled at each fit, sampled earlier, or known on
        paper. A number is a bound in the norm of the mechanism; the promise is then plain
        differential privacy.
    release : "auto" or sequence of str, default="auto"
        The fitted attributes to release. "auto" knows the linear models, StandardScaler and
        pipelines of them. Names such as ``["coef_", "intercept_"]`` or
        ``"standardscaler__mean_"`` serve any other estimator; they must determine its output,
        since everything not named stays as in the public twin.
    classes : array-like of shape (n_classes,) or None, default=None
        The class labels, which are public. None takes those of the oracle; where there is no
        oracle they are read from y, under a PrivacyLeakWarning.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None, default=None
        Source of the noise. None takes the operating system's generator. A seed is for tests and
        examples: whoever knows it can undo the noise, and the guarantee says so. The sampling has
        a seed of its own, in the sampler.

    Attributes
    ----------
    estimator_ : estimator object
        The released estimator, of the class of `estimator`. It holds released and public values
        only: this is what may be handed on.
    guarantee_ : PrivacyGuarantee
        What was promised.
    sensitivity_ : SensitivityEstimate or KnownSensitivity
        What the noise was calibrated to.
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

    Notes
    -----
    Noised variances of a StandardScaler that come out negative are replaced by those of the twin,
    and its scale is recomputed. This is post-processing and costs no privacy.

    Warnings of the private fit are silenced, since they describe the data; those of the public
    fits are shown.

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
    ...     sensitivity=SensitivitySampler(PublicDataOracle(X_public, y_public), gamma=0.1),
    ... )
    >>> model.fit(X, y).score(X, y) > 0.7
    True
    >>> model.guarantee_.epsilon, model.guarantee_.gamma
    (1.0, 0.1)
    """

    estimator_: Any
    guarantee_: PrivacyGuarantee
    sensitivity_: SensitivityEstimate | KnownSensitivity

    def __init__(
        self,
        estimator: Any,
        *,
        mechanism: Mechanism,
        sensitivity: SensitivitySampler | SensitivityEstimate | KnownSensitivity | float,
        release: str | Sequence[str] = "auto",
        classes: Any = None,
        random_state: Any = None,
    ):
        self.estimator = estimator
        self.mechanism = mechanism
        self.sensitivity = sensitivity
        self.release = release
        self.classes = classes
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit privately.

        Parameters
        ----------
        X : array-like, sparse or data frame of shape (n_samples, n_features)
            The private records. Their number and the column names are public.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or None, default=None
            The private responses.

        Returns
        -------
        self : PrivateEstimator
            Fitted. If anything fails it is as it was before, and nothing has been released.

        Raises
        ------
        ValueError
            If a parameter, the oracle or the data are not as they must be; see the message.
        PrivateEvaluationError
            If the estimator cannot be fitted to the private data.
        """
        X, y = self._check_dataset(X, y)
        sensitivity = self._prepare_sensitivity(X)
        twin = self._fit_twin(sensitivity, X, y)
        target = ParameterTarget(self.estimator, self.release, twin)
        released = release(
            target,
            X,
            y,
            mechanism=self.mechanism,
            sensitivity=sensitivity,
            random_state=self.random_state,
        )
        self.estimator_ = target.restore(released.value)
        self.guarantee_ = released.guarantee
        self.sensitivity_ = released.sensitivity
        return self

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of the wrapped estimator: what it takes and gives is unchanged."""
        if hasattr(self.estimator, "get_params"):
            return get_tags(self.estimator)
        return super().__sklearn_tags__()

    def _check_dataset(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Check the parameters and the form of the data; y is None where there is none."""
        if not (hasattr(self.estimator, "fit") and hasattr(self.estimator, "get_params")):
            raise TypeError(
                "The 'estimator' parameter of PrivateEstimator must be a scikit-learn estimator. "
                f"Got {self.estimator!r}."
            )
        if not isinstance(self.mechanism, Mechanism):
            raise TypeError(
                "The 'mechanism' parameter of PrivateEstimator must be a Mechanism, such as "
                f"LaplaceMechanism(epsilon=1.0). Got {self.mechanism!r}."
            )
        if self.classes is not None and not is_classifier(self.estimator):
            raise ValueError(
                "The 'classes' parameter of PrivateEstimator is for classifiers. "
                f"Got {type(self.estimator).__name__}: leave it None."
            )
        _warn_if_fitted(self.estimator)
        tags = get_tags(self.estimator)
        if y is None and tags.target_tags.required:
            raise ValueError(
                "This PrivateEstimator requires y to be passed, but the target y is None: "
                f"{type(self.estimator).__name__} needs responses."
            )
        X, *rest = check_private_dataset(X, y, tags)
        return X, rest[0] if rest else None

    def _prepare_sensitivity(self, X: Any) -> Any:
        """Draw a sampler's seed once, since twin and pairs follow from it, and name its columns."""
        if not isinstance(self.sensitivity, SensitivitySampler):
            return self.sensitivity
        sampler = self.sensitivity.with_fixed_seed()
        return sampler.set_params(oracle=name_columns(as_oracle(sampler.oracle), X))

    def _fit_twin(self, sensitivity: Any, X: Any, y: Any) -> Any:
        """Fit the public twin, and refuse private labels that it does not know."""
        estimator = without_side_effects(self.estimator)
        classes = self._public_classes(sensitivity, y)
        if isinstance(sensitivity, SensitivitySampler):
            twin = _fit_to_oracle(estimator, sensitivity, as_dataset((X, y)), classes)
        else:
            twin = fit_twin(estimator, synthetic_dataset(X, y, classes))
        if is_classifier(twin):
            check_labels(y, twin.classes_)
        return twin

    def _public_classes(self, sensitivity: Any, y: Any) -> NDArray | None:
        """Find the class labels; None where there are none, or only the oracle's draws tell."""
        if not is_classifier(self.estimator):
            return None
        if self.classes is not None:
            return np.unique(self.classes)
        if isinstance(sensitivity, SensitivitySampler):
            return getattr(sensitivity.oracle, "classes_", None)
        warnings.warn(
            "The class labels are read from the private y, which makes them public. Declare them "
            "with the 'classes' parameter of PrivateEstimator.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
        return np.unique(y)


def _fit_to_oracle(
    estimator: Any, sampler: SensitivitySampler, dataset: Dataset, classes: NDArray | None
) -> Any:
    """Fit to the oracle's records, drawn anew until they hold every class."""
    for attempt in range(MAX_ATTEMPTS):
        public = sampler.public_dataset(n_records(dataset[0]), Schema.of(dataset), attempt)
        if classes is None or np.isin(classes, public[-1]).all():
            return estimator.fit(*public)
    raise ValueError(
        f"The oracle must yield every class of {np.asarray(classes).tolist()}. "
        f"{MAX_ATTEMPTS} datasets of {n_records(dataset[0])} records each lacked one. "
        "Use an oracle in which each class is common, or declare only its labels in 'classes'."
    )


def _warn_if_fitted(estimator: Any) -> None:
    """Point out a fitted estimator: the wrapper keeps it as a parameter, with all it has seen."""
    for _, part in fitted_parts(estimator):
        if any(name.endswith("_") and not name.startswith("_") for name in vars(part)):
            warnings.warn(
                f"The 'estimator' parameter of PrivateEstimator holds a fitted "
                f"{type(part).__name__}, which stays in the wrapper and in its pickle. If it has "
                "seen private records, pass clone(estimator). If they were public and it is to "
                "stay as it is, wrap it in sklearn.frozen.FrozenEstimator.",
                PrivacyLeakWarning,
                stacklevel=4,
            )
            return
