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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_count, shown
from skdp.core.oracle import Oracle
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.core.types import Estimator, Matrix
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import Mechanism
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler

FOR_CLASSIFIERS = "See predict_stability for a classifier."
FOR_REGRESSORS = "See predict_interval for a regressor."

# How often a release is simulated, unless something else is asked for.
N_DRAWS = 199
N_NOISES = 1999  # where it is only noise, and at most so many numbers are drawn
MOST_NUMBERS = 10**6


@dataclass(frozen=True, eq=False)
class Simulator:
    """Repeats a release in public; `errors` are those of releases that were simulated to be saved.

    `drawn` are the last ones, by mechanism, seeds and number: each takes fits, so they serve again.
    """

    target: Target
    mechanism: Mechanism
    sensitivity: SensitivityEstimate | KnownSensitivity
    n_samples: int
    schema: Schema | None
    oracle: Oracle | None
    errors: Matrix | None = None
    had_oracle: bool = False
    drawn: dict[tuple[str, int, int, int], Matrix] = field(default_factory=dict)

    def kept(self, shape: tuple[int, ...], n_draws: int) -> Self:
        """Return what needs no oracle any more: it draws now what it may have to draw."""
        errors = self.errors
        if n_draws and not self.is_of_noise_alone and not (self.is_ready and self.oracle is None):
            errors = self._simulate(shape, n_draws, None, "save")
        return replace(
            self,
            target=self.target.without_records(),
            oracle=None,
            errors=errors,
            had_oracle=self.had_oracle or self.oracle is not None,
            drawn={},
        )

    def might_have_been(
        self,
        value: Matrix,
        stated: Matrix | None,
        n_draws: int | None,
        random_state: int | None,
        owner: str,
    ) -> Matrix:
        """Return values that the exact one might have been, given the released one.

        The errors of a code are stretched to the `stated` ones.
        """
        errors = self._errors(value.shape, n_draws, random_state, owner)
        if self._has_prior and stated is not None:
            deviations = np.sqrt(np.mean(errors**2, axis=0))
            larger = np.divide(stated, deviations, out=np.ones_like(stated), where=deviations > 0)
            errors = errors * np.maximum(larger, 1)
        return value + errors.reshape(-1, *value.shape)

    @property
    def is_ready(self) -> bool:
        """Whether it can repeat the release, from the oracle or what was drawn of it before."""
        return self.errors is not None or self.oracle is not None or self.is_of_noise_alone

    @property
    def _has_prior(self) -> bool:
        return self.mechanism.geometry.basis.has_prior

    @property
    def is_of_noise_alone(self) -> bool:
        """Whether what a release is off by does not depend on the value: no oracle is needed."""
        return not self._has_prior and type(self.mechanism).release is AdditiveMechanism.release

    def _errors(
        self, shape: tuple[int, ...], n_draws: int | None, random_state: int | None, owner: str
    ) -> Matrix:
        """The errors that were saved, else new ones."""
        if self.errors is None:
            n_draws = N_DRAWS if n_draws is None else n_draws
            return self._simulate(shape, n_draws, random_state, owner)
        most = len(self.errors)
        n_draws = most if n_draws is None else n_draws
        check_count("n_draws", n_draws, owner)
        if n_draws > most:
            raise ValueError(
                f"The 'n_draws' parameter of {owner} must be at most {most}: so many "
                f"simulated releases were saved. Got {n_draws}. Save with more, or leave it None."
            )
        return self.errors[:n_draws]

    def _simulate(
        self, shape: tuple[int, ...], n_draws: int, random_state: int | None, owner: str
    ) -> Matrix:
        """Exact value minus released one, a row for each simulated release.

        Without a seed any earlier draws serve, if there are enough.
        """
        check_count("n_draws", n_draws, owner)
        # the key keeps it apart from the noise of a release with the same seed
        sequence = np.random.SeedSequence(random_state, spawn_key=(2**31,))
        seeds = sequence.generate_state(2, np.uint64)
        first, second = map(int, seeds)
        key = (repr(self.mechanism), first, second, n_draws)  # it may have been edited since
        for before, errors in list(self.drawn.items()):
            alike = random_state is None and before[0] == key[0] and before[-1] >= n_draws
            if before == key or alike:
                return errors[:n_draws]
        mechanism, source = self.mechanism, np.random.default_rng(first)
        if self.is_of_noise_alone:
            values = np.zeros((n_draws, math.prod(shape)))
        else:
            values = self._public_values(n_draws, second)
        size = self.sensitivity.value
        released = (mechanism.release(value.reshape(shape), size, source) for value in values)
        errors = np.array([v - np.ravel(each) for v, each in zip(values, released, strict=True)])
        if not self.is_of_noise_alone:
            self.drawn.clear()  # they may be many numbers
            self.drawn[key] = errors
        return errors

    def _public_values(self, n_draws: int, seed: int) -> Matrix:
        """Evaluate the target on datasets of the oracle, all of them new."""
        if self.oracle is None and self.had_oracle:
            raise ValueError(
                "This release was saved without simulated releases: save it with n_draws=99 where "
                "the oracle is."
            )
        if self.oracle is None:
            raise ValueError(
                "Releases of the oracle's datasets are simulated, and here is no oracle: the "
                "sensitivity was given as an estimate. Give its oracle too, as 'prior'."
            )
        sampler = SensitivitySampler(self.oracle, gamma=None, n_pairs=n_draws, random_state=seed)
        target = self.sensitivity.bounded(self.target)
        return sampler.pilots(target, self.n_samples, self.schema)[0]


def kind_name(kind: Callable[[Estimator], bool]) -> str:
    """Name what scikit-learn's `is_regressor` and `is_classifier` ask for."""
    return kind.__name__.removeprefix("is_")


def interval(outputs: Sequence[NDArray] | NDArray, level: float) -> NDArray:
    """Return between which two outputs of models that might have been that of the exact one is.

    NaN, where a model has none, might have been anything: it counts at both ends.
    """
    rank = _rank(level, len(outputs))
    is_open = np.isnan(outputs)
    low = np.sort(np.where(is_open, -np.inf, outputs), axis=0)[rank - 1]
    high = np.sort(np.where(is_open, np.inf, outputs), axis=0)[-rank]
    return np.stack([low, high], axis=-1)


def _rank(level: float, n_draws: int) -> int:
    """Return which of the ordered draws are the ends of an interval, from either side."""
    if not 0 < level < 1:
        raise ValueError(f"The 'level' of an interval must be in (0, 1). Got {shown(level)}.")
    rank = math.floor((n_draws + 1) * (1 - level) / 2 * (1 + 1e-12))
    if rank < 1:
        raise ValueError(
            f"The 'n_draws' of an interval must be at least {math.ceil(2 / (1 - level)) - 1} "
            f"for level={level:g}. Got {n_draws} draws."
        )
    return rank
