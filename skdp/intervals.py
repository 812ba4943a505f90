"""What the noise of a release leaves open: models that the exact one might have been.

The release is repeated in simulation, and the errors of the simulated releases, exact value minus
released one, are added to the numbers that were released. Noise in a basis does not depend on the
value, so zeros serve there. What a code is off by does depend on it, so public values are
released: of datasets of the oracle that had no part in learning the code.

Let e be the errors of m simulated releases and e_0 that of the actual one, of a private dataset
drawn from the oracle (of any, without a code). Given the plan they are m + 1 independent draws of
one law, so the rank of c'e_0 among all c'e is uniform for any public c, and c'e_0 lies between the
l-th smallest and the l-th largest of the others with a probability of at least (m + 1 - 2 l) / (m
+ 1). That is the case of a prediction that is linear in the released numbers, before repairs.

Private records that are unlike the oracle's are off by more. So with a code the errors of each
number are stretched to its standard error where that is larger: it allows for the `shift`, and for
a release that contradicts the prior.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import check_count
from skdp.core.types import Container, Estimator, Matrix, Method
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.bernstein import BernsteinMechanism
from skdp.outcome import Release
from skdp.plan import ReleasePlan
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.summary import flat_numbers


def _where_released_is(kind: Callable[[Estimator], bool]) -> Callable[[Method], Method]:
    """Hide a method unless the released estimator, or before fit the one given, is of a kind."""
    return available_if(lambda self: kind(getattr(self, "estimator_", self.estimator)))


class IntervalMethods:
    """What a fitted PrivateEstimator says of the model that would have been without noise."""

    estimator_: Estimator
    plan_: ReleasePlan
    _release: Release

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
        owner = "PrivateEstimator.predict_interval"
        check_is_fitted(self)
        models = might_have_been(self.plan_, self._release, n_draws, random_state, owner)
        return interval(models, X, level, owner)

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
        owner = "PrivateEstimator.predict_stability"
        check_is_fitted(self)
        models = might_have_been(self.plan_, self._release, n_draws, random_state, owner)
        label = self.estimator_.predict(X)
        return np.mean([model.predict(X) == label for model in models], axis=0)


def interval(models: list[Estimator], X: Container, level: float, owner: str) -> NDArray:
    """Return between which two predictions of the models that of the exact one lies."""
    rank = _rank(level, len(models), owner)
    ordered = np.sort([model.predict(X) for model in models], axis=0)
    return np.stack([ordered[rank - 1], ordered[-rank]], axis=-1)


def might_have_been(
    plan: ReleasePlan, released: Release, n_draws: int, random_state: int | None, owner: str
) -> list[Estimator]:
    """Restore each value that the exact one might have been."""
    check_count("n_draws", n_draws, owner)
    numbers = released.numbers
    if numbers is None:
        raise TypeError(f"{owner} is of released numbers. Here a response was chosen.")
    value = flat_numbers(numbers)
    shape = value.shape if isinstance(numbers, dict) else numbers.shape
    has_prior = released.prior_errors is not None
    errors = _simulated_errors(plan, shape, has_prior, n_draws, random_state, owner)
    if has_prior and released.standard_errors is not None:
        deviations = np.sqrt(np.mean(errors**2, axis=0))
        stated = flat_numbers(released.standard_errors)
        larger = np.divide(stated, deviations, out=np.ones_like(stated), where=deviations > 0)
        errors *= np.maximum(larger, 1)
    return [plan.target.restore((value + error).reshape(shape)) for error in errors]


def _simulated_errors(
    plan: ReleasePlan,
    shape: tuple[int, ...],
    has_prior: bool,
    n_draws: int,
    random_state: int | None,
    owner: str,
) -> Matrix:
    """Exact value minus released one, a row for each simulated release."""
    # the key keeps it apart from the noise of a release with the same seed
    seeds = np.random.SeedSequence(random_state, spawn_key=(2**31,)).generate_state(2, np.uint64)
    mechanism, source = plan.mechanism, np.random.default_rng(seeds[0])
    adds = type(mechanism).release in (AdditiveMechanism.release, BernsteinMechanism.release)
    if adds and not has_prior:
        values = np.zeros((n_draws, math.prod(shape)))
    else:
        values = _public_values(plan, n_draws, int(seeds[1]), owner)
    errors = [
        value - np.ravel(mechanism.release(value.reshape(shape), plan.sensitivity.value, source))
        for value in values
    ]
    return np.array(errors)


def _public_values(plan: ReleasePlan, n_draws: int, seed: int, owner: str) -> Matrix:
    """Evaluate the target on datasets of the oracle, all of them new."""
    if plan.oracle is None:
        raise ValueError(
            f"{owner} simulates releases of the oracle's datasets. Here is no oracle: the "
            "sensitivity was given as an estimate. Give the SensitivitySampler that made it."
        )
    sampler = SensitivitySampler(plan.oracle, gamma=None, n_pairs=n_draws, random_state=seed)
    target = plan.sensitivity.bounded(plan.target)
    return sampler.pilots(target, plan.n_samples, plan.schema)[0]


def _rank(level: float, n_draws: int, owner: str) -> int:
    """Return which of the ordered draws are the ends of an interval, from either side."""
    if not 0 < level < 1:
        raise ValueError(f"The 'level' parameter of {owner} must be in (0, 1). Got {level!r}.")
    rank = math.floor((n_draws + 1) * (1 - level) / 2 * (1 + 1e-12))
    if rank < 1:
        raise ValueError(
            f"The 'n_draws' parameter of {owner} must be at least {math.ceil(2 / (1 - level)) - 1} "
            f"for level={level:g}. Got {n_draws} draws."
        )
    return rank
