"""Error of private densities by the order of their Bernstein polynomials, fixed or chosen.

Mean over the box of the absolute difference to the exact density, both normed on the box, times its
volume: 2 is the largest. Each release serves all orders, which act on what is released. Takes about
ten minutes.
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.neighbors import KernelDensity

from skdp import (
    BernsteinDensity,
    BernsteinTransformer,
    LaplaceMechanism,
    PrivateEstimator,
    RandomDensityOracle,
    SensitivitySampler,
)

ORDERS = 3, 5, 10, 30, 100, "auto"
EPSILONS = 0.1, 0.3, 1, 3
rng = np.random.default_rng(0)
peaks = np.where(rng.random(3000) < 2 / 3, rng.normal(0.3, 0.05, 3000), rng.normal(0.7, 0.05, 3000))
bmi = load_diabetes(as_frame=True, scaled=False).data[["bmi"]].to_numpy()
spike = np.where(rng.random(4000) < 0.35, rng.normal(900, 90, 4000), rng.lognormal(7.6, 1.1, 4000))
claims = (np.log10(spike.clip(50))[:, None] - 1.5) / 4  # amounts of claims, four decades on [0, 1]
ages = rng.gamma(9, 0.05, (4000, 1))
CASES = {  # records, bandwidth, box, degree
    "log-normal": (rng.lognormal(0, 0.45, (2210, 1)).clip(0, 4), 0.2, [(0, 4)], 20),
    "body mass index": (bmi, 1.5, [(15, 45)], 20),
    "Beta(2, 4)": (rng.beta(2, 4, (500, 1)), 0.1, [(0, 1)], 10),
    "two peaks": (peaks.clip(0, 1)[:, None], 0.03, [(0, 1)], 30),
    "claims": (claims.clip(0, 1), 0.025, [(0, 1)], 40),
    "two columns": (rng.beta(2, 4, (500, 2)), 0.15, [(0, 1)] * 2, 10),
    "ages and claims": (np.hstack([ages, claims]).clip(0, 1), 0.07, [(0, 1)] * 2, 14),
    "a fine lattice": (rng.beta(2, 4, (2000, 2)), 0.05, [(0, 1)] * 2, 20),
}


def errors(X, bandwidth, box, degree, epsilon, how, n_releases):
    """Return the mean error of each order."""
    kde = KernelDensity(bandwidth=bandwidth)
    axes = [np.linspace(low, high, 200 if len(box) == 1 else 40) for low, high in box]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(box))
    exact = np.exp(clone(kde).fit(X).score_samples(grid))
    found = np.empty((n_releases, len(ORDERS)))
    for seed in range(n_releases):
        prior = RandomDensityOracle(box)
        sampler = SensitivitySampler(prior, gamma=0.05, random_state=seed)
        model = PrivateEstimator(
            kde,
            mechanism=LaplaceMechanism(epsilon=epsilon),
            sensitivity=sampler if how == "sampled" else "known",
            prior=prior if how == "known, with prior" else None,
            release=BernsteinTransformer(degree, feature_range=box),
            random_state=seed,
        )
        release = model.plan(len(X), like=X).execute(X)
        values = release.numbers
        for column, order in enumerate(ORDERS):
            density = release.value.density  # of the order that was chosen
            if order != "auto":
                bernstein = BernsteinTransformer(degree, order, feature_range=box).fit(grid)
                coefficients = bernstein.coefficients(values)
                density = BernsteinDensity.from_coefficients(bernstein, coefficients)
            there = density.evaluate(grid)
            found[seed, column] = np.abs(there / there.mean() - exact / exact.mean()).mean()
    return found.mean(axis=0)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)  # of little data, and of noise as large as it
    print("density", "sensitivity", "epsilon", *ORDERS, sep=" | ")
    for name, case in CASES.items():
        for how, n_releases in (("known", 20), ("known, with prior", 4), ("sampled", 4)):
            for epsilon in EPSILONS:
                row = (f"{e:.3f}" for e in errors(*case, epsilon, how, n_releases))
                print(name, how, f"{epsilon:g}", *row, sep=" | ", flush=True)
