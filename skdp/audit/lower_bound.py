"""Certified lower bounds on epsilon, for any mechanism that can be run many times."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from skdp.audit.certificates import label_bound, one_run_bound, pair_bound, resolution_limit
from skdp.audit.outputs import Outputs, as_outputs, as_rows
from skdp.audit.points import LossPoint, loss_at, most_revealing_point
from skdp.audit.rules import (
    Candidate,
    LineScore,
    Rule,
    Score,
    candidate_scores,
    label_rule,
    pair_rule,
)
from skdp.core.checks import check_count, check_rules, shown
from skdp.core.streams import reproducible_seed

Rng = np.random.Generator
Runs = Callable[[Any, int, Rng], ArrayLike]  # runs(dataset, n, rng) returns n outputs
Pair = tuple[Any, Any]
_Ends = tuple[Score, int, int]  # how many of the highest and of the lowest scores to guess
METHODS = ("label", "pair", "local", "one-run")
BLOCK = 2**19
"""Final runs at a time: millions of rows need not be in memory together."""

POINT_ALPHA = 1e-4
"""Level at which outputs are compared in the search of the local method; there are many."""


@dataclass(frozen=True)
class AuditResult:
    """What an audit found, and how hard it looked.

    Parameters
    ----------
    lower_bound : float
        With probability at least ``1 - alpha`` the true epsilon is at least this large.
    estimate : float
        The same without the allowance for chance; not certified.
    claimed_epsilon : float
        The claim that was put to the test.
    delta : float
        The delta of the claim.
    violated : bool
        Whether `lower_bound` exceeds the claim.
    pair : int
        Index of the pair on which the final runs were made.
    direction : str
        Which dataset the event speaks for: "x over x'", "x' over x" or "both".
    event : str
        The rule or the point at which the runs were counted.
    method : {"label", "pair", "local", "one-run"}
        The test. "local" is approximate, the others are exact at level `alpha`.
    alpha : float
        Probability of a bound above the true epsilon.
    sizes : mapping of str to int
        Numbers of runs and of guesses.
    resolution : float
        The largest bound that the final runs could have given.
    seed : int
        Pass it as `rng` to repeat the audit.

    Examples
    --------
    >>> from skdp.audit import audit_epsilon
    >>> def laplace(x, n, rng):
    ...     return x + rng.laplace(size=n)
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
    direction: str
    event: str
    method: str
    alpha: float
    sizes: Mapping[str, int]
    resolution: float
    seed: int

    def __str__(self) -> str:
        claim = f"the claimed epsilon={self.claimed_epsilon:g}"
        if self.delta:
            claim += f", delta={self.delta:g}"
        level = "about " if self.method == "local" else ""
        bound = f"lower bound {self.lower_bound:.4g} at {level}{1 - self.alpha:.6g} confidence"
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes.items())
        limit = f"cannot see beyond {self.resolution:.4g}"
        tail = f"{self.method} test, pair {self.pair}, {sizes}, {limit}"
        if self.violated:
            return f"violation found: {bound}, above {claim} ({self.event}; {tail})"
        return f"none found above {claim}: {bound} ({self.event}; {tail})"


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
    n_jobs: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> AuditResult:
    """Certify a lower bound on the epsilon of a mechanism, and compare it with the claim.

    Search runs choose the pair and the rule (or event, or point) that reveal most; the bound
    comes from final runs on that one pair, which nothing was chosen on. So several pairs cost
    search time and no confidence. A mechanism whose claim is exactly true still fails with
    probability up to `alpha`: where that matters, ask for a small one.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(x, n, rng)`` returns n independent outputs on the dataset x: n numbers,
        strings, booleans or rows of them, of any type; nan is an output like another. For
        ``method="one-run"`` a dataset is a sequence of records, n is 1, and the output has one
        score per record.
    pairs : sequence of (x, x_prime)
        Datasets between which the claim should hold. For "one-run": two equally long sequences;
        the audited dataset takes each record from one or the other, by a secret coin.
    claimed_epsilon : float, at least 0
        The claim.
    delta : float in [0, 1), default=0.0
        The delta of the claim. The label and local tests are for 0.
    n_search : int, default=20_000
        Runs per dataset in the search, on each pair.
    n_final : int, default=100_000
        Runs per dataset in the final test; the label test makes twice as many by secret coins.
        "one-run" makes one search run and one final run whatever the two numbers say.
    alpha : float in (0, 1), default=0.05
        Probability of a bound above the true epsilon.
    method : {"label", "pair", "local", "one-run"}, default="label"
        Guess on which dataset a run was made; compare how often one event happens; compare two
        estimated densities at one point (approximate, at most three dimensions); guess many
        coins after a single run.
    n_jobs : int or None, default=None
        Parallel jobs over the pairs of the search.
    rng : int, Generator or None, default=None
        Source of randomness. Results do not depend on `n_jobs`.

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
    Askin, Kutta and Dette, "Statistical Quantification of Differential Privacy: A Local
    Approach", IEEE S&P 2022 (local). Steinke, Nasr and Jagielski, "Privacy Auditing with One (1)
    Training Run", NeurIPS 2023 (the bound on guesses, for one run and for independent runs).

    Examples
    --------
    >>> from skdp.audit import audit_epsilon
    >>> def half_the_noise(x, n, rng):
    ...     return x + rng.laplace(scale=0.5, size=n)
    >>> result = audit_epsilon(half_the_noise, [(0.0, 1.0)], claimed_epsilon=1.0, rng=0)
    >>> result.violated, 1.9 < result.lower_bound < 2.0
    (True, True)
    """
    pairs = _check(pairs, claimed_epsilon, delta, n_search, n_final, alpha, method)
    seed = reproducible_seed(rng)
    search, final = _STAGES[method]
    children = np.random.SeedSequence(seed).spawn(len(pairs) + 1)
    found = Parallel(n_jobs=n_jobs)(
        delayed(search)(
            mechanism, pair, n_search, n_final, alpha, delta, np.random.default_rng(child)
        )
        for pair, child in zip(pairs, children, strict=False)
    )
    best = int(np.argmax([value for value, _ in found]))
    outcome = final(
        mechanism, pairs[best], found[best][1], n_final, alpha, delta,
        np.random.default_rng(children[-1]),
    )  # fmt: skip
    searched = {"n_search": 1 if method == "one-run" else n_search, "n_pairs": len(pairs)}
    return AuditResult(
        lower_bound=float(outcome["lower_bound"]),
        estimate=float(outcome["estimate"]),
        claimed_epsilon=float(claimed_epsilon),
        delta=float(delta),
        violated=bool(outcome["lower_bound"] > claimed_epsilon),
        pair=best,
        direction=outcome["direction"],
        event=outcome["event"],
        method=method,
        alpha=float(alpha),
        sizes=searched | outcome["sizes"],
        resolution=float(outcome["resolution"]),
        seed=seed,
    )


class _Outcome(TypedDict):
    """What the final stage certifies, as fields of the result."""

    lower_bound: float | NDArray[np.float64]
    estimate: float
    direction: str
    event: str
    sizes: dict[str, int]
    resolution: float


def _check(
    pairs: Sequence[Pair],
    claimed_epsilon: float,
    delta: float,
    n_search: int,
    n_final: int,
    alpha: float,
    method: str,
) -> list[Pair]:
    """Refuse parameters outside their range; return the pairs as a list."""
    pairs = list(pairs)
    check_count("n_search", n_search, "audit_epsilon", at_least=100)
    check_count("n_final", n_final, "audit_epsilon")
    are_pairs = all(isinstance(p, (tuple, list)) and len(p) == 2 for p in pairs)
    rule = "be a non-empty sequence of (x, x_prime)"
    check_rules(
        "audit_epsilon",
        pairs=(f"{len(pairs)} entries", pairs and are_pairs, rule),
        claimed_epsilon=(claimed_epsilon, claimed_epsilon >= 0, "be at least 0"),
        delta=(delta, 0 <= delta < 1, "be in [0, 1)"),
        alpha=(alpha, 0 < alpha < 1, "be in (0, 1)"),
        method=(method, method in METHODS, f"be one of {METHODS}"),
    )
    if delta > 0 and method in ("label", "local"):
        raise ValueError(
            f"The 'delta' parameter of audit_epsilon must be 0 for method={method!r}. "
            f"Got {shown(delta)}. Use method='pair'."
        )
    return pairs


def _run(mechanism: Runs, x: object, n: int, rng: np.random.Generator) -> Outputs:
    """Run the mechanism, and insist on one output per run."""
    rows = as_rows(mechanism(x, n, rng))
    if rows.ndim == 0 or len(rows) != n:
        raise ValueError(
            f"The mechanism must return n={n} outputs. Got an array of shape {rows.shape}."
        )
    return as_outputs(rows)


def _counts(mechanism: Runs, x: object, n: int, rule: Rule, rng: Rng) -> tuple[int, int]:
    """Count the guesses of x and of x' in n runs on one dataset."""
    blocks = (min(BLOCK, n - start) for start in range(0, n, BLOCK))
    each = [rule.counts(_run(mechanism, x, block, rng)) for block in blocks]
    return sum(of_x for of_x, _ in each), sum(of_y for _, of_y in each)


def _search_rules(
    choose: Callable[[Candidate], Rule], mechanism: Runs, pair: Pair, n_search: int, rng: Rng
) -> tuple[float, Rule]:
    """Learn what suits the outputs, choose thresholds for each, and keep the best rule."""
    x, y = (_run(mechanism, dataset, n_search, rng) for dataset in pair)
    if x.shape[1:] != y.shape[1:]:
        raise ValueError(
            "The mechanism must return outputs of one shape. "
            f"Got shapes {x.shape} and {y.shape} on the two datasets of a pair."
        )
    rules = [choose(c) for c in candidate_scores(x, y, seed=int(rng.integers(2**31)))]
    best = max(rules, key=lambda rule: rule.value)
    return best.value, best


def _search_label(
    mechanism: Runs, pair: Pair, n_search: int, n_final: int, alpha: float, delta: float, rng: Rng
) -> tuple[float, Rule]:
    """Find the rule that guesses best."""
    choose = partial(label_rule, alpha=alpha, n_final=n_final)
    return _search_rules(choose, mechanism, pair, n_search, rng)


def _search_pair(
    mechanism: Runs, pair: Pair, n_search: int, n_final: int, alpha: float, delta: float, rng: Rng
) -> tuple[float, Rule]:
    """Find the event whose two probabilities differ most."""
    choose = partial(pair_rule, alpha=alpha, delta=delta, n_final=n_final)
    return _search_rules(choose, mechanism, pair, n_search, rng)


def _direction(rule: Rule) -> str:
    """Name the dataset that the rule speaks for."""
    if math.isfinite(rule.above) and math.isfinite(rule.below):
        return "both"
    return "x' over x" if math.isfinite(rule.below) else "x over x'"


def _final_label(
    mechanism: Runs, pair: Pair, rule: Rule, n_final: int, alpha: float, delta: float, rng: Rng
) -> _Outcome:
    """Guess the secret coin of 2 n_final runs."""
    # Independent fair coins, grouped by outcome: the runs are exchangeable.
    n_x = int(rng.binomial(2 * n_final, 0.5))
    right_x, wrong_x = _counts(mechanism, pair[0], n_x, rule, rng)
    wrong_y, right_y = _counts(mechanism, pair[1], 2 * n_final - n_x, rule, rng)
    right, guesses = right_x + right_y, right_x + right_y + wrong_x + wrong_y
    with np.errstate(divide="ignore"):
        estimate = np.log(np.divide(right, guesses - right)) if right else 0.0
    return {
        "lower_bound": label_bound(right, guesses, alpha),
        "estimate": max(estimate, 0.0),
        "direction": _direction(rule),
        "event": f"guess {rule}",
        "sizes": {"n_final": 2 * n_final, "n_guesses": guesses, "n_right": right},
        "resolution": resolution_limit("label", n_final, alpha),
    }


def _final_pair(
    mechanism: Runs, pair: Pair, rule: Rule, n_final: int, alpha: float, delta: float, rng: Rng
) -> _Outcome:
    """Count one event in n_final runs on either dataset."""
    side = 1 if math.isfinite(rule.below) else 0
    hits = [_counts(mechanism, dataset, n_final, rule, rng)[side] for dataset in pair]
    more, less = hits[side], hits[1 - side]
    with np.errstate(divide="ignore"):
        surplus = max(more - delta * n_final, 0.0)
        estimate = np.log(np.divide(surplus, less)) if surplus else 0.0
    return {
        "lower_bound": pair_bound(more, n_final, less, n_final, alpha, delta),
        "estimate": max(estimate, 0.0),
        "direction": _direction(rule),
        "event": str(rule),
        "sizes": {"n_final": 2 * n_final, "n_hits_x": hits[0], "n_hits_x_prime": hits[1]},
        "resolution": resolution_limit("pair", n_final, alpha, delta),
    }


def _search_local(
    mechanism: Runs, pair: Pair, n_search: int, n_final: int, alpha: float, delta: float, rng: Rng
) -> tuple[float, LossPoint]:
    """Find the point whose loss has the largest lower confidence limit."""
    x, y = (_run(mechanism, dataset, n_search, rng) for dataset in pair)
    point = most_revealing_point(x, y, confidence=1 - min(alpha, POINT_ALPHA))
    return point.lower, point


def _final_local(
    mechanism: Runs,
    pair: Pair,
    point: LossPoint,
    n_final: int,
    alpha: float,
    delta: float,
    rng: Rng,
) -> _Outcome:
    """Estimate the loss at one point on fresh runs, with a one-sided limit."""
    x, y = (_run(mechanism, dataset, n_final, rng) for dataset in pair)
    fresh = loss_at(point, x, y, confidence=1 - alpha)
    return {
        "lower_bound": fresh.lower,
        "estimate": fresh.loss,
        "direction": "x over x'" if point.sign > 0 else "x' over x",
        "event": f"loss at {fresh}",
        "sizes": {"n_final": 2 * n_final},
        "resolution": fresh.resolution,
    }


def _search_one_run(
    mechanism: Runs, pair: Pair, n_search: int, n_final: int, alpha: float, delta: float, rng: Rng
) -> tuple[float, _Ends]:
    """Choose, on one run, how many of the highest and of the lowest scores to guess."""
    coins, scores = _one_run(mechanism, pair, rng)
    rules = [
        label_rule((line, line(scores[coins]), line(scores[~coins])), alpha, len(coins) / 2)
        for line in (LineScore(1), LineScore(-1))
    ]
    best = max(rules, key=lambda rule: rule.value)
    return best.value, (best.score, *best.counts(scores))


def _final_one_run(
    mechanism: Runs, pair: Pair, rule: _Ends, n_final: int, alpha: float, delta: float, rng: Rng
) -> _Outcome:
    """Guess the coins of one fresh run; the number of guesses is already fixed."""
    score, n_high, n_low = rule
    coins, outputs = _one_run(mechanism, pair, rng)
    order = np.argsort(score(outputs), kind="stable")
    canaries, guesses = len(coins), n_high + n_low
    right = int(coins[order[canaries - n_high :]].sum() + (~coins[order[:n_low]]).sum())
    with np.errstate(divide="ignore"):
        estimate = np.log(np.divide(right, guesses - right)) if right else 0.0
    return {
        "lower_bound": one_run_bound(canaries, guesses, right, alpha, delta),
        "estimate": max(estimate, 0.0),
        "direction": "both" if n_high and n_low else "x over x'" if n_high else "x' over x",
        "event": f"guess x for the {n_high} highest and x' for the {n_low} lowest {score}",
        "sizes": {"n_final": 1, "n_canaries": canaries, "n_guesses": guesses, "n_right": right},
        "resolution": one_run_bound(canaries, canaries, canaries, alpha, delta),
    }


def _one_run(mechanism: Runs, pair: Pair, rng: Rng) -> tuple[NDArray[np.bool_], Outputs]:
    """Flip a coin per record, run once, and return the coins and the scores."""
    x, y = np.asarray(pair[0]), np.asarray(pair[1])
    if x.shape != y.shape or x.ndim == 0:
        raise ValueError(
            "The 'pairs' parameter of audit_epsilon must hold two sequences of equally many records"
            f" for method='one-run'. Got shapes {x.shape} and {y.shape}."
        )
    coins = rng.random(len(x)) < 0.5
    chosen = coins.reshape((-1,) + (1,) * (x.ndim - 1))
    scores = np.asarray(mechanism(np.where(chosen, x, y), 1, rng), dtype=np.float64)
    if scores.shape != (1, len(x)) or np.isnan(scores).any():
        raise ValueError(
            f"The mechanism must return one score per record, of shape (1, {len(x)}), none of them "
            f"nan, for method='one-run'. Got an array of shape {scores.shape}."
        )
    return coins, as_outputs(scores[0])


_STAGES: dict[str, tuple[Callable[..., Any], Callable[..., _Outcome]]] = {
    "label": (_search_label, _final_label),
    "pair": (_search_pair, _final_pair),
    "local": (_search_local, _final_local),
    "one-run": (_search_one_run, _final_one_run),
}
