"""What a private fit offers afterwards: summary, intervals, a folder to hand on, HTML."""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting.tally import BudgetTotal
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.types import Container, Estimator, Method
from skdp.intervals import FOR_CLASSIFIERS, FOR_REGRESSORS, kind_name
from skdp.mechanisms.base import Mechanism
from skdp.outcome import Release, below_promise
from skdp.plan import ReleasePlan
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.summary import ReleaseSummary


def _where_released_is(
    kind: Callable[[Estimator], bool], otherwise: str
) -> Callable[[Method], Method]:
    """Hide a method unless the released estimator, or before fit the one given, is of a kind."""

    def check(self: Any) -> bool:
        if not kind(getattr(self, "estimator_", self.estimator)):
            raise AttributeError(f"It is for a {kind_name(kind)}. {otherwise}")
        return True

    return available_if(check)


class FittedMethods:
    """What a fitted PrivateEstimator or PrivateSearchCV says of its release, and hands on."""

    estimator: Estimator
    estimator_: Estimator
    guarantee_: PrivacyGuarantee
    budget_: BudgetTotal
    sensitivity_: SensitivityEstimate | KnownSensitivity
    standard_errors_: Any
    mechanism_: Mechanism
    plan_: ReleasePlan
    _release: Release
    random_state: int | None
    _had_seed = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters, but no seed of the noise where none was given to the constructor.

        BaggingClassifier, AdaBoostClassifier and others seed what they are made of, whether or not
        they were asked to, and keep the seeds: with one of them the noise could be undone.

        Parameters
        ----------
        **params : dict
            Parameters by name, as `get_params` has them.

        Returns
        -------
        self : object
            This estimator.
        """
        seed = params.get("random_state")
        if self.random_state is not None:
            self._had_seed = True  # and takes another, also after None
        elif isinstance(seed, Integral) and not isinstance(seed, bool) and not self._had_seed:
            del params["random_state"]
        super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator, beside this class
        return self

    @_where_released_is(is_regressor, FOR_CLASSIFIERS)
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
            How often the prediction of the exact model is inside, record by record, over many
            releases: the records of one release err together.
        n_draws : int, default=199
            How often the release is simulated. With a public code each takes two fits to records of
            the oracle, unless there is a closed form; `save` and further calls use them again.
        random_state : int or None, default=None
            Seed of the simulation, which is public. None takes what was simulated before, if that
            is enough; another seed simulates anew.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends. A simulated model that cannot predict, since a step refuses what
            noise made of one before it, might have said anything: too many make an end infinite.

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
        numbers, before repairs, and about so for others. A BernsteinTransformer with
        ``order="auto"`` would smooth less without noise, and the interval holds more or less often:
        of level .9, measured on average in .74 to .99 of cases, at the worst points in a quarter.

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
        interval: NDArray = self._release.predict_interval(
            X, level, n_draws=n_draws, random_state=random_state
        )
        return interval

    @_where_released_is(is_classifier, FOR_REGRESSORS)
    def predict_stability(
        self, X: Container, *, n_draws: int = 199, random_state: int | None = None
    ) -> NDArray[np.float64]:
        """Return how likely the exact model predicts the same label, as far as the noise shows.

        It is no probability of the class: it says what privacy makes uncertain. It costs no
        privacy. With a code each simulated release takes two fits to records of the oracle, which
        serve later calls, and other releases of the same plan.

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
            the released one: near 1 where noise does not decide. One that cannot predict, since a
            step refuses what noise made of one before it, predicts no label.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            As `predict_interval`.
        """
        check_is_fitted(self)
        share: NDArray[np.float64] = self._release.predict_stability(
            X, n_draws=n_draws, random_state=random_state
        )
        return share

    def value_interval(
        self,
        level: float = 0.9,
        *,
        n_draws: int | None = None,
        random_state: int | None = None,
    ) -> NDArray[np.float64]:
        """Return between what the exact numbers are, as far as the noise lets one know.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            How often an exact number is inside, one by one.
        n_draws : int or None, default=None
            As for :meth:`Release.value_interval`.
        random_state : int or None, default=None
            Seed of the simulation, which is public.

        Returns
        -------
        ndarray of shape (n_numbers, 2)
            Lower and upper ends, in the order of the summary; NaN as in
            :meth:`Release.value_interval`.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            As `predict_interval`.
        """
        check_is_fitted(self)
        return self._release.value_interval(level, n_draws=n_draws, random_state=random_state)

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

    def save(self, folder: str | Path, *, n_draws: int = 0) -> None:
        """Write the released model to a folder, with the promise and a card for people.

        Parameters
        ----------
        folder : str or path-like
            Made if it is not there. An earlier release in it is replaced.
        n_draws : int, default=0
            How often the release of a public code is simulated now, such as 99, so that what is
            loaded has intervals; 0 leaves these out. Each takes two fits to records of the oracle,
            unless there is a closed form. Without a code nothing need be simulated before.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            If the folder holds something else, or there is no oracle to simulate with: the
            sensitivity was given as an estimate.

        See Also
        --------
        skdp.load : Reads the folder, and returns a Release, whose `value` is the model.
        """
        check_is_fitted(self)
        self._release.save(folder, n_draws=n_draws)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        """Show what was promised, alone and with the releases before it, above the diagram."""
        try:
            diagram = estimator_html_repr(self)
        except TypeError:  # scikit-learn 1.9 asks an unfitted step in it to name its columns
            drawn = copy.copy(self)
            drawn.estimator = self.estimator_
            diagram = estimator_html_repr(drawn)
        if not hasattr(self, "guarantee_"):
            return diagram
        return below_promise(diagram, self.guarantee_, self.budget_)


def fitted_attributes(plan: ReleasePlan, released: Release) -> dict[str, object]:
    """Return what a fit keeps: of the plan, and of what came of it."""
    return {
        "_release": released,
        "plan_": plan,
        "estimator_": released.value,
        "guarantee_": released.guarantee,
        "budget_": released.budget,
        "sensitivity_": released.sensitivity,
        "standard_errors_": released.standard_errors,
        "mechanism_": plan.mechanism,
    }
