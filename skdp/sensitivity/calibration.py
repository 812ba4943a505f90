"""Choose the order statistic of the sampled sensitivities, by one of three calibrations.

A calibration says which gamma m pairs can promise at best, and which index k promises a given
gamma. The number of pairs that a gamma needs follows by bisection. Comparisons are made in rational
arithmetic, or with a margin wider than the floating-point error, and rounded toward privacy.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import betainc, betaincc, lambertw

from skdp.core.checks import MOST, check_count, check_real, check_rules, shown
from skdp.core.exact import above, finite

_ULPS = 16 * sys.float_info.epsilon  # wider than the error of the few logarithms used here
_TAIL_ERROR = 1e-8  # relative; the incomplete beta function was measured right to 3e-14
_EXACT_UP_TO = 1000  # pairs; below it, a doubtful binomial tail is summed exactly


@dataclass(frozen=True)
class OrderStatistic:
    """The sensitivity estimate is the `k`-th smallest of `n_pairs` sampled sensitivities.

    Parameters
    ----------
    n_pairs : int
        Number m of sampled sensitivities, at least 1.
    k : int
        Index of the order statistic, from 1 (the smallest) to `n_pairs` (the largest).
    gamma : float in (0, 1)
        Probability that a fresh pair exceeds the estimate, at most. An index that does not attain
        it is refused.
    calibration : {"exact", "dkw", "conditional"}
        The rule that was applied; see :func:`order_statistic`.
    confidence : float in (0, 1) or None, default=None
        Confidence over the draws in the "conditional" calibration, where None means 0.95.
    n_strata : int, default=1
        Number of strata, each with `n_pairs` pairs; the largest of their order statistics counts.

    Examples
    --------
    >>> from skdp.sensitivity import OrderStatistic
    >>> print(OrderStatistic(n_pairs=199, k=190, gamma=0.05, calibration="exact"))
    order statistic 190 of 199 (gamma=0.05, calibration='exact')
    """

    n_pairs: int
    k: int
    gamma: float
    calibration: str
    confidence: float | None = None
    n_strata: int = 1

    def __post_init__(self) -> None:
        used, owner = self.calibration, "OrderStatistic"
        check_count("n_pairs", self.n_pairs, owner)
        check_count("k", self.k, owner, at_most=self.n_pairs)
        gamma = check_real("gamma", self.gamma, owner, 0.0, 1.0)
        _, _, rule = _validate(gamma, self.n_pairs, used, self.confidence, owner, self.n_strata)
        object.__setattr__(self, "confidence", rule.confidence)
        attained = rule.attainable_gamma(self.n_pairs) <= gamma
        if not (attained and self.k >= rule.index(gamma, self.n_pairs)):
            raise ValueError(
                f"The 'gamma' parameter of OrderStatistic must be a level that k={self.k} of "
                f"n_pairs={self.n_pairs} attains with calibration={used!r}. Got {gamma!r}. Make it "
                "by order_statistic(gamma, n_pairs)."
            )

    @property
    def rho(self) -> float | None:
        """Probability that the uniform bound of the "dkw" calibration fails; None for others."""
        return _dkw_bound(self.n_pairs)[0] if self.calibration == "dkw" else None

    def __str__(self) -> str:
        parts = [f"gamma={self.gamma:.4g}", f"calibration={self.calibration!r}"]
        for name in ("confidence", "rho"):
            value = getattr(self, name)
            parts += [] if value is None else [f"{name}={value:.4g}"]
        each = f" in each of {self.n_strata} strata" if self.n_strata > 1 else ""
        return f"order statistic {self.k} of {self.n_pairs}{each} ({', '.join(parts)})"


def order_statistic(
    gamma: float | None = None,
    n_pairs: int | None = None,
    *,
    calibration: str = "exact",
    confidence: float | None = None,
    n_strata: int = 1,
    owner: str = "order_statistic",
) -> OrderStatistic:
    r"""Choose the order statistic that estimates the sensitivity.

    Let :math:`G_1, \dots, G_m` be the sampled sensitivities, :math:`G_{(k)}` the k-th smallest and
    G the sensitivity of one more pair. With `gamma` alone the number of pairs is chosen, with
    `n_pairs` alone the smallest gamma, with both the smallest index.

    Parameters
    ----------
    gamma : float in (0, 1) or None, default=None
        Probability that a fresh pair exceeds the estimate, at most. It is read as the decimal
        number that it prints as, so 0.1 is one tenth. Fix it before the draws are seen.
    n_pairs : int or None, default=None
        Number m of sampled sensitivities, from 1 to 2**53.
    calibration : {"exact", "dkw", "conditional"}, default="exact"
        What is promised, and by which rule.

        - "exact": :math:`\Pr(G > G_{(k)}) \le \gamma`, jointly over the fresh pair and the draws,
          by exchangeability. `gamma` alone takes ``ceil(10 / gamma) - 1`` pairs: ten times the
          minimum, which keeps the coverage that is realized close to the one promised.
        - "dkw": the same promise from a uniform bound on the empirical distribution, theorem 15 of
          [1]_. It needs far more pairs, and lets the same draws be read at several gammas.
        - "conditional": with probability `confidence` over the draws,
          :math:`\Pr(G > G_{(k)} \mid G_1, \dots, G_m) \le \gamma`, like a tolerance limit [2]_.
    confidence : float in (0, 1) or None, default=None
        Confidence over the draws, for "conditional" only; None means 0.95 there.
    n_strata : int, default=1
        Number of strata, each with `n_pairs` pairs. The promise holds in each, with one confidence.
    owner : str, default="order_statistic"
        Whose parameters these are, for the error messages.

    Returns
    -------
    OrderStatistic
        Passing its `gamma` and `n_pairs` back gives the same order statistic again.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or `gamma` below what the pairs can promise.

    Notes
    -----
    The fresh pair is missed when at least k of the others lie strictly below it. Among m + 1 values
    at most m + 1 - k have k or more strictly below them, and each is equally likely to be the fresh
    one, so in the exact rule a miss has probability at most :math:`1 - k/(m+1)`. The user guide has
    all three proofs and a comparison.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017, theorem 15 and table 1.
    .. [2] Wilks, "Determination of Sample Sizes for Setting Tolerance Limits", Annals of
       Mathematical Statistics 12, 1941.

    Examples
    --------
    >>> from skdp.sensitivity import order_statistic
    >>> print(order_statistic(0.05))
    order statistic 190 of 199 (gamma=0.05, calibration='exact')
    >>> print(order_statistic(0.05, calibration="dkw"))
    order statistic 1305 of 1305 (gamma=0.05, calibration='dkw', rho=0.004182)
    """
    gamma, n_pairs, rule = _validate(gamma, n_pairs, calibration, confidence, owner, n_strata)
    if n_pairs is None:
        assert gamma is not None  # one of the two is given
        n_pairs = rule.usual_n_pairs(gamma)
    attainable = rule.attainable_gamma(n_pairs)
    if attainable >= 1:
        raise ValueError(
            f"The 'n_pairs' parameter of {owner} must be at least "
            f"{rule.fewest_pairs(0.9)} with calibration={calibration!r}. Got {n_pairs}."
        )
    if gamma is None:
        gamma = attainable
    if gamma < attainable:
        fewest = rule.fewest_pairs(gamma)
        remedy = "Raise gamma." if fewest is None else f"Raise n_pairs to at least {fewest}."
        raise ValueError(
            f"The 'gamma' parameter of {owner} must be at least {attainable!r} for "
            f"n_pairs={n_pairs} with calibration={calibration!r}. Got {shown(gamma)}. {remedy}"
        )
    k = rule.index(gamma, n_pairs)
    return OrderStatistic(n_pairs, k, gamma, calibration, rule.confidence, n_strata)


def _validate(
    gamma: float | None,
    n_pairs: int | None,
    calibration: str,
    confidence: float | None,
    owner: str,
    n_strata: int,
) -> tuple[float | None, int | None, _Calibration]:
    """Return the checked gamma and n_pairs, as plain numbers, and the rule to apply."""
    check_rules(
        owner,
        calibration=(calibration, calibration in list(_RULES), f"be one of {sorted(_RULES)}"),
        gamma=(gamma, (gamma, n_pairs) != (None, None), "not be None together with 'n_pairs'"),
        confidence=(
            confidence,
            confidence is None or calibration == "conditional",
            f"be None with calibration={calibration!r}",
        ),
    )
    if gamma is not None:
        gamma = check_real("gamma", gamma, owner, 0.0, 1.0)
    if n_pairs is not None:
        n_pairs = check_count("n_pairs", n_pairs, owner, at_most=MOST)
    n_strata = check_count("n_strata", n_strata, owner)
    if calibration != "conditional":
        return gamma, n_pairs, _RULES[calibration](n_strata)
    confidence = 0.95 if confidence is None else confidence
    confidence = check_real("confidence", confidence, owner, 0.0, 1.0)
    return gamma, n_pairs, _Conditional(n_strata, confidence)


class _Calibration(ABC):
    """A rule that turns a number of pairs into a promise, in each of some strata."""

    confidence: float | None = None

    def __init__(self, n_strata: int) -> None:
        self.n_strata = n_strata

    @abstractmethod
    def attainable_gamma(self, n_pairs: int) -> float:
        """Return the smallest gamma that `n_pairs` draws can promise; it may reach 1."""

    @abstractmethod
    def index(self, gamma: float, n_pairs: int) -> int:
        """Return the smallest k that promises `gamma`, which must be attainable."""

    def fewest_pairs(self, gamma: float) -> int | None:
        """Return the smallest number of pairs that promises `gamma`, None beyond 2**53."""
        if self.attainable_gamma(MOST) > gamma:
            return None
        return _smallest(lambda n_pairs: self.attainable_gamma(n_pairs) <= gamma, MOST)

    def usual_n_pairs(self, gamma: float) -> int:
        """Return the number of pairs to draw when only `gamma` is given."""
        return self.fewest_pairs(gamma) or MOST


class _Exact(_Calibration):
    """A miss has probability at most 1 - k/(m+1), by exchangeability."""

    def attainable_gamma(self, n_pairs: int) -> float:
        return above(Fraction(1, n_pairs + 1))

    def index(self, gamma: float, n_pairs: int) -> int:
        return math.ceil((1 - finite(gamma)) * (n_pairs + 1))

    def usual_n_pairs(self, gamma: float) -> int:
        return min(math.ceil(10 / finite(gamma)) - 1, MOST)


class _Dkw(_Calibration):
    """A miss has probability at most 1 - k/m + rho + rho', theorem 15 of the paper."""

    def attainable_gamma(self, n_pairs: int) -> float:
        return above(_dkw_bound(n_pairs, self.n_strata)[1])

    def index(self, gamma: float, n_pairs: int) -> int:
        return math.ceil(n_pairs * (1 - finite(gamma) + _dkw_bound(n_pairs, self.n_strata)[1]))


class _Conditional(_Calibration):
    """All but a share beta of the draws have a miss probability of at most gamma, in all strata."""

    def __init__(self, n_strata: int, confidence: float) -> None:
        super().__init__(n_strata)
        self.confidence = confidence
        self._beta = (1 - finite(confidence)) / n_strata
        self._log_beta = _log_complement(finite(confidence)) - math.log(n_strata)

    def attainable_gamma(self, n_pairs: int) -> float:
        # Start just below 1 - beta^(1/m); the test at k = m then decides to the last digit.
        gamma = -math.expm1(self._log_beta / n_pairs) * (1 - _ULPS)
        while not self._holds(n_pairs, finite(gamma), n_pairs):
            gamma = math.nextafter(gamma, 1)
        return gamma

    def index(self, gamma: float, n_pairs: int) -> int:
        return _smallest(lambda k: self._holds(k, finite(gamma), n_pairs), n_pairs)

    def _holds(self, k: int, gamma: Fraction, n_pairs: int) -> bool:
        """Return whether Pr(Binomial(m, 1 - gamma) >= k) <= beta; False where in doubt."""
        if k == n_pairs:
            log_tail, error = n_pairs * _log_complement(gamma), -_ULPS * self._log_beta
        else:
            log_tail, error = _log_binomial_tail(k, gamma, n_pairs), _TAIL_ERROR
        if abs(log_tail - self._log_beta) > error:
            return log_tail < self._log_beta
        return n_pairs <= _EXACT_UP_TO and _exact_tail_is_at_most(self._beta, k, gamma, n_pairs)


_RULES: dict[str, Callable[..., _Calibration]] = {
    "exact": _Exact,
    "dkw": _Dkw,
    "conditional": _Conditional,
}


def _dkw_bound(n_pairs: int, n_strata: int = 1) -> tuple[float, Fraction]:
    """Return the best rho for `n_pairs` draws, and rho + rho' of theorem 15, rounded up."""
    # Every rho in (0, 1/2) is valid, so its own rounding is harmless; that of rho' is not. Each
    # stratum has an equal share of rho.
    rho = math.exp(lambertw(-1 / (4 * n_pairs), -1).real / 2)
    deviation = math.sqrt((math.log(n_strata) - math.log(rho)) / (2 * n_pairs)) * (1 + _ULPS)
    return rho, Fraction(rho) + Fraction(deviation)


def _smallest(holds: Callable[[int], bool], high: int) -> int:
    """Return the smallest integer from 1 to `high` for which `holds`, given that `high` does."""
    low = 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high


def _log_complement(probability: Fraction) -> float:
    """Return ln(1 - probability) without cancellation at either end."""
    if probability < Fraction(1, 2):
        return math.log1p(-float(probability))
    return math.log(1 - probability)


def _log_binomial_tail(k: int, gamma: Fraction, n_pairs: int) -> float:
    """Return ln Pr(Binomial(m, 1 - gamma) >= k), through the incomplete beta function."""
    rest = n_pairs - k + 1
    if gamma < Fraction(1, 2):
        tail = betaincc(rest, k, float(gamma))
    else:
        tail = betainc(k, rest, float(1 - gamma))
    return math.log(tail) if tail > 0 else -math.inf


def _exact_tail_is_at_most(beta: Fraction, k: int, gamma: Fraction, n_pairs: int) -> bool:
    """Return whether Pr(Binomial(m, 1 - gamma) >= k) <= beta, in integer arithmetic."""
    misses, whole = gamma.numerator, gamma.denominator
    tail = sum(
        math.comb(n_pairs, i) * (whole - misses) ** i * misses ** (n_pairs - i)
        for i in range(k, n_pairs + 1)
    )
    return tail * beta.denominator <= beta.numerator * whole**n_pairs
