"""Whether the digits of an output tell from which of two neighboring values it was made.

Run ``python benchmarks/floating_point.py`` (some minutes).

Mironov ("On Significance of the Least Significant Bits For Differential Privacy", CCS 2012) asks
whether one of two values leads to an output and the other does not, in the arithmetic of doubles.
`reached` answers that for the Laplace noise of numpy, by trying the few uniform numbers that may
have been drawn. For ours `unexplained` counts outputs that are not the public decoder's of a point
of the lattice on which either value gets its noise.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import Ridge
from sklearn.neighbors import KernelDensity
from sklearn.preprocessing import MinMaxScaler

from skdp import (
    BernsteinTransformer,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    plan_release,
)
from skdp.bounds import mean_bound

N_AROUND = 4
"""Uniform numbers that are tried on either side of the likeliest one."""


def reached(output: float, value: float) -> bool:
    """Return whether numpy's Laplace noise of scale 1 can lead from a value to an output."""
    tail = math.exp(-abs(output - value)) / 2
    is_above = output >= value
    center = round((1 - tail if is_above else tail) * 2**53)
    near = range(max(center - N_AROUND, 1), min(center + N_AROUND, 2**53 - 1) + 1)
    for uniform in (number / 2**53 for number in near):  # as in numpy's distributions.c
        if uniform >= 0.5:
            noisy = value - math.log(2.0 - uniform - uniform)
        else:
            noisy = value + math.log(uniform + uniform)
        if noisy == output:
            return True
    return False


def share_told_apart(value: float, neighbor: float, n: int, rng: np.random.Generator) -> float:
    """Attack numpy's noise: the share of outputs that only the true value leads to."""
    outputs = rng.laplace(value, 1.0, size=n).tolist()
    told = sum(reached(each, value) and not reached(each, neighbor) for each in outputs)
    return told / n


class _Recording:
    """Keeps the noisy numbers, before they are decoded."""

    noisy: ClassVar[list[NDArray[np.float64]]] = []

    def _release(self, value, sensitivity, rng):
        released, noisy = super()._release(value, sensitivity, rng)
        self.noisy.append(noisy.copy())
        return released, noisy


class RecordedLaplace(_Recording, LaplaceMechanism):
    """LaplaceMechanism, with a record."""


class RecordedGaussian(_Recording, GaussianMechanism):
    """GaussianMechanism, with a record."""


class RecordedL2Laplace(_Recording, L2LaplaceMechanism):
    """L2LaplaceMechanism, with a record."""


KINDS = {
    "Laplace": (RecordedLaplace, {"epsilon": 1.0}),
    "Gaussian": (RecordedGaussian, {"epsilon": 1.0, "delta": 1e-5}),
    "L2 Laplace": (RecordedL2Laplace, {"epsilon": 1.0}),
}
FAMILIAR = ["Laplace", "Gaussian"]
CODES = {
    "no code": {"code": None},
    "code": {"code": "learned"},
    "code, shift 0": {"code": "learned", "shift": 0.0},
    "code, shift 1": {"code": "learned", "shift": 1.0},
}
N_RECORDS = 100
ROWS = slice(N_RECORDS), slice(N_RECORDS, 2 * N_RECORDS)
OF_BOUNDS = {"no code": {"code": None}, "code": {}}


def moments(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means of different sizes, which depend on each other."""
    return np.array([X[:, 0].mean(), (X[:, 0] ** 2).mean(), (0.1 * X[:, 0] ** 3).mean()])


def of_moments(mechanism, sampler):
    """Plan three numbers of a function of the user; return two values, too."""
    plan = plan_release(moments, n_samples=20, mechanism=mechanism, sensitivity=sampler)
    value = moments(np.linspace(0.1, 0.9, 20)[:, None])
    return plan, value, value + np.array([1.0, 0.9, 0.05])


def of_estimator(mechanism, sampler):
    """Do the same for the 31 numbers of a regression."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = MinMaxScaler().fit_transform(X), y.astype(float)
    sampler.set_params(oracle=PublicDataOracle(X, y))
    model = PrivateEstimator(Ridge(), mechanism=mechanism, sensitivity=sampler)
    plan = model.plan(N_RECORDS, like=(X, y))
    return plan, *(plan.target(X[rows], y[rows], seed=0) for rows in ROWS)


def of_function(mechanism, sampler):
    """Do the same for the 30 values of a density on a lattice."""
    X = MinMaxScaler().fit_transform(load_breast_cancer().data[:, :1])
    sampler.set_params(oracle=PublicDataOracle(X))
    model = PrivateEstimator(
        KernelDensity(bandwidth=0.1),
        mechanism=mechanism,
        sensitivity=sampler,
        release=BernsteinTransformer(29, feature_range=(0, 1)),
    )
    plan = model.plan(N_RECORDS, like=(X,))
    return plan, *(plan.target(X[rows], seed=0) for rows in ROWS)


def of_bound(mechanism, sampler):
    """Do the same for 30 means whose sensitivity is known, with a prior where there is a code."""
    X = MinMaxScaler().fit_transform(load_breast_cancer().data)
    bound = mean_bound(N_RECORDS, 30, ranges=(0, 1))
    if mechanism.code == "auto":
        prior = SensitivitySampler(PublicDataOracle(X), n_pairs=199, random_state=0)
        bound = replace(bound, prior=prior)
    plan = plan_release(
        partial(np.mean, axis=0),
        n_samples=N_RECORDS,
        like=X,
        mechanism=mechanism,
        sensitivity=bound,
    )
    return plan, *(X[rows].mean(axis=0) for rows in ROWS)


def values_apart(mechanism, plan_of=of_moments):
    """Return two values whose difference is the sensitivity, and the plan that says so."""
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
    plan, value, other = plan_of(mechanism, sampler)
    distance = plan.mechanism.geometry.distance(other, value)
    return value, value + (1 - 1e-9) * plan.sensitivity.value / distance * (other - value), plan


def exponent(outputs: NDArray[np.float64]) -> int:
    """Return the exponent of the largest power of two of which all numbers are multiples."""
    significand, exponents = np.frexp(outputs[outputs != 0])
    whole = np.ldexp(significand, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponents - 53 + zeros).min())


def unexplained(kind: str, options: dict, n: int, plan_of=of_moments) -> tuple[int, int]:
    """Return how many releases on either of two neighbors tell them apart, and their numbers.

    One does where its noisy numbers are not on the lattice of the neighbor's, or too far out for
    some of its noise, or where it is not what the public code makes of them.
    """
    make, parameters = KINDS[kind]
    *values, plan = values_apart(make(**parameters, **options), plan_of)
    mechanism, size = plan.mechanism, plan.sensitivity.value
    code = mechanism.geometry.code
    found, n_strange = [], 0
    for value in values:
        _Recording.noisy.clear()
        outputs = np.array([mechanism.release(value, size) for _ in range(n)])
        found.append(np.array(_Recording.noisy))
        variance = mechanism._variance(size)
        for output, noisy in zip(outputs, found[-1], strict=True):
            decoded = noisy
            if code is not None:
                decoded = code.decode(noisy, variance, mechanism._kurtosis(len(noisy)))
            n_strange += not np.array_equal(output, np.ravel(decoded))
    steps = [exponent(noisy) for noisy in found]
    for noisy in found:
        in_steps = np.ldexp(noisy, -max(steps))
        is_strange = (in_steps != np.rint(in_steps)) | (np.abs(in_steps) >= 2.0**53)
        n_strange += int(is_strange.any(axis=1).sum())
    return n_strange, 2 * n * outputs[0].size


def unexplained_numbers(mechanism, n: int) -> int:
    """Do the same for n numbers at once, as of a function's values, without a code."""
    outputs = [mechanism.release(np.full(n, value), 1.0) for value in (0.1, 1.1)]
    step = max(map(exponent, outputs))
    in_steps = np.ldexp(np.concatenate(outputs), -step)
    return int(((in_steps != np.rint(in_steps)) | (np.abs(in_steps) >= 2.0**53)).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, default=500_000, help="on each of the two values")
    parser.add_argument("--releases", type=int, default=3000, help="on each of the two values")
    parser.add_argument("--small", action="store_true", help="few releases of each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of releases that are worth little
    if options.small:
        options.numbers, options.releases = 20_000, 40  # fewer may all be even multiples of a step
    share, found = share_told_apart(0.1, 1.1, 10_000, np.random.default_rng(0)), 0
    print(f"numpy.random.Generator.laplace: {share:.1%} of 10,000")
    for mechanism in (LaplaceMechanism(1.0, code=None), GaussianMechanism(1.0, 1e-5, code=None)):
        told = unexplained_numbers(mechanism, options.numbers)
        found += told
        print(f"{mechanism}: {told} of {2 * options.numbers}", flush=True)
    for plan_of, all_options, kinds in (
        (of_moments, CODES, KINDS),
        (of_estimator, CODES, FAMILIAR),
        (of_function, CODES, FAMILIAR),
        (of_bound, OF_BOUNDS, FAMILIAR),
    ):
        for kind in kinds:
            for name, chosen in all_options.items():
                told, n_all = unexplained(kind, chosen, options.releases, plan_of)
                print(f"{plan_of.__name__}, {kind}, {name}: {told}, {n_all} numbers", flush=True)
                found += told
    sys.exit(int(found > 0 or share < 0.5))


if __name__ == "__main__":
    main()
