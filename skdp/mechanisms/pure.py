"""What the mechanisms whose only budget is an epsilon share."""

from __future__ import annotations

from skdp.core.checks import check_rules, is_real
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
        self._check()
        return PrivacyGuarantee(
            epsilon=float(self.epsilon), gamma=gamma, basis=self._basis_description()
        )

    def _check(self) -> None:
        epsilon = self.epsilon
        rule = "be a number above 0 (or inf, which adds no noise; a spent budget leaves 0)"
        check_rules(type(self).__name__, epsilon=(epsilon, is_real(epsilon) and epsilon > 0, rule))
        self._check_basis()
