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

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_count
from skdp.core.types import Container, Estimator, Matrix
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.bernstein import BernsteinMechanism
from skdp.outcome import Release
from skdp.plan import ReleasePlan
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.summary import flat_numbers


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
