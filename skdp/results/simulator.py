"""Repeat a release in public, to learn how far the exact values may be from the released ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from skdp.core.oracle import Oracle
from skdp.core.schema import Schema
from skdp.core.target import FunctionTarget, Target, replaces
from skdp.core.types import Matrix
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import Mechanism
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler

# Simulated releases of an interval by default.
N_DRAWS = 199


@dataclass(frozen=True, eq=False)
class Simulator:
    """Repeat a release in public, to learn the distribution of its error.

    The errors of the simulated releases, exact value minus released one, are added to the numbers
    that were released. Noise without a code does not depend on the value, so zeros are released.
    The error of a code depends on the value, so values of new public datasets are released.

    Let e be the errors of m simulated releases and e_0 that of the actual one, of a private dataset
    drawn from the oracle (of any, without a code). Given the plan they are m + 1 independent draws
    of one law, so the rank of c'e_0 among all c'e is uniform for any public c, and c'e_0 lies
    between the l-th smallest and the l-th largest of the others with a probability of at least
    (m + 1 - 2 l) / (m + 1). That is the case of a prediction that is linear in the released
    numbers, before repairs.

    Private records that are unlike the oracle's have larger errors. So with a code the errors of
    each number are stretched to its standard error where that is larger: it allows for the
    `shift`, and for a release that contradicts the prior.

    `errors` were simulated to be saved. `drawn` holds the last errors, by seed.
    """

    target: Target
    mechanism: Mechanism
    sensitivity: SensitivityEstimate | KnownSensitivity
    n_samples: int
    schema: Schema | None
    oracle: Oracle | None
    errors: Matrix | None = None
    drawn: dict[int, Matrix] = field(default_factory=dict)

    @property
    def _has_prior(self) -> bool:
        return self.mechanism.geometry.code is not None

    @property
    def is_of_noise_alone(self) -> bool:
        """Whether the error of a release does not depend on the value, so no oracle is needed."""
        return not self._has_prior and type(self.mechanism).release is AdditiveMechanism.release

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
        if self._has_prior and stated is not None:
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
        if self.is_of_noise_alone:
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
        sampler = SensitivitySampler(self.oracle, gamma=None, n_pairs=n_draws, random_state=seed)
        target = self.sensitivity.bounded(self.target)
        return sampler.pilots(target, self.n_samples, self.schema)[0]
