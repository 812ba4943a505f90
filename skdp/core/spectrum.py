"""What a prior says of a value when numbers of it are known up to noise.

With a prior of mean mu and covariance S, an encoder T, noise of variance s^2 on each of the k
numbers of the code y, and C the covariance S T' of value and code, H = T S T', the linear estimate
of least mean square error is

    mu + alpha C (alpha H + s^2 I)^-1 y,   with covariance   alpha S - alpha^2 C (..)^-1 C'.

How much wider than S the prior should be is not known, nor whether it is in all directions: records
may be unlike the oracle's in one column only. So along each axis of H the decoded value is the mean
of the above over a list of alphas, each with its probability given y, where the prior is normal and
the noise has the kurtosis that it has: rare large values of Laplace noise do not speak for a wide
prior, nor do the many of middling size of normal noise. Before, there is one least alpha for all
axes, and along each an alpha at or above it: a times as much is (.02 + rho) / a times as likely as
the least, and the least itself is so beside 1, with rho the shift that the prior allows for. So
where no shift is expected all stays near 1 for data of the oracle. An axis of which nothing is read
may be wider for either reason, and is taken for the wider. The errors along an axis are those of
the mixture, taken for uncorrelated with the others. What the code does not reach is as much wider
as its axes are on average.

Denoising of a release by a prior is in the spirit of Balle and Wang (ICML 2018, section 4), and
unequal noise by coordinate in that of Muthukrishnan and Kalyani (2023).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from skdp.core.types import Matrix

# By how much the variance of the prior may be multiplied: a wrong unit may be a factor of 10^6, and
# of a variance 10^12.
WIDENINGS = np.array([1, 2, 4, 8, 16, 64, 256, 1e4, 1e6, 1e8, 1e12, 1e16, 1e20, 1e24])
# How likely others are beside the least before the release is seen, were it not for a shift.
_LIKELY = 0.02
# Excess kurtosis of Laplace noise.
LAPLACE = 3.0
# With less the noise is as good as normal.
_LEAST_KURTOSIS = 0.02

# Of the largest variance of the code: the rounding errors of H are about as large.
_LEAST_VARIANCE = 1e-15
# Of the prior variance of a number: less than that is not left unread, but lost to rounding. So is
# as small a correlation.
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

    @property
    def known(self) -> NDArray[np.bool_]:
        """Along which axes the variance is no rounding error; a diagonal has none of these."""
        least = 0.0
        if self.axes is not None:
            least = _LEAST_VARIANCE * len(self.variances) * self.variances.max(initial=0)
        return self.variances > least

    def read(
        self, noisy: ArrayLike | None, variance: float, shift: float, kurtosis: float
    ) -> Reading:
        """Read a noisy code along the known axes; before a release, None, alpha is 1."""
        known = self.known
        variances = self.variances[known]
        widenings = WIDENINGS[: 1 if noisy is None else None, None]
        inverse = 1 / (widenings * variances + variance)
        gains, noise = widenings * inverse, variance * inverse
        if noisy is None:
            shares, apart = np.ones_like(gains), np.zeros_like(gains)
        else:
            along = self.along(np.asarray(noisy, dtype=np.float64))[known]
            shares = _shares(along, variances, variance, shift, kurtosis)
            # Of gain times code from that of the likeliest alpha: none is a difference of others.
            likeliest = shares.argmax(axis=0)[None]
            unit = along * np.sqrt(variances) * np.take_along_axis(inverse, likeliest, axis=0)
            apart = (widenings - WIDENINGS[likeliest]) * noise * unit
            apart -= np.sum(shares * apart, axis=0)
        mean, left = np.zeros_like(self.variances), np.ones_like(self.variances)
        mean[known] = np.sum(shares * gains, axis=0)
        left[known] = np.sum(shares * (widenings * noise + apart**2), axis=0)
        wider = np.sum(shares * widenings, axis=0)
        return Reading(mean, left, float(wider.mean()) if len(wider) else 1.0)

    def left_open(self, loadings: Matrix, reading: Reading, whole: bool) -> Matrix:
        """What a reading leaves open of numbers, as a share of their prior variance.

        `loadings` are the squares of C along the axes, a row per number, as shares of its variance.
        What the code does not reach and what is left of what it does are added, which are no
        differences of large numbers. A code of the `whole` value reaches all.
        """
        reached, known = np.zeros_like(self.variances), self.known
        np.divide(1, self.variances, out=reached, where=known)
        unread = (1 - loadings @ reached) * (not (whole and known.all()))
        unread[unread < _ROUNDING] = 0
        return reading.wider * unread + loadings @ (reached * reading.left)


def principal_axes(code: Matrix) -> tuple[Matrix, Matrix]:
    """The variances of a code along its axes, and the axes, given its covariance.

    Uncorrelated numbers are their own axes. Where some of these had the same variance, which axes
    an eigendecomposition finds would be a matter of rounding.
    """
    variances = np.diag(code)
    sizes = np.sqrt(np.abs(variances))
    if (np.abs(code - np.diag(variances)) <= _ROUNDING * np.multiply.outer(sizes, sizes)).all():
        return variances, np.eye(len(code))
    variances, axes = np.linalg.eigh(code)
    return variances, axes


@cache
def normal_laws(kurtosis: float) -> tuple[Matrix, Matrix]:
    """Of which normal laws of noise is a mixture: their variances, of mean 1, and weights.

    Laplace noise is normal noise with an exponential variable for a variance, L2 Laplace noise of k
    numbers has a Gamma variable of shape (k + 1) / 2. That of shape a makes a kurtosis of 3 / a.
    """
    if kurtosis < _LEAST_KURTOSIS:
        return np.ones(1), np.ones(1)
    shape = 3 / kurtosis
    times, weights = special.roots_genlaguerre(6, shape - 1)
    return times / shape, weights / weights.sum()


def _shares(
    along: Matrix, variances: Matrix, variance: float, shift: float, kurtosis: float
) -> Matrix:
    """The probability of each alpha along each axis, a row per alpha."""
    squares = along**2
    laws = np.full((len(WIDENINGS), len(along)), -np.inf)
    for time, weight in zip(*normal_laws(kurtosis), strict=True):
        total = np.multiply.outer(WIDENINGS, variances) + variance * time
        laws = np.logaddexp(laws, np.log(weight) - (squares / total + np.log(total)) / 2)
    laws = np.exp(laws - laws.max(axis=0))
    prior = np.triu((_LIKELY + shift) * WIDENINGS[:, None] / WIDENINGS)
    np.fill_diagonal(prior, 1)
    prior /= prior.sum(axis=1, keepdims=True)
    evidence = prior @ laws  # a row per least alpha
    least = special.softmax(np.log(prior[0]) + np.log(evidence).sum(axis=1))
    shares: Matrix = laws * (prior.T @ (least[:, None] / evidence))
    return shares
