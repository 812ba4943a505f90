"""Lower bounds on epsilon from counts: they hold at a stated confidence, for any mechanism.

Each function turns the outcome of an experiment with secret bits into the smallest epsilon that
the outcome does not contradict. The event, or the rule for guessing, must be fixed before the
counted runs are made.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return exact confidence limits of a binomial probability, each one-sided at level `alpha`.

    Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26, 1934.
    """
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
    when the rule abstains on outputs of its choice.

    Parameters
    ----------
    right : array-like of int
        Number of right guesses.
    guesses : array-like of int
        Number of guesses, without the runs on which the rule abstained.
    alpha : float in (0, 1)
        The bound exceeds the true epsilon with at most this probability.

    Returns
    -------
    ndarray
        The bound, at least 0.

    Examples
    --------
    >>> from skdp.audit import label_bound
    >>> round(float(label_bound(73106, 100000, 0.05)), 7)
    0.9882579
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
    probabilities are replaced by their exact limits at ``alpha / 2``.

    Parameters
    ----------
    hits_x, runs_x : array-like of int
        Number of runs on x in which the event happened, and of all runs on x.
    hits_y, runs_y : array-like of int
        The two numbers for x'.
    alpha : float in (0, 1)
        The bound exceeds the true epsilon with at most this probability.
    delta : float in [0, 1), default=0.0
        Delta of the claim.

    Returns
    -------
    ndarray
        The bound, at least 0.

    Examples
    --------
    >>> from skdp.audit import pair_bound
    >>> round(float(pair_bound(90, 100, 10, 100, 0.05)), 7)
    1.5421524
    """
    lower, _ = clopper_pearson(hits_x, runs_x, alpha / 2)
    _, upper = clopper_pearson(hits_y, runs_y, alpha / 2)
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(np.maximum(lower - delta, 0.0) / upper), 0.0)


def one_run_p_value(
    canaries: int, guesses: int, right: int, epsilon: float, delta: float = 0.0
) -> float:
    """Bound the probability of so many right guesses in one run, if epsilon were true.

    With B ~ Binomial(guesses, q), q = e^epsilon / (1 + e^epsilon), m canaries and v right guesses
    it is P(B >= v) + 2 m delta max_i P(v > B >= v - i) / i (theorem 5.2 of the source below).
    """
    law = stats.binom(guesses, special.expit(epsilon))
    p_value = float(law.sf(right - 1))
    if delta > 0 and right > 0:
        i = np.arange(1, min(canaries, right) + 1)
        window = law.cdf(right - 1) - law.cdf(right - 1 - i)
        p_value += 2 * canaries * delta * float(np.max(window / i))
    return min(p_value, 1.0)


def one_run_bound(
    canaries: int, guesses: int, right: int, alpha: float, delta: float = 0.0
) -> float:
    """Return a lower bound on epsilon from one run with many canaries [1]_.

    The mechanism runs once, on a dataset in which each of `canaries` records was chosen by its
    own secret fair coin.

    Parameters
    ----------
    canaries : int
        Number of records with a secret coin.
    guesses : int
        Number of coins guessed, fixed before the run when delta is positive.
    right : int
        Number of right guesses.
    alpha : float in (0, 1)
        The bound exceeds the true epsilon with at most this probability.
    delta : float in [0, 1), default=0.0
        Delta of the claim.

    Returns
    -------
    float
        The smallest epsilon that is not rejected at level `alpha`.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.

    Examples
    --------
    >>> from skdp.audit import one_run_bound
    >>> round(one_run_bound(1000, 200, 180, 0.05, delta=1e-5), 4)
    1.7963
    """
    if delta == 0:
        return float(label_bound(right, guesses, alpha))

    def excess(epsilon: float) -> float:
        return one_run_p_value(canaries, guesses, right, epsilon, delta) - alpha

    # The term in delta need not be monotone in epsilon: take the first crossing, not any.
    below, step = 0.0, 0.05
    if guesses == 0 or excess(below) >= 0:
        return 0.0
    while excess(below + step) < 0:
        below += step
    return float(optimize.brentq(excess, below, below + step, xtol=1e-10))
