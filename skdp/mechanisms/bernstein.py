"""The Bernstein mechanism as published: Laplace noise on a lattice, calibrated to the sup norm."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.geometry import Geometry
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.types import Matrix
from skdp.mechanisms.base import ByteSource, Mechanism
from skdp.mechanisms.laplace import LaplaceMechanism


class BernsteinMechanism(Mechanism):
    """Laplace noise on the values of a function, calibrated to the sup norm.

    With a function evaluated at N lattice points, each value gets Laplace noise of scale
    N Delta / epsilon, Delta being the largest change at a point [1]_. N Delta is an upper bound on
    the L1 norm of the change, so this is as private as `LaplaceMechanism` is with its own norm, and
    adds the more noise in excess of it the more a change is concentrated. It is here to compare
    with what was published; for a release take `LaplaceMechanism`.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` adds no noise.

    See Also
    --------
    skdp.LaplaceMechanism : The same promise with less noise.

    References
    ----------
    .. [1] Aldà and Rubinstein, "The Bernstein Mechanism: Function Release under Differential
       Privacy", AAAI 2017.

    Examples
    --------
    >>> from skdp import BernsteinMechanism
    >>> mechanism = BernsteinMechanism(epsilon=1.0)
    >>> mechanism.geometry.distance([0.0, 0.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0])
    3.0
    >>> mechanism.release([0.2, 0.7, 0.5, 0.1], sensitivity=0.01).shape
    (4,)
    """

    geometry: ClassVar[Geometry] = Geometry(math.inf)

    def __init__(self, epsilon: float):
        self.epsilon = epsilon

    def release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> NDArray[np.float64]:
        l1_bound = math.nextafter(np.size(value) * float(sensitivity), math.inf)
        return self._laplace().release(value, l1_bound if sensitivity > 0 else sensitivity, rng)

    def standard_errors(self, shape: tuple[int, ...], sensitivity: float) -> NDArray[np.float64]:
        l1_bound = int(np.prod(shape)) * sensitivity
        return np.asarray(self._laplace().standard_errors(shape, l1_bound))

    def noise_columns(self, shape: tuple[int, ...], sensitivity: float) -> Matrix | None:
        return self._laplace().noise_columns(shape, int(np.prod(shape)) * sensitivity)

    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        return self._laplace().guarantee(gamma)

    def _laplace(self) -> LaplaceMechanism:
        return LaplaceMechanism(self.epsilon, basis="identity")
