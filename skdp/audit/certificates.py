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
    """Return exact one-sided confidence limits of a binomial probability [1]_.

    Parameters
    ----------
    successes : array-like of int
        Number of successes, between 0 and `trials`.
    trials : array-like of int
        Number of trials. Without trials the limits are 0 and 1.
    alpha : float in (0, 1)
        Error probability of each limit.

    Returns
    -------
    lower, upper : ndarray of shape as broadcast
        The limits.

    References
    ----------
    .. [1] Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case
       of the binomial", Biometrika 26, 1934.

    Examples
    --------
    >>> from skdp.audit import clopper_pearson
    >>> lower, upper = clopper_pearson(9, 10, 0.05)
    >>> round(float(lower), 4), round(float(upper), 4)
    (0.6058, 0.9949)
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

    The mechanism runs once, on a dataset in which each of `canaries` records was chosen by its
    own secret fair coin. With ``B ~ Binomial(guesses, q)`` and ``q = exp(epsilon) /
    (1+exp(epsilon))`` the bound is ``P(B >= v) + 2 m delta max_i P(v > B >= v - i) / i`` [1]_, for
    the `right` guesses v and the `canaries` m.

    Parameters
    ----------
    canaries : int
        Number of records with a secret coin.
    guesses : int
        Number of coins guessed, fixed before the run when delta is positive.
    right : int
        Number of right guesses.
    epsilon : float, at least 0
        Epsilon of the hypothesis.
    delta : float in [0, 1), default=0.0
        Delta of the hypothesis.

    Returns
    -------
    float in [0, 1]
        The p-value of (epsilon, delta)-differential privacy.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023,
       theorem 5.2.

    Examples
    --------
    >>> from skdp.audit import one_run_p_value
    >>> round(one_run_p_value(1000, 1000, 600, 0.2975), 3)
    0.05
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
    """Return a lower bound on epsilon from one run with many canaries.

    Parameters
    ----------
    canaries, guesses, right : int
        As for :func:`one_run_p_value`.
    alpha : float in (0, 1)
        The bound exceeds the true epsilon with at most this probability.
    delta : float in [0, 1), default=0.0
        Delta of the claim.

    Returns
    -------
    float
        The smallest epsilon that is not rejected at level `alpha`.

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
