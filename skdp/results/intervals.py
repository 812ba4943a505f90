"""How far the exact values may be from what was released: intervals, and stable labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from skdp.core.checks import check_count, shown
from skdp.core.oracle import Oracle
from skdp.core.schema import DatasetForm
from skdp.core.target import FunctionTarget, Target, replaces
from skdp.core.types import Container, Estimator, Matrix, Values
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import Mechanism
from skdp.results.names import flat_numbers
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler

N_DRAWS = 199  # simulated releases of an interval by default

# Simulated releases of noise alone: at most so many, of a million numbers in all.
N_NOISES, MOST_NUMBERS = 1999, 10**6


@dataclass(frozen=True, eq=False)
class Simulator:
    """Repeat a release in public, to learn the distribution of its error.

    Let e be the errors, exact value minus released one, of m simulated releases, and e_0 that of
    the actual one, of a dataset drawn from the oracle (of any, without a code). Given the plan they
    are m + 1 independent draws of one law, so for any public c, c'e_0 lies between the l-th
    smallest and the l-th largest c'e with a probability of at least (m + 1 - 2 l) / (m + 1). That
    is the case of a prediction that is linear in the released numbers, before repairs.
    """

    target: Target
    mechanism: Mechanism
    sensitivity: SensitivityEstimate | KnownSensitivity
    n_samples: int
    schema: DatasetForm | None
    oracle: Oracle | None
    errors: Matrix | None = None  # simulated to be saved
    drawn: dict[int, Matrix] = field(default_factory=dict)  # the last errors, by seed

    @property
    def is_of_noise_alone(self) -> bool:
        """Whether the error of a release does not depend on the value, so no oracle is needed."""
        has_code = self.mechanism.geometry.code is not None
        return not has_code and type(self.mechanism).release is AdditiveMechanism.release

    @property
    def is_ready(self) -> bool:
        """Whether the simulator can repeat the release."""
        return self.errors is not None or self.oracle is not None or self.is_of_noise_alone

    def without_oracle(self, shape: tuple[int, ...], n_draws: int) -> Self:
        """Return a simulator without an oracle, to be saved with errors that are simulated now."""
        errors = self.errors
        if n_draws and errors is None and not self.is_of_noise_alone:
            errors = self._simulate(shape, n_draws, 0)
        restores = replaces(self.target, "restore")  # a function may hold anything
        target = self.target if restores else FunctionTarget(np.asarray)
        return replace(self, target=target, oracle=None, errors=errors, drawn={})

    def plausible_values(
        self, value: Matrix, stated: Matrix | None, n_draws: int | None, random_state: int
    ) -> Matrix:
        """Draw exact values; errors of a code are stretched to the `stated` standard errors."""
        if self.errors is None:
            errors = self._simulate(value.shape, n_draws or N_DRAWS, random_state)
        elif (n_draws or 0) <= len(self.errors):
            errors = self.errors[:n_draws]
        else:
            raise ValueError(
                f"The 'n_draws' parameter must be at most {len(self.errors)}, the number of "
                f"simulated releases that were saved. Got {n_draws}."
            )
        has_code = self.mechanism.geometry.code is not None
        if has_code and stated is not None:  # records unlike the oracle's have larger errors
            deviations = np.sqrt(np.mean(errors**2, axis=0))
            larger = np.divide(stated, deviations, out=np.ones_like(stated), where=deviations > 0)
            errors = errors * np.maximum(larger, 1)
        return value + errors.reshape(-1, *value.shape)

    def _simulate(self, shape: tuple[int, ...], n_draws: int, random_state: int) -> Matrix:
        """Simulate releases, and return exact value minus released one in a row for each."""
        if len(self.drawn.get(random_state, ())) >= n_draws:
            return self.drawn[random_state][:n_draws]
        # the spawn key keeps it apart from the noise of a release with the same seed
        sequence = np.random.SeedSequence(random_state, spawn_key=(2**31,))
        first, second = map(int, sequence.generate_state(2, np.uint64))
        source, size = np.random.default_rng(first), self.sensitivity.value
        if self.is_of_noise_alone:  # which does not depend on the value
            values = np.zeros((n_draws, math.prod(shape)))
        else:
            values = self._public_values(n_draws, second)
        released = (self.mechanism.release(value.reshape(shape), size, source) for value in values)
        errors = np.array([v - np.ravel(each) for v, each in zip(values, released, strict=True)])
        if not self.is_of_noise_alone:
            self.drawn.clear()  # saves memory
            self.drawn[random_state] = errors
        return errors

    def _public_values(self, n_draws: int, seed: int) -> Matrix:
        """Evaluate the target on datasets of the oracle, all of them new."""
        if self.oracle is None:
            raise ValueError(
                "The release of a public code is simulated with an oracle, and there is none here. "
                "Give the oracle of an estimate as 'prior', or save a release with n_draws=99 "
                "before you load it."
            )
        sampler = SensitivitySampler(
            self.oracle, gamma=None, n_pairs=n_draws, clip=None, random_state=seed
        )
        target = self.sensitivity.bounded(self.target, self.oracle, self.schema)
        return sampler.pilots(target, self.n_samples, self.schema)[0]


class HasIntervals:
    """The intervals of a release, by simulated ones."""

    value: Any
    numbers: NDArray[np.float64] | Values | None
    standard_errors: NDArray[np.float64] | Values | None
    prior_errors: NDArray[np.float64] | Values | None
    simulator: Simulator | None
    oracle: Oracle | None  # of class tables

    def predict_interval(
        self,
        X: Container,
        level: float = 0.9,
        *,
        n_draws: int | None = None,
        random_state: int = 0,
    ) -> NDArray:
        """Bound the prediction of the exact model, which a release without noise would give.

        The interval shows how uncertain the noise makes a prediction. It is no interval for y, and
        costs no privacy.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        level : float in (0, 1), default=0.9
            How often the prediction of the exact model is inside, record by record, over many
            releases: the records of one release err together.
        n_draws : int or None, default=None
            Number of simulated releases. None takes 199, or as many as were saved. With a public
            code each takes two fits to records of the oracle, unless there is a closed form.
            Further calls use them again.
        random_state : int, default=0
            Seed of the simulation, which is public. Draws that were saved do not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_outputs, 2)
            Lower and upper ends. A simulated model that cannot predict, because a step refuses
            noisy input, might predict anything: too many of them make an end infinite.

        Raises
        ------
        TypeError
            If the value is no regressor.
        ValueError
            If `level` is not in (0, 1), there are too few draws for it, or there is a public code
            and neither an oracle to simulate with nor draws that were saved.

        Notes
        -----
        Without a public code the level is that over releases of any one dataset; with a code, over
        datasets of the oracle, and the `shift` of the mechanism makes room for others. It holds for
        predictions that are linear in the released numbers, before repairs, and nearly for others.
        A BernsteinTransformer with ``order="auto"`` would smooth less without noise: of level .9,
        measured on average in .74 to .99 of cases, at the worst points in a quarter.
        """
        self._check_is(is_regressor, "predict_interval")
        models = self.plausible_models(n_draws=n_draws, random_state=random_state)
        outputs = np.full((len(models), *np.shape(self.value.predict(X))), np.nan)
        for output, predicted in zip(outputs, _predict(models, X), strict=False):
            output[...] = predicted
        return interval(outputs, level)

    def predict_stability(
        self, X: Container, *, n_draws: int | None = None, random_state: int = 0
    ) -> NDArray[np.float64]:
        """Estimate how likely the exact model predicts the same label as the released one.

        The result is no probability of the class: it shows how uncertain the noise makes a label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        n_draws : int or None, default=None
            As for `predict_interval`.
        random_state : int, default=0
            As for `predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The share of plausible models that predict the label of the released one. A model that
            cannot predict counts as one that predicts another label.
        """
        self._check_is(is_classifier, "predict_stability")
        models = self.plausible_models(n_draws=n_draws, random_state=random_state)
        label = self.value.predict(X)
        same = np.zeros(np.shape(label))
        for predicted in _predict(models, X):
            same += predicted == label
        return same / len(models)

    def plausible_models(
        self, *, n_draws: int | None = None, random_state: int = 0
    ) -> list[Estimator]:
        """Draw models that the exact one may be, given the noise.

        Parameters
        ----------
        n_draws : int or None, default=None
            Number of models, as for `predict_interval`.
        random_state : int, default=0
            As for `predict_interval`.

        Returns
        -------
        list of estimators
            Of the kind of the value. Their spread is the error of the release.
        """
        values = self._plausible_values(n_draws, random_state)
        assert self.simulator is not None  # or there were no values
        return [self.simulator.target.restore(each) for each in values]

    def value_interval(
        self, level: float = 0.9, *, n_draws: int | None = None, random_state: int = 0
    ) -> NDArray[np.float64]:
        """Bound the exact numbers, given the noise.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            How often an exact number is inside, one by one; with a public code, where the private
            records are like the oracle's, or as far from these as its `shift` allows for.
        n_draws : int or None, default=None
            As for `predict_interval`. Without a public code None is 1,999, or fewer for more than
            500 numbers, which takes some seconds.
        random_state : int, default=0
            As for `predict_interval`.

        Returns
        -------
        ndarray of shape (n_numbers, 2)
            Lower and upper ends, in the order of the summary. NaN where a number is the same in all
            public fits: it is released as it is there, which tells nothing of the exact one.
        """
        draws = self._plausible_values(n_draws, random_state, of_numbers=True)
        ends = interval(draws.reshape(len(draws), -1), level)
        ends[self._are_fixed] = np.nan
        return ends

    @property
    def _are_fixed(self) -> NDArray[np.bool_]:
        """Mask of the numbers that are the same in all public fits."""
        if self.standard_errors is None or self.prior_errors is None:
            return np.zeros(0 if self.numbers is None else len(flat_numbers(self.numbers)), bool)
        return (flat_numbers(self.standard_errors) == 0) & (flat_numbers(self.prior_errors) == 0)

    @property
    def _as_released(self) -> NDArray[np.float64] | None:
        """The numbers in the shape of the target's value; None where a response was chosen."""
        return flat_numbers(self.numbers) if isinstance(self.numbers, dict) else self.numbers

    def _plausible_values(
        self, n_draws: int | None, random_state: int, of_numbers: bool = False
    ) -> NDArray[np.float64]:
        simulator, value = self.simulator, self._as_released
        if self.oracle is not None:
            raise TypeError(
                "Class tables have no intervals, and no models that are as plausible: leave "
                "'n_draws' away when you save them. Their summary has the standard error of each "
                "count."
            )
        if simulator is None or value is None:
            raise TypeError(
                "A Release has intervals where it released numbers. Here a response was chosen, or "
                "the target could not be saved, or it adds its noise itself. Got "
                f"{type(self.value).__name__}."
            )
        if n_draws is not None:
            check_count("n_draws", n_draws, "Release")
        elif of_numbers and simulator.is_of_noise_alone:
            n_draws = min(N_NOISES, max(N_DRAWS, MOST_NUMBERS // max(1, value.size)))
        stated = None if self.standard_errors is None else flat_numbers(self.standard_errors)
        return simulator.plausible_values(value, stated, n_draws, random_state)

    def _check_is(self, is_kind: Callable[[Estimator], bool], owner: str) -> None:
        if not (hasattr(self.value, "predict") and is_kind(self.value)):
            raise TypeError(
                "predict_interval needs a released regressor, and predict_stability a released "
                f"classifier. Got {type(self.value).__name__} in {owner}."
            )


def interval(outputs: NDArray, level: float) -> NDArray:
    """Bound the output of the exact model by those of plausible ones; NaN counts at both ends."""
    if not 0 < level < 1:
        raise ValueError(f"The 'level' of an interval must be in (0, 1). Got {shown(level)}.")
    rank = math.floor((len(outputs) + 1) * (1 - level) / 2 * (1 + 1e-12))
    if rank < 1:
        raise ValueError(
            f"The 'n_draws' of an interval must be at least {math.ceil(2 / (1 - level)) - 1} "
            f"for level={level:g}. Got {len(outputs)} draws."
        )
    is_open = np.isnan(outputs)
    low = np.sort(np.where(is_open, -np.inf, outputs), axis=0)[rank - 1]
    high = np.sort(np.where(is_open, np.inf, outputs), axis=0)[-rank]
    return np.stack([low, high], axis=-1)


def _predict(models: list[Estimator], X: Container) -> Iterator[NDArray]:
    """Predict with each model that can."""
    for model in models:
        with suppress(ValueError):  # a step may refuse the noisy output of the one before it
            yield model.predict(X)
