"""The Bernstein mechanism as published: Laplace noise on a lattice, calibrated to the sup norm."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting.guarantee import PrivacyGuarantee
from skdp.mechanisms.base import ByteSource, Mechanism, sup_norm
from skdp.mechanisms.laplace import LaplaceMechanism


class BernsteinMechanism(Mechanism):
    """Laplace noise on the values of a function, calibrated to the sup norm.

    With a function evaluated at N lattice points, each value gets Laplace noise of scale
    N Delta / epsilon, Delta being the largest change at a point [1]_. N Delta is an upper bound on
    the L1 norm of the change, so this is `LaplaceMechanism` with a norm that is never smaller: as
    private, and with more noise the more the change is concentrated. It is here to compare with
    what was published; for a release take `LaplaceMechanism`.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` adds no noise.

    See Also
    --------
    skdp.LaplaceMechanism : The same promise with less noise.

    Notes
    -----
    Equal to the published mechanism is the scale of the noise. It is discrete, on a lattice of
    released values, and a sensitivity is stated in the norm N sup, not in the sup norm.

    References
    ----------
    .. [1] Aldà and Rubinstein, "The Bernstein Mechanism: Function Release under Differential
       Privacy", AAAI 2017.

    Examples
    --------
    >>> from skdp import BernsteinMechanism, LaplaceMechanism
    >>> change = [0.0, 0.0, 3.0, 1.0]
    >>> BernsteinMechanism(epsilon=1.0).norm(change), LaplaceMechanism(epsilon=1.0).norm(change)
    (12.0, 4.0)
    """

    norm_name: ClassVar[str] = "size times sup"

    def __init__(self, epsilon: float):
        self.epsilon = epsilon

    def norm(self, difference: ArrayLike) -> float:
        """Measure the difference of two target values.

        Parameters
        ----------
        difference : array-like of float
            Of any shape.

        Returns
        -------
        float
            The largest absolute value, times the number of values.
        """
        return np.size(difference) * sup_norm(difference)

    def release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> NDArray[np.float64]:
        """Return the value with noise.

        Parameters
        ----------
        value : array-like of float
            The private value, of any shape.
        sensitivity : float in (0, inf)
            Largest norm of a difference, as measured by :meth:`norm`.
        rng : ByteSource or None, default=None
            Where the noise comes from; None is the operating system.

        Returns
        -------
        ndarray of float64
            The private version, of the same shape. An equal copy if epsilon is infinite.

        Raises
        ------
        ValueError
            As the Laplace mechanism does.
        """
        return LaplaceMechanism(self.epsilon).release(value, sensitivity, rng)

    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        """Return the promise of one release.

        Parameters
        ----------
        gamma : float in [0, 1), default=0.0
            Probability that the sensitivity does not cover a pair of the oracle.

        Returns
        -------
        PrivacyGuarantee
            With this epsilon and ``delta = 0``.
        """
        return LaplaceMechanism(self.epsilon).guarantee(gamma)
