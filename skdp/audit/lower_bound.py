"""Certified lower bounds on epsilon, for any mechanism that can be run many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdp.audit.methods import METHODS, Pair, Runs
from skdp.core.checks import check_count, check_rules
from skdp.core.streams import public_seed


@dataclass(frozen=True)
class AuditResult:
    """A lower bound on epsilon, the verdict on a claim, and the sizes of the audit.

    Parameters
    ----------
    lower_bound : float
        With probability at least ``1 - alpha`` the true epsilon is at least this large.
    estimate : float
        The bound without the allowance for chance; not certified.
    claimed_epsilon, delta : float
        The claim that was put to the test.
    violated : bool
        True if `lower_bound` exceeds the claim.
    pair : int
        Index of the pair on which the final runs were made.
    event : str
        The rule or the point at which the runs were counted.
    method : {"label", "pair", "local"}
        The test. "local" is approximate, the others are exact at level `alpha`.
    alpha : float
        Probability of a bound above the true epsilon.
    sizes : mapping of str to int
        Numbers of runs and of guesses.
    candidates : tuple of str
        Scores that the rule was chosen from. A loss that shows in none of them cannot be seen.
    resolution : float
        The largest bound that the final runs could have given.
    seed : int
        Pass it as `rng` to repeat the audit.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import audit_epsilon
    >>> def laplace(x, n, rng):
    ...     return np.round(x + rng.laplace(size=n), 6)
    >>> result = audit_epsilon(laplace, [(0.0, 1.0)], claimed_epsilon=2.0, rng=0)
    >>> print(result)
    none found above the claimed epsilon=2: lower bound 0.9... at 0.95 confidence (guess x if ...)
    """

    lower_bound: float
    estimate: float
    claimed_epsilon: float
    delta: float
    violated: bool
    pair: int
    event: str
    method: str
    alpha: float
    sizes: Mapping[str, int]
    candidates: tuple[str, ...]
    resolution: float
    seed: int

    def __str__(self) -> str:
        claim = f"the claimed epsilon={self.claimed_epsilon:g}"
        claim += f", delta={self.delta:g}" if self.delta else ""
        level = "about " if self.method == "local" else ""
        bound = f"lower bound {self.lower_bound:.4g} at {level}{1 - self.alpha:.6g} confidence"
        verdict = f"none found above {claim}: {bound}"
        if self.violated:
            verdict = f"violation found: {bound}, above {claim}"
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        limit = f"cannot see beyond {self.resolution:.4g}, nor what shows in none of: " + "; ".join(
            self.candidates
        )
        return f"{verdict} ({self.event}; {self.method} test, pair {self.pair}, {sizes}, {limit})"


def audit_epsilon(
    mechanism: Runs,
    pairs: Sequence[Pair],
    *,
    claimed_epsilon: float,
    delta: float = 0.0,
    n_search: int = 20_000,
    n_final: int = 100_000,
    alpha: float = 0.05,
    method: str = "label",
    rng: int | np.random.Generator | None = None,
) -> AuditResult:
    """Certify a lower bound on the epsilon of a mechanism, and compare it with the claim.

    Search runs choose the pair and the rule that reveal most. The bound comes from final runs on
    that one pair, on which nothing is chosen, so several pairs cost no confidence. The label and
    pair tests look at the values of the outputs and at their digits, since the last bits of a sum
    of doubles may give its terms away. A mechanism whose claim is exactly true still fails with
    probability up to `alpha`.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(x, n, rng)`` returns n independent outputs on the dataset x: numbers, strings,
        booleans or rows of them, of any type.
    pairs : sequence of (x, x_prime)
        Datasets between which the claim should hold.
    claimed_epsilon : float, at least 0
        The claim.
    delta : float in [0, 1), default=0.0
        The delta of the claim. Above 0 only for "pair".
    n_search : int, default=20_000
        Runs per dataset in the search, on each pair.
    n_final : int, default=100_000
        Runs per dataset in the final test.
    alpha : float in (0, 1), default=0.05
        Probability of a bound above the true epsilon.
    method : {"label", "pair", "local"}, default="label"
        "label" guesses the dataset of each run; "pair" compares the frequencies of one event;
        "local" compares two estimated densities at one number (approximate) [1]_.
    rng : int, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    AuditResult
        The bound, the verdict and the sizes.

    Raises
    ------
    ValueError
        If a parameter is outside its range, or the mechanism returns another number of outputs.

    References
    ----------
    .. [1] Askin, Kutta and Dette, "Statistical Quantification of Differential Privacy: A Local
       Approach", IEEE S&P 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import audit_epsilon
    >>> def half_the_noise(x, n, rng):
    ...     return np.round(x + rng.laplace(scale=0.5, size=n), 6)
    >>> result = audit_epsilon(half_the_noise, [(0.0, 1.0)], claimed_epsilon=1.0, rng=0)
    >>> result.violated, 1.9 < result.lower_bound < 2.0
    (True, True)
    """
    pairs = list(pairs)
    check_count("n_search", n_search, "audit_epsilon", at_least=100)
    check_count("n_final", n_final, "audit_epsilon")
    are_pairs = pairs and all(isinstance(p, tuple | list) and len(p) == 2 for p in pairs)
    check_rules(
        "audit_epsilon",
        pairs=(f"{len(pairs)} entries", are_pairs, "be a non-empty sequence of (x, x_prime)"),
        claimed_epsilon=(claimed_epsilon, claimed_epsilon >= 0, "be at least 0"),
        alpha=(alpha, 0 < alpha < 1, "be in (0, 1)"),
        method=(method, method in METHODS, f"be one of {tuple(METHODS)}"),
        delta=(
            delta,
            0 <= delta < 1 and (delta == 0 or method == "pair"),
            "be in [0, 1), and 0 but for 'pair'",
        ),
    )
    seed = public_seed(rng, "rng", "audit_epsilon")
    test = METHODS[method](mechanism, n_search, n_final, alpha, delta)
    *children, last = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(len(pairs) + 1))
    found = [test.search(*each) for each in zip(pairs, children, strict=True)]
    best = int(np.argmax([value for value, _ in found]))
    outcome = found[best][1](pairs[best], last)
    outcome["sizes"] = {"n_search": n_search, "n_pairs": len(pairs)} | outcome["sizes"]
    return AuditResult(
        **outcome,
        claimed_epsilon=float(claimed_epsilon),
        delta=float(delta),
        violated=outcome["lower_bound"] > claimed_epsilon,
        pair=best,
        method=method,
        alpha=float(alpha),
        seed=seed,
    )
