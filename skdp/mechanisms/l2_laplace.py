"""The L2 Laplace mechanism: a pure epsilon from a bound on the Euclidean length."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import ByteSource
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import CodeParameter
from skdp.mechanisms.discrete import MAX_SCALE, discrete_l2_laplace
from skdp.mechanisms.noise import Lattice, lattice_scale

MOST_VALUES = 16  # with so many values one candidate in sixty is accepted


class L2LaplaceMechanism(AdditiveMechanism):
    """Noise whose density falls with its Euclidean length, calibrated to the L2 norm.

    For a difference of L2 norm at most Delta, the value plus noise of density proportional to
    exp(-epsilon norm(x) / Delta) is epsilon-differentially private on that pair, as the norms of x
    and of x - v differ by at most that of v [1]_ [2]_. So a bound on the L2 norm is enough for
    a promise without a delta. The length of the noise on k numbers has the law Gamma(k, Delta /
    epsilon), its direction is uniform, and its variance in each number (k + 1) (Delta /
    epsilon)^2: it is for few numbers, and refuses more than 16. A public code brings many down to
    few. With a delta of 1e-5, Gaussian noise is larger up to k = 8, 10, 12 and 16 at epsilon .1,
    .3, 1 and 3.

    The noise is discrete, as that of LaplaceMechanism, and drawn exactly; its proof is at
    `skdp.mechanisms.discrete.discrete_l2_laplace`. In a budget its releases count by their epsilon:
    no tighter law is known for the composition of noise of this kind.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` adds no noise.
    code : None, "auto", "learned" or PublicCode, default="auto"
        What gets the noise, as in LaplaceMechanism. A learned one is of at most 16 numbers.
    shift : float in [0, 1], default=0.2
        Which share of the private records may be unlike the oracle's, as in LaplaceMechanism.

    See Also
    --------
    LaplaceMechanism : The same promise from a bound on the L1 norm.
    GaussianMechanism : For many numbers, with a delta.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni and Sarwate, "Differentially Private Empirical Risk Minimization",
       Journal of Machine Learning Research 12, 2011, section 3.1.
    .. [2] Hardt and Talwar, "On the Geometry of Differential Privacy", STOC 2010.

    Examples
    --------
    >>> from skdp import L2LaplaceMechanism
    >>> mechanism = L2LaplaceMechanism(epsilon=1.0)
    >>> mechanism.release([0.2, 0.7], sensitivity=0.01).shape
    (2,)
    >>> mechanism.guarantee().short
    'differential privacy, epsilon=1'
    """

    order: ClassVar[int] = 2
    most_values: ClassVar[int | None] = MOST_VALUES

    # else Python would name the base where epsilon is forgotten
    def __init__(self, epsilon: float, *, code: CodeParameter = "auto", shift: float = 0.2):
        super().__init__(epsilon, code=code, shift=shift)

    def _kurtosis(self, n_values: int) -> float:
        return 6 / (n_values + 1)

    def _scale(self, n_values: int, sensitivity: float) -> tuple[Lattice, int]:
        if n_values > MOST_VALUES:
            raise ValueError(
                f"L2LaplaceMechanism adds noise to at most {MOST_VALUES} numbers together, as "
                f"exact draws of more take too long, and got {n_values}: let it learn a code of "
                "fewer (code='learned', from a SensitivitySampler or the 'prior' of a "
                "KnownSensitivity), or use GaussianMechanism, or LaplaceMechanism with an L1 bound."
            )
        charge = math.isqrt(n_values - 1) + 1  # sqrt(n_values), rounded up
        # the candidates of `discrete_l2_laplace` have a scale of at most 4 times as much
        most = MAX_SCALE // 4
        return lattice_scale(sensitivity, charge, self.epsilon, "L2LaplaceMechanism", most=most)

    def _draw(self, scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
        return discrete_l2_laplace(scale, size, source)[0]

    def _spread(self, n_values: int) -> float:
        return math.sqrt(n_values + 1)
