"""What the mechanisms whose only budget is an epsilon share."""

from __future__ import annotations

from skdp.core.checks import is_real
from skdp.core.guarantee import PrivacyGuarantee
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import BasisParameter


class PureAdditiveMechanism(AdditiveMechanism):
    """Its parameters and its promise."""

    def __init__(
        self,
        epsilon: float,
        basis: BasisParameter = "auto",
        shift: float = 0.2,
        decode: bool = True,
    ):
        self.epsilon = epsilon
        self.basis = basis
        self.shift = shift
        self.decode = decode

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
        self._check()
        return PrivacyGuarantee(
            epsilon=float(self.epsilon), gamma=gamma, basis=self._basis_description()
        )

    def _check(self) -> None:
        epsilon = self.epsilon
        if not (is_real(epsilon) and epsilon > 0):
            raise ValueError(
                f"The 'epsilon' parameter of {type(self).__name__} must be a number above 0 (or "
                f"inf, which adds no noise). Got {epsilon!r}."
            )
        self._check_basis()
