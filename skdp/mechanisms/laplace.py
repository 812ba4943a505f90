"""The Laplace mechanism, on a lattice."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import shown
from skdp.core.guarantee import NoiseLaw
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import BasisParameter, ByteSource, Mechanism
from skdp.mechanisms.discrete import discrete_laplace
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.mechanisms.noise import Lattice, lattice_scale


def laplace_scale(sensitivity: float, n_values: int, epsilon: float) -> tuple[Lattice, int]:
    """Choose the lattice and the integer scale of the Laplace noise, from public numbers.

    With s the integer sensitivity of the lattice and t = ceil(s / epsilon), the released epsilon
    s / t is never above the one asked for. All of it is computed in exact fractions. The step is
    so fine that the rounding of the value and of t together cost less than .1 % of noise; where
    that would take a scale above 2^52, it is coarser.

    The scale is in [1, 2^52] steps. Refused where epsilon is so small that rounding would cost
    about as much noise as the sensitivity.
    """
    epsilon = float(epsilon)  # numpy's numbers overflow, or are no rationals
    # A large epsilon needs a fine step too, or rounding t up would cost; 2^32 is fine enough.
    parts = max(1.0, n_values, min(epsilon, 2.0**32))
    return lattice_scale(sensitivity, n_values, Fraction(epsilon), parts, "LaplaceMechanism")


class LaplaceMechanism(AdditiveMechanism):
    """Noise of the Laplace law, calibrated to the L1 norm in public coordinates.

    For a difference of L1 norm at most Delta, the value plus independent noise of scale
    b = Delta / epsilon on each coordinate is epsilon-differentially private on that pair, because
    the ratio of two densities exp(-abs(x - f) / b) is at most exp(Delta / b) [1]_. The noise is
    discrete: with k the value in steps of a power-of-two lattice, k + Z is released, where Z has
    the law exp(-abs(z) / t). On two neighboring datasets the probabilities of one output have the
    ratio exp(sum_i abs(z - k_i) / t - sum_i abs(z - k'_i) / t), which is at most exp(s / t), s
    being the L1 sensitivity in steps with the rounding charged. t is chosen such that s / t is at
    most epsilon, in exact arithmetic, so nothing rests on the precision of doubles [2]_ [3]_.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` adds no noise.
    basis : {"auto", "identity", "diagonal", "predictive"} or array-like of shape (d, d), \
            default="auto"
        In which coordinates the difference is measured and the noise is added. "auto" learns a
        public code from pilot pairs of the sampler: the few directions that are worth their noise,
        and a decoder that fills in the rest from what public fits have in common. It is learned for
        this epsilon. The others are bases of as many coordinates as values, without a decoder. A
        matrix T must be invertible and must not depend on private data. "diagonal" gives each value
        its own scale, "predictive" puts the noise where the output of the model does not change;
        both are learned. With a sensitivity known on paper and without a `prior` there are no pilot
        pairs, and "auto" takes the coordinates that it was proved in, as a rule those of the value.
    shift : float in [0, 1], default=0.2
        Which share of the private records may be unlike the oracle's. The decoder trusts public
        fits the less, the larger it is. Of the promise nothing depends on it. A code is learned
        with it; a basis has no use for it.
    decode : bool, default=True
        Whether "auto" learns a code. False takes the basis with the least expected error of the
        output: noise on every number, and nothing filled in.
    norm : {"l1", "auto"}, default="l1"
        "auto" lets a plan with a sensitivity known on paper take L2LaplaceMechanism instead, which
        has the same promise, where its expected error is smaller: it needs a bound on the L2 norm,
        and adds noise to at most 16 numbers. `plan_.mechanism` is the one that was taken. With a
        sampled sensitivity it is "l1".

    See Also
    --------
    L2LaplaceMechanism : The same promise from a bound on the L2 norm.
    GaussianMechanism : For many numbers, with a delta.

    Notes
    -----
    Why rounding to the lattice is paid for is proved in `skdp.mechanisms.noise.Lattice`.

    Where a noisy number is beyond +-2^60 steps of the lattice, all numbers are released as NaN, and
    `skdp.release` raises an error. For one number and epsilon up to 1 that is at least 2^44 times
    the sensitivity; the rounding of doubles is then no longer small beside the sensitivity.

    References
    ----------
    .. [1] Dwork, McSherry, Nissim and Smith, "Calibrating Noise to Sensitivity in Private Data
       Analysis", TCC 2006, proposition 1.
    .. [2] Mironov, "On Significance of the Least Significant Bits For Differential Privacy",
       CCS 2012.
    .. [3] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=1.0)
    >>> released = mechanism.release([0.2, 0.7], sensitivity=0.01)
    >>> released.shape
    (2,)
    >>> print(mechanism.guarantee())
    epsilon=1 differential privacy, replace-one, sensitivity asserted by the caller
    """

    order: ClassVar[int] = 1

    def __init__(
        self,
        epsilon: float,
        basis: BasisParameter = "auto",
        shift: float = 0.2,
        decode: bool = True,
        norm: str = "l1",
    ):
        super().__init__(epsilon, basis, shift, decode)
        self.norm = norm

    @property
    def alternatives(self) -> tuple[Mechanism, ...]:
        """This one, and with ``norm="auto"`` L2LaplaceMechanism."""
        if self.norm != "auto":
            return (self,)
        params = self.get_params(deep=False) | {"norm": "l1"}
        own = type(self)(**params)
        del params["norm"]
        return (own, L2LaplaceMechanism(**params))

    def _check(self) -> None:
        super()._check()
        if self.norm not in ("l1", "auto"):
            raise ValueError(
                "The 'norm' parameter of LaplaceMechanism must be 'l1' or 'auto'. "
                f"Got {shown(self.norm)}."
            )

    @property
    def noise_law(self) -> NoiseLaw:
        """Law of the noise, for composition."""
        return NoiseLaw("laplace", self.epsilon)

    def _scale(self, n_values: int, sensitivity: float) -> tuple[Lattice, int]:
        return laplace_scale(sensitivity, n_values, self.epsilon)

    def _draw(self, scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
        return discrete_laplace(scale, size, source)

    def _spread(self, n_values: int) -> float:
        return math.sqrt(2)
