"""The Laplace mechanism, on a lattice."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.core.guarantee import NoiseLaw
from skdp.core.types import ByteSource
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import CodeParameter
from skdp.mechanisms.discrete import discrete_laplace
from skdp.mechanisms.noise import Lattice, lattice_scale


class LaplaceMechanism(AdditiveMechanism):
    """Noise of the Laplace law, calibrated to the L1 norm.

    For a difference of L1 norm at most Delta, the value plus independent noise of scale
    b = Delta / epsilon on each coordinate is epsilon-differentially private on that pair, because
    the ratio of two densities exp(-abs(x - f) / b) is at most exp(Delta / b) [1]_. The noise is
    discrete: with k the value in steps of a power-of-two lattice, k + Z is released, where Z has
    the law exp(-abs(z) / t). The ratio of two probabilities is at most exp(s / t), s being the L1
    sensitivity in steps with the rounding charged, and t is chosen such that s / t is at most
    epsilon, in exact arithmetic, so nothing rests on the precision of doubles.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` adds no noise.
    code : None, "auto", "learned" or PublicCode, default="auto"
        What gets the noise. None is the published method: every number of the value as it is.
        "learned" learns a public code from public fits, for this epsilon: the few directions that
        are worth their noise, and a decoder that fills in the rest from what public fits have in
        common. So the released value is drawn towards the mean of public fits. "auto" is "learned"
        for an estimator, but None in :func:`skdp.release` with a SensitivitySampler. In both it
        takes the code of an estimate that was sampled in one, and learns one from the `prior` of a
        KnownSensitivity. A PublicCode was learned before, such as ``plan.mechanism.code``; it must
        not depend on private data.
    shift : float in [0, 1], default=0.2
        Which share of the private records may be unlike the oracle's, for a code that is learned.
        The decoder trusts public fits the less, the larger it is. It does not affect the guarantee.

    See Also
    --------
    L2LaplaceMechanism : The same promise from a bound on the L2 norm.
    GaussianMechanism : For many numbers, with a delta.

    Notes
    -----
    Why rounding to the lattice is paid for is proved in `skdp.mechanisms.noise.Lattice`. Where a
    noisy number is beyond +-2^60 steps, all numbers are released as NaN, and `skdp.release` raises
    an error. For one number and epsilon up to 1 that is at least 2^44 times the sensitivity.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data
       Analysis", TCC 2006, proposition 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=1.0)
    >>> released = mechanism.release([0.2, 0.7], sensitivity=0.01)
    >>> released.shape
    (2,)
    >>> mechanism.guarantee().short
    'differential privacy, epsilon=1'
    """

    order: ClassVar[int] = 1

    # else Python would name the base where epsilon is forgotten
    def __init__(self, epsilon: float, *, code: CodeParameter = "auto", shift: float = 0.2):
        super().__init__(epsilon, code=code, shift=shift)

    @property
    def noise_law(self) -> NoiseLaw | None:
        """Law of the noise, for composition; None where a subclass releases in its own way."""
        is_own = self._releases_as_here and type(self)._draw is LaplaceMechanism._draw
        return NoiseLaw("laplace", self.epsilon) if is_own else None

    def _scale(self, n_values: int, sensitivity: float) -> tuple[Lattice, int]:
        return lattice_scale(sensitivity, n_values, self.epsilon, "LaplaceMechanism")

    def _draw(self, scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
        return discrete_laplace(scale, size, source)

    def _spread(self, n_values: int) -> float:
        return math.sqrt(2)
