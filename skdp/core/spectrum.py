"""What a prior says of a value when numbers of it are known up to noise.

With a prior of mean mu and covariance S, an encoder T, noise of variance s^2 on each of the k
numbers of the code y, and C the covariance S T' of value and code, H = T S T', the linear estimate
of least mean square error is

    mu + alpha C (alpha H + s^2 I)^-1 y,   with covariance   alpha S - alpha^2 C (..)^-1 C'.

How much wider than S the prior should be is not known, nor whether it is in all directions: records
may be unlike the oracle's in one column only. So along each axis of H the decoded value is the mean
of the above over a list of alphas, each with its probability given y, where the prior is normal and
the noise Laplace, so that its rare large values do not speak for a wide prior. Before, there is one
least alpha for all axes, and along each an alpha at or above it: a times as much is (.02 + rho) / a
times as likely as the least, and the least itself is so beside 1, with rho the shift that the prior
allows for. So all stays at 1 for data of the oracle where no shift is expected. The errors along an
axis are those of the mixture, taken for uncorrelated with the others. What the code does not reach
is as much wider as its axes are on average.

Denoising of a release by a prior is in the spirit of Balle and Wang (ICML 2018, section 4), and
unequal noise by coordinate in that of Muthukrishnan and Kalyani (2023).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.laguerre import laggauss
from numpy.typing import ArrayLike, NDArray
from scipy import special

from skdp.core.types import Matrix

# By how much the variance of the prior may be multiplied: a wrong unit may be a factor of 10^6, and
# of a variance 10^12.
WIDENINGS = np.array([1, 2, 4, 8, 16, 64, 256, 1e4, 1e6, 1e8, 1e12, 1e16, 1e20, 1e24])
# How likely others are beside the least before the release is seen, were it not for a shift.
_LIKELY = 0.02
# Laplace noise is normal noise of which the variance is s^2 times an exponential variable.
_TIMES, _WEIGHTS = laggauss(6)

# Of the largest variance of the code: the rounding errors of H are about as large.
_LEAST_VARIANCE = 1e-15
# Of the prior variance of a number: less than that is not left unread, but lost to rounding.
_ROUNDING = 1e-12


class Reading(NamedTuple):
    """What is made of a code along its axes, on average over the alphas.

    The `gains` are the diagonal of alpha (alpha H + s^2 I)^-1, the `left` what stays open of the
    prior variance, as a share of it; beyond the code `wider` times of it does.
    """

    gains: Matrix
    left: Matrix
    wider: float


class Spectrum(NamedTuple):
    """The variances of the code along its own axes, and what it can remove of the prior there."""

    axes: Any
    variances: Matrix
    removable: Matrix

    def along(self, code: Matrix) -> Matrix:
        """Turn a code to the axes."""
        return code if self.axes is None else self.axes.T @ code

    def back(self, code: Matrix) -> Matrix:
        """Undo `along`."""
        return code if self.axes is None else self.axes @ code

    def read(self, noisy: ArrayLike | None, variance: float, shift: float) -> Reading:
        """Read a noisy code; before a release, None, alpha is 1."""
        widenings = WIDENINGS[: 1 if noisy is None else None, None]
        total = widenings * self.variances + variance
        least = _LEAST_VARIANCE * total.shape[1] * total.max(axis=1, keepdims=True, initial=0)
        known = total > least  # else all is rounding
        inverse = np.divide(1, total, out=np.zeros_like(total), where=known)
        gains = widenings * inverse
        left = np.where(known, variance * gains, 1)
        if noisy is None:
            return Reading(gains[0], left[0], 1.0)
        squares = self.along(np.asarray(noisy, dtype=np.float64)) ** 2
        shares = np.zeros_like(total)
        shares[0] = 1
        shares[:, known[0]] = self._shares(squares[known[0]], known[0], variance, shift)
        mean = np.sum(shares * gains, axis=0)
        apart = squares * np.sum(shares * (gains - mean) ** 2, axis=0)
        wider = np.sum(shares * widenings, axis=0)[known[0]]
        return Reading(
            mean,
            np.sum(shares * left, axis=0) + self.variances * apart,
            float(wider.mean()) if len(wider) else 1.0,
        )

    def _shares(
        self, squares: Matrix, known: NDArray[np.bool_], variance: float, shift: float
    ) -> Matrix:
        """The probability of each alpha along each known axis, a row per alpha.

        `joint` has an entry for each least alpha, alpha and axis.
        """
        total = np.multiply.outer(WIDENINGS, self.variances[known])[..., None] + variance * _TIMES
        laws = np.log(_WEIGHTS) - (squares[:, None] / total + np.log(total)) / 2
        prior = np.triu((_LIKELY + shift) * WIDENINGS[:, None] / WIDENINGS)
        np.fill_diagonal(prior, 1)
        prior /= prior.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            joint = np.log(prior)[..., None] + np.logaddexp.reduce(laws, axis=-1)
        axes = np.logaddexp.reduce(joint, axis=1, keepdims=True)
        least = special.softmax(np.log(prior[0]) + axes.sum(axis=(1, 2)))
        return np.einsum("l,laj->aj", least, np.exp(joint - axes))

    def left_open(self, loadings: Matrix, reading: Reading, whole: bool) -> Matrix:
        """What a reading leaves open of numbers, as a share of their prior variance.

        `loadings` are the squares of C along the axes, a row per number, as shares of its variance.
        What the code does not reach and what is left of what it does are added, which are no
        differences of large numbers. A code of the `whole` value reaches all.
        """
        least = _LEAST_VARIANCE * len(self.variances) * self.variances.max(initial=0)
        reached = np.zeros_like(self.variances)
        np.divide(1, self.variances, out=reached, where=self.variances > least)
        unread = (1 - loadings @ reached) * (not whole)
        unread[unread < _ROUNDING] = 0
        return reading.wider * unread + loadings @ (reached * reading.left)
