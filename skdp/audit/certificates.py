"""Lower bounds on epsilon from counts: they hold at a stated confidence, for any mechanism.

Each function turns the outcome of an experiment with secret bits into the smallest epsilon that
the outcome does not contradict. The event, or the rule for guessing, must be fixed before the
counted runs are made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exact limits of a binomial probability, one-sided (Clopper and Pearson, 1934)."""
    k, n = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    # At either end a limit is known, and the beta quantile undefined: replace k there.
    some, rest = np.maximum(k, 1), n - np.minimum(k, n - 1)
    lower = special.betaincinv(some, n - some + 1, alpha)
    upper = special.betainccinv(n - rest + 1, rest, alpha)
    return np.where(k > 0, lower, 0.0), np.where(k < n, upper, 1.0)


def label_bound(right: ArrayLike, guesses: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Return a lower bound on epsilon from guesses of the dataset that a run was made on.

    In every run a fair coin, secret to the rule, chooses x or x'. Under epsilon-differential
    privacy each guess is right with probability at most ``exp(epsilon)/(1+exp(epsilon))``, also
    when the rule abstains on outputs of its choice; abstentions are no guesses. The bound exceeds
    the true epsilon with probability at most `alpha`.
    """
    lower, _ = clopper_pearson(right, guesses, alpha)
    return np.maximum(special.logit(lower), 0.0)


def pair_bound(
    hits_x: ArrayLike,
    runs_x: ArrayLike,
    hits_y: ArrayLike,
    runs_y: ArrayLike,
    alpha: float,
    delta: float = 0.0,
) -> NDArray[np.float64]:
    """Return a lower bound on epsilon from the frequencies of one event on two datasets.

    (epsilon, delta)-differential privacy says ``P_x(E) <= exp(epsilon) P_y(E) + delta``. Both
    probabilities are replaced by their exact limits at ``alpha / 2``, so the bound exceeds the true
    epsilon with probability at most `alpha`.
    """
    lower, _ = clopper_pearson(hits_x, runs_x, alpha / 2)
    _, upper = clopper_pearson(hits_y, runs_y, alpha / 2)
    with np.errstate(divide="ignore"):  # no hit has the logarithm -inf
        return np.maximum(np.log(np.maximum(lower - delta, 0.0) / upper), 0.0)
