"""Estimate a value from some of its numbers, which are known up to noise, with a prior.

With a prior of mean mu and covariance S, an encoder T, noise of variance s^2 on each of the k
numbers of the code y, and C the covariance S T' of value and code, H = T S T', the linear estimate
of least mean square error is

    mu + alpha C (alpha H + s^2 I)^-1 y,   with covariance   alpha S - alpha^2 C (..)^-1 C'.

The factor alpha widens the prior. It is not known, and it may differ between directions, since
private records may differ from the oracle's in one column only. So the decoded value is a mean over
a list of alphas, along each axis of H. The weight of an alpha is its probability given y, for a
normal prior and for noise of the kurtosis that the mechanism has. The kurtosis matters: rare large
values of Laplace noise, or many moderate values of normal noise, do not suggest a wide prior.

Before y is seen, one least alpha is common to all axes. Along each axis, an alpha that is a times
the least alpha has the weight (.02 + rho) / a, and the least alpha has the weight 1. The least
alpha itself is distributed in the same way around 1. Here rho is the shift that the prior allows
for. Without a shift, all alphas stay near 1 for data of the oracle. An axis of which nothing can be
read is treated as wide. The errors along an axis are those of the mixture, and errors along
different axes are treated as uncorrelated. The part of the value that the code does not reach is
widened by the average over the axes.

The denoising of a release by a prior follows Balle and Wang (ICML 2018, section 4), and the unequal
noise of coordinates follows Muthukrishnan and Kalyani (2023).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from skdp.core.types import Matrix

# The alphas, which multiply the variance of the prior. A wrong unit may be a factor of 10^6,
# which is a factor of 10^12 for a variance.
WIDENINGS = np.array([1, 2, 4, 8, 16, 64, 256, 1e4, 1e6, 1e8, 1e12, 1e16, 1e20, 1e24])
_LIKELY = 0.02  # prior weight of other alphas relative to the least one, without a shift
LAPLACE = 3.0  # excess kurtosis of Laplace noise
_LEAST_KURTOSIS = 0.02  # noise of a smaller one is treated as normal

_LEAST_VARIANCE = 1e-15  # of the largest variance: smaller ones are rounding errors of H
_ROUNDING = 1e-12  # shares of a prior variance, and correlations, below are rounding errors


class Reading(NamedTuple):
    """The reading of a code along its axes, averaged over the alphas."""

    gains: Matrix  # the diagonal of alpha (alpha H + s^2 I)^-1
    left: Matrix  # the share of the prior variance that stays open along each axis
    wider: float  # so many times the prior variance stays beyond the code


class Spectrum(NamedTuple):
    """The variances of the code along its own axes, and the prior variance it can remove there."""

    axes: Matrix
    variances: Matrix
    removable: Matrix

    @property
    def known(self) -> NDArray[np.bool_]:
        """Mark the axes whose variance exceeds rounding errors."""
        largest = self.variances.max(initial=0)
        return self.variances > _LEAST_VARIANCE * len(self.variances) * largest

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
            along = (self.axes.T @ np.asarray(noisy, dtype=np.float64))[known]
            shares = _shares(along, variances, variance, shift, kurtosis)
            # The difference to the reading by the likeliest alpha is computed without cancellation.
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
        """Return the share of the prior variance of each number that a reading leaves open.

        `loadings` are the squares of C along the axes, a row per number, as shares of its variance.
        A code of the `whole` value reaches all of it.
        """
        reached, known = np.zeros_like(self.variances), self.known
        np.divide(1, self.variances, out=reached, where=known)
        unread = (1 - loadings @ reached) * (not (whole and known.all()))
        unread[unread < _ROUNDING] = 0
        return reading.wider * unread + loadings @ (reached * reading.left)


def principal_axes(code: Matrix) -> tuple[Matrix, Matrix]:
    """Return the variances of a code along its axes, and the axes, given its covariance."""
    variances = np.diag(code)
    # numbers that are uncorrelated are their own axes: rounding would choose among equal variances
    sizes = np.sqrt(np.abs(variances))
    if (np.abs(code - np.diag(variances)) <= _ROUNDING * np.multiply.outer(sizes, sizes)).all():
        return variances, np.eye(len(code))
    variances, axes = np.linalg.eigh(code)
    return variances, axes


@cache
def normal_laws(kurtosis: float) -> tuple[Matrix, Matrix]:
    """Write noise as a mixture of normal laws: return their variances, of mean 1, and weights.

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
    """Return the probability of each alpha along each axis, a row per alpha."""
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
