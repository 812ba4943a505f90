"""A kernel density on a lattice, whose sensitivity is known on paper.

The value at a lattice point p is the mean over the records x of K(|p - x| / h), with a Gaussian
kernel K. With k = K / K(0), let S_q = sup_x sum_p k(|p - x| / h)^q for q = 1 and 2. The kernel is
not negative, so one record moves the sum over n records by at most 2 K(0) S_1 in the L1 norm, and
by at most K(0) sqrt(2 S_2) in the L2 norm. A record with a missing number is left out and adds
nothing, so the bound holds for it too.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import clone

from skdp.core.checks import shown
from skdp.core.classes import public_name
from skdp.core.dataset import Dataset, n_records
from skdp.core.geometry import ROUND_UP
from skdp.core.types import Container, Estimator
from skdp.estimators.known_target import PublicSteps, check_steps
from skdp.estimators.members import last_step
from skdp.estimators.public_fit import in_container_of
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.fitted_function import KERNEL_DENSITY, FittedFunctionTarget
from skdp.functions.lattice import stretch

FAR = 1e3  # bandwidths from the box, beyond which a record has no weight in it
N_DISTANCES = 2**22  # largest number of distances that are computed at a time
TINY = 1e-280  # a kernel of less height is rounded by more than the bound allows for


def check_known_density(estimator: Estimator, example: Dataset) -> None:
    """Refuse, before any fit, a function on a lattice that has no sensitivity on paper."""
    last = last_step(estimator)
    if public_name(type(last)) != KERNEL_DENSITY:
        raise ValueError(
            "The 'release' parameter of PrivateEstimator is a BernsteinTransformer, and the only "
            "function whose sensitivity is known on paper is that of a KernelDensity. Got "
            f"{type(last).__name__}. Use release='auto', or sample the sensitivity."
        )
    check_steps(estimator)
    example.refuse_weights()
    exact = last.atol == 0 and last.rtol == 0
    euclidean = last.metric in ("euclidean", "l2") and last.metric_params is None
    if not (exact and euclidean) or isinstance(last.bandwidth, str) or last.kernel != "gaussian":
        raise ValueError(
            "A sensitivity of KernelDensity is known on paper for kernel='gaussian', a bandwidth "
            f"that is a number, the Euclidean distance, and no tolerance. Got {shown(last)}."
        )


class KnownDensityTarget(FittedFunctionTarget):
    """The density of an estimator as configured, with what bounds it."""

    preconditions = "that the box and frozen steps are public"
    is_mean = True
    seen: NDArray[np.float64]

    def __init__(
        self,
        estimator: Estimator,
        transformer: BernsteinTransformer,
        public_fit: Estimator,
        n_samples: int,
        X: Container = None,
    ):
        super().__init__(estimator, transformer, public_fit)
        model = last_step(public_fit)
        self.n_samples = n_samples
        self.steps = PublicSteps(public_fit, model.n_features_in_)
        self.seen = self.steps.transform(in_container_of(X, self._points))
        self._check_grid()
        origin = np.zeros((1, self.seen.shape[1]))
        peak = clone(model).fit(origin).score_samples(origin)
        self.peak = float(np.exp(peak[0])) * stretch(self.transformer, self.seen)
        if not self.peak > TINY:
            raise ValueError(
                "A sensitivity of KernelDensity is known on paper for a kernel that numbers "
                f"resolve. Got one of height {self.peak:.3g}: bring the columns to other units."
            )
        self.shape = (len(self._points),)
        self.key_parts = (*self.key_parts, self.steps.steps, self.seen, "known", n_samples)

    @property
    def missing(self) -> str:
        """The treatment of a missing number, in words."""
        which = "that no step fills " if self.steps.steps else ""
        return f"records with missing numbers {which}are left out"

    def _check_grid(self) -> None:
        """Refuse steps that turn the lattice or bend it, so that its rows are no rows."""
        n_points, d = self.transformer.degree + 1, self._points.shape[1]
        columns = self.seen.T.reshape(-1, *(n_points,) * d)
        rows = (np.moveaxis(each, j % d, 0).reshape(n_points, -1) for j, each in enumerate(columns))
        if len(columns) != d or any(np.ptp(each, axis=1).any() for each in rows):
            raise ValueError(
                "A sensitivity of KernelDensity behind frozen steps is known on paper where these "
                "treat column by column, as scalers do: else the lattice of the "
                "BernsteinTransformer is none there. Leave such steps out, or sample the "
                "sensitivity."
            )

    def __call__(self, *parts: Container, seed: int) -> NDArray[np.float64]:
        """Return the sum of the kernels on the lattice over n, whatever the records are."""
        X = self._near(self.steps.transform_complete(parts[0]))
        total = np.zeros(len(self.seen))
        for rows in np.array_split(X, 1 + len(X) * len(total) // N_DISTANCES):
            total += np.exp(-((cdist(rows, self.seen) / self.bandwidth) ** 2) / 2).sum(axis=0)
        return self.peak / n_records(parts[0]) * total

    def _near(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clip records to a wide margin around the box."""
        low, high, margin = self.seen.min(axis=0), self.seen.max(axis=0), FAR * self.bandwidth
        return np.clip(X, low - margin, high + margin)

    def bound(self, order: float) -> float:
        """Return how far one record can move the values, in the norm of this order."""
        n_points, q = self.transformer.degree + 1, 1 if order == 1 else 2
        columns = [np.unique(column) for column in self.seen.T]
        # rounding may merge two points in a narrow box far from 0
        gaps = [np.diff(c).min() if len(c) == n_points else 0.0 for c in columns]
        with np.errstate(divide="ignore"):  # a gap of 0 is infinitely many steps
            steps = self.bandwidth / np.array(gaps)
        held = most_held(steps, n_points, q)
        moved, held_by_all = (2 * held, held) if order == 1 else (math.sqrt(2 * held),) * 2
        rounding = (self.n_samples + 8) * 2.0**-52 * held_by_all
        return ROUND_UP * self.peak * (moved / self.n_samples + 2 * rounding)


def most_held(steps: NDArray[np.float64], n_points: int, q: int) -> float:
    """Bound S_q on a lattice of `n_points` a side; `steps` are bandwidths per shortest spacing.

    The kernel is a product over the columns. Its sum over a column is largest in a lattice point,
    since its Fourier coefficients are positive.
    """
    far = np.arange(1, 40 * n_points)  # beyond it there is nothing, unless all points count
    sums = [1 + 2 * np.exp(-q * (far / min(step, n_points)) ** 2 / 2).sum() for step in steps]
    return (1 + 1e-6) * math.prod(min(float(n_points), each) for each in sums)
