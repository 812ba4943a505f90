r"""Objective perturbation of a logistic regression, private for each single record.

Let n records have rows u_i of at most R in length and signs y_i. With random b the minimizer w* of

    F(w) = Lambda/2 \|w - w0\|^2 + sum_i log(1 + exp(-y_i w.u_i)) + b.w

is released [1]_ [2]_. The center w0, Lambda and R are public. One of the n records is replaced.
With v = y u, s = sigma(-w.v), kappa = R^2 / Lambda, and a prime for the other record:

*The law of w*.* The gradient vanishes at w*, so b = b_D(w*) = sum s_i v_i - Lambda (w* - w0), which
is a smooth bijection. Up to sign its derivative has the determinant det(A + s (1 - s) v v^T), where
A is Lambda I plus the Hessians of the common records; w* has the density f(b_D(w)) times it. The
ratio of the determinants is at most 1 + kappa s (1 - s), as one record enters above, and the other
only below. b_D and b_D' differ by D = s v - s' v', of length at most (s + s') R.

*Pure.* With f(b) ~ exp(-e \|b\| / (2 R)), the log ratio of the densities is at most (s + s') e / 2
+ kappa s (1 - s) <= e - (1 - s) (e / 2 - kappa s), which is at most e for kappa <= e / 2. So
**Lambda >= 2 R^2 / e costs nothing**.

*Gaussian*, of deviation sd in each number: see `profile`.

*Whole numbers.* b is drawn exactly on a lattice of step h. That stands for a continuous b, uniform
in the cube of side h about the point drawn: its density is constant on the cube. Two values that
differ by D are in cubes whose centers differ by at most \|D\| + h sqrt(p), p numbers; for the pure
law this adds sqrt(p) steps to 2 R.

*Many numbers.* The pure law may have any norm, with the length of D in it: in L1 at most 2 R
sqrt(p), and p steps. Independent Laplace noise is drawn fast for any p; its deviation is sqrt(2)
times as large.

*Doubles.* Let the gradient, with a bound on its rounding, be at most g at the computed w, and b
within h sqrt(p) of the continuous one. F is Lambda-strongly convex, so w is within r = (g + h
sqrt(p)) / Lambda of w*. So given w*, the points computed from both datasets are in one ball of
radius r, and Laplace noise for the L1 sensitivity 2 sqrt(p) r, at the small epsilon `last`, makes
(w*, released) private for the sum of both epsilons; then w* is dropped [3]_. g grows with the
distance of w* from w0, which a projection bounds (`_Objective.error`).

References
----------
.. [1] Chaudhuri, Monteleoni and Sarwate, "Differentially Private Empirical Risk Minimization",
   Journal of Machine Learning Research 12, 2011.
.. [2] Kifer, Smith and Thakurta, "Private Convex Empirical Risk Minimization and High-dimensional
   Regression", COLT 2012.
.. [3] Iyengar, Near, Song, Thakkar, Thakurta and Wang, "Towards Practical Differentially Private
   Convex Optimization", IEEE S&P 2019.
.. [4] Sun and Tran-Dinh, "Generalized Self-Concordant Functions: a Recipe for Newton-Type
   Methods", Mathematical Programming 178, 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.linalg import norm
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_ndtr, ndtr

from skdp.core.checks import check_rules
from skdp.core.types import ByteSource, Matrix
from skdp.mechanisms.discrete import (
    MAX_SCALE,
    discrete_gaussian,
    discrete_l2_laplace,
    discrete_laplace,
)
from skdp.mechanisms.gaussian import gaussian_sigma
from skdp.mechanisms.l2_laplace import MOST_VALUES
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.mechanisms.noise import Lattice, lattice_scale

FINE = 2**18  # how many times finer than usual the lattice of a pure b is
SIGMA_BITS = 40  # the deviation of a Gaussian b is at least 2^40 steps
FARTHEST = 64  # a released w is at most \|w0\| + 64 / R from w0
FINEST = 2.0**-36  # error of w that is charged beside, in shares of that distance
UNIT = 2.0**-53  # relative error of an operation on doubles
LAST = 1e-3  # share of epsilon for the last noise
KAPPA = 0.3  # of the Gaussian kind, in shares of epsilon
STEEPEST = 2.0**-29
r"""Lambda is at least this times (p + 1) (1 + R \|w0\|) n R^2, which is little for few numbers.
F(w*) <= F(w0), so R \|w* - w0\| is at most 2 R \|b\| / Lambda + 2^14.5, and R T / Lambda below 1/64
for the `rounding` T, up to 2^31 records and R \|b\| / Lambda of 2^14. That is exceeded with a
probability below exp(-1900), as Lambda is at least `least_penalty`. With independent numbers both
limits are sqrt(p) times as large: \|b\| is below 2 R sqrt(p) / e times a sum of p exponential
variables, and up to `MOST_WEIGHTS` numbers this sum is above 2^14 as rarely."""
MOST_WEIGHTS = 2**13

RowSource: TypeAlias = (
    Any  # a matrix, or what makes the same block of its rows whenever asked for it
)


def profile(epsilons: ArrayLike, mu: float, kappa: float) -> Matrix:
    r"""Bound delta of the Gaussian kind, mu = 2 R / sd, at epsilons of any sign; it decreases.

    Let J = log(1 + kappa/4), and M the larger of b.a and b.a', where a and a' are v and -v' at the
    length R; for a shorter row s \|u\| / R stands for s. The loss is at most log(1 + kappa s (1 -
    s)) + ((s + s') M + (s + s')^2 R^2 / 2) / sd^2. This is convex in s + s' in [0, 2], so at most
    J + max(0, G), where G = (2 M + 2 R^2) / sd^2 is the larger of two variables N(mu^2/2, mu^2).
    By the union bound, E max(0, 1 - exp(e - G)) <= 2 delta_Gauss(e) for e >= 0. Hence

    - delta(e) <= 2 delta_Gauss(e - J) for e >= J, and 1 - exp(e - J) (1 - 2 delta_Gauss(0)) below;
    - delta(e) <= 2 delta_Gauss(e) for e >= J + 2 kappa. For if (M + R^2) / sd^2 >= kappa, the loss
      is at most G: at s' = 1 the square grows faster in s than log(1 + kappa s (1 - s)) <= kappa
      (1 - s) falls, and at s' = 0 the loss is at most kappa/4 + max(0, (M + R^2/2) / sd^2) <= G.
      Otherwise the loss is at most J + 2 kappa, and adds nothing to delta(e).
    """
    epsilons, free = np.asarray(epsilons, dtype=np.float64), math.log1p(kappa / 4)
    paid = np.where(epsilons >= free + 2 * kappa, epsilons, epsilons - free)
    late = 2 * gaussian_deltas(np.maximum(paid, 0.0), mu)
    nothing = max(0.0, 1 - 2 * float(gaussian_deltas(np.zeros(1), mu)[0]))
    early = 1 - np.exp(np.minimum(epsilons - free, 0.0)) * nothing
    return np.minimum(1.0, np.where(epsilons >= free, late, early))


def gaussian_deltas(epsilons: Matrix, mu: float) -> Matrix:
    """Return delta of N(0, 1) against N(mu, 1) at each epsilon >= 0, rounded up."""
    a = mu / 2 - epsilons / mu
    first = ndtr(a)
    # as in `skdp.mechanisms.gaussian.gaussian_delta`; the last sum has an error of e units too
    error = (np.minimum(a * a, 1e6) + epsilons + 1) * 2.0**-49 * first
    return np.maximum(first - np.exp(epsilons + log_ndtr(a - mu)) + error, 0.0)


def lattice_slack(mu: float, n_weights: int) -> float:
    r"""Bound what the lattice adds to the loss of the Gaussian kind, but for delta below 1e-800.

    In steps, let y be the point drawn. The squares of y and y + D' are compared in place of those
    of b and b + D, where D' - D is at most sqrt(p) long and b - y at most sqrt(p)/2. It moves the
    loss by at most sqrt(p) (\|y\| + 3 R + sqrt(p)) / sigma^2, and R = mu sigma / 2. As in
    `skdp.mechanisms.gaussian.lattice_delta`, a continuous law in place of the discrete one moves M
    by R sqrt(p), and delta by a factor below 1 + 1e-20. \|y\| is at most 64 sqrt(p) sigma, but for
    a probability below exp(-1900).
    """
    root = math.sqrt(n_weights)
    return root * (64 * root + 3 * mu + 1) * 2.0**-SIGMA_BITS


@dataclass(frozen=True)
class ObjectivePerturbation:
    """Objective perturbation of `n_weights` numbers, for rows of at most `radius` in length.

    It is `epsilon`-private, or for a `mu` it has the `profile` of `mu` and `kappa`, with a
    `lattice_slack` of epsilon. The result gets noise at the epsilon `last`, which is added.
    """

    radius: float
    n_weights: int
    last: float
    epsilon: float = 0.0
    mu: float = 0.0
    kappa: float = 0.0

    @property
    def noise(self) -> tuple[Lattice, int]:
        """The lattice of b, and the parameter of its noise in steps."""
        change = 2 * self.radius * (1 + 1e-12)  # rows may exceed R by their rounding
        if self.mu:
            lattice = Lattice(math.frexp(change / self.mu)[1] - 1 - SIGMA_BITS)
            return lattice, math.ceil(math.ldexp(change / self.mu, -lattice.exponent)) + 1
        owner, root = "ObjectivePerturbation", math.isqrt(self.n_weights - 1) + 1
        charge = self.n_weights if self.is_of_l1 else root
        change *= math.sqrt(self.n_weights) if self.is_of_l1 else 1
        return lattice_scale(change, charge, self.epsilon, owner, parts=FINE, most=MAX_SCALE // 4)

    @property
    def is_of_l1(self) -> bool:
        """Whether the numbers of a pure b are independent, as they are of many weights."""
        return not self.mu and self.n_weights > MOST_VALUES

    @property
    def deviation(self) -> float:
        """The standard deviation of each number of b."""
        lattice, scale = self.noise
        in_scales = 1 if self.mu else math.sqrt(2 if self.is_of_l1 else self.n_weights + 1)
        return math.ldexp(scale * in_scales, lattice.exponent)

    @property
    def least_penalty(self) -> float:
        """The least Lambda, which costs nothing: R^2 / kappa, or 2 R^2 / e for the e drawn with."""
        lattice, scale = self.noise
        over = self.radius / self.kappa if self.mu else math.ldexp(scale, lattice.exponent)
        over /= math.sqrt(self.n_weights) if self.is_of_l1 else 1
        return self.radius * over * (1 + 1e-9)

    def floor(self, n_records: int, length: float) -> float:
        """Return the least Lambda that doubles allow for, given the length of the center."""
        root = math.sqrt(self.n_weights) if self.is_of_l1 else 1.0
        steepness = root * (self.n_weights + 1) * (1 + self.radius * length)
        return STEEPEST * steepness * n_records * self.radius**2

    def release(
        self,
        rows: RowSource,
        labels: NDArray[np.bool_],
        center: Matrix,
        penalty: float,
        source: ByteSource,
    ) -> Matrix:
        """Return the private weights; a row that is too long is shortened, by itself."""
        least, many = self.least_penalty, MOST_WEIGHTS
        check_rules(
            "ObjectivePerturbation",
            penalty=(penalty, penalty >= least, f"be at least {least:g} for this radius"),
            n_weights=(self.n_weights, self.n_weights <= many, f"be at most {many}"),
        )
        lattice, scale = self.noise
        penalty = max(penalty, self.floor(rows.shape[0], float(norm(center))))
        if self.mu:
            steps = discrete_gaussian(scale, self.n_weights, source)
        elif self.is_of_l1:
            steps = discrete_laplace(scale, self.n_weights, source)
        else:
            steps = discrete_l2_laplace(scale, self.n_weights, source)[0]
        noise = np.ldexp(steps.astype(np.float64), lattice.exponent)
        signed = _SignedRows(rows, labels, self.radius)
        objective = _Objective(signed, self.radius, penalty, center, noise)
        away, most = objective.minimum() - center, objective.farthest
        found = center + away * min(1.0, most / max(float(norm(away)), 1e-300))
        rounded = math.ldexp(math.sqrt(self.n_weights), lattice.exponent)
        error = objective.error + rounded / penalty + FINEST * most
        sensitivity = 2 * math.sqrt(self.n_weights) * error
        last = min(self.last, 1.0)  # with more, the last lattice would be too fine for it
        return LaplaceMechanism(last, code=None).release(found, sensitivity, source)


def perturbation_of(
    epsilon: float, delta: float, radius: float, n_weights: int
) -> ObjectivePerturbation:
    """Return what is (epsilon, delta)-private, its last noise included."""
    noise = math.nextafter((1 - LAST) * epsilon, 0)
    settled = partial(ObjectivePerturbation, radius, n_weights, math.nextafter(epsilon - noise, 0))
    if not delta:
        return settled(epsilon=noise)
    kappa, low, high = KAPPA * noise, 0.0, 1 / gaussian_sigma(epsilon, delta)
    for _ in range(40):  # mu, rounded down
        middle = (low + high) / 2
        paid = float(profile(noise - lattice_slack(middle, n_weights), middle, kappa))
        low, high = (middle, high) if paid <= delta else (low, middle)
    if not low:
        raise ValueError(
            f"The 'epsilon' parameter of GaussianMechanism is too small for {n_weights} "
            "coefficients: rounding to a lattice would cost more. Raise it."
        )
    return settled(mu=low, kappa=kappa)


@dataclass(frozen=True)
class _SignedRows:
    """Rows with their signs, at most a radius long, made block by block."""

    rows: RowSource
    labels: NDArray[np.bool_]
    radius: float

    @property
    def shape(self) -> tuple[int, ...]:
        return self.rows.shape

    def __getitem__(self, block: slice) -> Matrix:
        rows = self.rows[block]
        rows = rows * np.minimum(1, self.radius / np.maximum(norm(rows, axis=1), 1e-300))[:, None]
        return np.where(self.labels[block, None], rows, -rows)


@dataclass(frozen=True)
class _Objective:
    """F in doubles, of rows with their signs, and bounds on the rounding."""

    rows: RowSource
    radius: float
    penalty: float
    center: Matrix
    noise: Matrix

    @property
    def farthest(self) -> float:
        """The radius of the ball about w0 to which the minimum is projected."""
        return float(norm(self.center)) + FARTHEST / self.radius

    def rounding(self, distance: float, noise: float) -> float:
        r"""Bound twice the error of the gradient at a distance from w0, for a length of b.

        A sum over blocks of B = sqrt(n) + 1 rows has an error of at most 2 (B + 2) n R units, and a
        margin one of (p + 1) R \|w\|, a quarter of which gets into s; all else is below 11 n R and
        6 (Lambda (distance + \|w0\|) + \|b\|), as w is a double near w0.
        """
        n, p = self.rows.shape
        length = float(norm(self.center)) + distance
        margins = (p + 1) * self.radius * length / 4
        records = n * self.radius * (margins + 2 * math.isqrt(n) + 17)
        return 2 * UNIT * (records + 6 * (self.penalty * length + noise))

    @property
    def error(self) -> float:
        r"""Bound the distance of the projected w from one point that w* determines.

        With T the rounding, w is within 2.1 T(w) / Lambda of w* (`minimum`), and \|b\| <= Lambda
        \|w* - w0\| + n R. So it is within alpha + beta \|w* - w0\| of w*. If w* is at most 2
        `farthest` from w0, projections of w and w* are as near. Otherwise both are outside, and
        their projections are at most 2 (alpha + beta \|w* - w0\|) / \|w* - w0\| times `farthest`
        apart. Both bounds are at most alpha + 2 beta `farthest`, for alpha below half of it and
        beta below 1/4. The rest of 2.2 covers that \|w - w0\| stands for \|w* - w0\|.
        """
        reach = 2 * self.farthest
        noise = self.penalty * reach + self.rows.shape[0] * self.radius
        return 2.2 * self.rounding(reach, noise) / self.penalty

    def derivatives(self, w: Matrix) -> tuple[Matrix, Matrix]:
        """Return gradient and Hessian, summed by blocks."""
        n = self.rows.shape[0]
        block = math.isqrt(n) + 1
        gradient, hessian = np.zeros(len(w)), self.penalty * np.eye(len(w))
        for start in range(0, n, block):
            rows = self.rows[start : start + block]
            s = expit(-(rows @ w))
            gradient += s @ rows
            hessian += (rows.T * (s * (1 - s))) @ rows
        return self.penalty * (w - self.center) - gradient + self.noise, hessian

    def minimum(self) -> Matrix:
        r"""Return w within 2.1 T / Lambda of the minimum, T its rounding, by damped Newton steps.

        Let v = H^-1 g, q = R \|v\| and l^2 = g.v. Steps of t v, t = log(1 + q) / q, are taken until
        l <= 1.5 T / sqrt(Lambda). As the third derivative of log(1 + exp(-z)) is at most its second
        one, along a step H changes by a factor in [1 / (1 + q), 1 + q]. Hence [4]_:

        - F falls by l^2 ((1 + q) log(1 + q) - q) / q^2 >= (Lambda / R^2) log(1 + q) q / 2. So there
          are finitely many steps with q > 1/2.
        - l becomes at most 2 (1 - t) sqrt(1 + q) l, which is below l / 2 for q <= 1/2.
        - At the end a mean of H between w and w* is at least H (1 - exp(-x)) / x, x = R \|w - w*\|.
          So \|w - w*\| sqrt((1 - exp(-x)) / x) <= l / sqrt(Lambda).

        In doubles g has an error of T/2, before and after a step, and the rounding of w moves it by
        T/4 in the norm of H^-1, times sqrt(Lambda). As R T / Lambda < 1/64 (`STEEPEST`), that takes
        a small part of what F falls by, and l gets below 1.5 T / sqrt(Lambda); the true l is then
        at most 2 T / sqrt(Lambda), and q <= R l / sqrt(Lambda) is small.
        """
        w, b = self.center, float(norm(self.noise))
        while True:
            gradient, hessian = self.derivatives(w)
            step = np.linalg.solve(hessian, gradient)
            enough = 1.5 * self.rounding(float(norm(w - self.center)), b)
            if self.penalty * (gradient @ step) <= enough * enough:
                return w
            q = self.radius * float(norm(step))
            w = w - step * (math.log1p(q) / q if q else 1.0)  # q of a short step is 0 in doubles
